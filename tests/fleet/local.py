"""A cluster of this process: agents as on nodes, with a program in the place of our runner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cotenant.fleet.agent import Agent, NodeNews, NodeOrder
from cotenant.fleet.cluster import ClusterNode, Lost


class LocalCluster:
    """Agents on these nodes, which share a host except for the node `alone`; the node `lost` never answers.

    `orders` has the orders of each node, `begun` the nodes that were started before news of any was asked.
    """

    def __init__(self, names: tuple[str, ...], alone: str = "", lost: str = "") -> None:
        self.nodes = {name: ClusterNode(name, "vm", name != alone, "127.0.0.1") for name in names}
        self.orders: dict[str, list[NodeOrder]] = {name: [] for name in names}
        self.begun: list[set[str]] = []
        self._looked = True
        self._agents = {name: Agent() for name in names}
        self._lost = lost

    def start(self, name: str, order: NodeOrder) -> str:
        self.orders[name].append(order)
        if self._looked:
            self.begun.append(set())
        self._looked = False
        self.begun[-1].add(name)
        return self._agents[name].start(order)

    def news(self, names: frozenset[str]) -> Iterator[tuple[str, NodeNews | Lost]]:
        self._looked = True
        for name in sorted(names):
            yield name, Lost("its node died.") if name == self._lost else self._agents[name].news(0.05)

    def free_port(self, name: str) -> int:
        return self._agents[name].free_port()

    def stop(self, names: frozenset[str]) -> None:
        for name in names:
            self._agents[name].stop()

    def close(self) -> None:
        self.stop(frozenset(self._agents))


def use_program(monkeypatch: pytest.MonkeyPatch, place: Path, program: str) -> None:
    """Have nodes start this program instead of our runner."""
    monkeypatch.setattr("cotenant.fleet.agent.LOOK_S", 0.01)
    source = place / "source" / "cotenant"
    source.mkdir(parents=True)
    (source / "__init__.py").touch()
    (source / "__main__.py").write_text(program)
    monkeypatch.setattr("cotenant.fleet.orders.SOURCE_ROOT", source.parent)
