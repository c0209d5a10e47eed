"""Simulates how often intervals cover a known truth, and verdicts are false: the table of docs/method-details.md.

python scripts/coverage.py [--draws 1000]          prints the table
python scripts/coverage.py --write                 puts it into docs/method-details.md

Run it again after changing a statistic. Noise is normal on logarithms: `s` is its standard deviation, `r` its lag-1
correlation between the observations of a launch. Launches are drawn independently.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "common"))

from cotenant.launch.design.designs import InBlocks  # noqa: E402
from cotenant.launch.design.passed import ONLY  # noqa: E402
from cotenant.launch.design.shared import WARM_UP_ROUNDS, Room, blocks_of  # noqa: E402
from cotenant.questions.sizes import Search, Trial  # noqa: E402
from cotenant.report.comparison import CLAIMS, Conditions, compare_launches  # noqa: E402
from cotenant.results.launches import LaunchRecords  # noqa: E402
from cotenant.stats.describe import describe  # noqa: E402
from cotenant.stats.evenness import UNLIKELY, differences, differences_by_intervals  # noqa: E402
from cotenant.stats.hosts import host_rates  # noqa: E402
from cotenant.stats.interference import log_ratios, mean_kept, rate_ratio  # noqa: E402
from cotenant.stats.kept import BlockSum, Kept, kept  # noqa: E402
from cotenant.stats.launches import across_launches  # noqa: E402
from cotenant.stats.quantiles import quantile  # noqa: E402
from cotenant.stats.steadiness import behind_warm_up, drift  # noqa: E402

PAGE = ROOT / "docs/method-details.md"
BEGIN, END = "<!-- scripts/coverage.py -->\n", "<!-- end -->\n"
NOISES, CORRELATIONS = (0.01, 0.03, 0.08), (0.0, 0.3, 0.7)
JOBS, SIDE = 21, 5
LAUNCHES_DIFFER = 0.05
Draw = np.random.Generator
Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Case:
    """One line of the table: the printed interval or verdict, its promise, and whether its noise may be correlated.

    `happens` draws once and tells whether the truth was covered, or the verdict false. `draws` is the share of all
    draws that a costly case makes.
    """

    printed: str
    promised: str
    happens: Callable[[Draw, float, float], bool]
    correlated: bool
    draws: float = 1.0


def rates(draw: Draw, n: int, s: float, r: float = 0.0) -> list[float]:
    """Return n positive rates around 1, each correlated by `r` with the one before it."""
    made = draw.standard_normal(n)
    for at in range(1, n):
        made[at] = r * made[at - 1] + math.sqrt(1 - r * r) * made[at]
    rates_of: list[float] = np.exp(s * made).tolist()
    return rates_of


def median_interval(draw: Draw, s: float, r: float) -> bool:
    interval = describe(rates(draw, 25, s, r), [1.0] * 25).interval
    return interval is not None and interval[0] <= 1 <= interval[1]


def slow_steps(draw: Draw, s: float, r: float) -> bool:
    interval = quantile(rates(draw, 1000, s, r), 0.95).interval
    truth = math.exp(1.6448536269514722 * s)
    return interval is not None and interval[0] <= truth <= interval[1]


def false_drift(draw: Draw, s: float, r: float) -> bool:
    return drift(behind_warm_up(rates(draw, 25, s, r), 5)).p < 0.01


def rate_interval(draw: Draw, s: float, _: float) -> bool:
    interval = across_launches(rates(draw, SIDE, s)).interval
    return interval is not None and interval[0] <= 1 <= interval[1]


def share_interval(draw: Draw, s: float, _: float) -> bool:
    """Three uids; the two launches of a uid share a state of the machine."""
    state = rates(draw, 3, 0.05)
    sides = [dict(enumerate(np.multiply(state, rates(draw, 3, s)).tolist())) for _ in range(2)]
    found = rate_ratio(*sides)
    return found is not None and found.interval is not None and found.interval[0] <= 1 <= found.interval[1]


def false_gain(draw: Draw, s: float, _: float) -> bool:
    search = Search(64)
    for size in search.sizes():
        search.take(Trial(size, rates(draw, 1, s)[0]))
    return search.best != 64


def named_host(draw: Draw, s: float, _: float) -> bool:
    """Eight equal hosts, each with one launch of ten jobs."""
    hosts = {f"host{host}": {(job,): {0: rate} for job, rate in enumerate(rates(draw, 10, s))} for host in range(8)}
    return any(found.slower for found in host_rates(hosts).values())


def kept_of(draw: Draw, s: float, r: float = 0.0, share: float = 0.8) -> Kept:
    """Return what one user of two keeps in 20 rounds of blocks; `s` and `r` are the noise of its consecutive blocks."""
    room = Room({0: 1, 1: 1}, chance=random.Random(int(draw.integers(2**32))))
    made = [*blocks_of(InBlocks()._rounds(room, 20 - WARM_UP_ROUNDS))]
    speeds = zip(made, rates(draw, len(made), s, r), strict=True)
    found = kept(
        [
            BlockSum(block.index, block.kind == ONLY, rate, 1.0, (rate,))
            for block, speed in speeds
            if 0 in block.awake
            for rate in [speed * (1.0 if block.kind == ONLY else share)]
        ]
    )
    assert found is not None
    return found


def kept_interval(draw: Draw, s: float, r: float) -> bool:
    interval = kept_of(draw, s, r).interval
    return interval is not None and interval[0] <= 0.8 <= interval[1]


def kept_by_launches(draw: Draw, s: float, r: float) -> bool:
    """The interval of one launch, against the mean kept share of launches, which differ by 5 %."""
    interval = kept_of(draw, s, r, 0.8 * rates(draw, 1, LAUNCHES_DIFFER)[0]).interval
    return interval is not None and interval[0] <= 0.8 <= interval[1]


def named_by_one_launch(draw: Draw, s: float, _: float) -> bool:
    """Sixteen jobs that keep the same on the mean of launches, which differ by 5 %, each launched once."""
    found = differences_by_intervals([kept_of(draw, s, share=0.8 * one) for one in rates(draw, 16, LAUNCHES_DIFFER)])
    return found is not None and found.notable


def side(draw: Draw, s: float) -> dict[str, list[LaunchRecords]]:
    """Return a suite of equal jobs, five launches of each."""
    work = (("benchmark", "x"), ("batch_size", 1), ("tenants", 1))
    return {
        f"job{job}": [
            LaunchRecords("suite", "", f"job{job}", "student", "", "v1", uid, False, "", rate, work, ["0"], [rate])
            for uid, rate in enumerate(rates(draw, SIDE, s))
        ]
        for job in range(JOBS)
    }


def false_claim(draw: Draw, s: float, _: float) -> bool:
    compared = compare_launches(side(draw, s), side(draw, s), Conditions())
    return any(line.verdict in CLAIMS for line in compared.lines)


def mean_over_jobs(draw: Draw, s: float, _: float) -> bool:
    """Sixteen jobs that keep 0.9 with a spread of 5 % between them, each launched once together and once alone."""
    sides = [({0: 0.9 * rates(draw, 1, 0.05)[0] * rates(draw, 1, s)[0]}, {0: rates(draw, 1, s)[0]}) for _ in range(16)]
    found = mean_kept((rate_ratio(*each), log_ratios(*each)) for each in sides)
    return found is not None and found.interval is not None and found.interval[0] <= 0.9 <= found.interval[1]


def named_uneven(draw: Draw, s: float, _: float) -> bool:
    """Sixteen jobs of two equal users, three launches each."""
    found = [differences(np.log([rates(draw, 2, s) for _ in range(3)]).tolist()) for _ in range(16)]
    return any(one is not None and one.notable and 16 * one.p < UNLIKELY for one in found)


def named_least(draw: Draw, s: float, _: float) -> bool:
    """Sixteen jobs that keep the same, three launches each."""
    found = differences(np.log([rates(draw, 16, s) for _ in range(3)]).tolist())
    return found is not None and found.notable


CASES: Sequence[Case] = (
    Case("interval of a launch's rate (25 observations)", "covers 95 %", median_interval, correlated=True),
    Case("interval of a step's p95 (1000 steps)", "covers 95 %", slow_steps, correlated=True, draws=0.3),
    # Beyond a correlation of 0.3 a test that allows for it would miss half of the real changes.
    Case("finding `drift` (25 observations, none drifts)", "false in 1 % where r is at most 0.3", false_drift, True),
    Case("interval of a rate over five launches", "covers 95 %", rate_interval, correlated=False),
    Case("interval of a share, three pairs of launches", "covers 95 %", share_interval, correlated=False),
    Case("interval of what a user keeps, one launch of 20 rounds", "covers 95 %", kept_interval, correlated=True),
    Case("the same, of launches that differ by 5 %", "nothing: it is within one launch", kept_by_launches, True, 0.3),
    Case("least of 16 equal jobs named, one launch", "false in 5 %", named_by_one_launch, correlated=False, draws=0.1),
    Case("mean of what 16 jobs keep, each measured once", "covers 95 %", mean_over_jobs, correlated=False),
    Case("least even of 16 even jobs named, three launches", "false in 5 %", named_uneven, correlated=False, draws=0.3),
    Case("least of 16 equal jobs named, three launches", "false in 5 %", named_least, correlated=False),
    Case("`compare`: any claim among 21 equal jobs", "false in 5 %", false_claim, correlated=False, draws=0.2),
    Case("`report`: any of 8 equal hosts named slower, 10 jobs", "false in 5 %", named_host, correlated=False),
    Case("`tune`: a gain on a flat curve", "false in 2.5 %", false_gain, correlated=False, draws=0.3),
)


def share(case: Case, s: float, r: float, draws: int) -> float:
    """Return the share of draws in which the case happens; there are `draws` times the case's own share of them."""
    draw, times = np.random.default_rng(1), max(1, round(draws * case.draws))
    return sum(case.happens(draw, s, r) for _ in range(times)) / times


def line(case: Case, draws: int) -> str:
    """Return the case's row: a cell per noise, in it a number per correlation."""
    lags = CORRELATIONS if case.correlated else (0.0,)
    cells = [", ".join(f"{100 * share(case, s, r, draws):.1f}" for r in lags) for s in NOISES]
    return f"| {case.printed} | {case.promised} | {' | '.join(cells)} |"


def table(draws: int) -> str:
    """Return the table, in percent."""
    heads = " | ".join(f"s = {100 * s:.0f} %" for s in NOISES)
    rows = "\n".join(line(case, draws) for case in CASES)
    return (
        f"| printed | promised | {heads} |\n|---|---|{'---|' * len(NOISES)}\n{rows}\n\n"
        f"In percent, of {draws} draws (of costly lines fewer); three numbers are for a correlation of "
        f"{', '.join(map(str, CORRELATIONS))} from one to the next.\n"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--write", action="store_true", help="put the table into docs/method-details.md")
    given = parser.parse_args()
    made = table(given.draws)
    if not given.write:
        print(made, end="")
        return 0
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{after}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
