"""A Ray cluster as nodes that run our runner: one bundle on each, and news of them as it comes.

Ray is an extra: nothing else here needs it.
"""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from cotenant.errors import CotenantError
from cotenant.fleet import agent
from cotenant.fleet.agent import Agent, NodeNews, NodeOrder
from cotenant.text import many

PLACING_S = 60.0
WAIT_S = 5.0
"""How long a node may have nothing to tell before it answers."""
CALM_S = 4.0
"""How long a node is left alone after its agent has come up."""
UNHIDDEN = ("CUDA", "HIP", "ROCR")
"""Variables by which Ray would hide a vendor's devices: older versions used ROCR for AMD's, newer ones HIP."""
MISSING = "The package 'ray' is missing."
INSTALL = "pip install ray"


@dataclass(frozen=True, slots=True)
class Lost:
    """A node that answers no more, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class ClusterNode:
    """A node of a cluster; `emulated`: another one is on the same host. `address`: where others reach it."""

    name: str
    host: str
    emulated: bool = False
    address: str = ""


class FleetCluster(Protocol):
    """Nodes that can be given orders."""

    @property
    def nodes(self) -> Mapping[str, ClusterNode]:
        """The nodes that live, by their names."""

    def start(self, name: str, order: NodeOrder) -> str:
        """Give a node its order; return why it cannot be carried out, "" where it is."""

    def news(self, names: frozenset[str]) -> Iterator[tuple[str, NodeNews | Lost]]:
        """Yield the news of any of these nodes, after some seconds nothing."""

    def free_port(self, name: str) -> int:
        """Return a port of a node that is free, as the one after it is. Raises CotenantError."""

    def stop(self, names: frozenset[str]) -> None:
        """Interrupt the runners on these nodes, and wait a while until they have ended."""

    def close(self) -> None:
        """Stop whatever still runs there, and leave."""


class RayCluster:
    """A running Ray cluster: an agent on each node, or on so many of them, placed by STRICT_SPREAD."""

    def __init__(self, address: str, count: int | None = None) -> None:
        """Raises CotenantError without Ray, without a cluster at the address, or where so many nodes have no room."""
        self._ray = _ray(address)
        alive = [node for node in self._ray.nodes() if node["Alive"]]
        if not alive or len(alive) < (count or 0):
            there = f"has {many(len(alive), 'living node')}{f', not {count}' if count else ''}"
            raise CotenantError(f"The Ray cluster at '{address}' {there}.", "`ray status` shows its nodes.")
        agents = self._placed(count or len(alive))
        placed = sorted((node for node in alive if node["NodeID"] in agents), key=lambda node: str(node["NodeName"]))
        self._nodes = _named(placed)
        self._agents = {name: agents[node["NodeID"]] for name, node in zip(self._nodes, placed, strict=True)}
        self._asked: dict[Any, str] = {}
        # Ray starts workers ahead where a driver comes, and their imports would run beside the first launch.
        self._ray.wait([each.news.remote(0.0) for each in agents.values()], num_returns=len(agents), timeout=PLACING_S)
        time.sleep(CALM_S)

    @property
    def nodes(self) -> Mapping[str, ClusterNode]:
        return self._nodes

    def start(self, name: str, order: NodeOrder) -> str:
        try:
            return str(self._ray.get(self._agents[name].start.remote(order), timeout=PLACING_S))
        except self._ray.exceptions.RayError as error:
            return _reason(error)

    def news(self, names: frozenset[str]) -> Iterator[tuple[str, NodeNews | Lost]]:
        waiting = set(self._asked.values())
        self._asked |= {self._agents[name].news.remote(WAIT_S): name for name in names - waiting}
        ready, _ = self._ray.wait(list(self._asked), num_returns=1, timeout=2 * WAIT_S)
        # Others that are ready come along: of thousands of nodes one at a time would be slow.
        more, _ = self._ray.wait(list(self._asked), num_returns=len(self._asked), timeout=0)
        for answer in dict.fromkeys([*ready, *more]):
            name = self._asked.pop(answer)
            try:
                yield name, self._ray.get(answer)
            except self._ray.exceptions.RayError as error:
                yield name, Lost(_reason(error))

    def free_port(self, name: str) -> int:
        try:
            return int(self._ray.get(self._agents[name].free_port.remote(), timeout=PLACING_S))
        except self._ray.exceptions.RayError as error:
            raise CotenantError(f"{name}: {_reason(error)}") from error

    def stop(self, names: frozenset[str]) -> None:
        stopping = [self._agents[name].stop.remote() for name in names]
        self._ray.wait(stopping, num_returns=len(stopping), timeout=agent.GRACE_S + WAIT_S)

    def close(self) -> None:
        self.stop(frozenset(self._agents))
        self._ray.shutdown()

    def _placed(self, count: int) -> dict[str, Any]:
        """Return an agent on each of so many nodes, by the ids that Ray knows these by."""
        from ray import cloudpickle
        from ray.util.placement_group import placement_group, placement_group_table
        from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

        cloudpickle.register_pickle_by_value(agent)
        group = placement_group([{"CPU": 1}] * count, strategy="STRICT_SPREAD")
        if not group.wait(PLACING_S):
            raise CotenantError(
                f"{count} Ray nodes need a free CPU for our bundle, and some have none.",
                "Wait for other work on the cluster; `ray status` shows it.",
            )
        placed = placement_group_table(group)["bundles_to_node_id"]
        kind = self._ray.remote(Agent)
        # No GPU is asked for, and Ray hides none: the runner hands out the devices itself.
        names = [f"RAY_EXPERIMENTAL_NOSET_{name}_VISIBLE_DEVICES" for name in UNHIDDEN]
        unhidden = {"env_vars": dict.fromkeys(names, "1")}
        return {
            node: kind.options(
                num_cpus=1,
                runtime_env=unhidden,
                scheduling_strategy=PlacementGroupSchedulingStrategy(group, placement_group_bundle_index=int(bundle)),
            ).remote()
            for bundle, node in placed.items()
        }


def _ray(address: str) -> Any:
    try:
        import ray
    except ImportError as error:
        raise CotenantError(MISSING, f"{INSTALL}, in the environment of this program and on every node.") from error
    try:
        ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False)
    except (ConnectionError, ValueError, RuntimeError) as error:
        why = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CotenantError(
            f"No Ray cluster answers at '{address}': {why}",
            "`ray start --head` on one node and `ray start --address HOST:6379` on the others make one.",
        ) from error
    return ray


def _named(alive: list[dict[str, Any]]) -> dict[str, ClusterNode]:
    """Return the nodes by their names: those of `ray start --node-name`, else their hosts; each once."""
    hosts = [str(node["NodeManagerHostname"]) for node in alive]
    names = []
    for node, host in zip(alive, hosts, strict=True):
        own = str(node.get("NodeName") or "")
        names.append(re.sub(r"[^A-Za-z0-9._-]", "_", host if own in ("", str(node["NodeManagerAddress"])) else own))
    twice, count = Counter(names), Counter(hosts)
    nodes: dict[str, ClusterNode] = {}
    for index, (name, host, node) in enumerate(zip(names, hosts, alive, strict=True)):
        unique = name if twice[name] == 1 else f"{name}-{index}"
        while unique != name and unique in twice:  # another node is called so
            unique += "-"
        nodes[unique] = ClusterNode(unique, host, count[host] > 1, str(node["NodeManagerAddress"]))
    return nodes


def _reason(error: Exception) -> str:
    """Return the first line that says something of one of Ray's long errors."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    cause = next((line for line in lines if "node" in line.lower() or "died" in line.lower()), "")
    return (cause or (lines[0] if lines else type(error).__name__))[:200]
