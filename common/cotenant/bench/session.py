"""From `main()` to the exit status: one benchmark, alone or as a tenant of a runner."""

from __future__ import annotations

import math
import sys
import traceback
from collections.abc import Sequence
from typing import Any

import torch

from cotenant.bench.alone import Alone
from cotenant.bench.chrono import Observation
from cotenant.bench.contract import Benchmark
from cotenant.bench.facts import arguments_of, source_version, tenant_facts
from cotenant.bench.loop import Loop
from cotenant.bench.outcome import outcome_of
from cotenant.bench.parameters import parse
from cotenant.bench.printed import Progress, argument_table, record_block
from cotenant.bench.run import Run
from cotenant.errors import EXIT_FAILED, EXIT_PASSED, CotenantError
from cotenant.protocol.client import Rendezvous, RunnerGoneError, wait_until

Conductor = Rendezvous | Alone
LOSSES_KEPT = 100


def main(cls: type[Benchmark], argv: Sequence[str]) -> int:
    """Run `cls` with the flags in `argv`; return 0, 1 (failed), 2 (wrong usage) or 130 (interrupted)."""
    conductor: Conductor | None = None
    try:
        conductor = Rendezvous.from_environment() or Alone(cls.__name__.lower())
        return _measure(cls, argv, conductor)
    except RunnerGoneError as error:
        print(f"{cls.__name__}: {error}", file=sys.stderr)
        return EXIT_FAILED
    except (Exception, KeyboardInterrupt) as error:
        outcome, message, status = outcome_of(error)
        if outcome == "failed" and not isinstance(error, CotenantError):
            traceback.print_exc()
        print(f"{cls.__name__}: {message}", file=sys.stderr, flush=True)
        if conductor is not None:
            conductor.failed(outcome, message)
        return status


def _measure(cls: type[Benchmark], argv: Sequence[str], conductor: Conductor) -> int:
    parsed = parse(cls, argv)
    benchmark = cls(**parsed.values)
    arguments = arguments_of(benchmark)
    if isinstance(conductor, Alone):
        conductor.begin(arguments, benchmark.report)
    print(argument_table(arguments), flush=True)
    run = Run(benchmark)
    loop = Loop(benchmark, run)
    warm_up_ns = loop.warm_up()
    assert benchmark.skip is not None
    conductor.ready(benchmark.number, benchmark.repeat, benchmark.skip, warm_up_ns)
    t0_ns, number, repeat = conductor.await_go()
    wait_until(t0_ns)
    losses = Losses()
    progress = Progress(repeat)
    for index in range(repeat):
        seen = loop.observe(number)
        losses.take(seen)
        conductor.observation(
            index=index,
            start_ns=seen.start_ns,
            end_ns=seen.end_ns,
            items=seen.items,
            data_wait_ns=seen.data_wait_ns,
            event_ns=seen.event_ns,
        )
        progress.show(index, losses.last)
    conductor.done()
    load_end_ns = loop.load_until(conductor.stopped)
    record: dict[str, Any] = {
        "arguments": arguments,
        "ignored": parsed.ignored,
        "item": cls.item,
        "version": source_version(cls),
        "number": number,
        "repeat": repeat,
        "load_end_ns": load_end_ns,
        **losses.summary(),
        **tenant_facts(run, loop.observed_dtype),
    }
    print(record_block(conductor.record(record)), flush=True)
    return EXIT_PASSED


class Losses:
    """Copies each observation's losses off the device, after its clock has stopped, and counts what is not finite."""

    def __init__(self) -> None:
        self._recent: list[float] = []
        self._means: list[float] = []
        self._checked = 0
        self._non_finite = 0

    @property
    def last(self) -> float | None:
        return self._recent[-1] if self._recent else None

    def take(self, seen: Observation) -> None:
        if not seen.losses:
            return
        values = torch.stack(seen.losses).double().cpu().tolist()
        self._recent = (self._recent + values)[-LOSSES_KEPT:]
        self._means.append(math.fsum(values) / len(values) if all(map(math.isfinite, values)) else math.nan)
        self._checked += len(values)
        self._non_finite += sum(not math.isfinite(value) for value in values)

    def summary(self) -> dict[str, Any]:
        """Return batch_loss (the last 100), epoch_loss (a mean per observation) and what the check saw."""
        return {
            "batch_loss": self._recent,
            "epoch_loss": self._means,
            "losses_checked": self._checked,
            "losses_non_finite": self._non_finite,
        }
