"""Lines to paste, which limit the users of a machine to as many as it carries. Nothing is applied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cotenant.machine.line_checks import UNCHECKED, checked_by_slurm, checked_by_systemd
from cotenant.machine.topology import Machine
from cotenant.stats.carried import Carried

LEAST_TASKS, TASKS_OF_A_SESSION = 512, 4
"""The least limit of a user's tasks, and the factor on the job's processes: a person also has a shell and a desktop."""
MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class PasteLines:
    """The text of one file; `checked` says which tool accepted it, why one refused it, or that none read it."""

    tool: str
    file: str
    text: str
    checked: str

    def __str__(self) -> str:
        return f"# {self.tool}: {self.file} ({self.checked})\n{self.text}"


def paste_lines(found: Carried, machine: Machine) -> Iterator[PasteLines]:
    """Yield the lines for each tool that can limit the users."""
    each = found.users // found.step
    memory_mib = None if found.memory_bytes is None else found.memory_bytes // MIB
    tasks = max(LEAST_TASKS, TASKS_OF_A_SESSION * ((found.alone and found.alone.processes) or 0))
    held = "" if memory_mib is None else f"MemoryMax={memory_mib}M\n"
    unit = f"[Slice]\nCPUWeight=100\n{held}TasksMax={tasks}\n"
    yield PasteLines("systemd", "/etc/systemd/system/user-.slice.d/50-cotenant.conf", unit, checked_by_systemd(unit))
    limit = "" if memory_mib is None else f'c.SystemdSpawner.mem_limit = "{memory_mib}M"\n'
    hub = (
        'c.JupyterHub.spawner_class = "systemdspawner.SystemdSpawner"\n'
        f"c.JupyterHub.active_server_limit = {found.users}\n{limit}"
        'c.SystemdSpawner.unit_extra_properties = {"CPUWeight": "100"}\n'
    )
    yield PasteLines("JupyterHub", "jupyterhub_config.py", hub, UNCHECKED)
    yield _slurm(found, machine, each, memory_mib)
    if machine.accelerators:
        kind = "mps" if found.share.startswith("mps") else "timeSlicing"
        shared = f"    resources:\n    - name: nvidia.com/gpu\n      replicas: {each}\n"
        plugin = f"version: v1\nsharing:\n  {kind}:\n{shared}"
        yield PasteLines("Kubernetes", "configuration of NVIDIA's device plugin", plugin, UNCHECKED)


def _slurm(found: Carried, machine: Machine, each: int, memory_mib: int | None) -> PasteLines:
    processors, devices = len(machine.processors), len(machine.accelerators)
    whole_mib = (memory_mib or 0) * found.users or machine.memory_bytes // MIB
    generic = f" Gres=gpu:{devices},shard:{found.users}" if devices else ""
    limits = "" if memory_mib is None else f" DefMemPerNode={memory_mib} MaxMemPerNode={memory_mib}"
    text = (
        "SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\n"
        f"NodeName={machine.hostname} CPUs={processors} RealMemory={whole_mib}{generic}\n"
        f"PartitionName=shared Nodes={machine.hostname} OverSubscribe=FORCE:{each}{limits}\n"
    )
    return PasteLines("Slurm", "slurm.conf", text, checked_by_slurm(processors, whole_mib))
