"""Duets, which judge whether B is slower than A: a row for each launch by turns, and its verdict in a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from cotenant.choices import MERGED
from cotenant.report import numbers
from cotenant.report.grid import (
    Cell,
    Column,
    Grid,
    Measurement,
    RowGroup,
    Words,
    measured_columns,
    number,
    place_columns,
    row,
    word,
)
from cotenant.report.problems import lines_below, losses, reported_findings
from cotenant.results.launches import ABORTED, grouped
from cotenant.results.record import INVALID
from cotenant.results.table import Rows
from cotenant.stats.duet import MOST_LAUNCHES, DuetOverLaunches, ratio_over_launches
from cotenant.stats.launches import across_launches
from cotenant.stats.verdict import LEAST_MARGIN, Verdict
from cotenant.text import many

LEGEND = (
    "B / A: the rate of B over that of A, by medians and the fastest tenth of their turns. The 95 % interval of a row "
    "is over the rounds of its launch, and has 1.4 % by which two processes of one program differ; some differ by "
    "more, as several launches show. SLOWER, FASTER and SAME: the whole interval lies beyond 2 %, or within."
)
MARGIN = f"{100 * LEAST_MARGIN:g} %"
_SAME = ("suite", "host", "duet", "isolation", "a_arguments", "b_arguments")
"""The fields that all launches of a duet share."""
_COUNT = frozenset(Verdict) - {Verdict.INVALID}
STYLES: Mapping[str, str] = {
    Verdict.SLOWER: "red",
    Verdict.FASTER: "green",
    Verdict.UNCLEAR: "yellow",
    Verdict.INVALID: "bold red",
}
_DUET: Mapping[str, str] = {
    "has": "it has {} of the rate of A",
    Verdict.SLOWER: "B is slower than A",
    Verdict.FASTER: "B is faster than A",
    Verdict.SAME: "B is as fast as A, within {}",
    Verdict.UNCLEAR: "It is not clear whether B is slower than A",
}
_MERGED: Mapping[str, str] = {
    "has": "one process in all slices does {} of what the users do together",
    Verdict.SLOWER: "Sharing wins",
    Verdict.FASTER: "Sharing loses, one process with all the work wins",
    Verdict.SAME: "Sharing costs nothing and gains nothing, within {}",
    Verdict.UNCLEAR: "It is not clear whether sharing wins",
}
FIELDS = (
    *("suite", "host", "duet", "run_id", "isolation", "ratio", "ratio_low", "ratio_high", "rounds"),
    *("a", "b", "unit", "verdict", "settled_s", "a_arguments", "b_arguments"),
)


@dataclass(frozen=True, slots=True)
class DuetLine:
    """One launch of a duet: B over A with its interval, the mean rates of both in items per second (the sum for merged
    users), and the verdict.

    Without a ratio `verdict` is its tenants' outcome. `settled_s`: about how many seconds would give a clear verdict.
    """

    suite: str
    host: str
    duet: str
    run_id: int
    isolation: str
    ratio: float | None
    interval: tuple[float, float] | None
    rounds: int | None
    robust: float | None
    mean: float | None
    a: float | None
    b: float | None
    unit: str
    verdict: str
    settled_s: float | None
    a_arguments: str
    b_arguments: str


def duet_lines(records: Rows) -> list[DuetLine]:
    """Return a line for each launch, in the order of their first records; all `records` are of duets."""
    rows = records.frame.iter_rows(named=True)
    launches = grouped(rows, lambda one: (one["suite"], one["hostname"], _name(one), one["run_id"], one["start_time"]))
    return [_line(of_launch) for of_launch in launches.values()]


def over_launches(lines: Sequence[DuetLine]) -> DuetOverLaunches | None:
    """Return the ratio over those of several launches that count; None of a single launch, or where none counts."""
    counted = [line for line in lines if line.verdict in _COUNT]
    estimates = [(line.robust or line.ratio, line.mean or line.ratio) for line in counted if line.ratio is not None]
    return ratio_over_launches(estimates) if len(lines) > 1 and estimates else None


def _duet_of(line: DuetLine) -> tuple[str, ...]:
    return tuple(getattr(line, name) for name in _SAME)


def _name(one: Mapping[str, Any]) -> str:
    return str(one["name"]).removesuffix(f".{one['duet_side']}")


def _is_merged(name: str) -> bool:
    """Tell whether B is one process with the slices of all users of A."""
    return name.endswith(f".{MERGED}")


def _line(rows: Sequence[Mapping[str, Any]]) -> DuetLine:
    first = rows[0]
    a, b = ([one for one in rows if one["duet_side"] == side] for side in ("A", "B"))
    failure = _failure(rows)
    known = first if failure in (None, INVALID) and first["duet_ratio"] is not None else {}
    low, high = known.get("duet_low"), known.get("duet_high")
    return DuetLine(
        suite=first["suite"],
        host=first["hostname"],
        duet=_name(first),
        run_id=first["run_id"],
        isolation=first["isolation"],
        ratio=known.get("duet_ratio"),
        interval=None if low is None or high is None else (low, high),
        rounds=known.get("duet_rounds"),
        robust=known.get("duet_robust"),
        mean=known.get("duet_mean"),
        a=_rate_of(a, _is_merged(_name(first))),
        b=_rate_of(b),
        unit=first["unit"],
        verdict=failure or first["duet_verdict"] or INVALID,
        settled_s=known.get("duet_settled_s"),
        a_arguments=a[0]["duet_arguments"] if a else "",
        b_arguments=b[0]["duet_arguments"] if b else "",
    )


def _rate_of(side: Sequence[Mapping[str, Any]], together: bool = False) -> float | None:
    """Return the mean rate of the tenants of a side, or their sum where they are `together`."""
    rates = [one["rate_items_s"] for one in side if one["rate_items_s"]]
    if not rates:
        return None
    return sum(rates) if together else across_launches(rates).rate


def _failure(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the outcome of a launch without a ratio, or INVALID, also for sides that count in different units."""
    outcomes = [one["outcome"] for one in rows if not one["completed"]]
    invalid = any(one["invalid"] for one in rows) or len({one["unit"] for one in rows}) > 1
    return min(outcomes, key=lambda outcome: outcome == ABORTED, default=INVALID if invalid else None)


def _ratio(line: DuetLine) -> Measurement | None:
    if line.ratio is None:
        return None
    return Measurement(line.ratio, line.interval, str(line.rounds), (line.rounds,))


COLUMNS: Sequence[Column[DuetLine]] = (
    *place_columns(lambda line: line, "suite", "host", "isolation"),
    Column("duet", lambda line: word(line.duet, "duet"), left=True),
    Column("uid", lambda line: Cell(str(line.run_id), {"run_id": line.run_id})),
    *measured_columns(
        "B / A",
        _ratio,
        ("ratio", "ratio_low", "ratio_high", "rounds"),
        n="rounds",
        show=numbers.ratio,
        span=numbers.ratio_interval,
    ),
    Column("A", lambda line: number(line.a, numbers.rate, "a")),
    Column("B", lambda line: number(line.b, numbers.rate, "b")),
    Column("unit", lambda line: Cell(f"{line.unit or 'item'}/s", {"unit": line.unit}), left=True),
    Column("verdict", lambda line: word(line.verdict, "verdict", STYLES.get(line.verdict, "")), left=True),
)


def duets_grid(records: Rows) -> Grid:
    """Return a row for each launch, a group with its sentences for each duet, and below failures and the worst
    findings."""
    duets = grouped(duet_lines(records), _duet_of).values()
    groups = [RowGroup([row(COLUMNS, line) for line in lines], notes=_words(lines)) for lines in duets]
    document = {
        "schema": "cotenant-duet-1",
        "duets": [asdict(line) for lines in duets for line in lines],
        "over_launches": [
            {name: getattr(lines[0], name) for name in _SAME} | asdict(found)
            for lines in duets
            if (found := over_launches(lines)) is not None
        ],
    }
    below = lines_below(losses(records), (), reported_findings(records))
    return Grid(COLUMNS, groups, notes=[((LEGEND, "dim"),), *below], fields=FIELDS, document=document)


def _words(lines: Sequence[DuetLine]) -> list[Words]:
    sides = (lines[0].a_arguments, lines[0].b_arguments)
    a, b = (arguments or "the job as it is" for arguments in sides)
    return [((f"A: {a}; B: {b}", "dim"),), *(((said, "bold"),) for said in sentences_of(lines))]


def duet_sentences(records: Rows) -> list[str]:
    """Return the sentences on each duet."""
    duets = grouped(duet_lines(records), _duet_of).values()
    return [said for lines in duets for said in sentences_of(lines)]


def sentences_of(lines: Sequence[DuetLine]) -> list[str]:
    """Return the verdict on one duet as a sentence, over its launches or of a single one, and why others do not count.

    It says how B compares with A, and how much more would settle an unclear verdict.
    """
    found = over_launches(lines)
    if found is None:
        return list(map(_sentence, lines))
    lost = [line for line in lines if line.ratio is None or line.verdict not in _COUNT]
    over = f"over {many(found.launches, 'launch', 'es')}"
    more = "; from three launches on there is an interval" if found.interval is None else ""
    has = f"{_ratio_words(lines[0].duet, found.value, found.interval)}, {over}{more}"
    said = f"{_verdict_words(lines[0].duet, found.verdict)}: {has}.{_settled_by(found)}"
    return [said, *(f"The launch of uid {line.run_id} does not count: {line.verdict}." for line in lost)]


def _settled_by(found: DuetOverLaunches) -> str:
    if found.verdict != Verdict.UNCLEAR or found.interval is None:
        return ""
    if found.settled is None:
        return f" The difference is near {MARGIN}, or launches differ much: {MOST_LAUNCHES} would not settle it."
    return f" About {found.settled} launches would settle it: --repetitions {found.settled}."


def _sentence(line: DuetLine) -> str:
    if line.ratio is None:
        return f"There is no ratio of B over A: {line.verdict}."
    has = f"{_ratio_words(line.duet, line.ratio, line.interval)}, over {line.rounds} rounds of one launch"
    if line.verdict not in _COUNT:
        return f"{has[0].upper()}{has[1:]}, and a record of it is {line.verdict}: its number is none."
    said = f"{_verdict_words(line.duet, line.verdict)}: {has}."
    if line.verdict != Verdict.UNCLEAR:
        return said
    if line.settled_s is None:
        return f"{said} The difference is near {MARGIN}, or the noise is great: an hour would not settle it."
    settled_s = 10 * math.ceil(line.settled_s / 10)
    return f"{said} About {settled_s} s would settle it: --budget {settled_s}."


def _verdict_words(duet: str, verdict: str) -> str:
    return (_MERGED if _is_merged(duet) else _DUET)[verdict].format(MARGIN)


def _ratio_words(duet: str, ratio: float, interval: tuple[float, float] | None) -> str:
    """Return `it has 92.4 % (87.6 to 97.4 %) of the rate of A`."""
    span = "" if interval is None else f" ({100 * interval[0]:.1f} to {100 * interval[1]:.1f} %)"
    return (_MERGED if _is_merged(duet) else _DUET)["has"].format(f"{100 * ratio:.1f} %{span}")
