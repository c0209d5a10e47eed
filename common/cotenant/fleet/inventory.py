"""Differences of a few nodes from the rest of their class: driver, firmware, limits, clocks, kernel and the like."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from cotenant.fleet.gathered import Gathered
from cotenant.results.decoded import list_of, mapping_of
from cotenant.results.drawn import CHECKOUT, setting_of
from cotenant.results.launches import grouped
from cotenant.results.read import again
from cotenant.results.table import AT, IN_FILE, Rows, Table

OF_DEVICES = {
    "firmware": "device firmware",
    "power_limit_w": "power cap, W",
    "clock_mhz": "highest clock, MHz",
    "memory_clock_mhz": "memory clock, MHz",
    "ecc": "ECC",
    "remapped_rows": "remapped rows",
    "pcie_generation": "PCIe generation",
    "pcie_width": "PCIe width",
}
OF_HOST = {"firmware": "host firmware", "microcode": "microcode", "governor": "governor", "boost": "boost"}


@dataclass(frozen=True, slots=True)
class Minority:
    """Nodes of a class that have another `value` of a fact than most of it, which have the `usual` one."""

    hardware: str
    fact: str
    usual: str
    usual_nodes: int
    value: str
    nodes: Sequence[str]


def facts_of(machine: Mapping[str, Any]) -> dict[str, str]:
    """Return a node's properties in a record's `machine`, by names that people use; several devices' values in one."""
    inventory = mapping_of(machine.get("inventory"))
    devices = [mapping_of(device) for device in list_of(inventory.get("devices"))]
    facts = {word: _text(inventory.get(name)) for name, word in OF_HOST.items()}
    for name, word in OF_DEVICES.items():
        values = sorted({_text(device.get(name)) for device in devices} - {""})
        facts[word] = " and ".join(values)
    nodes = [mapping_of(node) for node in list_of(machine.get("nodes"))]
    accelerators = Counter(_text(mapping_of(device).get("name")) for device in list_of(machine.get("accelerators")))
    facts |= {
        "NUMA nodes": str(len(nodes)) if nodes else "",
        "processor": _text(machine.get("model_name")),
        "accelerators": ", ".join(f"{count} x {name}" for name, count in accelerators.items()),
        **{name: value for name, value in setting_of(machine).items() if name != CHECKOUT},
    }
    return {name: value for name, value in facts.items() if value}


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


def minorities(gathered: Gathered) -> list[Minority]:
    """Return every fact in which nodes of a class differ, each value that is not the most common one."""
    facts = dict(_facts(gathered))
    rare_values = []
    for hardware, names in grouped(facts, lambda name: gathered.nodes[name].hardware).items():
        words = dict.fromkeys(word for name in names for word in facts[name])
        for word in words:
            values = grouped((name for name in names if word in facts[name]), lambda name: facts[name][word])  # noqa: B023
            (usual, of_usual), *others = sorted(values.items(), key=lambda item: (-len(item[1]), item[0]))
            rare_values += [Minority(hardware, word, usual, len(of_usual), value, of) for value, of in others]
    return rare_values


def _facts(gathered: Gathered) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the facts of each node, of its newest record that is a file."""
    numbered = gathered.frame.with_row_index(AT).filter(pl.col(IN_FILE).is_not_null())
    newest = numbered.sort("start_time").group_by("hostname", maintain_order=True).last()
    rows = Rows(Table(gathered.frame, pl.DataFrame()), newest[AT].to_list())
    for row, record in again(rows):
        yield row["hostname"], facts_of(record.mapping_at("machine"))
