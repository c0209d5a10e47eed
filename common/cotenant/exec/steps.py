"""The rendezvous of a program with its own loop: it reports its steps one by one, and waits for GO in one of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator
from typing import Any

from cotenant.exec.settings import Settings
from cotenant.protocol.client import Rendezvous, RunnerGoneError
from cotenant.protocol.messages import UNSAID
from cotenant.protocol.meter import DONE, OVER, WARM_UP, Meter

WARM_UP_STEPS, LEAST_STEPS = 10, 3
LONG_WARM_UP_NS = 5_000_000_000
REPEAT, SKIP = 60, 10
NOTHING = {
    "line": "No line held more than the line before. Let the group of --count-line match a total that rises.",
    "step": "No batch of a DataLoader was seen between steps. Leave out --item row.",
}


class Steps:
    """Takes a program through the rendezvous: `step(items)` at the end of each step, `ended()` at the program's end.

    `item` is the unit of the count. `border` waits for the device at the end of an observation, and returns the items
    that were counted but not done. `facts` returns the program's part of its record. An early end is not reported if
    `settings` start the program again.
    """

    def __init__(
        self,
        runner: Rendezvous,
        settings: Settings,
        item: str,
        facts: Callable[[], dict[str, Any]],
        border: Callable[[], float] = lambda: 0.0,
        word: str = "step",
    ) -> None:
        self._runner, self._settings, self._item, self._facts = runner, settings, item, facts
        self._border, self._word = border, word
        self._meter = Meter(runner, {"item": item})
        self.count = 0
        self._load_end_ns = 0
        self._going = self._go_through()
        next(self._going)

    def step(self, items: float = 1.0) -> None:
        """Count a step of `items` items. Raises RunnerGoneError."""
        self.count += 1
        self._going.send(items)

    @property
    def over(self) -> bool:
        """True once the program's record or failure is sent."""
        return self._meter.phase == OVER

    def ended(self, by_exception: bool = False) -> None:
        """Hand over the record of a program that ends by itself if it was measured, else fail with its count of steps.

        After an exception, which the log and the exit status show, only observations are handed over.
        """
        phase = self._meter.phase
        if by_exception or (phase < DONE and self._settings.again):
            with contextlib.suppress(RunnerGoneError):
                self._runner.flush()
        elif phase == DONE:
            self._record()
        elif phase < DONE:
            when = "before it was measured" if phase == WARM_UP else "while it was measured"
            self._meter.failed(
                f"The program ended by itself after {self.count} {self._word}s, {when}. Give it more to do, or start "
                "it again with --again; a shorter command is measured as a whole if it does not step."
            )

    def _go_through(self) -> Generator[None, float, None]:
        meter, border = self._meter, self._border
        # The first step is not timed: its start is not known.
        yield
        warm_up_ns, credited = yield from self._warm_up()
        if credited:
            meter.ready(UNSAID, REPEAT, SKIP, warm_up_ns)
            while time.perf_counter_ns() < meter.settled_ns:
                yield
                border()
            for _ in meter.observations():
                items, start_ns = 0.0, time.perf_counter_ns()
                for _ in range(meter.number):
                    items += yield
                items -= border()
                self._load_end_ns = time.perf_counter_ns()
                meter.observed(start_ns, self._load_end_ns, max(0.0, items))
            self._settings.finish()
            while not meter.stopped():
                yield
                self._load_end_ns = time.perf_counter_ns()
            self._record()
        else:
            meter.failed(NOTHING[self._word])
            self._settings.finish()
        while True:
            yield

    def _warm_up(self) -> Generator[None, float, tuple[list[int], float]]:
        """Warm up; return the nanoseconds of each step, and the items of all."""
        times_ns: list[int] = []
        credited = 0.0
        # A turn would delay only the reader of a program's lines, while the program itself goes on.
        has_turn = self._runner.warms_up_alone and self._word == "step"
        if has_turn:
            self._runner.turn()
        begin_ns = last_ns = time.perf_counter_ns()
        while len(times_ns) < WARM_UP_STEPS and (len(times_ns) < LEAST_STEPS or last_ns - begin_ns < LONG_WARM_UP_NS):
            credited += yield
            self._border()
            now_ns = time.perf_counter_ns()
            times_ns.append(now_ns - last_ns)
            last_ns = now_ns
        if has_turn:
            self._runner.turned()
        return times_ns, credited

    def _record(self) -> None:
        self._meter.record(self._load_end_ns, {"item": self._item, **self._facts()})
