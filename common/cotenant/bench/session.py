"""Runs one benchmark from `main()` to the exit status, alone or as a tenant of a runner, and prints its lines."""

from __future__ import annotations

import atexit
import inspect
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from cotenant.bench.alone import Alone
from cotenant.bench.arguments import Parsed, parse
from cotenant.bench.auditor import borders
from cotenant.bench.contract import Benchmark
from cotenant.bench.facts import Losses, arguments_of, tenant_facts, without_effect
from cotenant.bench.loop import Loop
from cotenant.bench.outcome import outcome_of
from cotenant.bench.run import Run
from cotenant.bench.together import Together
from cotenant.bench.world import World
from cotenant.confidential import arguments_without
from cotenant.errors import EXIT_FAILED, EXIT_PASSED, CotenantError
from cotenant.machine.topology import require_linux
from cotenant.protocol.client import Rendezvous, RunnerGoneError
from cotenant.protocol.messages import NODE_VARIABLE, SOCKET_VARIABLE
from cotenant.protocol.meter import Counterpart, Meter
from cotenant.suite.task_source import version_of

RULE = "-" * 80


def argument_table(arguments: Mapping[str, Any]) -> str:
    """Return the arguments between two rules, names right-aligned in 30 columns; confidential values are hidden."""
    lines = [f"{name:>30}: {_plain(value)}" for name, value in arguments_without(arguments).items()]
    return "\n".join([RULE, *lines, RULE])


def observation_line(index: int, repeat: int, eta_s: float, loss: float | None) -> str:
    """Return the line of observation `index` of `repeat`, with the minutes left and its last loss."""
    shown = f"{'none':>8}" if loss is None else f"{loss:8.4f}"
    return f"[{index:3d}/{repeat:3d}] | ETA: {eta_s / 60:6.2f} min | Batch Loss {shown}"


def record_block(record: Mapping[str, Any]) -> str:
    """Return the record as JSON between two rules."""
    return f"{RULE}\n{json.dumps(record, indent=1, default=str)}\n{RULE}"


def _plain(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


RUNNER_READS_S = 0.3
"""Longer than a runner leaves a message unread: it reads ten times a second."""


def main(benchmark: type[Benchmark], argv: Sequence[str] | None = None) -> NoReturn:
    """Run a benchmark with the words of its command line, alone or as a tenant, and exit with its status."""
    status = run_benchmark(benchmark, sys.argv[1:] if argv is None else argv)
    if SOCKET_VARIABLE in os.environ or NODE_VARIABLE in os.environ:
        # A thread of torch that asks for the interpreter during its shutdown ends the process by SIGABRT, after
        # everything was measured (pytorch issues 38228, 190489). So a tenant leaves without shutdown.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def run_benchmark(cls: type[Benchmark], argv: Sequence[str]) -> int:
    """Run `cls` with the flags in `argv`; return 0, 1 (failed), 2 (wrong usage) or 130 (interrupted)."""
    batch_size = None
    try:
        world = World.from_environment()
        world.write_apart()
        runner: Counterpart = (
            Together.from_environment(world) or Rendezvous.from_environment() or Alone(cls.__name__.lower(), world)
        )
    except (OSError, RuntimeError, CotenantError) as error:
        return _complain(cls, error)
    try:
        require_linux()
        parsed = parse(cls, argv)
        if os.environ.get(NODE_VARIABLE) and not isinstance(runner, Together):
            raise CotenantError(
                "This process runs on one of several nodes, but was not started as one of their ranks.",
                "Over several nodes, python -m cotenant.bench.ranks starts the ranks, as the run.sh of such jobs does.",
            )
        benchmark = cls(**parsed.values)
        # The value given, which DataParallel multiplies.
        batch_size = parsed.values["batch_size"]
        return _measure(benchmark, parsed, runner, world)
    except RunnerGoneError as error:
        return _complain(cls, error)
    except (Exception, KeyboardInterrupt) as error:
        outcome, message, status = outcome_of(error, batch_size, under_runner=not isinstance(runner, Alone))
        if outcome == "failed" and not isinstance(error, CotenantError):
            traceback.print_exc()
        _complain(cls, message)
    try:
        runner.failed(outcome, message)
        if world.size > 1:
            # The other ranks fail because this one leaves, and the runner has to hear of this one first.
            time.sleep(RUNNER_READS_S)
    except (RunnerGoneError, CotenantError) as error:
        _complain(cls, error)
    return status


def _complain(cls: type[Benchmark], words: object) -> int:
    """Print words after this benchmark's name, and return the exit status of a failed one."""
    print(f"{cls.__name__}: {words}", file=sys.stderr, flush=True)
    return EXIT_FAILED


def _measure(benchmark: Benchmark, parsed: Parsed, runner: Counterpart, world: World) -> int:
    arguments = arguments_of(benchmark)
    version = version_of(Path(inspect.getfile(type(benchmark))))
    work = {"arguments": arguments, "ignored": parsed.ignored, "item": benchmark.item, "version": version}
    meter = Meter(runner, work)
    # Ranks do the same and would say the same: only the first talks.
    say: Callable[..., None] = print if world.rank == 0 else lambda *_, **__: None
    for sentence in (*parsed.renamed, *(f"{flag} is accepted, without effect." for flag in parsed.ignored)):
        say(sentence, file=sys.stderr)
    say(argument_table(arguments), flush=True)
    run = Run(benchmark)
    for finding in run.findings:
        print(finding.sentence, file=sys.stderr)
    loop = Loop(benchmark, run)
    warm_up_ns = _warm_up(loop, runner, run.tries_algorithms)
    assert benchmark.skip is not None
    meter.ready(benchmark.number, benchmark.repeat, benchmark.skip, warm_up_ns)
    loop.settle(meter.settled_ns, meter.number)
    losses, audits, start_s = Losses(), borders(meter.number, meter.repeat), time.monotonic()
    for index in meter.observations():
        observation = loop.observe(meter.number)
        losses.take(observation)
        meter.observed(
            start_ns=observation.start_ns,
            end_ns=observation.end_ns,
            items=observation.items,
            data_wait_ns=observation.data_wait_ns,
            event_ns=observation.event_ns,
            issued_ns=observation.issued_ns,
        )
        eta_s = (time.monotonic() - start_s) / (index + 1) * (meter.repeat - index - 1)
        say(observation_line(index, meter.repeat, eta_s, losses.last), flush=True)
        if index + 1 in audits:
            loop.audit()
    loop.audit()
    load_end_ns = loop.load_until(meter.stopped)
    amount = {"number": meter.number, "repeat": meter.made, "ignored": without_effect(parsed, run)}
    record = amount | losses.summary() | tenant_facts(run, loop)
    say(record_block(meter.record(load_end_ns, record)), flush=True)
    run.world.leave()
    # A runner finds the outcome `nan` in the record itself.
    return EXIT_FAILED if isinstance(runner, Alone) and record["losses_non_finite"] else EXIT_PASSED


def _warm_up(loop: Loop, runner: Counterpart, tries_algorithms: bool) -> list[int]:
    """Try algorithms and warm up, in a turn if neighbours would change the result; return the steps' nanoseconds."""
    if tries_algorithms or runner.warms_up_alone:
        runner.turn()
    if tries_algorithms:
        # The fastest algorithms alone and beside neighbours may differ.
        loop.try_out()
        if not runner.warms_up_alone:
            runner.turned()
    warm_up_ns = loop.warm_up()
    if runner.warms_up_alone:
        runner.turned()
    return warm_up_ns
