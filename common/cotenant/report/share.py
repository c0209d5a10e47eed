"""The value of a shared device, or slice, for each number of users and each mode of sharing it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from cotenant.frames import pl
from cotenant.report import numbers
from cotenant.report.kept import (
    OF_ENERGY,
    OF_STEPS,
    QUICK,
    STEP_FIELDS,
    STEPS,
    kept_columns,
    kept_fields,
    kept_meanings,
    legend_of,
)
from cotenant.report.kept_rows import COPIES, FIELDS, KEPT, SLICES, VALUE
from cotenant.report.kept_table import kept_table
from cotenant.report.summary import summarise
from cotenant.report.view import Column, Row, RowGroup, View, place_columns
from cotenant.results.launches import grouped
from cotenant.results.table import Rows

EXCLUSIVE = "exclusive"
"""The mode of a tenant with a device to itself."""
_MODES = [~pl.col(name).is_in(["", EXCLUSIVE]) for name in ("share", "share_asked")]
IS_SHARED = pl.any_horizontal(pl.col("sharers") > 1, pl.col("device_sharers") > 1, *_MODES)
PLACE = ("suite", "host", "job", "isolation")
"""The fields of a place; the points of a place are one table."""
SHARE_FIELDS = {
    **{name: FIELDS[name] for name in (*PLACE, "mode")},
    "sharers": "users of each device or slice",
    "entitlement": "a user's part of it",
    **kept_meanings("stp", "the sum of rates over those alone"),
    **kept_meanings("antt", "the mean slowdown"),
    **kept_meanings("worst_slowdown", "the slowdown of the user that keeps least"),
    "fairness": "the least share over the greatest",
    "tax": "1 - STP / devices",
    **{name: FIELDS[name] for name in ("baseline", "verdict")},
    "note": "why the measures are not known",
    "joules_per_item": "joules of the devices for an item",
    **kept_meanings("energy", "joules of the devices over those of the same items by each user alone"),
    **{name: f"{FIELDS[name]}, of the user with the slowest p99" for name in STEP_FIELDS},
}
LEGEND = (
    "K: users on each device or slice. STP: the sum of rates over those alone, how many whole devices the shared ones "
    "are worth; ANTT: the mean slowdown; tax: 1 - STP / devices."
)
COLUMNS = (
    *place_columns(*PLACE),
    Column("mode", left=True),
    Column("K", "sharers"),
    Column("entitled", "entitlement", numbers.ratio),
    *kept_columns("STP", kept_fields("stp")),
    *kept_columns("ANTT", kept_fields("antt"))[:2],
    *kept_columns("worst slowdown", kept_fields("worst_slowdown"))[:2],
    Column("fairness", show=numbers.ratio),
    Column("tax", show=numbers.percent),
    Column("J per item", "joules_per_item", "{:.3g}".format, optional=True),
    *kept_columns("energy", kept_fields("energy"), optional=True)[:2],
    *STEPS,
    Column("verdict", left=True),
)


def share_points(records: Rows) -> list[Row]:
    """Return a row for each job with sharing tenants, and for the same job unshared, in order of K.

    Rows have SHARE_FIELDS, and the number of `devices`. Each directory of records is one run, so that another K, or
    mode, does not replace the same repetition's records.
    """
    if not len(records.where(IS_SHARED)):
        return []
    points = []
    places = zip(records.at, records.frame["path"], strict=True)
    for of_run in grouped(places, lambda place: str(Path(place[1]).parent)).values():
        table = kept_table(summarise(Rows(records.table, [at for at, _ in of_run])))
        jobs = table.filter(pl.col("company") == COPIES, pl.col("job").is_not_null())
        for _, rows in jobs.group_by(*PLACE, "difference", maintain_order=True):
            users = rows.filter(pl.col("measure") == KEPT, pl.col("sharers").is_not_null()).to_dicts()
            if users:
                points.append(_point(users, {row["measure"]: row for row in rows.iter_rows(named=True)}))
    shared = {
        point_place(point) for point in points if point["sharers"] > 1 or point["mode"] not in (SLICES, EXCLUSIVE)
    }
    of_tables = [point for point in points if point_place(point) in shared and point["mode"] != EXCLUSIVE]
    return sorted(of_tables, key=lambda point: (*point_place(point), point["mode"], point["sharers"]))


def point_place(point: Row) -> tuple[str, ...]:
    """Return suite, host, job and isolation of a point."""
    return tuple(point[name] for name in PLACE)


def _point(users: Sequence[Row], measures: dict[str, Row]) -> Row:
    """Return the point of a job from its users' rows, and the measures of all users."""
    first, slowest = users[0], max(users, key=lambda user: user["step_p99_ns"] or 0.0)
    point = {name: first[name] for name in (*PLACE, "mode", "sharers", "entitlement", "verdict")}
    point |= {name: slowest[name] if slowest["step_p99_ns"] else None for name in STEP_FIELDS}
    for name in ("stp", "antt", "worst_slowdown", "energy"):
        row = measures.get(name, {})
        point |= {field: row.get(part) for field, part in zip(kept_fields(name), VALUE, strict=True)}
    point |= {name: measures.get(name, {}).get("value") for name in ("fairness", "tax", "joules_per_item")}
    return point | {
        "baseline": first["baseline"] if "stp" in measures else "",
        "note": "; ".join(first["notes"] or ()),
        # Three tenants on two devices sum to two: 1/2 + 1/2 + 1.
        "devices": round(sum(1 / user["sharers"] for user in users)),
    }


def share_view(points: Sequence[Row]) -> View:
    """Return a table for each job, with a row for each mode and number of users."""
    groups, notes = list[RowGroup](), list[str]()
    for (suite, host, job, isolation), of_job in grouped(points, point_place).items():
        said = [f"{point['mode']}, K = {point['sharers']}: {point['note']}" for point in of_job if point["note"]]
        words = [((text, "yellow"),) for text in said]
        groups.append(RowGroup(of_job, job, f"{suite} on {host}, isolation {isolation}", words))
        notes += said
    texts = {
        LEGEND: True,
        QUICK: any(point["baseline"] == "quick" for point in points),
        OF_ENERGY: any(point["energy"] is not None for point in points),
        OF_STEPS: any(point[STEP_FIELDS[0]] is not None for point in points),
    }
    return View("share", SHARE_FIELDS, points, COLUMNS, groups, lines=legend_of(texts), notes=notes)
