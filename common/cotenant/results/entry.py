"""One launch as the history keeps it: what it was, what it gave, and what it ran on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec
import polars as pl

from cotenant.results.copies import without_copies
from cotenant.results.detail import Detail
from cotenant.results.launches import Launch, Work, launches_in, work_of
from cotenant.results.newest import AT, launch_key, newest_of_tenants, with_lone
from cotenant.results.record import portable
from cotenant.results.row import Row
from cotenant.results.setting import setting_of
from cotenant.results.table import bare, frame_of

COMPLETED, INVALID, ABORTED = "completed", "INVALID", "aborted"
Identity = tuple[str, str, str, int, datetime]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the history. `rate` is of the node, in `unit` per second; of a launch without one `outcome` says why.

    `device` is what it ran on by name (and not in `work` again), `setting` the versions its record knew.
    """

    schema: Literal["cotenant-history-1"] = "cotenant-history-1"
    suite: str
    job: str
    run_id: int
    host: str
    start: Annotated[datetime, msgspec.Meta(tz=True)]
    device: str
    group: str
    unit: str
    outcome: str
    rate: float | None
    work: Work
    setting: dict[str, str]

    def __post_init__(self) -> None:
        """Raises ValueError for what is no rate, and for one without which a completed launch is none."""
        if self.rate is not None and not 0 < self.rate < math.inf:
            raise ValueError(f"a rate of {self.rate}")
        if (self.rate is None) == (self.outcome == COMPLETED):
            raise ValueError(f"{self.outcome} with a rate of {self.rate}")

    @property
    def identity(self) -> Identity:
        """What no two launches share."""
        return (self.host, self.suite, self.job, self.run_id, self.start.astimezone(UTC))


_APART = ("hostname", "began")
_BEGAN = pl.when("ours").then("start_time").otherwise(pl.lit(""))
"""The original's tenants have each a start of their own."""
_LATER = ("cache", "device", "processors")
"""What the first lines of this schema did not say of a work: left out where it is not known."""
_DECODER = msgspec.json.Decoder(Entry)


@dataclass(frozen=True, slots=True)
class Unkept:
    """A launch that history has no place for, and why."""

    launch: str
    reason: str


def entries_of(details: Iterable[Detail]) -> tuple[list[Entry], list[Unkept]]:
    """Return an entry per launch, in the order of their starts, and the launches that cannot be kept.

    A launch that runs, or whose runner died, has fewer records than tenants: the first line of a launch is its only
    one, so such a launch waits for its records. A copy of a launch under another number is none.
    """
    rows: list[Row] = []
    settings: list[dict[str, str]] = []
    for detail in details:
        if not detail.row.solo:  # A tenant alone is no launch of the job.
            rows.append(detail.row)
            settings.append(setting_of(detail.machine))
    numbered = with_lone(frame_of(map(bare, rows)).with_row_index(AT).with_columns(began=_BEGAN))
    once, copies = without_copies(numbered)
    newest, _ = newest_of_tenants(once, launch_key(_APART))
    made = [_entry(one, [rows[i] for i in one.at], settings[one.at[0]]) for one in launches_in(newest, _APART)]
    kept = sorted((one for one in made if isinstance(one, Entry)), key=lambda one: one.start)
    return kept, [*(one for one in made if isinstance(one, Unkept)), *(Unkept(*one) for one in copies)]


def line_of(entry: Entry) -> bytes:
    """Return the entry's line, without its end. Raises ValueError or OverflowError for what no line can hold."""
    said = msgspec.to_builtins(entry)
    work = {name: value for name, value in said["work"].items() if value or name not in _LATER}
    return msgspec.json.encode(portable(said | {"work": work}))


def entry_of(line: bytes) -> Entry:
    """Return the entry of a line. Raises ValueError that says what is wrong with it."""
    try:
        return _DECODER.decode(line)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None


def _entry(launch: Launch, rows: Sequence[Row], setting: dict[str, str]) -> Entry | Unkept:
    first = rows[0]
    name = f"{first.name}, repetition {first.run_id}"
    start, outcome = _start(rows), _outcome(launch)
    if start is None:
        return Unkept(name, "its records do not say when it started.")
    if outcome is None:
        return Unkept(name, str(launch.flaw))
    try:
        # As it will be read: a launch is known again by what stands in the history.
        return entry_of(
            line_of(
                Entry(
                    suite=first.suite,
                    job=first.name,
                    run_id=first.run_id,
                    host=first.hostname,
                    start=start,
                    # Of a launch without a rate the tenants that were lost only know their slices' names for it.
                    device=launch.rate.work.device if launch.rate else first.gpu,
                    group=first.group,
                    unit=first.unit,
                    outcome=outcome,
                    rate=launch.rate.rate if launch.rate else None,
                    work=replace(work_of(first), device=""),
                    setting=setting,
                )
            )
        )
    except (ValueError, OverflowError) as error:
        return Unkept(name, f"its records cannot be kept: {error}.")


def _start(rows: Sequence[Row]) -> datetime | None:
    """Return when the first tenant started; a time without a zone is taken for UTC."""
    try:
        times = [datetime.fromisoformat(row.start_time) for row in rows]
    except ValueError:
        return None
    return min(time if time.tzinfo else time.replace(tzinfo=UTC) for time in times)


def _outcome(launch: Launch) -> str | None:
    """Return what became of a launch; None where it has neither a rate nor a failure."""
    if launch.outcomes:
        # An aborted tenant ended by another's fault, which says more.
        return min(launch.outcomes, key=lambda outcome: outcome == ABORTED)
    if launch.invalid:
        return INVALID
    return COMPLETED if launch.rate else None
