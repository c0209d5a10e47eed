"""Machines that other programs' test suites record (recorded.txt), as trees of kernel files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cotenant.procfs import format_list, parse_list
from machine.fakehost import node, write

Group = frozenset[int]
CPU = "sys/devices/system/cpu"


@dataclass(frozen=True)
class Recorded:
    """A machine as others describe it; groups are of processors."""

    name: str
    online: Group
    cores: tuple[Group, ...]
    sockets: tuple[Group, ...]
    nodes: dict[int, Group]
    memory_bytes: dict[int, int]
    """The memory of each node."""
    caches: dict[Group, tuple[int, int]]
    """Level and bytes of each last-level cache."""
    kinds: tuple[Group, ...]
    model: str

    def tree(self, root: Path) -> Path:
        """Write the kernel's files."""
        files: dict[str, object] = {f"{CPU}/online": format_list(self.online)}
        for core in self.cores:
            for number in core:
                files[f"{CPU}/cpu{number}/topology/core_cpus_list"] = format_list(core)
        for position, socket in enumerate(self.sockets):
            for number in socket:
                files[f"{CPU}/cpu{number}/topology/physical_package_id"] = position
        for serves, (level, size_bytes) in self.caches.items():
            cache = {"level": level, "type": "Unified", "size": f"{size_bytes >> 10}K"}
            cache["shared_cpu_list"] = format_list(serves)
            files |= {f"{CPU}/cpu{n}/cache/index{level}/{name}": text for n in serves for name, text in cache.items()}
        if len(self.kinds) == 2:
            files["sys/devices/cpu_atom/cpus"], files["sys/devices/cpu_core/cpus"] = map(format_list, self.kinds)
        else:
            files |= {f"{CPU}/cpu{n}/cpu_capacity": 2**place for place, kind in enumerate(self.kinds) for n in kind}
        for number, size_bytes in self.memory_bytes.items():
            node(root, number, format_list(self.nodes.get(number, ())), size_bytes >> 10)
        total = sum(self.memory_bytes.values()) or 64 << 30
        files |= {"proc/meminfo": f"MemTotal: {total >> 10} kB", "proc/cpuinfo": f"model name : {self.model}"}
        return write(root, files)


def groups(text: str, online: Iterable[int]) -> tuple[Group, ...]:
    """Return the groups that `all`, `runs 4`, `stride 2` or `0-3|4-7` stand for."""
    ids = sorted(online)
    word, _, number = text.partition(" ")
    if word == "-":
        return ()
    if word == "all":
        return (frozenset(ids),)
    if word == "runs":
        return tuple(frozenset(ids[at : at + int(number)]) for at in range(0, len(ids), int(number)))
    if word == "stride":
        return tuple(frozenset(ids[at :: int(number)]) for at in range(int(number)))
    return tuple(frozenset(parse_list(part)) for part in text.split("|"))


def recorded() -> Iterator[Recorded]:
    for line in Path(__file__).with_name("recorded.txt").read_text().splitlines():
        if line.startswith("#"):
            continue
        name, listed, cores, sockets, nodes, caches, kinds, model = line.split("; ")
        online = frozenset(parse_list(listed))
        ids, *words = nodes.split(" ")
        held = " ".join(words[:2]) if words[0] in ("runs", "stride") else words[0]
        sizes = [word.rpartition("x") for word in words[len(held.split(" ")) :]]
        each = [int(size) << 10 for count, _, size in sizes for _ in range(int(count or 1))]
        serving = (part.split(" ", 2) for part in caches.split(" + ") if part != "-")
        yield Recorded(
            name,
            online,
            groups(cores, online),
            groups(sockets, online),
            dict(zip(parse_list(ids), groups(held, online), strict=False)),
            dict(zip(parse_list(ids), each, strict=True)),
            {group: (int(level[1:]), int(kib) << 10) for level, kib, of in serving for group in groups(of, online)},
            groups(kinds, online),
            model.removeprefix("-"),
        )
