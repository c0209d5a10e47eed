"""Outliers among nodes, and the evidence that a charge against a node needs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cotenant.stats.acceptance import Charge, NodeVerdict, charges
from cotenant.stats.confirmation import confirm
from cotenant.stats.fleet import bins_of, effects_of, minority, screen

RESOURCES = np.repeat(np.arange(4), 5)
WORKS = np.arange(20)
NODES = 40
Logs = NDArray[np.float64]


def logs(seed: int, slow: Logs, noise: Logs | float = 0.005) -> Logs:
    """Return the logarithms of rates (nodes, jobs) in one run: nodes differ by 3 %, the same in every run."""
    levels = np.random.default_rng(99).normal(0, 0.03, NODES)
    chance = np.random.default_rng(seed)
    return levels[:, None] + np.arange(20.0) + slow + chance.normal(0, 1, (NODES, 20)) * noise


def slow(*parts: tuple[int, object, float]) -> Logs:
    """Return planted faults as changes of logarithms; a part is a node, jobs (slice or list) and the share lost."""
    planted = np.zeros((NODES, 20))
    for node, jobs, share in parts:
        planted[node, jobs] = np.log1p(-share)
    return planted


def held(planted: Logs, again: Logs | None = None, noise: Logs | float = 0.005, works: Any = WORKS) -> list[Charge]:
    """Return the charges after a run of all nodes, and three more of the suspects and twelve healthy nodes."""
    screening = screen(logs(0, planted, noise), RESOURCES)
    ran = screening.suspects.copy()
    ran[np.flatnonzero(~screening.suspects)[:12]] = True
    rounds = np.stack([logs(seed, planted if again is None else again, noise) + 0.1 * seed for seed in (1, 2, 3)])
    rounds[:, ~ran] = np.nan
    return charges(screening, confirm(screening, rounds, RESOURCES), RESOURCES, works)


def test_effects_are_those_that_were_put_in() -> None:
    exact = np.array([0.1, 0.0, -0.1, 0.02, -0.02])[:, None] + np.arange(20.0)
    exact[0, 5:10] -= 0.2
    exact[3, 0] = np.nan
    effects = effects_of(exact, RESOURCES)
    assert effects.nodes == pytest.approx([0.1, 0.0, -0.1, 0.02, -0.02])
    assert effects.resources[0] == pytest.approx([0, -0.2, 0, 0])
    assert np.nanmax(np.abs(effects.rest[1:])) == pytest.approx(0)


COMPUTE = slice(0, 5)


@pytest.mark.parametrize(
    ("planted", "again", "expected"),
    [
        # All jobs of one resource lose 4 %: SLOW; twice as much is a DEFECT.
        (slow((7, COMPUTE, 0.04)), None, [(7, "SLOW", 0, None)]),
        (slow((7, COMPUTE, 0.08)), None, [(7, "DEFECT", 0, None)]),
        # All jobs lose alike: a DEFECT far beyond the natural spread of nodes, no charge within it.
        (slow((3, slice(0, 20), 0.4)), None, [(3, "DEFECT", None, None)]),
        (slow((3, slice(0, 20), 0.05)), None, []),
        # One slow job does not show which resource is at fault.
        (slow((5, [12], 0.15)), None, [(5, "DEFECT", None, 12)]),
        # No charge where the repeats do not show the loss, or show one below the limit.
        (slow((7, COMPUTE, 0.08)), slow(), []),
        (slow((7, COMPUTE, 0.04)), slow((7, COMPUTE, 0.015)), []),
    ],
)
def test_what_is_held_against_a_node(planted: Logs, again: Logs | None, expected: list[object]) -> None:
    found = [(charge.node, charge.verdict.value, charge.resource, charge.job) for charge in held(planted, again)]
    assert found == expected


def test_a_charge_tells_how_much_and_how_often() -> None:
    (charge,) = held(slow((7, COMPUTE, 0.08)))
    assert charge.ratio == pytest.approx(0.92, abs=0.01)
    assert 0.9 < charge.interval[0] < 0.92 < charge.interval[1] < 0.94
    assert (charge.rounds, charge.runs) == (3, 3)
    assert charge.verdict is NodeVerdict.DEFECT


def test_two_precisions_of_one_model_are_one_witness() -> None:
    """Two slow jobs that do the same work do not show which resource is at fault; each is charged by itself."""
    planted = slow((5, [0, 1], 0.15))
    same = np.where(WORKS < 2, 0, WORKS)
    found = held(planted, works=same)
    assert [(charge.resource, charge.job) for charge in found] in ([(None, 0), (None, 1)], [(None, 1), (None, 0)])


def test_an_unsteady_job_condemns_nobody_alone() -> None:
    noise = np.where(np.arange(20) == 12, 0.03, 0.005)
    assert held(slow((5, [12], 0.3)), noise=noise) == []


def test_a_node_that_repeats_itself_badly_is_unstable() -> None:
    screening = screen(logs(0, slow((9, [12], 0.1))), RESOURCES)
    rounds = np.stack([logs(seed, slow()) for seed in (1, 2, 3)])
    rounds[:, 9] += np.array([-0.2, 0.0, 0.2])[:, None]
    found = charges(screening, confirm(screening, rounds, RESOURCES), RESOURCES, WORKS)
    assert [(charge.node, charge.verdict) for charge in found] == [(9, NodeVerdict.UNSTABLE)]


def test_three_healthy_nodes_are_enough_to_know_how_a_suspect_repeats_itself() -> None:
    planted = slow((7, COMPUTE, 0.06))
    screening, own = screen(logs(0, planted), RESOURCES), []
    for seed in range(1, 25, 3):
        rounds = np.full((3, NODES, 20), np.nan)
        rounds[:, [7, 20, 21, 22]] = np.stack([logs(seed + k, planted) for k in range(3)])[:, [7, 20, 21, 22]]
        own.append(confirm(screening, rounds, RESOURCES).own[7])
    # Its spread over repeats is as large as theirs at the median, and never twice as large by chance.
    assert np.median(own) == pytest.approx(1, abs=0.15)
    assert max(own) < 2


def test_without_repeats_beside_healthy_nodes_an_outlier_is_a_suspect() -> None:
    planted = slow((7, COMPUTE, 0.1))
    screening = screen(logs(0, planted), RESOURCES)
    lone = np.full((3, NODES, 20), np.nan)
    lone[:, 7] = logs(1, planted)[7]
    for rounds in (lone, np.empty((0, NODES, 20))):
        assert confirm(screening, rounds, RESOURCES) is None
    (charge,) = charges(screening, None, RESOURCES, WORKS)
    assert (charge.node, charge.verdict, charge.resource, charge.interval) == (7, NodeVerdict.SUSPECT, 0, None)


def test_a_job_without_repeats_weakens_no_other_and_few_repeats_leave_a_suspect() -> None:
    planted = slow((7, COMPUTE, 0.1))
    screening = screen(logs(0, planted), RESOURCES)
    for missing, verdict in ((slice(12, 13), NodeVerdict.DEFECT), (slice(5, 20), NodeVerdict.SUSPECT)):
        rounds = np.stack([logs(seed, planted) for seed in (1, 2, 3)])
        rounds[..., missing] = np.nan
        found = charges(screening, confirm(screening, rounds, RESOURCES), RESOURCES, WORKS)
        assert [(charge.node, charge.verdict, charge.resource) for charge in found] == [(7, verdict, 0)]


def fleet_charges(
    seed: int, nodes: int, noise: float, rounds: int, fault: float = 0.0, levels: str = ""
) -> list[Charge]:
    """Return the charges against nodes of an invented fleet, whose first node loses `fault` in one resource's jobs."""
    chance = np.random.default_rng(seed)
    own = -chance.exponential(0.05, nodes) if levels == "tail" else chance.normal(0, 0.03, nodes)
    if levels == "bins":
        own = np.where(np.arange(nodes) % 2, -0.06, 0) + chance.normal(0, 0.008, nodes)
    if levels == "half":
        own[0] = np.log(0.5)
    planted = np.zeros((nodes, 20))
    planted[0, COMPUTE] = np.log1p(-fault)
    ran = [own[:, None] + planted + chance.normal(0, noise, (nodes, 20)) for _ in range(1 + rounds)]
    bins = bins_of(ran[0], RESOURCES)
    first, *again = (bins.taken_off(each, RESOURCES) for each in ran)
    screening = screen(first, RESOURCES)
    suspects = np.flatnonzero(screening.suspects)
    healthy = chance.permutation(np.flatnonzero(~screening.suspects))[: 3 * len(suspects)]
    left_out = np.setdiff1d(np.arange(nodes), [*suspects, *healthy])
    for each in again:
        each[left_out] = np.nan
    confirmation = confirm(screening, np.reshape(again, (rounds, nodes, 20)), RESOURCES)
    return charges(screening, confirmation, RESOURCES, WORKS)


CONDEMNED = (NodeVerdict.SLOW, NodeVerdict.DEFECT, NodeVerdict.UNSTABLE)


def share_found(draws: int, *fleet: object) -> float:
    """Return the share of fleets whose first node is condemned for its resource; no other node may be condemned."""
    every = [[c for c in fleet_charges(seed, *fleet) if c.verdict in CONDEMNED] for seed in range(draws)]
    assert {charge.node for found in every for charge in found} <= {0}
    return sum(any(charge.resource == 0 for charge in found) for found in every) / draws


def condemning(draws: int, *fleet: object) -> int:
    """Return the number of fleets in which a node is condemned."""
    every = [fleet_charges(1000 + seed, *fleet) for seed in range(draws)]
    return sum(any(charge.verdict in CONDEMNED for charge in found) for found in every)


@pytest.mark.parametrize(
    ("draws", "nodes"), [(12, 64), *(pytest.param(100, nodes, marks=pytest.mark.slow) for nodes in (32, 128))]
)
def test_a_small_defect_is_found_in_noise(draws: int, nodes: int) -> None:
    """At 2 % of noise only 3 of 100 fleets would find it if the screening's noise were not subtracted."""
    assert share_found(draws, nodes, 0.02, 12, 0.04) >= 0.8
    assert share_found(draws, nodes, 0.01, 12, 0.04) >= 0.95


@pytest.mark.parametrize(("draws", "noise"), [(20, 0.01), pytest.param(100, 0.01, marks=pytest.mark.slow)])
def test_of_four_nodes_a_slow_resource_and_one_at_half_speed_are_found(draws: int, noise: float) -> None:
    assert share_found(draws, 4, noise, 3, 0.1) >= 0.95
    half = [fleet_charges(seed, 4, noise, 3, 0.0, "half") for seed in range(5)]
    assert all(found[0].node == 0 and found[0].verdict is NodeVerdict.DEFECT for found in half)


@pytest.mark.parametrize("draws", [2, pytest.param(43, marks=pytest.mark.slow)])
def test_healthy_fleets_condemn_nobody_nor_a_slow_tail_nor_a_bin(draws: int) -> None:
    for noise in (0.01, 0.02, 0.05):
        assert sum(condemning(draws, nodes, noise, 3) for nodes in (4, 32, 128)) == 0
    assert sum(condemning(draws, nodes, 0.01, 3, 0.0, "tail") for nodes in (8, 32, 128)) <= 1
    assert sum(condemning(draws, nodes, 0.01, 3, 0.0, "bins") for nodes in (8, 16, 64)) == 0


def test_of_four_nodes_one_that_ran_once_is_untested() -> None:
    screening = screen(logs(0, slow())[:4], RESOURCES)
    assert screening.suspects.all()
    found = charges(screening, None, RESOURCES, WORKS)
    assert {(charge.node, charge.verdict) for charge in found} == {(node, NodeVerdict.UNTESTED) for node in range(4)}
    assert all(0.8 < charge.ratio < 0.95 for charge in found), "3 % between nodes are natural: 9 % would be seen"
    noisy = fleet_charges(1, 4, 0.08, 3)
    assert {charge.verdict for charge in noisy} == {NodeVerdict.UNTESTED}, "in noise repeats do not tell either"
    assert all(charge.ratio < 0.9 for charge in noisy)
    assert fleet_charges(1, 4, 0.01, 3) == []


def test_two_bins_are_recognised_and_a_fault_is_one_of_its_own_bin() -> None:
    found = bins_of(logs(0, slow(*((node, slice(0, 20), 0.3) for node in range(0, 40, 2)))), RESOURCES)
    assert (found.levels[::2] < -0.25).all()
    assert (found.levels[1::2] == 0).all()
    of_resource = bins_of(logs(0, slow(*((node, COMPUTE, 0.1) for node in range(15)))), RESOURCES)
    assert of_resource.resources[:15, 0] == pytest.approx(np.log(0.9), abs=0.01)
    assert not of_resource.resources[15:].any()
    assert not of_resource.levels.any()
    assert not bins_of(logs(0, slow((7, COMPUTE, 0.1))), RESOURCES).resources.any(), "one node is no bin"


@pytest.mark.parametrize(
    ("digests", "named"),
    [
        (["a", "a", "b", "a"], [2]),
        (["a", "a", "b", ""], []),  # two that agree are too few
        (["a", "b", "c", "d", "e"], []),  # no two agree
        (["a", "a", "a", "b", "b"], []),  # two groups: both may be right
        (["", "", ""], []),
    ],
)
def test_the_minority_computes_something_else(digests: list[str], named: list[int]) -> None:
    assert np.flatnonzero(minority(np.array(digests))).tolist() == named
