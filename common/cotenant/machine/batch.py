"""Whether a batch system gave us a part of this host: what we make then stays in the cgroup of its job."""

from __future__ import annotations

import os
from collections.abc import Mapping

BATCH_SYSTEMS = {
    "SLURM_JOB_ID": "Slurm",
    "PBS_JOBID": "PBS",
    "LSB_JOBID": "LSF",
    "FLUX_JOB_ID": "Flux",
    "OAR_JOB_ID": "OAR",
    "_CONDOR_SLOT": "HTCondor",
}
"""The variables that batch systems set in their jobs (their manuals)."""


def batch_system(environ: Mapping[str, str] | None = None) -> str:
    """Return whose job we are in, "" where we are in none. A container need not be known: its mounts are its own."""
    environ = os.environ if environ is None else environ
    return next((name for variable, name in BATCH_SYSTEMS.items() if environ.get(variable)), "")
