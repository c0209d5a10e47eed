"""Predictions of the shares that jobs keep in pairs: with known effects, and for the committed pairs of six jobs."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from cotenant.stats.prediction import Numbers, by_curves, predict

COMMITTED = Path(__file__).parents[2] / "benchmarks/results/what-different-jobs-keep.md"
JOBS = ("vae", "wlm", "convnet", "loader", "recom", "decode")
SEEN = {"v1": slice(1, 3), "none": slice(0, 3)}
"""Resources among cpu, dram and llc on which the probe lost something: in slices it lost no processor time."""


def committed(isolation: str) -> tuple[Numbers, Numbers]:
    """Return the shares that the jobs kept in pairs by the committed page, and the shares that its curves predict."""
    text = COMMITTED.read_text()
    kept, keeps, leaves = np.full((6, 6), np.nan), np.ones((6, 3)), np.ones((6, 3))
    job = ""
    for line in text[text.index("## Pairs") : text.index("## Predicted pairs")].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        values = [float(found[0]) if (found := re.search(r"[\d.]+", cell)) else np.nan for cell in cells]
        if cells[0] != "cotenancy":
            continue
        if cells[2] == isolation and cells[3] in JOBS:
            kept[JOBS.index(cells[3])] = values[4:10]
        job = cells[2] or job
        if cells[4] == "keeps":
            at = JOBS.index(job) if cells[3] == isolation else None
        if cells[4] in ("keeps", "leaves") and at is not None:
            (keeps if cells[4] == "keeps" else leaves)[at] = values[5:8]
    lost, taken = np.clip(1 - keeps, 0, 1), np.clip(1 - leaves, 0, 1)
    expected = np.prod(1 - lost[:, None] * taken[None], axis=-1, where=np.isin(range(3), range(3)[SEEN[isolation]]))
    return kept, expected


@pytest.mark.parametrize(("isolation", "error", "one_number"), [("v1", 0.037, 0.051), ("none", 0.088, 0.157)])
def test_of_the_committed_pairs_it_errs_less_than_one_number(isolation: str, error: float, one_number: float) -> None:
    kept, expected = committed(isolation)
    for prior in (None, expected):
        _, fit = predict(kept, prior)
        assert fit.error < min(error, fit.constant), "each launch by all others"
    pairs = np.minimum.outer(range(6), range(6)) * 6 + np.maximum.outer(range(6), range(6))
    third = np.unique(pairs, return_inverse=True)[1].reshape(6, 6) % 3 == 1
    predicted, _ = predict(np.where(third, kept, np.nan), expected)
    assert np.abs(kept[third].mean() - kept)[~third].mean() == pytest.approx(one_number, abs=0.001)
    assert np.abs(predicted - kept)[~third].mean() < error + 0.01, "two thirds by a third, in rows' order"


def effects(seed: int, noise: float = 0.01) -> tuple[np.random.Generator, Numbers]:
    """Return the generator, and the shares that eight jobs keep: 0.7 + effects of victim and neighbour + noise."""
    chance = np.random.default_rng(seed)
    victims, neighbours = chance.uniform(-0.15, 0.15, (2, 8))
    return chance, 0.7 + victims[:, None] + neighbours[None] + chance.normal(0, noise, (8, 8))


def test_a_pair_that_was_not_measured_is_what_its_jobs_do_elsewhere() -> None:
    _, kept = effects(1)
    missing = kept.copy()
    missing[2, 5] = missing[5, 2] = missing[3, 3] = np.nan
    predicted, fit = predict(missing)
    assert np.abs(predicted - kept)[np.isnan(missing)].max() < 0.05
    assert fit.error < 0.02 < fit.constant


def test_one_rank_more_is_taken_where_a_neighbour_hurts_some_and_not_others() -> None:
    chance, kept = effects(2)
    kept = kept - 0.5 * np.outer(chance.integers(0, 2, 8), chance.integers(0, 2, 8))
    assert predict(kept)[1].rank == 1
    few = np.full_like(kept, np.nan)
    few[:4, :4] = kept[:4, :4]
    assert predict(few)[1].rank == 0, "of a quarter of the pairs nobody knows"


def test_curves_are_taken_where_they_know_what_pairs_do_not() -> None:
    chance = np.random.default_rng(3)
    kept = chance.uniform(0.4, 1, (6, 6))
    assert predict(kept, kept + chance.normal(0, 0.02, (6, 6)))[1].curves
    assert not predict(effects(4)[1], chance.uniform(0.4, 1, (8, 8)))[1].curves


def test_of_noise_one_number_says_as_much() -> None:
    fits = [predict(np.random.default_rng(seed).normal(0.9, 0.05, (6, 6)))[1] for seed in range(20)]
    assert sum(fit.error < fit.constant for fit in fits) <= 4


def test_of_two_launches_nothing_is_predicted_and_of_no_curves_nothing_expected() -> None:
    assert predict(np.array([[0.9, 0.8], [0.7, np.nan]])) is None
    assert predict(np.full((2, 2), 0.9)) is not None
    assert by_curves([], ["vae"]) is None


def test_what_curves_let_expect_is_the_victims_loss_times_what_the_other_leaves_unkept() -> None:
    dram = {"vae": (0.7, 0.64), "wlm": (0.9, 1.0), "loader": (1.1, -0.5)}
    expected = by_curves([dram], ["vae", "wlm", "loader"])
    assert expected[1, 0] == pytest.approx(1 - 0.1 * 0.36)
    assert expected[0, 1] == 1
    assert expected[2, 0] == 1, "who gains loses nothing"
    assert expected[0, 2] == pytest.approx(0.7), "nobody leaves less than nothing"
    both = by_curves([dram, dram], ["vae", "wlm", "loader"])
    assert both == pytest.approx(expected**2), "of two resources it keeps the product"
    assert by_curves([dram], ["vae", "recom"]) is None
