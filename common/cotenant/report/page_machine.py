"""The machines that the records come from, as pairs of words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from cotenant.report.summary import Summary
from cotenant.results.decoded import list_of, mapping_of
from cotenant.results.read import again
from cotenant.results.record import MOST
from cotenant.results.table import AT, Rows

Facts = list[tuple[str, str]]


def machines(summary: Summary) -> list[tuple[str, Facts]]:
    """Return each host's name and facts, of its newest record; what a record does not know is left out."""
    in_order = summary.records.by("start_time")
    hosts = in_order.columns("hostname", "isolation", "gpu").with_columns(pl.Series(AT, in_order.at, pl.UInt32))
    found = []
    for host, isolation, gpu, at in hosts.group_by("hostname", maintain_order=True).last().iter_rows():
        record = next((record for _, record in again(Rows(in_order.table, [at]))), None)
        machine = mapping_of(record.at("machine")) if record is not None else {}
        found.append((host or "an unnamed host", _facts(machine, isolation, gpu)))
    return found


def _facts(machine: Mapping[str, Any], isolation: str, gpu: str) -> Facts:
    processors, software = mapping_of(machine.get("processors")), mapping_of(machine.get("software"))
    nodes, accelerators = list_of(machine.get("nodes")), list_of(machine.get("accelerators"))
    found = {
        "Processor": machine.get("model_name"),
        "Usable": _processors(processors),
        "Memory": _gib(machine.get("memory_bytes")),
        "NUMA nodes": len(nodes) if nodes else None,
        "Accelerators": _accelerators(accelerators) or (gpu if gpu != machine.get("model_name") else None),
        "Isolation": isolation,
        "System": software.get("distribution"),
        "Kernel": software.get("kernel"),
        "Python": software.get("python"),
        "Packages": ", ".join(f"{name} {version}" for name, version in mapping_of(software.get("packages")).items()),
        "Torch": _torch(mapping_of(machine.get("torch"))),
        "Checkout": _git(mapping_of(machine.get("git"))),
    }
    return [(name, str(value)) for name, value in found.items() if value]


def _processors(known: Mapping[str, Any]) -> str:
    if not known:
        return ""
    quota = f", quota of {known['quota']}" if known.get("quota") else ""
    parts = {"packages": known.get("packages"), "cores": known.get("cores")}
    said = ", ".join(f"{value} {name}" for name, value in parts.items() if value)
    return f"processors {known.get('usable')} of {known.get('online')} ({said}){quota}"


def _accelerators(known: Sequence[Any]) -> str:
    names = [str(mapping_of(one).get("name") or "unnamed") for one in known]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names))


def _torch(known: Mapping[str, Any]) -> str:
    parts = (f"{name} {known[name]}" for name in ("cuda", "hip", "cudnn") if known.get(name))
    precision = known.get("float32_matmul_precision")
    return ", ".join([*parts, *([f"float32 products: {precision}"] if precision else [])])


def _git(known: Mapping[str, Any]) -> str:
    commit = str(known.get("commit") or "")[:12]
    return f"{commit}{', with changes' if known.get('dirty') else ''}" if commit else ""


def _gib(value: Any) -> str:
    return f"{value / 2**30:.1f} GiB" if isinstance(value, int) and 0 < value < MOST else ""
