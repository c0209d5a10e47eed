"""Scripts of the reference suite as tenants: its Experiment, whose stage `train` is measured by a runner.

Such a script owns its loop: `for _ in range(args.repeat): with chrono.time("train"): for _ in range(args.number)`.
"""

from __future__ import annotations

import argparse
import functools
import math
import os
import time
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from cotenant.bench.alone import Alone
from cotenant.bench.arguments import TAKEN
from cotenant.bench.device import Device, choose_device
from cotenant.bench.facts import Losses
from cotenant.bench.session import Counterpart, argument_table, observation_line, record_block
from cotenant.bench.stages import MultiStageChrono, Stage
from cotenant.bench.world import World
from cotenant.protocol.client import Rendezvous, wait_until
from cotenant.suite.task_source import version_of

MEASURED = "train"
LEAST_KEPT = 6
"""Observations that an interval of their median takes."""
COOL_DOWN = 5
"""A script makes one more observation, unmeasured, for every so many: its neighbours may still be measured."""
POLL_S = 0.01


def parser_base(description: str | None = None, **more: Any) -> argparse.ArgumentParser:
    """Return a parser to which `Experiment.get_arguments` adds the flags that all scripts have."""
    return argparse.ArgumentParser(description=description, **more)


class _Arguments(Namespace):
    """The arguments of a script. Reading `repeat` tells the runner that it is ready: training is about to begin."""

    def __init__(self, experiment: Experiment, **values: Any) -> None:
        object.__setattr__(self, "_experiment", experiment)
        super().__init__(**values)

    def __getattribute__(self, name: str) -> Any:
        if name == "repeat":
            object.__getattribute__(self, "_experiment").meet()
        return object.__getattribute__(self, name)


class _Measured(MultiStageChrono):
    def __init__(self, experiment: Experiment, **how: Any) -> None:
        super().__init__(**how)
        self._experiment = experiment

    def opening(self, name: str) -> None:
        if name == MEASURED:
            self._experiment.meet()

    def closed(self, name: str, start_ns: int, end_ns: int) -> None:
        if name == MEASURED:
            self._experiment.observed(start_ns, end_ns)


class Experiment:
    """Takes a script's arguments, losses and clock, and writes our record at `report()`."""

    def __init__(self, module: str, skip_obs: int = 10) -> None:
        self._script = Path(module)
        self.name = os.environ.get("BENCH_NAME", self._script.stem)
        self.skip_obs = skip_obs
        self.metrics: dict[str, float] = {}
        self.args: Any = None
        self._chrono: _Measured | None = None
        self._runner: Counterpart = Rendezvous.from_environment() or Alone(self.name, World())
        self._losses = Losses()
        self._given: tuple[int, int] | None = None
        """`number` and `repeat` that count, once the runner has said GO."""
        self._made = 0
        self._done = False
        self._load_end_ns = 0

    def get_arguments(
        self, parser: argparse.ArgumentParser, argv: Sequence[str] | None = None, show: bool = True, **_: Any
    ) -> Any:
        """Return the script's arguments, with those that all scripts have."""
        _add_common(parser)
        self.args = _Arguments(self, **vars(parser.parse_args(argv)))
        self._chrono = _Measured(self, name=self.name, skip_obs=self.skip_obs, sync=self._chosen.synchronize)
        work = {"arguments": self._arguments(), "ignored": [], "item": "item", "version": version_of(self._script)}
        self._runner.begin(work)
        if show:
            print(argument_table(self._arguments()), flush=True)
        return self.args

    def get_device(self) -> torch.device:
        """Seed torch, and return the device to train on."""
        torch.manual_seed(self.args.seed)
        return self._chosen.torch_device

    def chrono(self) -> MultiStageChrono:
        assert self._chrono is not None, "get_arguments comes first"
        return self._chrono

    def log_batch_loss(self, value: float) -> None:
        self._losses.add([float(value)])

    def log_epoch_loss(self, value: float) -> None:
        self._losses.means.append(float(value))

    def log_metric(self, name: str, value: float) -> None:
        """Keep a number by its name; the last one counts."""
        self.metrics[name] = float(value)

    def show_eta(self, index: int, stage: Stage, message: str = "") -> None:
        """Print the line of an observation."""
        repeat = vars(self.args)["repeat"]
        line = observation_line(index, repeat, stage.avg * (repeat - index - 1), self._losses.last)
        print(f"{line} | {message}" if message else line, flush=True)

    def meet(self) -> None:
        """Say READY and wait for GO, once: the runner's amount counts, and the script goes on beyond that."""
        if self._given is not None:
            return
        asked = vars(self.args)
        number, repeat = asked["number"], asked["repeat"]
        # As many are left out as the script asks for, or as of any benchmark where too few would be left.
        skip = self.skip_obs if repeat - self.skip_obs >= LEAST_KEPT else min(5, repeat // 3)
        self._runner.ready(number, repeat, skip, [])
        t0_ns, number, repeat = self._runner.await_go()
        self._given = number, repeat
        alone = isinstance(self._runner, Alone)
        asked |= {"number": number, "repeat": repeat if alone else repeat + math.ceil(repeat / COOL_DOWN)}
        wait_until(t0_ns)

    def observed(self, start_ns: int, end_ns: int) -> None:
        """Take the time of one stage of training."""
        assert self._given is not None
        number, repeat = self._given
        if not self._done:
            self._runner.observation(
                index=self._made,
                start_ns=start_ns,
                end_ns=end_ns,
                items=float(number * self.args.batch_size),
                data_wait_ns=0,
            )
            self._made += 1
            self._done = self._made == repeat or self._runner.enough()
            if self._done:
                self._runner.done()
        elif self._runner.stopped():
            # Nobody measures any more: the rest of the script's loop has no batches.
            self.args.number = 0
        if self.args.number:
            self._load_end_ns = end_ns

    def report(self, results: dict[str, Any] | None = None) -> None:
        """Write the record, as soon as no neighbour is measured any more, and print it."""
        if not self._done:
            self._runner.failed("failed", f"the script ended after {self._made} observations of those asked for")
            return
        while not self._runner.stopped():
            time.sleep(POLL_S)
        numbers = {name: value for name, value in (results or {}).items() if isinstance(value, int | float)}
        record = {
            "arguments": self._arguments(),
            "number": self._given and self._given[0],
            "repeat": self._made,
            "load_end_ns": self._load_end_ns,
            "gpu": self._chosen.name if self._chosen.is_accelerator else "",
            **self._losses.summary(),
            "metrics": self.metrics | numbers,
            "observed": {"device": str(self._chosen.torch_device), "world_size": 1},
            "torch": {"version": str(torch.__version__)},
        }
        print(record_block(self._runner.record(record)), flush=True)

    @functools.cached_property
    def _chosen(self) -> Device:
        return choose_device(self.args.cuda)

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments as plain values, but those whose names a record has itself."""
        return {
            name: value if isinstance(value, str | int | float | None) else str(value)
            for name, value in vars(self.args).items()
            if name not in TAKEN and not name.startswith("_")
        }


def _add_common(parser: argparse.ArgumentParser) -> None:
    """Add the flags of every script, but those that it declares itself."""
    own = set(parser._option_string_actions)

    def add(*names: str, **how: Any) -> None:
        if not own.intersection(names):
            parser.add_argument(*names, **how)

    add("--batch-size", "-b", type=int, default=1, help="rows in one batch")
    add("--cuda", action="store_true", dest="cuda", default=True, help="use an accelerator where there is one")
    add("--no-cuda", action="store_false", dest="cuda", help="use none")
    add("--workers", "-j", type=int, default=len(os.sched_getaffinity(0)), help="loader processes")
    add("--seed", "-s", type=int, default=0, help="seed of every generator")
    add("--devices", type=int, default=1, help="number of devices")
    add("--repeat", type=int, default=100, help="observations")
    add("--number", type=int, default=10, help="batches in one observation")
    add("--report", default=None, help="a .json file or a directory for the record, without a runner")
