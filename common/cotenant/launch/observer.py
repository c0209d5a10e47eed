"""Observers of a suite's progress, which must not disturb it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from cotenant.results.record import Record


class Observer(Protocol):
    """Reports progress; the runner calls it on its own thread, and never from GO to the last DONE."""

    def preparing(self, script: str) -> None:
        """Hear that this program prepares data; it reports its own progress."""

    def launch(self, position: int, job: str, tenants: int) -> None:
        """Hear that the launch number `position`, from 1 on, begins: its tenants start and enter their slices."""

    def building(self, ready: int) -> None:
        """Hear that all tenants are in their slices, and `ready` of them have warmed up and wait for GO."""

    def measuring(self, about_s: float | None) -> None:
        """Hear that GO is next, and that no call comes for about `about_s` seconds, if known."""

    def tell(self, line: str) -> None:
        """Print a line for the user."""

    def stopping(self) -> None:
        """Hear that the last DONE has come, and STOP is sent."""

    def tick(self) -> None:
        """Hear that about a second has passed."""

    def ended(self, records: Sequence[Record]) -> None:
        """Hear that the launch has ended, and these records are written."""


class Unobserved:
    """Ignores all reports."""

    def _nothing(self, *values: Any, **named: Any) -> None:
        pass

    preparing = launch = building = measuring = tell = stopping = tick = ended = _nothing
