"""The conversation of one process with its runner, from its warm-up to its record. Standard library only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

from cotenant.protocol.client import wait_until

WARM_UP, MEASURED, DONE, OVER = range(4)
"""The phases of a process."""


class Counterpart(Protocol):
    """The other end of the conversation: the `Rendezvous` with a runner, or a stand-in for it."""

    settle_ns: int
    made: int
    warms_up_alone: bool

    def begin(self, work: dict[str, Any]) -> None: ...
    def turn(self) -> None: ...
    def turned(self) -> None: ...
    def ready(self, number: int, repeat: int, skip: int, warm_up_ns: list[int]) -> None: ...
    def await_go(self) -> tuple[int, int, int]: ...
    def observation(self, **fields: Any) -> None: ...
    def enough(self) -> bool: ...
    def done(self) -> None: ...
    def stopped(self) -> bool: ...
    def record(self, record: dict[str, Any]) -> dict[str, Any]: ...
    def failed(self, outcome: str, message: str) -> None: ...


class Meter:
    """Measures the load of the code that uses it.

    Use: `ready(...)` after the warm-up; unmeasured load until `settled_ns`; one `observed(...)` of `number` steps in
    each round of `observations()`; unmeasured load until `stopped()`; `record(...)`.
    """

    def __init__(self, runner: Counterpart, work: dict[str, Any]) -> None:
        """Say what `work` is to be done, so that a record names it in any case."""
        self._runner = runner
        self.phase = WARM_UP
        self.number = self.repeat = self.settled_ns = 0
        """From GO on: the steps of an observation, the most observations, and the time when the first one may begin."""
        self.made = 0
        """The observations so far, earlier starts of a restarted program included."""
        runner.begin(work)

    def ready(self, number: int, repeat: int, skip: int, warm_up_ns: list[int]) -> None:
        """Request an amount, and return at the moment of GO. Raises RunnerGoneError."""
        self._runner.ready(number, repeat, skip, warm_up_ns)
        t0_ns, self.number, self.repeat = self._runner.await_go()
        wait_until(t0_ns)
        self.settled_ns, self.made = t0_ns + self._runner.settle_ns, self._runner.made

    def observations(self) -> Iterator[int]:
        """Yield the index of each observation, until all are made or the runner has enough; then say DONE."""
        self.phase = MEASURED
        while self.made < self.repeat:
            yield self.made
            if self._runner.enough():
                break
        self._runner.done()
        self.phase = DONE

    def observed(self, start_ns: int, end_ns: int, items: float, data_wait_ns: int = 0, **fields: Any) -> None:
        """Report the observation of this round, made between two reads of `time.perf_counter_ns`."""
        times = {"start_ns": start_ns, "end_ns": end_ns, "data_wait_ns": data_wait_ns}
        self._runner.observation(index=self.made, items=items, **times, **fields)
        self.made += 1

    def stopped(self) -> bool:
        """Return whether the load may end. Never blocks. Raises RunnerGoneError."""
        return self._runner.stopped()

    def record(self, load_end_ns: int, record: dict[str, Any]) -> dict[str, Any]:
        """Hand over this process's part of the record, and return it."""
        self.phase = OVER
        return self._runner.record({**record, "load_end_ns": load_end_ns})

    def failed(self, message: str) -> None:
        """Give the reason why there will be no record."""
        self.phase = OVER
        self._runner.failed("failed", message)
