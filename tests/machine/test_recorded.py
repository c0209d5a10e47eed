"""Discovery of machines that others have recorded: it sees what hwloc and lscpu see."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from cotenant.machine.topology import discover
from machine.recorded import Group, Recorded, recorded


def grouped(pairs: Iterable[tuple[int, object]]) -> set[Group]:
    members = defaultdict(set)
    for number, name in pairs:
        members[name].add(number)
    return set(map(frozenset, members.values()))


LARGE = 100
"""More processors than these are thousands of files."""


@pytest.mark.parametrize(
    "host",
    [
        pytest.param(host, id=host.name, marks=[pytest.mark.slow] if len(host.online) > LARGE else [])
        for host in recorded()
    ],
)
def test_a_recorded_machine_is_discovered(host: Recorded, tmp_path: Path) -> None:
    found = discover(host.tree(tmp_path), environ={})
    processors = found.processors
    assert {p.id for p in processors} == host.online
    assert grouped((p.id, p.core) for p in processors) == set(host.cores)
    assert grouped((p.id, p.package) for p in processors) == set(host.sockets or [host.online])
    assert {p.package for p in processors} == set(range(len(host.sockets) or 1))
    assert {p.id: p.node for p in processors} == {n: node for node, own in host.nodes.items() for n in own}
    assert {node.id: node.memory_bytes for node in found.nodes} == host.memory_bytes
    caches = {p.cache for p in processors if p.cache}
    assert {frozenset(c.processors): (c.level, c.size_bytes) for c in caches} == host.caches
    assert grouped((p.id, p.kind) for p in processors) == set(host.kinds or [host.online])
    assert host.model in found.model_name
