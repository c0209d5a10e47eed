"""The original suite's report: results per job against targets, failures and one score.

    score = BF (2 PM + ST + 5 PG)

BF: failures pass (1 or 0). PM: share of jobs with perf >= perf_tgt. ST: share with sd / mean <= sd_tgt. PG: geometric
mean of perf = mean / target. Jobs that are held against an efficiency (`scaling`) are left out of PG.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import fmean, stdev
from typing import Any

import polars as pl

from cotenant.results.columns import COUNTS
from cotenant.results.identity import job_and_cell
from cotenant.results.targets import Target

RATE = "rate_mean_items_s"
MOST_FAILURES = 0.01
NOT_IN_PG = frozenset({"scaling"})
CLASSIC_RUNS = 4
CLASSIC_SPREAD = 0.05
CLASSIC_QUANTILE = 0.8
_HAS_RATE = COUNTS & pl.col(RATE).is_not_null()


@dataclass(frozen=True, slots=True)
class TargetResult:
    """One job against its target. `spread` is sd / mean over records (n - 1 below the root); None for one record."""

    job: str
    n: int
    target: Target
    mean: float | None
    spread: float | None

    @property
    def perf(self) -> float | None:
        return None if self.mean is None else self.mean / self.target.rate

    @property
    def perf_pass(self) -> bool:
        return self.perf is not None and self.perf >= self.target.least_share

    @property
    def spread_pass(self) -> bool:
        return self.spread is not None and self.spread <= self.target.most_spread


@dataclass(frozen=True, slots=True)
class Failure:
    """A record without a number, or with losses that are none."""

    job: str
    run_id: int
    vcd: str
    reason: str


@dataclass(frozen=True, slots=True)
class Score:
    """`value` is None where a job of the suite is missing; `present_only`, of the others, is no score of the suite."""

    failures_pass: bool
    pm: float
    st: float
    pg: float | None
    value: float | None
    present_only: float | None
    missing: tuple[str, ...]

    def price_per_score(self, price: float) -> float | None:
        """Return RPP = price / score; None where there is no score, or it is 0."""
        return price / self.value if self.value else None


@dataclass(frozen=True, slots=True)
class Classic:
    """A line of the older table: `result` is the mean without the best and the worst, `sd` that of the same values."""

    job: str
    target: float
    result: float
    sd: float

    @property
    def spread(self) -> float:
        return self.sd / self.result

    @property
    def share(self) -> float:
        return self.result / self.target


@dataclass(frozen=True, slots=True)
class ClassicTotal:
    """The older table's last lines: the 80 % quantile of sd %, the mean of result / target, and whether all passes."""

    quantile: float
    performance: float
    passes: bool


def results(
    records: pl.DataFrame, targets: Mapping[str, Target], jobs: Sequence[str] | None = None
) -> list[TargetResult]:
    """Return a line per expected job, in order: those of `jobs` that have a target, or all that have one.

    Who does not say what is expected is not told that an efficiency is missing: baselines.json has no such job.
    """
    rates = _rates(records)
    usual = [job for job in targets if job not in NOT_IN_PG or job in rates]
    expected = [job for job in (usual if jobs is None else jobs) if job in targets]
    return [_result(job, rates.get(job, []), targets[job]) for job in expected]


def _result(job: str, values: list[float], target: Target) -> TargetResult:
    mean = fmean(values) if values else None
    spread = stdev(values) / mean if mean is not None and len(values) > 1 else None
    return TargetResult(job, len(values), target, mean, spread)


def measured_targets(records: pl.DataFrame, limits: Mapping[str, Target]) -> dict[str, Target]:
    """Return the mean rate of every job that has one as a target, with the share and spread that `limits` ask of it."""
    plain = Target(1.0)
    return {job: replace(limits.get(job, plain), rate=fmean(values)) for job, values in _rates(records).items()}


def failures(records: pl.DataFrame) -> list[Failure]:
    """Return every record that failed, is INVALID, or whose losses are not finite."""
    bad = records.filter(~_HAS_RATE)
    return [Failure(row["name"], row["run_id"], row["vcd"], _reason(row)) for row in bad.iter_rows(named=True)]


def _reason(row: Mapping[str, Any]) -> str:
    if not row["completed"]:
        return f"{row['outcome']}: {row['message']}".removesuffix(": ")
    if row["losses_non_finite"]:
        return f"{row['losses_non_finite']} losses are not finite"
    return f"INVALID: {row['findings'].replace(',', ', ')}" if row["invalid"] else "no rate"


def beside_devices(records: pl.DataFrame) -> list[str]:
    """Return a sentence on each job whose records of the whole machine count for nothing beside those of devices."""
    all_devices, of = pl.col("group") == "all", records.filter(_HAS_RATE)
    counts = of.group_by("name", maintain_order=True).agg(all_devices.sum().alias("whole"), pl.len())
    both = counts.filter(pl.col("whole") > 0, pl.col("whole") < pl.col("len")).select("name", "whole")
    return [
        f"{name}: {whole} records of the whole machine do not count beside those of single devices."
        for name, whole in both.iter_rows()
        if _parts(name)[0] not in NOT_IN_PG
    ]


def failures_pass(failed: int, total: int) -> bool:
    """At most one record in a hundred."""
    return total > 0 and failed <= MOST_FAILURES * total


def score(lines: Sequence[TargetResult], failures_passed: bool) -> Score:
    """Return the score of the results. Raises ValueError for none at all."""
    if not lines:
        raise ValueError("the score of no jobs")
    pm, st = (sum(getattr(line, name) for line in lines) / len(lines) for name in ("perf_pass", "spread_pass"))
    perfs = [line.perf for line in lines if line.perf is not None and line.job not in NOT_IN_PG]
    pg = math.exp(fmean(map(math.log, perfs))) if perfs else None
    present_only = None if pg is None else failures_passed * (2 * pm + st + 5 * pg)
    missing = tuple(line.job for line in lines if line.mean is None)
    return Score(failures_passed, pm, st, pg, None if missing else present_only, present_only, missing)


def classic(records: pl.DataFrame, targets: Mapping[str, Target]) -> tuple[list[Classic], list[str]]:
    """Return the older table, and the jobs that have fewer than four repetitions and so no line in it."""
    lines, short = [], []
    numbers = _numbers(records)
    for job, target in targets.items():
        of_job = numbers.get(job, [])
        values = sorted(value for _, value in of_job)
        if len({run_id for run_id, _ in of_job}) < CLASSIC_RUNS:
            short.append(job)
            continue
        kept = values[1:-1]
        lines.append(Classic(job, target.rate, fmean(kept), stdev(kept)))
    return lines, short


def classic_total(lines: Sequence[Classic], complete: bool) -> ClassicTotal | None:
    """Return the older table's last lines; None without a line. `complete`: no job failed or is missing."""
    if not lines:
        return None
    quantile = _quantile([line.spread for line in lines], CLASSIC_QUANTILE)
    performance = fmean([line.share for line in lines])
    return ClassicTotal(quantile, performance, complete and quantile < CLASSIC_SPREAD)


def _rates(records: pl.DataFrame) -> dict[str, list[float]]:
    return {job: [value for _, value in of_job] for job, of_job in _numbers(records).items()}


def _numbers(records: pl.DataFrame) -> dict[str, list[tuple[int, float]]]:
    """Return repetition and mean rate of every record that counts, per job; of NOT_IN_PG the largest cell's efficiency.

    An efficiency is what the original's record of such a job calls its rate; ours has it beside the rate. Where records
    of one name are of single devices and of the whole machine, the single devices' count.
    """
    rates: dict[str, list[tuple[int, float]]] = defaultdict(list)
    whole: dict[str, list[tuple[int, float]]] = defaultdict(list)
    efficiencies: dict[str, dict[int, list[tuple[int, float]]]] = defaultdict(lambda: defaultdict(list))
    columns = records.filter(COUNTS).select("name", "run_id", "group", "ours", "efficiency", RATE)
    for name, run_id, group, ours, of_devices, rate in columns.iter_rows():
        job, cell = _parts(name)
        if job in NOT_IN_PG:
            efficiency = of_devices if ours else rate
            if efficiency is not None:
                efficiencies[job][cell].append((run_id, efficiency))
        elif rate is not None:
            (whole if group == "all" else rates)[name].append((run_id, rate))
    return whole | rates | {name: of[max(of)] for name, of in efficiencies.items()}


_parts = cache(job_and_cell)


def _quantile(values: Sequence[float], share: float) -> float:
    """Return a quantile, linear between neighbours (as numpy and pandas have it)."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)
