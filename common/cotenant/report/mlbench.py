"""The original suite's report: results per job against targets, failures and one score.

    score = BF (2 PM + ST + 5 PG)

BF: failures pass (1 or 0). PM: share of jobs with perf >= perf_tgt. ST: share with sd / mean <= sd_tgt. PG: geometric
mean of perf = mean / target. Jobs with an efficiency as their target (`scaling`) are left out of PG.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, geometric_mean
from typing import Any

from cotenant.frames import pl
from cotenant.results.columns import COUNTS
from cotenant.results.targets import Target
from cotenant.text import many, verb

RATE = "rate_mean_items_s"
MOST_FAILURES = 0.01
NOT_IN_PG = frozenset({"scaling"})
ORIGINAL_LEFT_OUT = ("convnet_distributed", "convnet_distributed_fp16", "dcgan_all")
"""The jobs that the original's default score leaves out."""
CLASSIC_RUNS = 4
CLASSIC_SPREAD = 0.05
CLASSIC_QUANTILE = 0.8
_JOB = pl.col("name").str.replace(r"\.c[0-9]{1,9}$", "")
_CELL = pl.col("name").str.extract(r"\.c([0-9]{1,9})$").cast(int).fill_null(0)
"""The number of a cell, from 1; 0 for a job without cells."""

Failure = tuple[str, int, str, str]
"""Job, uid, device and reason of a record without a rate, or with losses that are not finite."""


@dataclass(frozen=True, slots=True)
class Score:
    """A score of the expected `jobs`; `present_only` is over the jobs with a rate: no suite's if some are `missing`.

    `left_out`: the expected jobs of ORIGINAL_LEFT_OUT, which the score leaves out.
    """

    failures_pass: bool
    jobs: int
    pm: float
    st: float
    pg: float | None
    present_only: float | None
    missing: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def value(self) -> float | None:
        return None if self.missing else self.present_only

    def price_per_score(self, price: float) -> float | None:
        """Return RPP = price / score; None without a score, and for a score of 0."""
        return price / self.value if self.value else None


def results(records: pl.DataFrame, targets: Mapping[str, Target], jobs: Sequence[str] | None = None) -> pl.DataFrame:
    """Return a row per expected job, in order: the `jobs` that have a target, or all that have one.

    Measured jobs without a target come last. Mean and sd are over records (sd with n - 1). Without `jobs`, a job whose
    target is an efficiency is expected only if it was measured: baselines.json has no such job.
    """
    rate, has_target = pl.col("rate"), pl.col("target").is_not_null()
    spread = {"sd%": 100 * rate.std() / rate.mean()}
    measured = _rates(records).group_by("job").agg(n=pl.len(), mean=rate.mean(), **spread)
    usual = [job for job in targets if job not in NOT_IN_PG or job in measured["job"]]
    without = [job for job in sorted(measured["job"]) if job not in targets and (jobs is None or job in jobs)]
    expected = [job for job in (usual if jobs is None else jobs) if job in targets]
    limits = _limits({job: targets.get(job) for job in [*expected, *without]})
    perf = pl.col("mean") / pl.col("target")
    passes = {"perf_pass": perf >= pl.col("perf_tgt"), "sd%_pass": pl.col("sd%") <= pl.col("sd%_tgt")}
    return limits.join(measured, on="job", how="left", maintain_order="left").with_columns(
        pl.col("n").fill_null(0),
        perf=perf,
        **{name: pl.when(has_target).then(passed.fill_null(False)) for name, passed in passes.items()},
    )


def _limits(targets: Mapping[str, Target | None]) -> pl.DataFrame:
    rows = [
        (job, limit.rate, limit.least_share, 100 * limit.most_spread) if limit else (job, None, None, None)
        for job, limit in targets.items()
    ]
    names = dict.fromkeys(("target", "perf_tgt", "sd%_tgt"), pl.Float64)
    return pl.DataFrame(rows, {"job": pl.String, **names}, orient="row")


def measured_targets(records: pl.DataFrame, limits: Mapping[str, Target]) -> dict[str, Target]:
    """Return every measured job's mean rate as a target, with its share and spread from `limits`."""
    means = _rates(records).group_by("job", maintain_order=True).agg(pl.col("rate").mean())
    return {job: replace(limits.get(job, Target(1.0)), rate=mean) for job, mean in means.iter_rows()}


def failures(records: pl.DataFrame) -> list[Failure]:
    """Return every record that failed, is INVALID, has losses that are not finite, or has no rate."""
    bad = records.filter(~(COUNTS & pl.col(RATE).is_not_null()))
    return [(row["name"], row["run_id"], row["vcd"], _reason(row)) for row in bad.iter_rows(named=True)]


def _reason(row: Mapping[str, Any]) -> str:
    if not row["completed"]:
        return f"{row['outcome']}: {row['message']}".removesuffix(": ")
    if row["losses_non_finite"]:
        return f"{row['losses_non_finite']} losses are not finite"
    return f"INVALID: {row['error_findings'].replace(',', ', ')}" if row["invalid"] else "no rate"


def beside_devices(records: pl.DataFrame) -> list[str]:
    """Return a sentence on each job whose records of the whole machine do not count, as it has records of devices."""
    outranked = pl.col("rank") < pl.col("rank").max().over("job")
    ignored = _all_rates(records).filter(~pl.col("job").is_in(NOT_IN_PG), outranked)
    return [
        f"{job}: {many(count, 'record')} of the whole machine {verb(count, 'does', 'do')} not count beside those of "
        "single devices."
        for job, count in ignored.group_by("job", maintain_order=True).len().iter_rows()
    ]


def unaudited_jobs(records: pl.DataFrame) -> list[str]:
    """Return a sentence on the jobs of programs that speak the protocol without our loop."""
    names = records.filter(~pl.col("audited"))["name"].unique(maintain_order=True).to_list()
    return [f"Unaudited, a number by the program's own word alone: {', '.join(names)}."] if names else []


def other_devices(newest: pl.DataFrame, expected: int | None) -> list[str]:
    """Return a sentence for each host with records from another number of single devices than expected.

    Records of failures are left out: the original's do not name the host.
    """
    of_devices = newest.filter(pl.col("completed") & (pl.col("group") != "all"))
    counts = of_devices.group_by("hostname", maintain_order=True).agg(pl.col("vcd").n_unique())
    return [
        f"There are records of {many(count, 'device')}{f' of {host}' if host else ''}, not of {expected}."
        for host, count in counts.iter_rows()
        if expected not in (None, count)
    ]


def failures_pass(failed: int, total: int) -> bool:
    """Return whether at most one record in a hundred failed."""
    return total > 0 and failed <= MOST_FAILURES * total


def scored(
    newest: pl.DataFrame,
    counted: pl.DataFrame,
    targets: Mapping[str, Target],
    jobs: Sequence[str] | None,
    left_out: Sequence[str] = (),
) -> tuple[pl.DataFrame, list[Failure], int, Score] | None:
    """Return the results of the records that count, the failures, the number of records behind these, and the score.

    None without expected jobs. As in the original, failures are a share of all `newest` records of jobs that are not
    left out, whatever their work.
    """
    lines = results(counted, targets, jobs)
    if lines.filter(_in_score(left_out)).is_empty():
        return None
    asked = newest.filter(~_JOB.is_in(left_out))
    failed = failures(asked)
    return lines, failed, asked.height, score(lines, failures_pass(len(failed), asked.height), left_out)


def _in_score(left_out: Sequence[str]) -> pl.Expr:
    return pl.col("target").is_not_null() & ~pl.col("job").is_in(left_out)


def score(lines: pl.DataFrame, failures_passed: bool, left_out: Sequence[str] = ()) -> Score:
    """Return the score of the results that have a target; at least one of them must not be left out."""
    left_out = [job for job in left_out if job in lines["job"]]
    lines = lines.filter(_in_score(left_out))
    pm, st = fmean(lines["perf_pass"]), fmean(lines["sd%_pass"])
    perfs = lines.filter(~pl.col("job").is_in(NOT_IN_PG))["perf"].drop_nulls()
    pg = geometric_mean(perfs) if len(perfs) else None
    present_only = None if pg is None else failures_passed * (2 * pm + st + 5 * pg)
    missing = tuple(lines.filter(pl.col("mean").is_null())["job"])
    return Score(failures_passed, len(lines), pm, st, pg, present_only, missing, tuple(left_out))


def classic(records: pl.DataFrame, targets: Mapping[str, Target]) -> tuple[pl.DataFrame, list[str]]:
    """Return the older table, and the jobs without a line in it, which have fewer than four repetitions.

    A repetition's rate is the mean over its devices. `result` is the mean over repetitions without the best and the
    worst, `sd` the standard deviation over all, `diff` (result - target) / target.
    """
    rate, target = pl.col("rate"), pl.col("target")
    result, sd = rate.sort().slice(1, pl.len() - 2).mean(), rate.std()
    repetitions = _rates(records).group_by("job", "run_id").agg(rate.mean())
    of_jobs = repetitions.group_by("job").agg(runs=pl.len(), result=result, sd=sd, **{"sd%": 100 * sd / result})
    enough = of_jobs.filter(pl.col("runs") >= CLASSIC_RUNS)
    lines = _limits(targets).join(enough, on="job", maintain_order="left")
    table = lines.select("job", "target", "result", "sd", "sd%", diff=(pl.col("result") - target) / target)
    return table, [job for job in targets if job not in table["job"]]


def classic_total(lines: pl.DataFrame, complete: bool) -> tuple[float, float, bool] | None:
    """Return the 80 % quantile of sd / result, the mean of `diff`, and whether all passes; None without a line.

    `complete`: no job failed or is missing.
    """
    quantile = lines["sd%"].quantile(CLASSIC_QUANTILE, "linear")
    if quantile is None:
        return None
    return quantile / 100, fmean(lines["diff"]), complete and quantile < 100 * CLASSIC_SPREAD


def _rates(records: pl.DataFrame) -> pl.DataFrame:
    """Return `job`, `run_id` and mean `rate` of every record that counts in a mean.

    If a name has records of single devices and of the whole machine, the single devices' count; for NOT_IN_PG the
    largest cell's.
    """
    return _all_rates(records).filter(pl.col("rank") == pl.col("rank").max().over("job"))


def _all_rates(records: pl.DataFrame) -> pl.DataFrame:
    """Return `job`, `run_id`, mean `rate` and `rank` of every record that counts; NOT_IN_PG's `rate` is the efficiency.

    The original's record of such a job has the efficiency in place of the rate, ours beside it.
    """
    scaled = _JOB.is_in(NOT_IN_PG)
    rates = records.filter(COUNTS).select(
        "run_id",
        job=pl.when(scaled).then(_JOB).otherwise("name"),
        rate=pl.when(scaled & pl.col("ours")).then("efficiency").otherwise(RATE),
        rank=pl.when(scaled).then(_CELL).otherwise((pl.col("group") != "all").cast(int)),
    )
    return rates.filter(pl.col("rate").is_not_null())
