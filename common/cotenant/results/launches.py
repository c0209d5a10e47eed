"""From rows to launches, the unit of repetition: a node's rate is the sum over the tenants of one launch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, fields

from cotenant.results.copies import without_copies
from cotenant.results.row import Row


@dataclass(frozen=True, slots=True)
class Work:
    """What has to be equal where rates are compared. A field of the original's records that is not known is empty."""

    benchmark: str
    batch_size: int | None
    precision: str
    devices: int | None
    tenants: int | None
    isolation: str
    software: str


@dataclass(frozen=True, slots=True)
class LaunchRate:
    """One launch of a job: the items per second of all its tenants together."""

    job: str
    group: str
    run_id: int
    start_time: str
    rate: float
    work: Work


def difference_of(works: Collection[Work], beside: Collection[str] = ()) -> tuple[str, str] | None:
    """Return the first field in which works differ, none of those `beside`, and its values: empty for `benchmark`.

    What a record does not know differs from nothing.
    """
    for name in (one.name for one in fields(Work) if one.name not in beside):
        seen = {str(value) for work in works if (value := getattr(work, name)) not in ("", None)}
        if len(seen) > 1:
            return name, "" if name == "benchmark" else " and ".join(sorted(seen))
    return None


def said_of_difference(name: str, values: str) -> str:
    """Return a difference as a person reads it: `different batch size: 32 and 64`."""
    what = "source or arguments of the benchmark" if name == "benchmark" else name.replace("_", " ")
    return f"different {what}{f': {values}' if values else ''}"


@dataclass(slots=True)
class Launches:
    """Launches with a rate, per job in the order of first sight; and sentences on those that have none."""

    of: dict[str, list[LaunchRate]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def launches_of(rows: Iterable[Row]) -> Launches:
    """Group rows into launches. A launch with a failed, invalid or missing tenant has no rate, and is said.

    Solo launches are none of these: a tenant alone is not the node.
    """
    newest, twice = newest_of_each(row for row in rows if not row.solo)
    groups: dict[tuple[str, str, str, int], list[Row]] = defaultdict(list)
    for row in newest:
        groups[row.suite, row.name, row.isolation, row.run_id].append(row)
    found = Launches(left_out=twice)
    for (_, name, _, run_id), members in groups.items():
        of_job = found.of.setdefault(name, [])
        if (reason := flaw(members)) is not None:
            found.left_out.append(f"{name}, repetition {run_id}: {reason}")
        else:
            of_job.append(_launch(members))
    return found


def newest_of_each(rows: Iterable[Row]) -> tuple[list[Row], list[str]]:
    """Return the newest row of each tenant of each repetition of a job, and a sentence where there were several.

    With and without isolation are two things, whatever their uid. A tenant is known by its number, in the original's
    records by its device and host. Of our own records those of the newest launch count alone: what is left of an
    earlier one with more tenants was not measured beside these.
    """
    kept, said = without_copies(rows)
    found: dict[tuple[object, ...], list[Row]] = defaultdict(list)
    for row in kept:
        tenant = (row.hostname, row.vcd) if row.tenant is None else row.tenant
        found[*_launch_of(row), tenant].append(row)
    newest = [max(same, key=lambda row: (row.start_time, row.path)) for same in found.values()]
    began: dict[tuple[object, ...], str] = {}
    for row in newest:
        if row.ours:
            began[_launch_of(row)] = max(began.get(_launch_of(row), ""), row.start_time)
    counted = [row for row in newest if not row.ours or row.start_time == began[_launch_of(row)]]
    several = [same[0] for same in found.values() if len(same) > 1]
    older = {id(row) for row in newest} - {id(row) for row in counted}
    told = {
        f"{row.name}, repetition {row.run_id}: there are records of several runs; the newest count."
        for row in (*several, *(row for row in newest if id(row) in older))
    }
    return counted, [*said, *sorted(told)]


def _launch_of(row: Row) -> tuple[object, ...]:
    """A solo launch is of one tenant, and there is one for each."""
    return row.suite, row.name, row.isolation, row.run_id, row.tenant if row.solo else None


def flaw(rows: Sequence[Row]) -> str | None:
    """Return why the rows of a launch have no rate, or None where they have one."""
    for row in rows:
        if not row.completed:
            return f"tenant {row.vcd} {row.outcome}."
        if row.invalid:
            return f"tenant {row.vcd} is INVALID ({', '.join(row.findings)})."
        if row.rate is None:
            return f"tenant {row.vcd} has no rate."
    for name in ("unit", "version", "batch_size", "precision"):
        if len(values := dict.fromkeys(str(getattr(row, name)) for row in rows)) > 1:
            return f"its tenants did different work ({name.replace('_', ' ')} {' and '.join(values)})."
    expected = rows[0].tenants
    if expected is not None and len(rows) != expected:
        return f"{len(rows)} of {expected} tenants have a record."
    return None


def work_of(row: Row) -> Work:
    """Return what has to be equal where this row's rate is compared."""
    return Work(
        benchmark=row.unique_id,
        batch_size=row.batch_size,
        precision=row.precision,
        devices=row.devices,
        tenants=row.tenants,
        isolation=row.isolation,
        software=row.software,
    )


def _launch(rows: Sequence[Row]) -> LaunchRate:
    first = rows[0]
    return LaunchRate(
        job=first.name,
        group=first.group,
        run_id=first.run_id,
        start_time=first.start_time,
        rate=sum(row.rate or 0.0 for row in rows),
        work=work_of(first),
    )
