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
from cotenant.stats.launches import across_launches
from cotenant.stats.verdict import LEAST_MARGIN, Verdict, verdict_of

LEGEND = (
    "B / A: the rate of B over that of A, by the medians of their turns. The 95 % interval is over the rounds of this "
    "launch, and has 1 % by which two processes of one program differ; some differ by more: launch again before you "
    "act. SLOWER, FASTER and SAME: the whole interval lies beyond 2 %, or within."
)
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


@dataclass(frozen=True, slots=True)
class DuetOverLaunches:
    """A duet's launches, each with processes of its own: the geometric mean of B over A, its t interval over three
    launches and more, and the verdict."""

    suite: str
    host: str
    duet: str
    isolation: str
    ratio: float
    interval: tuple[float, float] | None
    launches: int
    verdict: Verdict


def over_launches(lines: Sequence[DuetLine]) -> list[DuetOverLaunches]:
    """Return a line for each duet with two launches or more that have a ratio and are not INVALID.

    Their interval holds the difference of two processes of one program, of which no single launch knows.
    """
    known = [line for line in lines if line.ratio is not None and line.verdict in set(Verdict) - {Verdict.INVALID}]
    found = []
    for (suite, host, duet, isolation, *_), of_duet in grouped(known, _work).items():
        across = across_launches([line.ratio for line in of_duet if line.ratio is not None])
        if across.n > 1:
            verdict = Verdict.UNCLEAR
            if across.interval is not None:
                low, high = map(math.log, across.interval)
                verdict = verdict_of(low, high, LEAST_MARGIN)
            found.append(
                DuetOverLaunches(suite, host, duet, isolation, across.rate, across.interval, across.n, verdict)
            )
    return found


def _work(line: DuetLine) -> tuple[str, ...]:
    return line.suite, line.host, line.duet, line.isolation, line.a_arguments, line.b_arguments


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
    """Return a row for each launch, with its sentence below, and at the end failures and the worst findings."""
    lines = duet_lines(records)
    rows = [row(COLUMNS, line, _words(line)) for line in lines]
    several = over_launches(lines)
    document = {
        "schema": "cotenant-duet-1",
        "duets": [asdict(line) for line in lines],
        "over_launches": [asdict(line) for line in several],
    }
    said: list[Words] = [((f"{line.duet}: {sentence_over_launches(line)}", "bold"),) for line in several]
    below = lines_below(losses(records), (), reported_findings(records))
    return Grid(
        COLUMNS,
        [RowGroup(rows)] if rows else [],
        notes=[*said, ((LEGEND, "dim"),), *below],
        fields=FIELDS,
        document=document,
    )


def _words(line: DuetLine) -> list[Words]:
    a, b = (arguments or "the job as it is" for arguments in (line.a_arguments, line.b_arguments))
    return [((f"A: {a}; B: {b}", "dim"),), ((duet_sentence(line), "bold"),)]


def duet_sentence(line: DuetLine) -> str:
    """Return the verdict as a sentence: how B compares with A, and the time that would settle an unclear one."""
    if line.ratio is None:
        return f"There is no ratio of B over A: {line.verdict}."
    words = _MERGED if _is_merged(line.duet) else _DUET
    has = f"{words['has'].format(_percents(line.ratio, line.interval))}, over {line.rounds} rounds of one launch"
    margin = f"{100 * LEAST_MARGIN:g} %"
    if line.verdict not in words:
        return f"{has[0].upper()}{has[1:]}, and a record of it is {line.verdict}: its number is none."
    said = f"{words[line.verdict].format(margin)}: {has}."
    if line.verdict != Verdict.UNCLEAR:
        return said
    if line.settled_s is None:
        return f"{said} The difference is near {margin}, or the noise is great: an hour would not settle it."
    settled_s = 10 * math.ceil(line.settled_s / 10)
    return f"{said} About {settled_s} s would settle it: --budget {settled_s}."


def sentence_over_launches(line: DuetOverLaunches) -> str:
    """Return the verdict of several launches as a sentence."""
    words = _MERGED if _is_merged(line.duet) else _DUET
    has = words["has"].format(_percents(line.ratio, line.interval))
    more = "" if line.interval is not None else "; from three launches on there is an interval"
    return f"{words[line.verdict].format(f'{100 * LEAST_MARGIN:g} %')}: {has}, over {line.launches} launches{more}."


def _percents(ratio: float, interval: tuple[float, float] | None) -> str:
    span = "" if interval is None else f" ({100 * interval[0]:.1f} to {100 * interval[1]:.1f} %)"
    return f"{100 * ratio:.1f} %{span}"
