"""What would make a limit or a counter be had that a backend or kernel here does not have."""

from __future__ import annotations

import os
from collections.abc import Iterable

DELEGATION = f"systemctl edit user@{os.getuid()}.service with Delegate=cpu cpuset io memory pids"
"""Of this user alone, as cgroup_setup.sh does it: the others' units stay as they are."""

CGROUPS = "slices by cgroups: --isolation require says what they need"
CPUSET = f"the controller cpuset: {DELEGATION}"
PIDS = "the controller pids, in the kernel and delegated to us"
PRESSURE = "psi=1 on the kernel's command line"
V2 = "cgroup v2: systemd.unified_cgroup_hierarchy=1 on the kernel's command line"
OF_V2 = {
    "processors": CPUSET,
    "nodes": CPUSET,
    "swap": "swapaccount=1 on the kernel's command line",
    "pids": PIDS,
    "pids_peak": "Linux 6.1, and the controller pids",
    "pids_refused": PIDS,
    "throttled": "the controller cpu, delegated to us",
    "stalled": PRESSURE,
    "memory_peak_bytes": "Linux 5.19",
    "oom_group_kills": "Linux 5.17",
}
OF_V1 = {
    "processor_ns": "the v1 controller cpuacct",
    "throttled": "the v1 controller cpu, mounted",
    "swap": "swapaccount=1 on the kernel's command line",
    "pids": "the v1 controller pids",
    "pids_peak": "Linux 6.1, and the v1 controller pids",
    "pids_refused": "the v1 controller pids",
    "stalled": f"{PRESSURE}, and a writable cgroup v2 mount beside v1",
    "oom_events": V2,
    "oom_kills": "Linux 4.13",
    "oom_group_kills": V2,
}
TABLES = {"v1": OF_V1, "v2": OF_V2, "systemd": OF_V2}


def enabled_by(backend: str, names: Iterable[str]) -> dict[str, str]:
    """Return what would enable each of these limits and counters; one whose cause is a slice never made is left out."""
    table = TABLES.get(backend)
    if table is None:
        return dict.fromkeys(names, CGROUPS)
    # A family of counters, such as `stalled_cpu_some_us`, comes from one place.
    found = {name: table.get(name) or table.get(name.partition("_")[0]) for name in names}
    return {name: what for name, what in found.items() if what is not None}
