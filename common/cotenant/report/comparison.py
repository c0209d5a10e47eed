"""Two sets of records side by side: a verdict per job, or the reason why there is none."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from xml.etree import ElementTree

from cotenant.report.numbers import rate
from cotenant.report.renderers import html
from cotenant.report.view import Cell, Column, Row, View, Words, common, measurement, with_ends
from cotenant.results.columns import equal_columns
from cotenant.results.launches import LaunchRecords, changed_arguments, difference_of, difference_words, rates_of
from cotenant.results.record import UNAUDITED
from cotenant.stats.comparison import Comparison, compare, holm, pooled_noise
from cotenant.stats.launches import across_launches
from cotenant.stats.verdict import LEAST_MARGIN, Verdict
from cotenant.text import joined, many, printable

HOST, BENCHMARK, ITEM, BATCH_SIZE = "host", "benchmark", "work_of_an_item", "batch_size"
CLAIMS = (Verdict.FASTER, Verdict.SLOWER)
ALARM = 0.05
TOO_CLOSE = "too close to the margin to tell with 1000 launches"
STYLES = {Verdict.FASTER: "green", Verdict.SLOWER: "bold red", Verdict.SAME: "dim", Verdict.UNCLEAR: "yellow"}


Side = Mapping[str, Sequence[LaunchRecords]]
"""The launches with a rate, by job."""
Sides = Mapping[str, Sequence[LaunchRecords]]
"""The launches of one job by side: A and B, in this order."""


def differences_allowed() -> list[str]:
    """Return the words that can be allowed to differ between two sides."""
    return [*equal_columns(), HOST]


@dataclass(frozen=True, slots=True)
class Conditions:
    """The conditions of a comparison: the margin, some jobs' own `margins`, and the jobs that B was asked to run.

    A margin of None means the noise of all compared launches, at least 2 %. Words in `allowed` may differ between the
    sides; within one side only hosts may.
    """

    margin: float | None = None
    margins: Mapping[str, float] = field(default_factory=dict)
    allowed: Collection[str] = ()
    asked_of_b: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class JobComparison:
    """One job: the geometric mean of each side's launches, the verdict, the comparison; `note` states its limits."""

    job: str
    verdict: Verdict
    a: float | None
    b: float | None
    comparison: Comparison | None
    note: str


@dataclass(frozen=True, slots=True)
class SuiteComparison:
    """Every job of either side, and whether the suite as a whole got slower (Holm over its jobs, 0.05).

    `suite_slower` is None if no job has the two launches per side that a test needs. `lost` jobs have a rate in A but
    none in B, which ran them or should have. `apart` is a sentence if all launches of one side came before all of the
    other; empty if they ran by turns, or their times are unknown.
    """

    lines: tuple[JobComparison, ...]
    suite_slower: bool | None
    lost: tuple[str, ...] = ()
    apart: str = ""

    def _repr_html_(self) -> str:
        return html(comparison_view(self))


def compare_launches(a: Side, b: Side, conditions: Conditions) -> SuiteComparison:
    """Compare job by job; a job with different work on its sides is INVALID, and the difference is named.

    Among many equal jobs chance alone makes some look faster or slower, so a claim must also hold with Holm's (1979)
    correction over all jobs.
    """
    same = _identities(a) == _identities(b)
    jobs = {job: {"A": a.get(job, []), "B": b.get(job, [])} for job in dict.fromkeys((*a, *b))}
    reasons = {job: _incomparable(sides, conditions.allowed, same) for job, sides in jobs.items()}
    usual = conditions.margin
    if usual is None:
        # A job that is not compared may be a mixture of works: its rates differ by more than noise.
        compared = [sides for job, sides in jobs.items() if reasons[job] is None]
        usual = max(LEAST_MARGIN, pooled_noise(rates_of(side) for sides in compared for side in sides.values()) or 0.0)
    margins = conditions.margins
    lines = _without_chance(
        [_line(job, sides, margins.get(job, usual), reasons[job], same) for job, sides in jobs.items()]
    )
    ran_in_b = {*b, *conditions.asked_of_b}
    lost = tuple(job for job, launches in a.items() if launches and not b.get(job) and job in ran_in_b)
    return SuiteComparison(lines, _alarm(lines), lost, _apart(a, b))


def _identities(side: Side) -> set[tuple[object, ...]]:
    """Return a value for each launch that all copies of its records share."""
    return {
        (launch.host, job, launch.run_id, launch.start_time, *launch.rates)
        for job, launches in side.items()
        for launch in launches
    }


def _without_chance(lines: Sequence[JobComparison]) -> tuple[JobComparison, ...]:
    """Withdraw the claims that do not hold with Holm's correction over all jobs."""
    p_values = {line.job: p for line in lines if line.comparison and (p := line.comparison.p_beyond) is not None}
    adjusted = dict(zip(p_values, holm([*p_values.values()]), strict=True))
    judged = []
    for line in lines:
        if line.verdict in CLAIMS and adjusted[line.job] >= ALARM:
            why = f"{line.verdict} by itself, but not beyond chance among {len(p_values)} jobs"
            line = replace(line, verdict=Verdict.UNCLEAR, note=joined("; ", why, line.note))
        judged.append(line)
    return tuple(judged)


def _apart(a: Side, b: Side) -> str:
    """Return a sentence if all launches of one side ran before all of the other's; else ""."""
    times = [
        [launch.start_time for launches in side.values() for launch in launches if launch.start_time] for side in (a, b)
    ]
    for (early, first), (late, second) in itertools.permutations(zip("AB", times, strict=True)):
        if first and second and max(first) < min(second):
            return (
                f"All launches of {early} ran before those of {late}: if the machine changed in between, so did the "
                "rates. Launch both by turns to tell that apart."
            )
    return ""


def mixture(launches: Sequence[LaunchRecords], allowed: Collection[str] = ()) -> str | None:
    """Return the difference between launches of one side that leaves them without a common rate."""
    if (difference := difference_of([launch.work for launch in launches])) is not None:
        return _named(difference, launches)
    hosts = _hosts(launches)
    return f"several hosts: {' and '.join(hosts)} (--allow {HOST})" if len(hosts) > 1 and HOST not in allowed else None


def _alarm(lines: Sequence[JobComparison]) -> bool | None:
    adjusted = holm([p for line in lines if line.comparison and (p := line.comparison.p_slower) is not None])
    return min(adjusted) < ALARM if adjusted else None


def _line(job: str, sides: Sides, margin: float, reason: str | None, same: bool) -> JobComparison:
    """Return the comparison of one job's sides; INVALID if there is a `reason` not to compare them."""
    rates_a, rates_b = map(rates_of, sides.values())
    middles = middle(rates_a), middle(rates_b)
    if reason is not None:
        return JobComparison(job, Verdict.INVALID, *middles, None, reason)
    result = compare(rates_a, rates_b, margin)
    notes = ["A and B are the same launches"] if same else []
    if result.verdict is Verdict.UNCLEAR:
        more = result.launches_needed
        notes.append(f"{many(more, 'launch')} a side would tell" if more else TOO_CLOSE)
    if unknown := [side for side, launches in sides.items() if not all(_values(launches, BENCHMARK))]:
        notes.append(f"what {' and '.join(unknown)} ran is not known")
    sizes = ["-".join(sorted(map(str, _values(launches, BATCH_SIZE) - {None}))) for launches in sides.values()]
    if sizes[0] != sizes[1] and all(sizes):
        notes.append(f"batch size {' -> '.join(sizes)}")
    if unaudited := [side for side, launches in sides.items() if False in _values(launches, "audited")]:
        notes.append(f"{' and '.join(unaudited)} {UNAUDITED}")
    hosts = [" and ".join(_hosts(launches)) for launches in sides.values()]
    if hosts[0] != hosts[1] and all(hosts):
        notes.append(f"A on {hosts[0]}, B on {hosts[1]}")
    return JobComparison(job, result.verdict, *middles, result, "; ".join(notes))


def middle(rates: Sequence[float]) -> float | None:
    """Return the geometric mean; None without rates."""
    return across_launches(rates).rate if rates else None


def _incomparable(sides: Sides, allowed: Collection[str], same: bool) -> str | None:
    """Return why two sides cannot be compared; only `same` sides may have launches in common."""
    if empty := [side for side, launches in sides.items() if not launches]:
        return f"no launch with a rate in {empty[0] if len(empty) == 1 else 'both sides'}"
    for side, launches in sides.items():
        if (mixed := mixture(launches, allowed)) is not None:
            return f"{side} has launches of {mixed}; name a directory of one"
    beside = {*allowed}
    if BATCH_SIZE in allowed:
        beside.update((BENCHMARK, "kernels"))  # these follow the batch size; the work of an item does not
    if BENCHMARK in allowed:
        beside.add(ITEM)  # other sources or arguments change the work of an item as well
    every = [*itertools.chain.from_iterable(sides.values())]
    if (difference := difference_of([launch.work for launch in every], beside)) is not None:
        return f"{_named(difference, every)} (--allow {difference[0]})"
    # No two launches of a host begin at the same moment.
    moments = {(launch.host, launch.start_time) for launch in sides["A"] if launch.start_time and not same}
    uids = sorted({launch.run_id for launch in sides["B"] if (launch.host, launch.start_time) in moments})
    return f"the same launches stand on both sides: repetition {', '.join(map(str, uids))} of B" if uids else None


def _named(difference: tuple[str, str], launches: Sequence[LaunchRecords]) -> str:
    """Return a difference in words; a difference of work has the changed arguments, also those with a new default."""
    changes = changed_arguments(launches) if difference[0] in (BENCHMARK, ITEM) else ""
    return f"{difference_words(*difference)}{changes and f': {changes}'}"


def _values(launches: Sequence[LaunchRecords], word: str) -> set[object]:
    return {dict(launch.work).get(word) for launch in launches}


def _hosts(launches: Sequence[LaunchRecords]) -> list[str]:
    return sorted({launch.host for launch in launches if launch.host})


# The view


FIELDS = {
    **common("job"),
    "a": "items per second in A, the geometric mean over launches",
    "b": "items per second in B",
    **with_ends("ratio", "b over a"),
    "n_a": "the launches of A",
    "n_b": "the launches of B",
    "verdict": "SLOWER, FASTER, SAME, UNCLEAR or INVALID, beyond chance among all jobs",
    "note": "the limits of the comparison, or why there is none",
    "own_verdict": "the verdict of this job by itself",
    "margin": "the difference that counts as none, a share",
    "p_slower": "the chance of such a ratio if B is not slower than the margin allows",
    "p_beyond": "the chance of such a ratio if B is neither slower nor faster than the margin allows",
    "p_rank": "Mann and Whitney's p; null if so few launches could not reach 0.05",
    "launches_needed": "launches a side that would settle an UNCLEAR verdict",
    "lost": "whether the job has a rate in A, and none in B, which ran it or was asked to",
    "suite_slower": "whether the suite as a whole got slower (Holm, 0.05)",
}
COLUMNS = (
    Column("job", left=True),
    Column("A", "a", rate),
    Column("B", "b", rate),
    *measurement(
        "B / A",
        ("ratio", "ratio_low", "ratio_high", "n_a", "n_b"),
        "{}, {}".format,
        "{:.4f}".format,
        "{:.4f} .. {:.4f}".format,
    ),
    Column("verdict", show=lambda verdict: Cell(verdict, style=STYLES.get(verdict, "bold red")), left=True),
    Column("", "note", left=True),
)
OF_RESULT = ("margin", "p_slower", "p_beyond", "p_rank", "launches_needed")
OF_SUITE = {True: "slower by more than chance (Holm, 0.05)", False: "not slower beyond chance", None: "not compared"}


def comparison_view(lines: SuiteComparison) -> View:
    """Return a row per job."""
    suite = f"{_margin_words(lines)}the suite as a whole: {OF_SUITE[lines.suite_slower]}"
    apart = [lines.apart] if lines.apart else []
    below: list[Words] = [*(((text, "yellow"),) for text in apart), ((suite, ""),)]
    return View("compare", FIELDS, _rows(lines), COLUMNS, lines=below, notes=apart, sentences=[suite])


def _rows(lines: SuiteComparison) -> list[Row]:
    rows = list[Row]()
    for line in lines.lines:
        row: dict[str, Any] = {"job": line.job, "a": line.a, "b": line.b, "verdict": line.verdict.value}
        row |= {"note": line.note, "lost": line.job in lines.lost, "suite_slower": lines.suite_slower, "ratio": None}
        if (result := line.comparison) is not None:
            low, high = result.interval or (None, None)
            row |= {"ratio": result.ratio, "ratio_low": low, "ratio_high": high, "own_verdict": result.verdict.value}
            row |= dict(zip(("n_a", "n_b"), result.n, strict=True))
            row |= {name: getattr(result, name) for name in OF_RESULT}
        rows.append(row)
    return rows


def _margin_words(lines: SuiteComparison) -> str:
    """Return `margin 2.0 %; `, or each job's if they differ; empty if nothing could be compared."""
    of_jobs = {line.job: line.comparison.margin for line in lines.lines if line.comparison is not None}
    if len(set(of_jobs.values())) > 1:
        return "margins: " + ", ".join(f"{job} {100 * of_job:.1f} %" for job, of_job in of_jobs.items()) + "; "
    return "".join(f"margin {100 * margin:.1f} %; " for margin in set(of_jobs.values()))


JUNIT = {
    Verdict.SLOWER: ("failure", "failures"),
    Verdict.INVALID: ("error", "errors"),
    Verdict.UNCLEAR: ("skipped", "skipped"),
}
"""The element of a verdict, and the attribute that counts it."""


def as_junit(lines: SuiteComparison) -> str:
    """Return JUnit's XML with a test case per job: SLOWER is a failure, INVALID an error, UNCLEAR skipped."""
    suite = ElementTree.Element("testsuite", name="cotenant compare", tests=str(len(lines.lines)))
    for verdict, (_, total) in JUNIT.items():
        suite.set(total, str(sum(line.verdict is verdict for line in lines.lines)))
    for line, row in zip(lines.lines, _rows(lines), strict=True):
        case = ElementTree.SubElement(suite, "testcase", name=printable(line.job), classname="cotenant")
        if line.verdict in JUNIT:
            words = "  ".join(printable(column.cell(row).text) for column in COLUMNS[1:])
            ElementTree.SubElement(case, JUNIT[line.verdict][0], message=words)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"
