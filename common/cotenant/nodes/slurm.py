"""Inside a Slurm job: this node's number in it, the srun that starts a runner on each node, and Slurm's limits."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from cotenant.errors import CotenantError

FIRST_PORT, PORTS = 20000, 12000
"""Below the ports that kernels assign (32768 on). Numbers of jobs on one node differ, and so do most of their ports."""
INTERACTIVE = "4294967290"
"""The step of the shell that salloc opens on the job's first node (SLURM_INTERACTIVE_STEP), which is no srun task."""
PER_TASK = ("SLURM_GPUS_PER_TASK", "SLURM_NTASKS_PER_GPU", "SLURM_TRES_PER_TASK")
"""sbatch's limits for its own tasks, each a part of a node, which srun would apply to our single task."""
_HELD = {
    "SLURM_JOB_ID": "job",
    "SLURM_STEP_ID": "step",
    "SLURM_JOB_PARTITION": "partition",
    "SLURM_JOB_NODELIST": "nodes",
    "SLURM_CPUS_ON_NODE": "processors",
    "SLURM_MEM_PER_NODE": "memory_mib",
    "SLURM_MEM_PER_CPU": "memory_mib_per_processor",
    "SLURM_GPUS_ON_NODE": "devices",
    "SLURM_STEP_GPUS": "device_ids",
    "SLURM_CPU_BIND": "cpu_bind",
    "SLURM_RESTART_COUNT": "restarts",
}


def in_job(environ: Mapping[str, str]) -> bool:
    return "SLURM_JOB_ID" in environ


def in_step(environ: Mapping[str, str]) -> bool:
    """Return whether this is a task of an srun step over several nodes, which a batch job's script is not."""
    return in_job(environ) and _step_nodes(environ) > 1


def nodes_of(environ: Mapping[str, str]) -> int:
    """Return the number of nodes of the step, outside of one of the job; 0 without a job."""
    if not in_job(environ):
        return 0
    return _step_nodes(environ) or int(environ.get("SLURM_JOB_NUM_NODES") or "1")


def _step_nodes(environ: Mapping[str, str]) -> int:
    """Return the number of nodes of this task's step; 0 in a batch script, and in the shell of salloc."""
    return 0 if environ.get("SLURM_STEP_ID") == INTERACTIVE else int(environ.get("SLURM_STEP_NUM_NODES") or "0")


def place_of_step(environ: Mapping[str, str]) -> tuple[int, int, str, int]:
    """Return a step's number of nodes, this node's number, the step's first host, and a port by the job's number.

    Raises CotenantError for several tasks on a node.
    """
    if environ.get("SLURM_STEP_TASKS_PER_NODE", "1").partition("(")[0] != "1":
        raise CotenantError("srun has started several runners on a node.", "Give srun --ntasks-per-node=1.")
    nodes = int(environ["SLURM_STEP_NUM_NODES"])
    host = first_host(environ.get("SLURM_STEP_NODELIST") or environ["SLURM_JOB_NODELIST"])
    return nodes, int(environ["SLURM_NODEID"]), host, FIRST_PORT + int(environ["SLURM_JOB_ID"]) % PORTS


def first_host(nodelist: str) -> str:
    """Return Slurm's address of the first host of a list such as `node[01-16]`. Raises CotenantError."""
    scontrol = shutil.which("scontrol")
    if scontrol is None:
        raise CotenantError("There is no scontrol on PATH, which reads Slurm's lists of hosts.", "Add Slurm's folder.")
    shown = _answer([scontrol, "show", "hostnames", nodelist]).split()
    if not shown:
        raise CotenantError(f"Slurm names no host for '{nodelist}'.", "Look at squeue and scontrol show job.")
    words = _answer([scontrol, "show", "node", shown[0]]).split()
    # A node's name may differ from its host's name.
    return next((word.partition("=")[2] for word in words if word.startswith("NodeAddr=")), shown[0])


def _answer(line: Sequence[str]) -> str:
    try:
        return subprocess.run(line, capture_output=True, text=True, check=True, timeout=30).stdout
    except (OSError, subprocess.SubprocessError) as error:
        raise CotenantError(f"{' '.join(line)} failed: {error}.", "Slurm has to answer from inside its job.") from error


def begin_on_all_nodes(command: Sequence[str], environ: Mapping[str, str] = os.environ) -> None:
    """Replace this process by an srun of `command` on each of the job's nodes, which passes on signals and statuses.

    Raises CotenantError if there is no srun.
    """
    srun = shutil.which("srun")
    if srun is None:
        raise CotenantError("There is no srun on PATH.", "Add Slurm's folder to it.")
    nodes = nodes_of(environ)
    # A node's single task gets everything of the job; a failed task does not end the others.
    words = [
        srun,
        f"--nodes={nodes}",
        f"--ntasks={nodes}",
        "--ntasks-per-node=1",
        "--cpu-bind=none",
        "--kill-on-bad-exit=0",
    ]
    # Without --cpus-per-task srun gives each task its node's processors, even if nodes differ.
    equal = "," not in environ.get("SLURM_JOB_CPUS_PER_NODE", "")
    if equal and (processors := environ.get("SLURM_CPUS_ON_NODE")):
        words.append(f"--cpus-per-task={processors}")
    variables = {name: value for name, value in environ.items() if name not in PER_TASK}
    os.execve(srun, [*words, *command], variables)


def held(environ: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """Return Slurm's limits of this job on this node, which contain the slices; an empty dict outside of a job."""
    return {what: environ[name] for name, what in _HELD.items() if environ.get(name)} if in_job(environ) else {}
