"""`cotenant.measure`: counts the steps of any loop, from within the program."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from statistics import median
from types import TracebackType
from typing import Any

from cotenant.exec.optimizer import is_first_rank, wait_for_device
from cotenant.exec.settings import Settings, address, this_interpreter
from cotenant.exec.steps import Steps
from cotenant.protocol.client import Rendezvous
from cotenant.protocol.messages import SOCKET_VARIABLE


@dataclass(frozen=True)
class Measured:
    """The measurement of a loop: `rate_items_s` is the median over all steps but the first, None for fewer than two."""

    item: str
    steps: int
    items: float
    seconds: float
    rate_items_s: float | None


def _border() -> float:
    wait_for_device()
    return 0.0


class measure:  # noqa: N801 # It is used like a function: `with cotenant.measure() as measured:`
    """Counts the steps of a loop. Under a runner this process is a tenant: it waits for GO in one of its steps, and is
    `over` after STOP. Without a runner it is a plain measurement, whose `result` can be read at any time.

        with cotenant.measure(item="row") as measured:
            for batch in loader:
                train(batch)
                measured.step(len(batch))

    With several ranks only the first one is measured.
    """

    def __init__(self, item: str = "item") -> None:
        self._item = item
        self._steps: Steps | None = None
        self._starts: dict[str, int] = {}
        self._times: list[tuple[float, float]] = []
        self._begin_s = self._last_s = 0.0

    def __enter__(self) -> measure:
        if SOCKET_VARIABLE in os.environ and is_first_rank():
            settings = Settings.from_environment() or Settings(directory=os.environ["TMPDIR"])
            if settings.claim():
                runner = Rendezvous(*address(), start=settings.start)
                self._starts = settings.starts
                self._steps = Steps(runner, settings, self._item, self._facts, _border)
                self._steps.step()
            else:
                print("cotenant: steps are counted already: enter measure before the first one.", file=sys.stderr)
        self._begin_s = self._last_s = time.perf_counter()
        return self

    def step(self, items: float = 1.0) -> None:
        """Count a step of `items` items. Raises ConnectionError if the runner is gone."""
        if self._steps is not None:
            self._steps.step(items)
            return
        wait_for_device()
        now_s = time.perf_counter()
        self._times.append((items, now_s - self._last_s))
        self._last_s = now_s

    @property
    def over(self) -> bool:
        """True once the runner needs nothing more, so that a program that is a job of a suite can end."""
        return self._steps is not None and self._steps.over

    @property
    def result(self) -> Measured:
        """The result of a plain measurement so far."""
        rates = [items / seconds for items, seconds in self._times[1:] if seconds > 0]
        return Measured(
            self._item,
            len(self._times),
            sum(items for items, _ in self._times),
            self._last_s - self._begin_s,
            median(rates) if rates else None,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._steps is not None:
            self._steps.ended(by_exception=error is not None)

    def _facts(self) -> dict[str, Any]:
        return {"observed": {"counted_by": "measure", **self._starts}, "torch": this_interpreter()}
