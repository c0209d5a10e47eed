"""Lines to paste, which limit a machine to the users that it carries. Nothing is applied."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from cotenant.machine.line_checks import UNCHECKED, checked_by_slurm, checked_by_systemd
from cotenant.machine.topology import Machine
from cotenant.stats.capacity import Carried

LEAST_TASKS, TASKS_OF_A_SESSION = 512, 4
"""The least limit of a user's tasks, and its factor over the job's processes: users also have a shell and a desktop."""
MIB = 1 << 20


class PasteLines(NamedTuple):
    """The text of one file; `checked` says which tool accepted it, why a tool refused it, or that none read it."""

    tool: str
    file: str
    text: str
    checked: str

    def __str__(self) -> str:
        return f"# {self.tool}: {self.file} ({self.checked})\n{self.text}"


def paste_lines(found: Carried, machine: Machine) -> Iterator[PasteLines]:
    """Yield the lines for each tool that can limit the users."""
    users, sharers = found.users, found.users // found.step
    tasks = max(LEAST_TASKS, TASKS_OF_A_SESSION * ((found.alone and found.alone.processes) or 0))
    held = limit = limits = ""
    whole_mib = machine.memory_bytes // MIB
    if found.memory_bytes is not None:
        memory_mib = found.memory_bytes // MIB
        held = f"MemoryMax={memory_mib}M\n"
        limit = f'c.SystemdSpawner.mem_limit = "{memory_mib}M"\n'
        limits = f" DefMemPerNode={memory_mib} MaxMemPerNode={memory_mib}"
        whole_mib = memory_mib * users or whole_mib
    unit = f"[Slice]\nCPUWeight=100\n{held}TasksMax={tasks}\n"
    yield PasteLines("systemd", "/etc/systemd/system/user-.slice.d/50-cotenant.conf", unit, checked_by_systemd(unit))
    hub = (
        'c.JupyterHub.spawner_class = "systemdspawner.SystemdSpawner"\n'
        f"c.JupyterHub.active_server_limit = {users}\n{limit}"
        'c.SystemdSpawner.unit_extra_properties = {"CPUWeight": "100"}\n'
    )
    yield PasteLines("JupyterHub", "jupyterhub_config.py", hub, UNCHECKED)
    processors, devices = len(machine.processors), len(machine.accelerators)
    # Slurm manages no generic resource that GresTypes does not name.
    types, generic = ("GresTypes=gpu,shard\n", f" Gres=gpu:{devices},shard:{users}") if devices else ("", "")
    slurm = (
        f"SelectType=select/cons_tres\nSelectTypeParameters=CR_Core_Memory\n{types}"
        f"NodeName={machine.hostname} CPUs={processors} RealMemory={whole_mib}{generic}\n"
        f"PartitionName=shared Nodes={machine.hostname} OverSubscribe=FORCE:{sharers}{limits}\n"
    )
    yield PasteLines("Slurm", "slurm.conf", slurm, checked_by_slurm(processors, whole_mib))
    if devices:
        kind = "mps" if found.share.startswith("mps") else "timeSlicing"
        shared = f"    resources:\n    - name: nvidia.com/gpu\n      replicas: {sharers}\n"
        plugin = f"version: v1\nsharing:\n  {kind}:\n{shared}"
        yield PasteLines("Kubernetes", "configuration of NVIDIA's device plugin", plugin, UNCHECKED)
