"""The clock of the reference suite's scripts: `with chrono.time("train")` in a loop, on top of `cotenant.measure`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import fmean, pstdev
from typing import Any

from cotenant.exec.measure import measure
from cotenant.exec.optimizer import wait_for_device

MEASURED = "train"


class MultiStageChrono:
    """Times the blocks below `with chrono.time(NAME)`; `sync` is called before each reading of the clock.

    A block of the name `train` is also a step of `measure`, from the end of the step before. Under a runner this
    process is a tenant: it waits for GO in one of these steps, and is `over` after STOP. The report leaves out each
    stage's first `skip_obs` blocks; if there are no others, it has the last one.
    """

    def __init__(self, skip_obs: int = 10, sync: Callable[[], object] = wait_for_device, name: str = "") -> None:
        self.skip_obs, self.sync, self.name = skip_obs, sync, name
        self.seconds: dict[str, list[float]] = {}
        self.items: dict[str, float] = {}
        self._measure = measure()

    @contextmanager
    def time(self, name: str, items: float | None = None) -> Iterator[None]:
        """Time a block, in which `items` items are processed, unless it raises."""
        if name == MEASURED and name not in self.seconds:
            self._measure.__enter__()
        seconds = self.seconds.setdefault(name, [])
        self.sync()
        begin_s = time.perf_counter()
        yield
        self.sync()
        seconds.append(time.perf_counter() - begin_s)
        if items is not None:
            self.items[name] = items
        if name == MEASURED:
            self._measure.step(1.0 if items is None else items)

    @property
    def over(self) -> bool:
        """True if the runner needs nothing more, so that a program that is a job of a suite can end."""
        return self._measure.over

    def to_dict(self, base: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Return every stage by its name, and the items per second of stages with items, beside `base`."""
        told = dict(base or {}) | ({"name": self.name} if self.name else {})
        for name, seconds in self.seconds.items():
            kept = seconds[self.skip_obs :] or seconds[-1:]
            if not kept:  # Its first block has raised.
                continue
            mean, least, most = fmean(kept), min(kept), max(kept)
            told[name] = {"avg": mean, "min": least, "max": most, "sd": pstdev(kept), "count": len(kept), "unit": "s"}
            if items := self.items.get(name):
                rates = {"avg": items / mean, "max": items / least, "min": items / most}
                told[f"{name}_item"] = rates | {"range": rates["max"] - rates["min"], "unit": "items/sec"}
        return told

    def report(self, base: Mapping[str, Any] | None = None) -> None:
        """End the measurement, and print every stage as JSON."""
        self._measure.__exit__(None, None, None)
        print(json.dumps(self.to_dict(base), indent=2), flush=True)
