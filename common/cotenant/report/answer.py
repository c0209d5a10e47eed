"""What each user really gets: one sentence, and each tenant's rate over what it has alone, or over an equal share."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from cotenant.report.mixes import QUICKLY, mix_sentence
from cotenant.report.numbers import rate
from cotenant.report.pairs import outside_pairs, pair_matrices, pairs_sentence
from cotenant.report.problems import worst
from cotenant.report.summary import JobSummary, Summary
from cotenant.results.identity import natural
from cotenant.stats.interference import ratio
from cotenant.text import many

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
NAMED = 4
"""So many users' numbers stand in a sentence; of more the lowest and the highest."""


@dataclass(frozen=True, slots=True)
class Share:
    """A tenant's rate over its baseline. `within`: its interval is that of the observations of one launch."""

    tenant: str
    ratio: float
    interval: tuple[float, float] | None
    within: bool = False


@dataclass(frozen=True, slots=True)
class JobShares:
    """The shares of a job's tenants: `of_alone`, of what each has alone in its slice, or of an equal share."""

    job: JobSummary
    of_alone: bool
    shares: Sequence[Share]

    @property
    def quick(self) -> bool:
        """Whether what each has alone is known of few observations."""
        return self.of_alone and self.job.alone is not None and self.job.alone.quick

    @property
    def worst(self) -> float:
        return min(share.ratio for share in self.shares)


def job_shares(job: JobSummary) -> JobShares | None:
    """Return the shares of a job's tenants; None where there is nothing that a rate could be held against."""
    alone = job.alone is not None and any(job.alone.of(tenant) for tenant in job.tenants)
    if not alone and len(job.tenants) < 2:
        return None
    equal = {uid: node / len(job.tenants) for uid, node in job.together.node.items()}
    shares = []
    for tenant, estimate in job.tenants.items():
        baseline = job.alone.of(tenant) if alone and job.alone is not None else equal
        if (share := ratio(job.together.of(tenant), baseline)) is None:
            continue
        interval, within = share.interval, None
        if interval is None and alone:
            within = job.within_alone(tenant)
        elif interval is None and estimate.observations is not None and estimate.interval is not None:
            low, high = estimate.interval
            within = share.ratio * low / estimate.rate, share.ratio * high / estimate.rate
        shares.append(Share(tenant, share.ratio, interval or within, within is not None))
    return JobShares(job, alone, shares) if shares else None


def shares_of(summary: Summary) -> list[JobShares]:
    """Return the shares of all jobs, the least first."""
    return sorted(filter(None, map(job_shares, _plain(summary))), key=lambda shares: shares.worst)


def _plain(summary: Summary) -> list[JobSummary]:
    """The jobs whose neighbours are their equals; those of mixes are held against each other by what they keep."""
    return [job for job in summary.jobs if not job.mix]


def answer(summary: Summary) -> str:
    """Return the answer on top of a report: what each user has, who has least, and how far that is to be trusted."""
    return " ".join(sentences(summary))


def sentences(summary: Summary) -> list[str]:
    """Return the answer in sentences: one where all tenants of a launch are equal, else one a mix and one of trust."""
    if not any(job.mix for job in summary.jobs):
        return [text for text in (_among_equals(summary),) if text]
    beside = [*map(mix_sentence, outside_pairs(summary)), *map(pairs_sentence, pair_matrices(summary))]
    trust = _trust([job for job in summary.jobs if job.rates])
    equals = _among_equals(summary, beside_mixes=True)
    made = [*(_capitalised(f"{text}.") for text in beside), equals, _sentence([trust])]
    return _once(QUICKLY, [text for text in made if text])


def _once(words: str, texts: Sequence[str]) -> list[str]:
    """Leave words that hold for all sentences in the first that has them."""
    first = next((at for at, text in enumerate(texts) if words in text), len(texts))
    return [text if at <= first else text.replace(words, "") for at, text in enumerate(texts)]


def _among_equals(summary: Summary, beside_mixes: bool = False) -> str:
    jobs = _plain(summary)
    rated = [job for job in jobs if job.rates]
    if not rated:
        return f"No job has a rate: {many(len(jobs), 'job')} failed or is INVALID." if jobs else ""
    shares = shares_of(summary)
    users = _one_job(rated[0], shares) if len(rated) == 1 else _several_jobs(shares)
    if shares and not any(each.of_alone for each in shares):
        users += "; what each has alone was not measured"
    if beside_mixes and len(rated) > 1 and users:
        users = f"beside copies of their own job {users}"
    parts = [users, _shared(rated), _least_even(rated), "" if beside_mixes else _trust(rated)]
    if lost := len(jobs) - len(rated):
        parts.append(f"{lost} of {many(len(jobs), 'job')} {'have' if lost > 1 else 'has'} no rate")
    # A sentence on one job begins with its name.
    return _sentence(parts) if len(rated) == 1 else _capitalised(_sentence(parts))


def _sentence(parts: Sequence[str]) -> str:
    text = "; ".join(filter(None, parts))
    return f"{text}." if text else ""


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _one_job(job: JobSummary, shares: Sequence[JobShares]) -> str:
    values = [estimate.rate for estimate in job.tenants.values()]
    rates = _joined([rate(value) for value in (sorted(values) if len(values) > NAMED else values)])
    each = "each user gets" if len(job.tenants) > 1 else "its user gets"
    text = f"{job.label}: {each} {rates} {job.unit or 'item'}/s"
    return (
        f"{text}, {_percents([share.ratio for share in shares[0].shares])} of {_baseline(shares)}" if shares else text
    )


def _several_jobs(shares: Sequence[JobShares]) -> str:
    """The geometric mean over jobs of what each user keeps; jobs that ran alone as well speak for all, if any did."""
    of_alone = [each for each in shares if each.of_alone]
    counted = of_alone or shares
    logs: dict[str, list[float]] = defaultdict(list)
    for share in (share for each in counted for share in each.shares):
        logs[share.tenant].append(math.log(share.ratio))
    if not logs:
        return ""
    means = [math.exp(fmean(logs[tenant])) for tenant in sorted(logs, key=natural)]
    users = f"{_word(len(means))} user{'s' if len(means) > 1 else ''}"
    verb = ("keep" if len(means) > 1 else "keeps") if of_alone else "get"
    return f"{users} {verb} {_percents(means)} of {_baseline(counted)} (geometric mean of {many(len(counted), 'job')})"


def _baseline(shares: Sequence[JobShares]) -> str:
    if not shares[0].of_alone:
        return "an equal share"
    return f"what each has alone{QUICKLY if any(share.quick for share in shares) else ''}"


def _shared(jobs: Sequence[JobSummary]) -> str:
    """How many users have the same processors, where they have none of their own."""
    counts = sorted({job.sharers for job in jobs if job.sharers > 1})
    return f"shared: {' or '.join(map(str, counts))} users have the same processors" if counts else ""


def _least_even(jobs: Sequence[JobSummary]) -> str:
    evens = [(job.evenness.worst_over_best, job.label) for job in jobs if job.evenness is not None]
    if not evens:
        return ""
    worst, label = min(evens)
    who = f"least even: {label}, " if len(jobs) > 1 else ""
    return f"{who}{100 * (1 - worst):.0f} % less for the slowest user than for the fastest"


def _trust(jobs: Sequence[JobSummary]) -> str:
    doubts = [job.doubt for job in jobs if job.doubt is not None]
    if not doubts:
        return ""
    rule, _ = Counter(doubt.rule for doubt in doubts).most_common(1)[0]
    text = worst([doubt.text for doubt in doubts if doubt.rule == rule])
    if len(jobs) == 1:
        return f"suspect: {text}"
    are = "are" if len(doubts) > 1 else "is"
    return f"{len(doubts)} of {many(len(jobs), 'job')} {are} suspect, most for this: {text}"


def _percents(ratios: Sequence[float]) -> str:
    texts = [f"{100 * each:.0f}" for each in (sorted(ratios) if len(ratios) > NAMED else ratios)]
    if len(ratios) > NAMED:
        return f"{' to '.join(dict.fromkeys((texts[0], texts[-1])))} %"
    return _joined([f"{text} %" for text in texts])


def _joined(words: Sequence[str]) -> str:
    if len(words) > NAMED:
        return f"{words[0]} ... {words[-1]}"
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def _word(count: int) -> str:
    return NUMBERS[count] if count < len(NUMBERS) else str(count)
