"""The end of a tenant: its reason, and the time until which the runner waits for it."""

from __future__ import annotations

from dataclasses import dataclass

from cotenant.launch.rank import Rank


@dataclass(frozen=True, slots=True)
class Ending:
    """The reason of a tenant's end: an outcome, and an explaining sentence. The first known reason counts."""

    outcome: str
    message: str
    by: Rank | None = None
    """The process that reported it; None if the runner found it."""


MEASURED = Ending("completed", "")
"""The ending of a program that was asked to end after it had been measured, whatever its exit status."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The moment of the monotonic clock until which a tenant is waited for; then it is killed with this ending.

    Without an ending it is a program that does not know STOP, and is asked to end.
    """

    until_s: float
    ending: Ending | None
