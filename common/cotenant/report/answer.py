"""States in a sentence the share of its rate alone that each user keeps, and how reliable that number is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from statistics import fmean, median
from typing import NamedTuple

from cotenant.frames import pl
from cotenant.report.alone import Side, sliced
from cotenant.report.beside import mix_sentence
from cotenant.report.kept import QUICKLY, percents
from cotenant.report.numbers import rate
from cotenant.report.pairs import outside_pairs, pair_matrices, pairs_sentence
from cotenant.report.progress import duration_words
from cotenant.report.summary import Evenness, JobSummary, Summary
from cotenant.report.trust import Doubt
from cotenant.results.launches import grouped
from cotenant.results.record import NO_BLOCKS, NOT_ALONE
from cotenant.stats.evenness import UNLIKELY, differences, differences_by_intervals
from cotenant.stats.interference import log_ratios, mean_kept, rate_ratio
from cotenant.stats.kept import Kept, ends_around, joint
from cotenant.stats.launches import INTERVAL_LAUNCHES, by_uid
from cotenant.stats.quantiles import t_975
from cotenant.text import joined, many, verb

NAMED = 4
"""The most users that have a number each in a sentence; for more, it gives the lowest and the highest number."""
HOUR_S = 3600.0
MOST_HOSTS = 4
"""Most hosts that have an answer each, and their jobs side by side."""
UNNAMED = "an unnamed host"
MOST_ERROR = 0.1
"""The largest error of a reliable answer, as a share of users' rates alone."""


class JobShares(NamedTuple):
    """The shares of a job's tenants: of rates alone if `of_alone`, else of an equal part of the node's rate."""

    job: JobSummary
    of_alone: bool
    shares: Mapping[str, Kept]

    @property
    def quick(self) -> bool:
        """True if the rates alone come from few observations."""
        return self.of_alone and self.job.alone is not None and self.job.alone.quick

    @property
    def kept(self) -> Kept:
        """The share that all its tenants keep together."""
        return joint([*self.shares.values()])


def job_shares(job: JobSummary) -> JobShares | None:
    """Return the shares of a job's tenants; None if there is no rate to compare theirs with."""
    if kept := {tenant: job.kept[tenant] for tenant in job.tenants if tenant in job.kept}:
        return JobShares(job, True, kept)
    if len(job.tenants) < 2:
        return None
    equal = {uid: node / len(job.tenants) for uid, node in job.together.node.items()}
    shares = {}
    for tenant, estimate in job.tenants.items():
        if (share := rate_ratio(job.together.of(tenant), equal)) is None:
            continue
        if estimate.observations is not None and estimate.interval is not None:
            own_rate = Kept(estimate.rate, estimate.interval, estimate.observations, "observations")
            share = own_rate.times(share.value / estimate.rate)
        shares[tenant] = share
    return JobShares(job, False, shares) if shares else None


@lru_cache(maxsize=1)
def shares_of(summary: Summary) -> Sequence[JobShares]:
    """Return the shares of all jobs, the least first."""
    shares = filter(None, map(job_shares, _plain(summary)))
    return sorted(shares, key=lambda job: min(share.value for share in job.shares.values()))


def _plain(summary: Summary) -> list[JobSummary]:
    """Return the jobs that are not mixes, which have sentences of their own."""
    return [job for job in summary.jobs if not job.mix]


def kept_of_all(summary: Summary) -> Kept | None:
    """Return the share of its rate alone that each user keeps, over all jobs that are not mixes.

    None if no job was measured alone.
    """
    return _over_jobs(_counted(summary))


def _counted(summary: Summary) -> list[JobShares]:
    """Return the shares of rates alone that tenants keep in slices; shares without slices have a table of their own.

    If no job ran in slices, return all of them.
    """
    of_alone = [shares for shares in shares_of(summary) if shares.of_alone]
    return [shares for shares in of_alone if sliced(shares.job.isolation)] or of_alone


def _over_jobs(counted: Sequence[JobShares]) -> Kept | None:
    return counted[0].kept if len(counted) == 1 else mean_kept((shares.kept, _mean_logs(shares)) for shares in counted)


def answer(summary: Summary) -> str:
    """Return the answers of all hosts as one text."""
    return " ".join(answers(summary))


def answers(summary: Summary) -> list[str]:
    """Return the answer of each host: its reliability, each user's kept share, and the job that keeps least.

    No sentence covers several hosts; there is none for more than MOST_HOSTS.
    """
    hosts = summary.hosts
    if len(hosts) > MOST_HOSTS:
        return []
    if len(hosts) > 1:
        return [f"{host or UNNAMED}: {' '.join(sentences(of_host))}" for host, of_host in hosts.items()]
    text = " ".join(sentences(summary))
    return [text] if text else []


@lru_cache(maxsize=1)
def sentences(summary: Summary) -> Sequence[str]:
    """Return the answer of one host in sentences: on mixes, pairs and equal tenants, and how far to trust them."""
    rated = [job for job in summary.jobs if job.rates]
    beside = [*map(mix_sentence, outside_pairs(summary)), *map(pairs_sentence, pair_matrices(summary))]
    equals = _among_equals(summary, bool(beside))
    parts = [*map(_capitalised, beside), *equals, _at_one_time(rated), *_trust(rated), _lost(summary)]
    return [f"{text}." for text in parts if text]


def _at_one_time(jobs: Sequence[JobSummary]) -> str:
    """Return a sentence on the time that repeated launches span; "" if it is an hour or more."""
    repeated = [job.members.columns("start_time") for job in jobs if len(job.rates) >= INTERVAL_LAUNCHES]
    starts = [frame["start_time"].str.to_datetime(strict=False, time_zone="UTC").drop_nulls() for frame in repeated]
    spans_s = [(max(times) - min(times)).total_seconds() for times in starts if len(times)]
    if not spans_s or max(spans_s) >= HOUR_S:
        return ""
    return f"The launches of a job lie within {duration_words(max(spans_s))}: another hour may have other rates"


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _lost(summary: Summary) -> str:
    jobs = _plain(summary)
    lost = sum(not job.rates for job in jobs)
    if not lost:
        return ""
    if lost == len(jobs):
        return f"No job has a rate: {many(lost, 'job')} failed or {verb(lost)} INVALID"
    return f"{lost} of {many(len(jobs), 'job')} {verb(lost, 'has', 'have')} no rate"


def _among_equals(summary: Summary, beside_mixes: bool) -> list[str]:
    rated = [job for job in _plain(summary) if job.rates]
    if not rated:
        return []
    counted = _counted(summary)
    users = _keeps(counted, beside_mixes)
    users = joined("; ", _rates(rated[0]), users) if len(rated) == 1 else _capitalised(users)
    shared = sorted({job.sharers for job in rated if job.sharers > 1})
    several = any(len(job.tenants) > 1 for job in rated)
    return [
        users,
        "" if counted or not several else _why_unknown(rated),
        f"{' or '.join(map(str, shared))} users share the same processors" if shared else "",
        _least_even(rated),
    ]


def _why_unknown(rated: Sequence[JobSummary]) -> str:
    """Return why it is unknown which share of its rate alone each user keeps."""
    if any(job.unsliced_alone is not None and job.unsliced_alone.tenants for job in rated):
        return (
            "What each keeps is not known: without slices a user alone has the whole machine "
            "(--isolation affinity, or cgroups, give each a slice)"
        )
    reasons = [side.reason for job in rated for side in (job.alone, job.unsliced_alone) if side and side.reason]
    reasons += [
        sentence
        for job in rated
        for sentence in job.members.findings().filter(pl.col("rule").is_in([NOT_ALONE, NO_BLOCKS]))["sentence"]
    ]
    if reasons:
        return f"What each keeps is not known: {reasons[0].rpartition('known: ')[2].rstrip('.')}"
    return "What each has alone was not measured (--baseline blocks measures it)"


def _rates(job: JobSummary) -> str:
    values = [estimate.rate for estimate in job.tenants.values()]
    shown = list(map(rate, sorted(values) if len(values) > NAMED else values))
    rates = f"{shown[0]} ... {shown[-1]}" if len(shown) > NAMED else " and ".join(shown)
    return f"{job.label}: {'each user gets' if len(values) > 1 else 'its user gets'} {rates} {job.unit or 'item'}/s"


def _keeps(counted: Sequence[JobShares], beside_mixes: bool) -> str:
    """Return each user's kept share over jobs, its range, and the job that keeps least beyond noise, if any."""
    if (whole := _over_jobs(counted)) is None:
        return ""
    values = _range([shares.kept.value for shares in counted])
    over = f", over {many(len(counted), 'job')} ({values})" if len(counted) > 1 else ""
    doubt = _unreliable(whole, counted)
    subject = "it keeps" if max(len(shares.shares) for shares in counted) == 1 else "each user keeps"
    alone = f"what it has alone{QUICKLY if any(shares.quick for shares in counted) else ''}"
    text = f"{_users(counted) or f'{subject} {percents(whole)}'} of {alone}{over}{_least(counted)}"
    if beside_mixes:
        text = f"beside copies of its own job {text}"
    return f"{doubt}; typical: {text}" if doubt else text


def _logs(shares: JobShares) -> dict[int, list[float]]:
    """Return the logarithms of the tenants' kept shares, in the tenants' order, by each uid that all tenants have."""
    together, alone = shares.job.together, shares.job.alone or Side()
    return by_uid([log_ratios(together.of(tenant), alone.of(tenant)) for tenant in shares.shares])


def _mean_logs(shares: JobShares) -> dict[int, float]:
    """Return the mean of the logarithms of the tenants' kept shares, by uid."""
    return {uid: fmean(logs) for uid, logs in _logs(shares).items()}


def _unreliable(whole: Kept, counted: Sequence[JobShares]) -> str:
    """Return why there is no reliable answer, and the remedy; "" if there is one."""
    doubts = [shares.job.doubt for shares in counted if shares.job.doubt is not None]
    if 2 * len(doubts) > len(counted):
        words, _ = _by_cause(doubts)
        jobs = f"{len(doubts)} of {many(len(counted), 'job')} are suspect" if len(counted) > 1 else "it is suspect"
        return f"no reliable answer: {jobs}, {words}"
    if whole.interval is None:
        return "no reliable answer yet: measured once" if whole.n == 1 else "no reliable answer yet: too few launches"
    if whole.interval[1] - whole.interval[0] > 2 * MOST_ERROR:
        newest = max(uid for shares in counted for uid in shares.job.together.node)
        return f"no reliable answer yet: more launches (--uid {newest + 1}, --uid {newest + 2}) narrow it"
    return ""


def _range(values: Sequence[float]) -> str:
    ends = list(dict.fromkeys(f"{100 * value:.0f}" for value in (min(values), max(values))))
    return f"{' to '.join(ends)} %"


def _users(counted: Sequence[JobShares]) -> str:
    """Return each user's kept share if a test over jobs, or over one job's launches, says that users differ."""
    first = counted[0].shares
    if any(shares.shares.keys() != first.keys() for shares in counted):
        return ""
    rows = [[math.log(shares.shares[tenant].value) for tenant in first] for shares in counted]
    if len(counted) == 1:
        rows = [*_logs(counted[0]).values()]
    found = differences(rows) or differences_by_intervals([*first.values()])
    if found is None or not found.notable:
        return ""
    center = fmean(math.log(shares.kept.value) for shares in counted)
    values = [math.exp(center + effect) for effect in found.effects]
    if len(values) > NAMED:
        return f"users differ: they keep {_range(values)}"
    parts = [f"user {tenant} keeps {100 * value:.0f} %" for tenant, value in zip(first, values, strict=True)]
    return f"users differ: {' and '.join(parts)}"


def _least(counted: Sequence[JobShares]) -> str:
    """Return the job that keeps least, with its share shrunk for noise, if chance does not explain the difference."""
    by_launches = differences([*by_uid([*map(_mean_logs, counted)]).values()])
    found = by_launches or differences_by_intervals([shares.kept for shares in counted])
    if found is None or not found.notable:
        return ""
    center = fmean(math.log(shares.kept.value) for shares in counted) + min(found.effects)
    half = t_975(found.freedom) * found.error
    kept = Kept(math.exp(center), ends_around(center, half), 1, "jobs")
    return f"; least: {counted[found.least].job.label}, {percents(kept)}"


def least_even(jobs: Sequence[JobSummary]) -> tuple[str, Evenness] | None:
    """Return the label and evenness of the least even job; None if chance among so many jobs explains it."""
    judged = [(even.p, job.label, even) for job in jobs if (even := job.evenness) is not None and even.p is not None]
    named = [line for line in judged if line[2].slowest is not None and line[0] * len(judged) < UNLIKELY]
    return min(named, key=lambda line: line[0])[1:] if named else None


def _least_even(jobs: Sequence[JobSummary]) -> str:
    if (named := least_even(jobs)) is None:
        judged = any(job.evenness is not None and job.evenness.p is not None for job in jobs)
        return "No difference between users of a job was detected" if judged else ""
    label, least = named
    heading = f"Least even: {label}, " if len(jobs) > 1 else "Uneven: "
    less = f"{100 * (1 - least.worst_over_best):.0f} %"
    return f"{heading}{less} less for user {least.slowest} than for the fastest"


def _trust(jobs: Sequence[JobSummary]) -> list[str]:
    """Return how many jobs are suspect, the most frequent cause, and its median and greatest effect."""
    doubts = [job.doubt for job in jobs if job.doubt is not None]
    if not doubts:
        return []
    if len(jobs) == 1:
        return [f"It is suspect: {doubts[0].sentence.rstrip('.') or doubts[0].rule}"]
    words, same = _by_cause(doubts)
    effects = [doubt.effect for doubt in same if doubt.effect is not None]
    size = f", which can have moved them by {_effect(effects)}" if effects else ""
    return [f"{len(doubts)} of {many(len(jobs), 'job')} {verb(len(doubts))} suspect, {words}{size}"]


def _by_cause(doubts: Sequence[Doubt]) -> tuple[str, Sequence[Doubt]]:
    """Return in words the cause of more than half of the doubts, and its doubts; none if there is no such cause."""
    cause, same = max(grouped(doubts, lambda doubt: doubt.cause).items(), key=lambda pair: len(pair[1]))
    if 2 * len(same) <= len(doubts):
        return "for several reasons", ()
    return f"{'most of them ' if len(same) < len(doubts) else ''}by {cause}", same


def _effect(effects: Sequence[float]) -> str:
    most = f"{100 * max(effects):.0f} % at the most"
    return most if len(effects) == 1 else f"{100 * median(effects):.0f} % (median), {most}"
