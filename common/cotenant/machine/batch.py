"""Whether a batch system gave us a part of this host: what we make then stays in the cgroup of its job."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from cotenant.machine.limits import own_cgroups

BATCH_SYSTEMS = {
    "SLURM_JOB_ID": "Slurm",
    "PBS_JOBID": "PBS",
    "LSB_JOBID": "LSF",
    "FLUX_JOB_ID": "Flux",
    "OAR_JOB_ID": "OAR",
    "_CONDOR_SLOT": "HTCondor",
}
"""The variables that batch systems set in their jobs (their manuals)."""

_OF_SLURM = re.compile(r"/slurm[^/]*/(uid_\d+/)?job_\d+(/|$)")
"""The cgroup of a job: below `/slurm` or `/slurm_<node>` on v1, below `slurmstepd.scope` on v2."""


def batch_system(environ: Mapping[str, str] | None = None, root: Path = Path("/")) -> str:
    """Return whose job we are in, "" where we are in none. A container need not be known: its mounts are its own.

    Slurm's is also known by its cgroup: sudo leaves the variables behind.
    """
    environ = os.environ if environ is None else environ
    if found := next((name for variable, name in BATCH_SYSTEMS.items() if environ.get(variable)), ""):
        return found
    return "Slurm" if any(map(_OF_SLURM.search, own_cgroups(root).values())) else ""
