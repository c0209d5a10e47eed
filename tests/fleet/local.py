"""A cluster of this process: actors as on nodes, with a program in the place of our runner."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from cotenant.fleet.cluster import RayCluster
from cotenant.fleet.node import News, NodeRunner


class Order(NamedTuple):
    """The run that a node was told to start."""

    folder: Path
    words: tuple[str, ...]
    base: Path
    files: Mapping[str, bytes]


class LocalCluster(RayCluster):
    """Runners of these nodes; the node `lost` never answers. `orders` has what each node was told."""

    def __init__(self, names: tuple[str, ...], lost: str = "", silent: tuple[str, ...] = ()) -> None:
        self.nodes = dict.fromkeys(names, "127.0.0.1")
        self.silent = list(silent)
        self.orders: dict[str, Order] = {}
        self._runners = {name: NodeRunner() for name in names}
        self._lost = lost

    def start(self, name: str, folder: Path, words: Sequence[str], base: Path, files: Mapping[str, bytes]) -> str:
        self.orders[name] = Order(folder, tuple(words), base, files)
        return self._runners[name].start(
            str(folder), tuple(words), {"BASE": str(base), "PYTHONPATH": SOURCE}, dict(files)
        )

    def news(self, names: frozenset[str]) -> Iterator[tuple[str, News | str]]:
        for name in sorted(names):
            yield name, "its node died." if name == self._lost else self._runners[name].news(0.05)

    def free_port(self, name: str) -> int:
        return self._runners[name].free_port()

    def stop(self, names: frozenset[str]) -> None:
        for name in names:
            self._runners[name].stop()

    def close(self) -> None:
        self.stop(frozenset(self._runners))


def use_program(monkeypatch: pytest.MonkeyPatch, place: Path, program: str) -> None:
    """Have nodes start this program instead of our runner."""
    monkeypatch.setattr("cotenant.fleet.node.LOOK_S", 0.01)
    source = place / "source" / "cotenant"
    source.mkdir(parents=True)
    (source / "__init__.py").touch()
    (source / "__main__.py").write_text(program)
    monkeypatch.setattr("fleet.local.SOURCE", str(source.parent))


SOURCE = ""
"""The directory of the program on PYTHONPATH; see `use_program`."""
