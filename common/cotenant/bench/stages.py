"""A clock of several stages, by the names that scripts of the reference suite use."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import fmean, pstdev
from typing import Any


@dataclass(slots=True)
class Stage:
    """The seconds of one stage; the first `skip_obs` are not kept, unless there are no others."""

    skip_obs: int
    seconds: list[float] = field(default_factory=list)

    @property
    def kept(self) -> list[float]:
        return self.seconds[self.skip_obs :] or self.seconds[-1:]

    @property
    def count(self) -> int:
        return len(self.kept)

    @property
    def val(self) -> float:
        """The last."""
        return self.seconds[-1]

    @property
    def avg(self) -> float:
        return fmean(self.kept)

    @property
    def sd(self) -> float:
        return pstdev(self.kept)

    @property
    def min(self) -> float:
        return min(self.kept)

    @property
    def max(self) -> float:
        return max(self.kept)

    @property
    def total(self) -> float:
        return sum(self.kept)

    def to_dict(self) -> dict[str, Any]:
        """Return a stage as a report of the reference suite has it; times in seconds."""
        names = ("avg", "min", "max", "sd", "count")
        return {name: getattr(self, name) for name in names if self.seconds} | {"unit": "s"}


class MultiStageChrono:
    """Times the code below `with chrono.time(NAME) as stage`, each name a stage of its own.

    `sync` is called before each reading of the clock, so that a device's work is in it.
    """

    def __init__(
        self,
        skip_obs: int = 10,
        sync: Callable[[], object] | None = None,
        disabled: bool = False,
        name: str | None = None,
    ) -> None:
        self.chronos: dict[str, Stage] = {}
        self.skip_obs = skip_obs
        self.sync = sync or (lambda: None)
        self.disabled = disabled
        self.name = name

    @contextmanager
    def time(self, name: str, skip_obs: int | None = None, verbose: bool = False) -> Iterator[Stage]:
        """Time a block, unless it raises; of a stage that is new `skip_obs` are not kept."""
        stage = self.chronos.get(name, Stage(self.skip_obs if skip_obs is None else skip_obs))
        self.opening(name)
        self.sync()
        start_ns = time.perf_counter_ns()
        yield stage
        self.sync()
        end_ns = time.perf_counter_ns()
        if self.disabled:
            return
        self.chronos[name] = stage
        stage.seconds.append((end_ns - start_ns) / 1e9)
        self.closed(name, start_ns, end_ns)
        if verbose:
            print(f"{name:>30}: {stage.val:8.4f} s, avg {stage.avg:8.4f} s, count {stage.count}")

    def opening(self, name: str) -> None:
        """Do the work before a stage's clock starts: nothing for a plain clock."""

    def closed(self, name: str, start_ns: int, end_ns: int) -> None:
        """Do the work after a stage's clock: nothing for a plain one."""

    def to_dict(self, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return every stage by its name, beside those of `base`."""
        named = {} if self.name is None else {"name": self.name}
        return dict(base or {}) | named | {name: stage.to_dict() for name, stage in self.chronos.items()}

    def to_json(self, base: Mapping[str, Any] | None = None, **how: Any) -> str:
        return json.dumps(self.to_dict(base), **({"indent": 2} | how))

    def report(self, base: Mapping[str, Any] | None = None) -> None:
        """Print every stage."""
        print(self.to_json(base))
