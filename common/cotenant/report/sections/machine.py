"""The section on the machines: each host's name and the facts in its newest record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from cotenant.decoding import MOST
from cotenant.report.answer import UNNAMED
from cotenant.report.section import Details, Section
from cotenant.report.sections.contents import PageContents
from cotenant.results.decoded import list_of, mapping_of
from cotenant.results.read import again
from cotenant.results.table import AT, Rows
from cotenant.text import gib

_OF_TORCH = {"cuda": "cuda", "hip": "hip", "cudnn": "cudnn", "float32_matmul_precision": "float32 products:"}


def machines(contents: PageContents) -> Section | None:
    """Return the hosts in the order of their first records."""
    in_order = contents.summary.records.by("start_time")
    hosts = in_order.columns("hostname", "isolation", "gpu").with_row_index(AT)
    details = []
    for host, at, isolation, gpu in hosts.group_by("hostname", maintain_order=True).last().iter_rows():
        newest = Rows(in_order.table, [in_order.at[at]])
        machine = next((record.machine for _, record in again(newest)), {})
        details.append(Details(host or UNNAMED, pairs=_facts(machine, isolation, gpu)))
    return Section("Machine", details=details, anchor="machine", short="Machine") if details else None


def _facts(machine: Mapping[str, Any], isolation: str, gpu: str) -> list[tuple[str, str]]:
    processors, software, torch, git = (
        mapping_of(machine.get(name)) for name in ("processors", "software", "torch", "git")
    )
    devices = Counter(
        str(mapping_of(device).get("name") or "unnamed") for device in list_of(machine.get("accelerators"))
    )
    memory, commit = machine.get("memory_bytes"), str(git.get("commit") or "")[:12]
    parts = ", ".join(f"{processors[name]} {name}" for name in ("packages", "cores") if processors.get(name))
    usable = f"processors {processors.get('usable')} of {processors.get('online')} ({parts})"
    quota = f", quota of {processors['quota']}" if processors.get("quota") else ""
    facts = {
        "Processor": machine.get("model_name"),
        "Usable": f"{usable}{quota}" if processors else "",
        "Memory": gib(memory) if isinstance(memory, int) and 0 < memory < MOST else "",
        "NUMA nodes": len(list_of(machine.get("nodes"))),
        "Accelerators": ", ".join(f"{count} x {name}" for name, count in devices.items())
        or (gpu if gpu != machine.get("model_name") else ""),
        "Isolation": isolation,
        "System": software.get("distribution"),
        "Kernel": software.get("kernel"),
        "Python": software.get("python"),
        "Packages": ", ".join(f"{name} {version}" for name, version in mapping_of(software.get("packages")).items()),
        "Torch": ", ".join(f"{word} {torch[name]}" for name, word in _OF_TORCH.items() if torch.get(name)),
        "Checkout": f"{commit}, with changes" if commit and git.get("dirty") else commit,
    }
    return [(name, str(value)) for name, value in facts.items() if value]
