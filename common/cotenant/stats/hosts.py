"""Finds hosts that are slower than equal ones beyond noise, or that have fewer of something."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from cotenant.stats.evenness import NOTICEABLE, UNLIKELY
from cotenant.stats.launches import interval_around, standard_error
from cotenant.stats.quantiles import t_below
from cotenant.stats.steadiness import MODIFIED_Z

FAR = 3.5
"""Iglewicz and Hoaglin's limit of a modified z-score."""
LEAST = 3
Rates = Mapping[tuple[object, ...], Mapping[int, float]]
"""A host's rates by job and repetition (uid)."""


@dataclass(frozen=True, slots=True)
class HostRate:
    """A host's rate over equal hosts' rate: the geometric mean over `n` jobs, or over launches of fewer than 3 jobs.

    `interval` is its 95 % t interval, None for fewer than three. `slower`: beyond noise.
    """

    ratio: float
    interval: tuple[float, float] | None
    n: int
    over: str
    slower: bool


def host_rates(hosts: Mapping[str, Rates]) -> dict[str, HostRate]:
    """Return the rates of hosts over equal hosts', for each host that has a job in common with another.

    A job's distance on a host is its log rate there minus the median over all hosts (of two, the other one's),
    repetition by repetition: a broken host hardly moves the others. A host is slower if its mean distance over jobs is
    below -2 %, and below -3.5 robust standard deviations of the other hosts' means (a modified z-score: Iglewicz and
    Hoaglin, 1993), by the one-sided t bound (Student, 1908) over its own jobs, at a chance of 5 % over all hosts
    together (Bonferroni). Fewer than three jobs are judged over their launches, and fewer than three launches are not.
    """
    distances: dict[str, tuple[list[float], str]] = {}
    for host in hosts:
        by_job = list(_distances(host, hosts))
        if len(by_job) >= LEAST:
            distances[host] = [fmean(of_job) for of_job in by_job], "jobs"
        elif by_job:
            distances[host] = [value for of_job in by_job for value in of_job], "launches"
    centers = {host: fmean(values) for host, (values, _) in distances.items()}
    found = {}
    for host, (values, over) in distances.items():
        slower = _upper(values, len(hosts)) < -_natural([centers[other] for other in centers if other != host])
        found[host] = HostRate(
            math.exp(centers[host]), interval_around(centers[host], values), len(values), over, slower
        )
    return found


def _distances(host: str, hosts: Mapping[str, Rates]) -> Iterator[list[float]]:
    """Yield, for each job, this host's distances from the other hosts that ran it: one per repetition."""
    others = [rates for name, rates in hosts.items() if name != host]
    for job, rates in hosts[host].items():
        of_job = []
        for uid, rate in rates.items():
            logs = [math.log(of_host[job][uid]) for of_host in others if uid in of_host.get(job, ())]
            if logs:
                own_logs = [math.log(rate)] if len(logs) > 1 else []
                of_job.append(math.log(rate) - median([*logs, *own_logs]))
        if of_job:
            yield of_job


def _upper(values: Sequence[float], hosts: int) -> float:
    """Return the upper bound of the mean, for one of `hosts` hosts; infinite for fewer than three values."""
    if len(values) < LEAST:
        return math.inf
    error, freedom = standard_error(values)
    return fmean(values) + t_below(1 - UNLIKELY / hosts, freedom) * error


def _natural(centers: Sequence[float]) -> float:
    """Return the distance, on logarithms, up to which means are natural among these hosts' means."""
    middle = median(centers)
    return max(-math.log1p(-NOTICEABLE), FAR / MODIFIED_Z * median(abs(center - middle) for center in centers))


def usual(counts: Sequence[int]) -> int:
    """Return the count that most hosts have; of two equally frequent ones, the higher."""
    return max(Counter(counts).items(), key=lambda pair: (pair[1], pair[0]))[0]
