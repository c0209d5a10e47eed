"""What a job takes, on a simulated machine of known contention: it is found again."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.fingerprint import Sensed, kept_beside, level_at, taken
from cotenant.stats.sensitivity import LevelBlock, curve, rounds_of, samples_of

LEVELS = (0, 25, 50, 75, 100)
FULL = {"dram": 10.0, "llc": 40e6}
"""What a neighbour at full level gets of each resource, beside a job that takes nothing of it."""
LOST = {"vae": {"dram": 0.30, "llc": 0.05}, "wlm": {"dram": 0.10, "llc": 0.25}, "loader": {"dram": 0.02, "llc": 0.40}}
"""What each job loses of its rate beside level 100: all curves of this machine are straight lines."""
TAKES = {"vae": {"dram": 0.8, "llc": 0.1}, "wlm": {"dram": 0.2, "llc": 0.5}, "loader": {"dram": 0.5, "llc": 0.9}}
"""Beside which level, over 100, a probe loses as much as beside each job."""
OF_PROBE = {"dram": 0.45, "llc": 0.2}


def launch(resource: str, job: str, seed: int, noise: float) -> list[LevelBlock]:
    """Four rounds of a job beside the neighbour; of the probe under the name ""."""
    chance = random.Random(f"{resource} {job} {seed}")
    lost = LOST[job][resource] if job else OF_PROBE[resource]
    speed = chance.uniform(50, 200) if job else FULL[resource]
    # A neighbour gets less beside who takes much.
    left = 1 - OF_PROBE[resource] * TAKES[job][resource] if job else 1.0
    return [
        LevelBlock(
            level,
            number,
            left * FULL[resource] * level / 100 * math.exp(chance.gauss(0, noise)),
            speed * (1 - lost * level / 100) * math.exp(chance.gauss(0, noise)),
            5,
        )
        for number in range(4)
        for level in LEVELS
    ]


def machine(seed: int = 0, noise: float = 0.0, uids: int = 1) -> list[Sensed]:
    resources = []
    for resource in FULL:
        of = {job: [launch(resource, job, seed + 1000 * uid, noise) for uid in range(uids)] for job in ("", *LOST)}
        samples = {job: samples_of(rounds_of(launches)) for job, launches in of.items()}
        probe = curve(of[""])
        assert probe is not None
        resources.append(Sensed("GB", {job: samples[job] for job in LOST}, samples[""], probe.loses))
    return resources


def test_what_a_job_takes_is_the_level_beside_which_a_probe_keeps_as_much() -> None:
    dram, _ = machine()
    vae = taken(dram, "vae")
    assert vae.kept == pytest.approx(1 - OF_PROBE["dram"] * 0.8)
    assert (vae.level, vae.amount, vae.beyond) == (pytest.approx(80), pytest.approx(0.8 * FULL["dram"]), False)
    probe = {**dram.jobs, "vae": [replace(each, achieved={0: 0.0, 100: 1.0}) for each in dram.jobs["vae"]]}
    greedy = taken(replace(dram, jobs=probe), "vae")
    assert (greedy.level, greedy.beyond) == (100, True), "more than any neighbour of ours"
    silent = replace(dram, jobs={"vae": [replace(each, achieved={0: 0.0, 100: 0.0}) for each in dram.jobs["vae"]]})
    assert (taken(silent, "vae").kept, taken(silent, "vae").interval) == (0, None)
    unknown = taken(replace(dram, known=False), "vae")
    assert (unknown.level, unknown.amount) == (None, None), "a probe that loses nothing tells nothing"


@given(st.lists(st.floats(0.01, 1), min_size=2, max_size=5), st.floats(0.01, 1))
def test_a_level_is_the_least_at_which_no_more_is_kept(shares: list[float], kept: float) -> None:
    points = [(25.0 * at, share) for at, share in enumerate([1.0, *sorted(shares, reverse=True)])]
    level = level_at(points, kept)
    at, shares = zip(*points, strict=True)
    assert np.interp(level, at, shares) == pytest.approx(max(kept, shares[-1]), abs=1e-6)
    assert np.interp(max(0.0, level - 0.5), at, shares) >= np.interp(level, at, shares)


def test_what_a_curve_lets_expect_is_the_loss_times_what_a_probe_loses() -> None:
    dram, llc = machine()
    assert kept_beside(dram, "wlm", "vae") == pytest.approx(1 - LOST["wlm"]["dram"] * OF_PROBE["dram"] * 0.8)
    assert kept_beside(llc, "wlm", "loader") == pytest.approx(1 - LOST["wlm"]["llc"] * OF_PROBE["llc"] * 0.9)


@pytest.mark.slow
@pytest.mark.parametrize("uids", [1, 3])
def test_intervals_of_what_is_taken_cover(uids: int) -> None:
    """Of 150 machines at 2 % noise, whose rounds, or launches, are independent; a share of 0.95 errs by 0.018."""
    covered = []
    for seed in range(150):
        found = taken(machine(seed, 0.02, uids)[0], "vae")
        assert found.interval is not None
        covered.append(found.interval[0] <= 1 - OF_PROBE["dram"] * TAKES["vae"]["dram"] <= found.interval[1])
    assert 0.9 < sum(covered) / len(covered) < 0.995
