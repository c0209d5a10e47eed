"""Observers of a suite's progress, who must not disturb it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from cotenant.results.record import Record


class Observer(Protocol):
    """Its methods are called on the runner's own thread, none of them from GO to the last DONE."""

    def preparing(self, script: str) -> None:
        """Data is prepared by this program, which reports on itself."""

    def launch(self, position: int, job: str, tenants: int) -> None:
        """The launch of this position, from 1 on, begins: its tenants are started and enter their slices."""

    def building(self, ready: int) -> None:
        """All tenants are in their slices; so many have built and warmed up, and wait for GO."""

    def measuring(self, about_s: float | None) -> None:
        """GO is next, and no call comes for about so many seconds, where that can be known."""

    def stopping(self) -> None:
        """The last DONE has come, and STOP is sent."""

    def tick(self) -> None:
        """About a second has gone by."""

    def ended(self, records: Sequence[Record]) -> None:
        """The launch has ended, and these records are written."""


class Unobserved:
    """Nobody wants to know."""

    def _nothing(self, *values: Any, **named: Any) -> None:
        pass

    preparing = launch = building = measuring = stopping = tick = ended = _nothing
