"""Duets judge whether B is slower than A: a row for each launch by turns, and its verdict in a sentence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from cotenant.report import numbers
from cotenant.report.comparison import middle
from cotenant.report.problems import lines_below, losses, reported_findings
from cotenant.report.view import Cell, Column, Row, RowGroup, View, Words, common, measurement, place_columns, with_ends
from cotenant.results.launches import ABORTED, Work, distinguishing_values, grouped, work_of
from cotenant.results.record import INVALID, UNAUDITED
from cotenant.results.table import Rows
from cotenant.stats.duet import MOST_LAUNCHES, DuetOverLaunches, ratio_over_launches
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
STYLES: Mapping[str, str] = {
    Verdict.SLOWER: "bold red",
    Verdict.FASTER: "green",
    Verdict.UNCLEAR: "yellow",
    Verdict.INVALID: "bold red",
}
_VERDICTS: Mapping[str, str] = {
    Verdict.SLOWER: "B is slower than A",
    Verdict.FASTER: "B is faster than A",
    Verdict.SAME: "B is as fast as A, within {}",
    Verdict.UNCLEAR: "It is not clear whether B is slower than A",
}
FIELDS = {
    **common("suite", "host"),
    "duet": "the name of the duet",
    "run_id": "the repetition: its uid",
    **common("isolation"),
    **with_ends("ratio", "the rate of B over that of A; null without a verdict"),
    "rounds": "the rounds that it goes over",
    "a": "items per second of A, the geometric mean of its users",
    "b": "items per second of B",
    **common("unit"),
    "verdict": "SLOWER, FASTER, SAME or UNCLEAR; INVALID, or how the launch ended, where there is no number",
    "audited": "1 if our loop watched steps of both sides; else a program counts its own",
    "settled_s": "about how many seconds would settle an unclear verdict; null if an hour would not",
    "a_arguments": "the arguments of A, behind those of the job",
    "b_arguments": "the arguments of B",
    "robust": "the ratio by rates that a busy host leaves alone",
    "mean": "the ratio by all items over all time",
    "differs": "the values in which its work differs from that of other launches of the duet; empty if it does not",
}
OVER_LAUNCHES = {
    **{name: FIELDS[name] for name in (*_SAME, "differs")},
    "launches": "the launches that count",
    **with_ends("value", "the rate of B over that of A, over launches", "low", "high"),
    "verdict": "SLOWER, FASTER, SAME or UNCLEAR",
    "settled": "how many launches would settle an unclear verdict; null if that is not known",
}


@dataclass(frozen=True, slots=True)
class DuetLine:
    """One launch of a duet: B over A with its interval, the mean rates of both in items per second, and the verdict.

    Without a ratio `verdict` is the tenants' outcome, or INVALID. `settled_s`: about how many seconds would settle it.
    Unless `audited`, a program counts its own steps. `works` are A's and B's; `differs` names their difference from
    other launches of the duet.
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
    audited: bool = True
    works: tuple[Work, ...] = ()
    differs: str = ""


def duet_lines(records: Rows) -> list[DuetLine]:
    """Return a line for each launch, in the order of their first records; all `records` are of duets."""
    lines = []
    launches = grouped(records.frame.iter_rows(named=True), _launch_of)
    for (suite, host, duet, run_id, _), rows in launches.items():
        first, failure = rows[0], _failure(rows)
        values = first if failure in (None, INVALID) else {}
        low, high = values.get("duet_low"), values.get("duet_high")
        sides = [[one for one in rows if one["duet_side"] == side] for side in "AB"]
        arguments_a, arguments_b = (users[0]["duet_arguments"] if users else "" for users in sides)
        rates_a, rates_b = (
            [one["rate_items_s"] for one in users if one["rate_items_s"] is not None] for users in sides
        )
        line = DuetLine(
            suite=suite,
            host=host,
            duet=duet,
            run_id=run_id,
            isolation=first["isolation"],
            ratio=values.get("duet_ratio"),
            interval=None if low is None or high is None else (low, high),
            rounds=values.get("duet_rounds"),
            robust=values.get("duet_robust"),
            mean=values.get("duet_mean"),
            a=middle(rates_a),
            b=middle(rates_b),
            unit=first["unit"],
            verdict=failure or first["duet_verdict"] or INVALID,
            settled_s=values.get("duet_settled_s"),
            a_arguments=arguments_a,
            b_arguments=arguments_b,
            audited=all(one["audited"] is not False for one in rows),
            works=tuple(work_of(users[0]) for users in sides) if all(sides) else (),
        )
        lines.append(line)
    return lines


def _launch_of(one: Mapping[str, Any]) -> tuple[Any, ...]:
    duet = str(one["name"]).removesuffix(f".{one['duet_side']}")
    return one["suite"], one["hostname"], duet, one["run_id"], one["start_time"]


def over_launches(lines: Sequence[DuetLine]) -> DuetOverLaunches | None:
    """Return the ratio over the launches that count; None for a single launch, or if none counts."""
    counted = [line for line in lines if line.verdict in _VERDICTS]
    estimates = [(line.robust or line.ratio, line.mean or line.ratio) for line in counted if line.ratio is not None]
    return ratio_over_launches(estimates) if len(lines) > 1 and estimates else None


def _by_duet(records: Rows) -> list[list[DuetLine]]:
    """Return the lines of each duet; launches with other work are a duet of their own."""
    duets = grouped(duet_lines(records), lambda line: tuple(getattr(line, name) for name in _SAME))
    return [lines for duet in duets.values() for lines in _by_work(duet)]


def _by_work(duet: Sequence[DuetLine]) -> list[list[DuetLine]]:
    """Return the lines grouped by equal work, each with its difference from the other groups.

    A launch without records of both sides, or with work that no launch with a ratio did, joins the first group.
    """
    works = list(dict.fromkeys(line.works for line in duet if line.ratio is not None and line.works)) or [()]
    of_works = grouped(duet, lambda line: line.works if line.works in works else works[0])
    return [[replace(line, differs=_differing(work, works)) for line in of_works[work]] for work in works]


def _differing(line: Sequence[Work], works: Sequence[Sequence[Work]]) -> str:
    """Return the values in which the work of A or B differs from other launches."""
    sides = [distinguishing_values(work, of_side) for work, of_side in zip(line, zip(*works, strict=True), strict=True)]
    return "; ".join(dict.fromkeys(filter(None, sides)))


def _failure(rows: Sequence[Mapping[str, Any]]) -> str | None:
    """Return the outcome of a failed launch; INVALID if a record is or units differ; None for a sound launch."""
    outcomes = [one["outcome"] for one in rows if not one["completed"]]
    invalid = any(one["invalid"] for one in rows) or len({one["unit"] for one in rows}) > 1
    return min(outcomes, key=lambda outcome: outcome == ABORTED, default=INVALID if invalid else None)


def _verdict(verdict: str, audited: int) -> Cell:
    return Cell(verdict, style=STYLES.get(verdict, ""), note="" if audited else UNAUDITED)


_RATIO = ("ratio", "ratio_low", "ratio_high", "rounds")
COLUMNS = (
    *place_columns("suite", "host", "isolation"),
    Column("duet", left=True),
    Column("uid", "run_id"),
    *measurement("B / A", _RATIO, show=numbers.ratio, span=numbers.ratio_interval)[:2],
    Column("rounds"),
    Column("A", "a", numbers.rate),
    Column("B", "b", numbers.rate),
    Column("unit", show=lambda unit: f"{unit or 'item'}/s", left=True),
    Column("verdict", ("verdict", "audited"), _verdict, left=True),
)


def _row(line: DuetLine) -> Row:
    low, high = line.interval or (None, None)
    return {name: getattr(line, name, None) for name in FIELDS} | {
        "ratio_low": low,
        "ratio_high": high,
        "audited": int(line.audited),
    }


def duets_view(records: Rows) -> View:
    """Return a row for each launch, grouped by duets with their sentences, and below them failures and the worst
    findings; a part has the verdicts over several launches."""
    duets = _by_duet(records)
    rows = [[_row(line) for line in lines] for lines in duets]
    groups = [RowGroup(of_duet, notes=_words(lines)) for of_duet, lines in zip(rows, duets, strict=True)]
    over = [
        {name: getattr(lines[0], name) for name in (*_SAME, "differs")} | asdict(found) | {"low": low, "high": high}
        for lines in duets
        if (found := over_launches(lines)) is not None
        for low, high in [found.interval or (None, None)]
    ]
    return View(
        "duet",
        FIELDS,
        [row for of_duet in rows for row in of_duet],
        COLUMNS,
        groups,
        lines=[((LEGEND, "dim"),), *lines_below(losses(records), (), reported_findings(records))],
        sentences=[said for lines in duets for said in _said_of(lines)],
        parts=[View("duets_over_launches", OVER_LAUNCHES, over)] if over else (),
    )


def _words(lines: Sequence[DuetLine]) -> list[Words]:
    a, b = (arguments or "the job as it is" for arguments in (lines[0].a_arguments, lines[0].b_arguments))
    return [((f"A: {a}; B: {b}", "dim"),), *(((said, "bold"),) for said in _said_of(lines))]


def duet_sentences(records: Rows) -> list[str]:
    """Return the sentences on all duets."""
    return [said for lines in _by_duet(records) for said in _said_of(lines)]


def _said_of(lines: Sequence[DuetLine]) -> list[str]:
    """Return `sentences_of` these lines, with their work if other launches did other work."""
    differs = lines[0].differs
    return [f"With {differs}: {said}" if differs else said for said in sentences_of(lines)]


def sentences_of(lines: Sequence[DuetLine]) -> list[str]:
    """Return the verdict on one duet in sentences, over its launches or for a single one, and why others do not count.

    They compare B with A, and say how much more would settle an unclear verdict.
    """
    found = over_launches(lines)
    if found is None:
        return list(map(_sentence, lines))
    lost = [line for line in lines if line.ratio is None or line.verdict not in _VERDICTS]
    over = many(found.launches, "launch")
    if found.interval is None:
        over += "; from three launches on there is an interval"
    said = _said(found.verdict, found.value, found.interval, over)
    if found.settled is not None:
        said += f" About {found.settled} launches would settle it: --repetitions {found.settled}."
    elif found.verdict is Verdict.UNCLEAR and found.interval is not None:
        said += f" The difference is near {MARGIN}, or launches differ much: {MOST_LAUNCHES} would not settle it."
    return [said, *(f"The launch of uid {line.run_id} does not count: {line.verdict}." for line in lost)]


def _sentence(line: DuetLine) -> str:
    if line.ratio is None:
        return f"There is no ratio of B over A: {line.verdict}."
    said = _said(line.verdict, line.ratio, line.interval, f"{many(line.rounds or 0, 'round')} of one launch")
    if line.verdict != Verdict.UNCLEAR:
        return said
    if line.settled_s is None:
        return f"{said} The difference is near {MARGIN}, or the noise is great: an hour would not settle it."
    settled_s = 10 * math.ceil(line.settled_s / 10)
    return f"{said} About {settled_s} s would settle it: --budget {settled_s}."


def _said(verdict: str, ratio: float, interval: tuple[float, float] | None, over: str) -> str:
    """Return `B is slower than A: it has 92.4 % (87.6 to 97.4 %) of the rate of A, over 41 rounds of one launch.`"""
    share = f"{100 * ratio:.1f} %"
    if interval is not None:
        share += f" ({100 * interval[0]:.1f} to {100 * interval[1]:.1f} %)"
    has = f"it has {share} of the rate of A, over {over}"
    if verdict not in _VERDICTS:
        return f"{has[0].upper()}{has[1:]}, and a record of it is {verdict}: its number is none."
    return f"{_VERDICTS[verdict].format(MARGIN)}: {has}."
