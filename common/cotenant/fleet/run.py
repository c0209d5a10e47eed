"""A fleet run: the suite on every node at once, records gathered as they come, outliers once more beside others."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from cotenant.fleet.agent import NodeNews
from cotenant.fleet.cluster import FleetCluster, Lost
from cotenant.fleet.manifest import FleetManifest, NodeState, State, read_manifest, write_manifest
from cotenant.fleet.orders import FINISHED, RunnerPlan, failure_of, keep_files, runner_order
from cotenant.results.store import prepare_directory
from cotenant.stats.confirmation import HEALTHY


@dataclass(frozen=True, slots=True)
class FleetPlan(RunnerPlan):
    """The command of a fleet run, and the request that its manifest keeps."""

    suite: str
    tier: str


class FleetRun:
    """One fleet run. Whatever happens, the manifest says of each node how it stands."""

    def __init__(self, plan: FleetPlan, cluster: FleetCluster, tell: Callable[[str], None]) -> None:
        """Raises CotenantError where nothing can be kept."""
        self._plan, self._cluster, self._tell = plan, cluster, tell
        prepare_directory(plan.output, "--outdir names another directory.")
        before = read_manifest(plan.output)
        known = {} if before is None else dict(before.nodes)
        self.nodes: dict[str, NodeState] = known | {
            name: NodeState(node.host, "started") for name, node in cluster.nodes.items()
        }
        self._write()

    def repetition(self, uid: int, names: Collection[str]) -> None:
        """Run the suite once on these nodes, at the same time; those that are lost stay so. Raises CotenantError."""
        running = set[str]()
        for name in sorted(names):
            if self.nodes[name].state in ("lost", "failed"):
                continue
            base = self._plan.base / "fleet" / name
            order = runner_order(self._plan, self._cluster.nodes[name], base, base, ["--uid", str(uid), "--resume"])
            if reason := self._cluster.start(name, order):
                self._state(name, "failed", reason)
            else:
                running.add(name)
        while running:
            for name, news in self._cluster.news(frozenset(running)):
                if isinstance(news, Lost):
                    self._state(name, "lost", news.reason)
                else:
                    keep_files(self._plan.output / name, news)
                    if news.status is None:
                        continue
                    self._ended(name, news, uid)
                running.discard(name)

    def confirming(self, suspects: Sequence[str], hardware: Mapping[str, str], chance: random.Random) -> list[str]:
        """Return the nodes of a repeat: the suspects that answer, and for each HEALTHY equal ones by chance.

        `hardware` has that of each node: one of another kind tells nothing of a suspect.
        """
        living = [name for name in self._cluster.nodes if self.nodes[name].state == "finished"]
        again = [name for name in suspects if name in living]
        beside: list[str] = []
        for kind, count in Counter(map(hardware.get, again)).items():
            others = [name for name in living if name not in suspects and hardware.get(name) == kind]
            beside += chance.sample(others, min(len(others), HEALTHY * count))
        return [*again, *beside]

    def _ended(self, name: str, news: NodeNews, uid: int) -> None:
        if news.status in FINISHED:
            self._state(name, "finished", "")
            self._tell(f"{name}: repetition {uid} is done")
            return
        self._state(name, "failed", failure_of(news))

    def _state(self, name: str, state: State, message: str) -> None:
        self.nodes[name] = NodeState(self.nodes[name].host, state, message)
        if state in ("lost", "failed"):
            self._tell(f"{name}: {state}: {message}")
        self._write()

    def _write(self) -> None:
        write_manifest(self._plan.output, FleetManifest(self._plan.suite, self._plan.tier, self.nodes))
