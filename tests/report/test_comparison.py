"""Verdicts on jobs side by side: chance among many of them, their margin, and launches that lie apart in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from msgspec.structs import replace

from cotenant.report.comparison import CLAIMS, Conditions, compare_launches
from cotenant.results.launches import LaunchRecords
from cotenant.stats.verdict import Verdict

WORK = (("benchmark", "abc"), ("batch_size", 128), ("tenants", 2))
NEAR = (1.0, 1.004, 0.996, 1.002, 0.998)


def launches(times: float, factors: Sequence[float] = NEAR) -> list[LaunchRecords]:
    rates = [100 * times * factor for factor in factors]
    return [
        LaunchRecords("suite", "", "vae", "student", "", "v1", uid, False, "", rate, WORK, ["0", "1"], [rate / 2] * 2)
        for uid, rate in enumerate(rates)
    ]


def test_a_chance_claim_among_many_jobs_is_taken_back() -> None:
    """A claim with a p of 0.01 stands beside one other job, and does not beside twenty."""
    noisy = launches(1.0, (0.93, 0.915, 0.95, 0.96, 0.945))
    for others, verdict in ((1, Verdict.SLOWER), (20, Verdict.UNCLEAR)):
        sides = {"vae": noisy} | {f"other{number}": launches(1.0) for number in range(others)}
        found = compare_launches(dict.fromkeys(sides, launches(1.0)), sides, Conditions(margin=0.02))
        assert found.lines[0].verdict is verdict, found.lines[0]
        assert ("not beyond chance among 21 jobs" in found.lines[0].note) == (others == 20)


def test_the_margin_is_the_noise_and_at_least_two_percent() -> None:
    quiet, noisy = launches(1.0), launches(1.0, (0.9, 1.1, 1.0, 0.95, 1.05))
    for b, margin in ((quiet, 0.02), (noisy, pytest.approx(0.079 / 2**0.5, rel=0.01))):
        (line,) = compare_launches({"vae": quiet}, {"vae": b}, Conditions()).lines
        assert line.comparison.margin == margin


def test_a_job_that_is_not_compared_does_not_widen_the_margin() -> None:
    slow, twice = launches(0.9), launches(2.0)
    mixed = [*launches(1.0)[:3], *(replace(one, work=(("batch_size", 256), *WORK[2:])) for one in twice[3:])]
    a = {"vae": launches(1.0), "mixed": mixed, "gone": [*launches(1.0)[:2], *twice[3:]]}
    vae, *others = compare_launches(a, {"vae": slow, "mixed": launches(1.0)}, Conditions()).lines
    assert (vae.verdict, vae.comparison and vae.comparison.margin) == (Verdict.SLOWER, 0.02)
    assert [line.verdict for line in others] == [Verdict.INVALID] * 2


def test_sides_that_did_not_run_by_turns_are_named() -> None:
    def at(*hours: int) -> dict[str, list[LaunchRecords]]:
        pairs = zip(launches(1.0), hours, strict=True)
        return {"vae": [replace(launch, start_time=f"2026-11-01T{hour:02}:00:00+00:00") for launch, hour in pairs]}

    early, late, turns = at(1, 2, 3, 4, 5), at(6, 7, 8, 9, 10), at(2, 3, 5, 7, 9)
    assert compare_launches(early, late, Conditions()).apart.startswith("All launches of A ran before those of B")
    assert compare_launches(late, early, Conditions()).apart.startswith("All launches of B ran before those of A")
    assert compare_launches(early, turns, Conditions()).apart == ""
    assert compare_launches(early, early, Conditions()).apart == ""


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.01, 0.03, 0.08])
def test_suites_of_equal_jobs_claim_hardly_any_difference(noise: float) -> None:
    """Without correction and margin a third of noisy suites, of 21 jobs and five launches a side, claim something."""
    draw, suites, false, found = np.random.default_rng(5), 150, 0, 0
    for _ in range(suites):
        drawn = np.exp(draw.normal(0, noise, (2, 21, 5))).tolist()
        a, b = ({f"job{job}": launches(1.0, factors) for job, factors in enumerate(side)} for side in drawn)
        false += any(line.verdict in CLAIMS for line in compare_launches(a, b, Conditions()).lines)
        slow = {"job0": launches(0.9, drawn[1][0])}
        found += compare_launches(a, b | slow, Conditions()).lines[0].verdict is Verdict.SLOWER
    assert false / suites <= 0.05
    assert found / suites >= {0.01: 0.99, 0.03: 0.3, 0.08: 0.0}[noise]
