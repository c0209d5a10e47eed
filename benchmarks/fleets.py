"""Precision, recall, seconds and memory of `cotenant fleet report`'s verdicts on simulated fleets with planted faults.

python benchmarks/run.py fleets [--nodes 10000] [--faults 100] [--healthy 100] [--seed 1]

The levels of nodes spread by 8 %, the runs of a job on a node by 1 %; a faulty node is 4 % slower in at least four jobs
of one resource. Outliers run three times more, each beside three healthy nodes. The last line counts the fleets without
faults in which a node is condemned.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cotenant.stats.acceptance import Charge, NodeVerdict, charges
from cotenant.stats.confirmation import HEALTHY, ROUNDS, confirm
from cotenant.stats.fleet import minority, screen

JOBS, RESOURCES = 20, 4
NATURE, REST, FAULT = 0.08, 0.01, 0.04
BELONGS = np.arange(JOBS) % RESOURCES
CONDEMNED = (NodeVerdict.SLOW, NodeVerdict.DEFECT, NodeVerdict.UNSTABLE)


@dataclass(frozen=True, slots=True, eq=False)
class Fleet:
    """Nodes with logarithms of their levels, and `faults` (nodes, jobs), which slow the jobs of one resource a node."""

    chance: np.random.Generator
    jobs: npt.NDArray[np.float64]
    levels: npt.NDArray[np.float64]
    faults: npt.NDArray[np.float64]

    @classmethod
    def made(cls, nodes: int, faulty: int, seed: int) -> Fleet:
        """Return a fleet whose first `faulty` nodes are slow, each in four or all five jobs of one resource."""
        chance = np.random.default_rng(seed)
        faults = np.zeros((nodes, JOBS))
        for node in range(faulty):
            members = chance.permutation(np.flatnonzero(node % RESOURCES == BELONGS))
            faults[node, members[: chance.integers(4, len(members) + 1)]] = np.log1p(-FAULT)
        return cls(chance, chance.uniform(0, 10, JOBS), chance.normal(0, NATURE, nodes), faults)

    def run(self, nodes: npt.NDArray[np.intp]) -> npt.NDArray[np.float64]:
        """Return the log rates of one run of every job on these nodes, NaN for the others."""
        logs = np.full(self.faults.shape, np.nan)
        noise = self.chance.normal(0, REST, (len(nodes), JOBS))
        logs[nodes] = self.jobs + self.levels[nodes, None] + self.faults[nodes] + noise
        return logs


def judged(fleet: Fleet) -> tuple[list[Charge], int]:
    """Return the charges against nodes of a fleet, and the number of nodes that ran again."""
    nodes = np.arange(len(fleet.levels))
    screening = screen(fleet.run(nodes), BELONGS)
    suspects = np.flatnonzero(screening.suspects)
    if not len(suspects):
        return [], 0
    others = np.flatnonzero(~screening.suspects)
    healthy = fleet.chance.choice(others, min(HEALTHY * len(suspects), len(others)), replace=False)
    again = np.concatenate([suspects, healthy])
    rounds = np.stack([fleet.run(again) for _ in range(ROUNDS)])
    return charges(screening, confirm(screening, rounds, BELONGS), BELONGS, np.arange(JOBS)), len(again)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--nodes", 10_000), ("--faults", 100), ("--healthy", 100), ("--seed", 1)):
        parser.add_argument(name, type=int, default=default)
    given = parser.parse_args()
    begin_s = time.monotonic()
    fleet = Fleet.made(given.nodes, given.faults, given.seed)
    found, again = judged(fleet)
    digests = np.full(given.nodes, "a" * 16)
    digests[given.faults] = "b" * 16
    corrupt = set(map(int, np.flatnonzero(minority(digests))))
    planted = {(node, node % RESOURCES) for node in range(given.faults)} | {(given.faults, None)}
    held = {(charge.node, charge.resource) for charge in found if charge.verdict in CONDEMNED}
    held |= {(node, None) for node in corrupt}
    took_s, peak_mib = time.monotonic() - begin_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    precision, recall = len(planted & held) / max(len(held), 1), len(planted & held) / len(planted)
    print(f"{given.nodes} nodes x {JOBS} jobs, {len(planted)} faulty: {again} nodes ran again; "
          f"precision {precision:.3f}, recall {recall:.3f}; {took_s:.2f} s, {peak_mib:.0f} MiB")  # fmt: skip
    begin_s = time.monotonic()
    wrong = 0
    for seed in range(given.healthy):
        nodes = (8, 32, 128, 512)[seed % 4]
        found, _ = judged(Fleet.made(nodes, 0, 1000 + seed))
        wrong += any(charge.verdict in CONDEMNED for charge in found)
    print(f"fleets of 8 to 512 nodes without a fault: {wrong} of {given.healthy} condemn a node; "
          f"{time.monotonic() - begin_s:.2f} s")  # fmt: skip
    return 0 if min(precision, recall) >= 0.95 and wrong <= 0.03 * given.healthy else 1


if __name__ == "__main__":
    sys.exit(main())
