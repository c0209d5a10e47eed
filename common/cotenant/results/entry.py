"""One launch as the history keeps it: what it was, what it gave, and what it ran on."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Literal

import msgspec

from cotenant.results.detail import Detail
from cotenant.results.launches import Work, flaw, launches_of, work_of
from cotenant.results.record import portable
from cotenant.results.row import Row
from cotenant.results.setting import setting_of

COMPLETED, INVALID, ABORTED = "completed", "INVALID", "aborted"
Identity = tuple[str, str, str, int, datetime]


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the history. `rate` is of the node, in `unit` per second; of a launch without one `outcome` says why.

    `device` is what it ran on by name, `setting` the versions its record knew.
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


_DECODER = msgspec.json.Decoder(Entry)


@dataclass(frozen=True, slots=True)
class Unkept:
    """A launch that history has no place for, and why."""

    launch: str
    reason: str


def entries_of(details: Iterable[Detail]) -> tuple[list[Entry], list[Unkept]]:
    """Return an entry per launch, in the order of their starts, and the launches that cannot be kept.

    A launch that runs, or whose runner died, has fewer records than tenants: the first line of a launch is its only
    one, so such a launch waits for its records.
    """
    groups: dict[tuple[str, str, str, int, str], list[tuple[Row, dict[str, str]]]] = defaultdict(list)
    for detail in details:
        row = detail.row
        # The original's tenants have each a start of their own.
        start = row.start_time if row.ours else ""
        groups[row.hostname, row.suite, row.name, row.run_id, start].append((row, setting_of(detail.machine)))
    made = [_entry([row for row, _ in members], members[0][1]) for members in groups.values()]
    kept = sorted((one for one in made if isinstance(one, Entry)), key=lambda one: one.start)
    return kept, [one for one in made if isinstance(one, Unkept)]


def line_of(entry: Entry) -> bytes:
    """Return the entry's line, without its end. Raises ValueError or OverflowError for what no line can hold."""
    return msgspec.json.encode(portable(msgspec.to_builtins(entry)))


def entry_of(line: bytes) -> Entry:
    """Return the entry of a line. Raises ValueError that says what is wrong with it."""
    try:
        return _DECODER.decode(line)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except msgspec.DecodeError as error:
        raise ValueError(str(error)) from None


def _entry(rows: Sequence[Row], setting: dict[str, str]) -> Entry | Unkept | None:
    first = rows[0]
    launch = f"{first.name}, repetition {first.run_id}"
    found = launches_of(rows)
    if first.name not in found.of:
        return None  # No launch of the job: a tenant alone.
    start, outcome = _start(rows), _outcome(rows)
    if start is None:
        return Unkept(launch, "its records do not say when it started.")
    if outcome is None:
        return Unkept(launch, found.left_out[-1].partition(": ")[2])
    rates = found.of[first.name]
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
                    device=first.gpu,
                    group=first.group,
                    unit=first.unit,
                    outcome=outcome,
                    rate=rates[0].rate if rates else None,
                    work=work_of(first),
                    setting=setting,
                )
            )
        )
    except (ValueError, OverflowError) as error:
        return Unkept(launch, f"its records cannot be kept: {error}.")


def _start(rows: Sequence[Row]) -> datetime | None:
    """Return when the first tenant started; a time without a zone is taken for UTC."""
    try:
        times = [datetime.fromisoformat(row.start_time) for row in rows]
    except ValueError:
        return None
    return min(time if time.tzinfo else time.replace(tzinfo=UTC) for time in times)


def _outcome(rows: Sequence[Row]) -> str | None:
    """Return what became of a launch; None where it has neither a rate nor a failure."""
    lost = [row.outcome for row in rows if not row.completed]
    if lost:
        # An aborted tenant ended by another's fault, which says more.
        return min(lost, key=lambda outcome: outcome == ABORTED)
    if any(row.invalid for row in rows):
        return INVALID
    return COMPLETED if flaw(rows) is None else None
