"""Recognises a hypervisor, a container or a batch system's job around us."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cotenant.machine.limits import own_cgroups
from cotenant.procfs import fields, read_text

_CONTAINERS = (
    (".dockerenv", "Docker"),
    ("run/.containerenv", "Podman"),
    (".singularity.d", "Apptainer"),
)


@dataclass(frozen=True, slots=True)
class Virtual:
    """The hypervisor below and the container around us; "" if there is none to be seen."""

    hypervisor: str
    container: str


def virtual(root: Path = Path("/"), environ: Mapping[str, str] | None = None) -> Virtual:
    """Return both by the signs that are visible from inside."""
    return Virtual(_hypervisor(root), _container(root, os.environ if environ is None else environ))


def _hypervisor(root: Path) -> str:
    # Every processor has the same flags, and the kernel makes this file slowly.
    flags = fields(read_text(root / "proc/cpuinfo", limit_bytes=8192), ":").get("flags", "")
    kind = read_text(root / "sys/hypervisor/type")
    # Without the processor's flag (other architectures) the device tree says it.
    compatible = read_text(root / "proc/device-tree/hypervisor/compatible")
    if "hypervisor" not in flags.split() and not kind and not compatible:
        return ""
    words = [read_text(root / "sys/class/dmi/id" / name) for name in ("sys_vendor", "product_name")]
    return " ".join(word for word in words if word) or kind or compatible or "unnamed"


def _container(root: Path, environ: Mapping[str, str]) -> str:
    # A pod need not have a sign of its own: containerd leaves none.
    if "KUBERNETES_SERVICE_HOST" in environ:
        return "Kubernetes"
    for sign, name in _CONTAINERS:
        if (root / sign).exists():
            return name
    return read_text(root / "run/systemd/container") or environ.get("container", "")


BATCH_SYSTEMS = {
    "SLURM_JOB_ID": "Slurm",
    "PBS_JOBID": "PBS",
    "LSB_JOBID": "LSF",
    "FLUX_JOB_ID": "Flux",
    "OAR_JOB_ID": "OAR",
    "_CONDOR_SLOT": "HTCondor",
}
"""The variables that batch systems set in their jobs, by their manuals."""

_OF_SLURM = re.compile(r"/slurm[^/]*/(uid_\d+/)?job_\d+(/|$)")
"""The cgroup of a job: below `/slurm` or `/slurm_<node>` on v1, below `slurmstepd.scope` on v2."""


def batch_system(environ: Mapping[str, str] | None = None, root: Path = Path("/")) -> str:
    """Return the batch system of this job, "" outside of one. A container is not considered: its mounts are its own.

    Slurm's jobs are also recognised by their cgroup: sudo drops the variables.
    """
    environ = os.environ if environ is None else environ
    if system := next((name for variable, name in BATCH_SYSTEMS.items() if environ.get(variable)), ""):
        return system
    return "Slurm" if any(map(_OF_SLURM.search, own_cgroups(root).values())) else ""
