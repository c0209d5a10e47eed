"""The one place that sets a tenant's environment (the meaning of a job file's variables)."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cotenant.checkout import SOURCE_ROOT
from cotenant.errors import CotenantError
from cotenant.exec.settings import EXEC_VARIABLE, HOOK, Settings
from cotenant.isolation.device_modes import DeviceShare
from cotenant.isolation.runs import RunName
from cotenant.isolation.slice import Slice
from cotenant.launch.command import callers_path
from cotenant.launch.paths import RunPaths
from cotenant.machine.accelerators import VISIBILITY, visible_variables
from cotenant.machine.nvidia import mps_pipes
from cotenant.machine.topology import Machine
from cotenant.nodes.cluster import Cluster, interface_towards
from cotenant.procfs import format_list
from cotenant.protocol.messages import (
    DEVICE_MEMORY_VARIABLE,
    GROUP_VARIABLE,
    LOG_VARIABLE,
    NODE_VARIABLE,
    RANKS_VARIABLE,
    RUN_VARIABLE,
    SOCKET_VARIABLE,
    TENANT_VARIABLE,
)
from cotenant.suite.cells import JobCell
from cotenant.suite.foreign import Foreign
from cotenant.suite.variables import VARIABLES, expand_variables

OMP = "OMP_NUM_THREADS"
THREAD_VARIABLES = (OMP, "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_NUM_THREADS")
RANK_VARIABLES = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", RANKS_VARIABLE)
"""Variables from a launcher to its ranks: with a pod's or batch job's own, a tenant would wait for ranks elsewhere."""
MEETING_VARIABLES = ("MASTER_ADDR", "MASTER_PORT")
"""The variables of a job that programs of several processes use to find each other."""
FIRST_PORT = 29500
END_OF_PORTS = 1 << 16
LOOPBACK = "lo"


@dataclass(frozen=True, slots=True)
class RunEnvironment:
    """The properties of a run and its machine from which its tenants' variables are made."""

    suite: str
    uid: int
    run: RunName
    paths: RunPaths
    machine: Machine
    first_port: int

    def job_variables(self, cell: JobCell, slice_: Slice, tenants: int) -> dict[str, str]:
        """Return the variables a job's text may name, with this tenant's values. `RAM_*` are kB, as in the original."""
        return {
            "JOB_RUNNER": "cotenant",
            "JOB_FILE": self.suite,
            "SUITE_NAME": self.suite,
            "BENCH_NAME": cell.job.name,
            "RUN_ID": str(self.uid),
            "JOB_ID": str(slice_.tenant),
            "DEVICE_TOTAL": str(tenants),
            "CPU_TOTAL": str(len(self.machine.processors)),
            "CPU_COUNT": str(len(slice_.processors)),
            "RAM_TOTAL": str(self.machine.memory_bytes // 1024),
            "RAM_CONSTRAINT": str(slice_.memory_bytes // 1024),
            # USE_CUDA=1 asks for devices: without one, benchmarks then refuse instead of giving a processor's rates.
            "USE_CUDA": "1" if slice_.accelerators or os.environ.get("USE_CUDA") == "1" else "0",
            "BASE": str(self.paths.base),
            "DATA_DIRECTORY": str(self.paths.data),
            "OUTPUT_DIRECTORY": str(self.paths.output),
            "TEMP_DIRECTORY": str(self.paths.temporary / f"t{slice_.tenant}"),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(self.first_port + slice_.tenant),
        }

    def added(
        self, variables: Mapping[str, str], cell: JobCell, slice_: Slice, ranks: Sequence[Sequence[int]], log: Path
    ) -> dict[str, str]:
        """Return the variables on top of the caller's environment: the job's, devices, threads, and the rendezvous.

        `ranks` are the processors of each rank: several only in the group `all`, whose ranks write logs beside `log`,
        and none without isolation, so that the effect of default thread counts shows.
        """
        added = dict(variables)
        added["TMPDIR"] = variables["TEMP_DIRECTORY"]
        if "TORCHINDUCTOR_CACHE_DIR" not in os.environ:
            # The default is in TMPDIR, where every tenant of every launch would compile the same code again.
            added["TORCHINDUCTOR_CACHE_DIR"] = str(Path(variables["BASE"]) / "compiled")
        added |= own_python()
        if ranks:
            added |= dict.fromkeys(THREAD_VARIABLES, str(len(ranks[0])))
            if cell.job.group == "all":
                added[RANKS_VARIABLE] = ";".join(map(format_list, ranks))
        added |= visible_variables(slice_.accelerators)
        if slice_.device_share is not None:
            added |= share_variables(slice_.device_share)
        added |= {name: expand_variables(value, variables) for name, value in cell.job.env}
        return added | {
            RUN_VARIABLE: str(self.run),
            TENANT_VARIABLE: str(slice_.tenant),
            SOCKET_VARIABLE: str(self.paths.socket_of(slice_.tenant)),
            LOG_VARIABLE: str(log),
            GROUP_VARIABLE: cell.job.group,
        }


def share_variables(part: DeviceShare) -> dict[str, str]:
    """Return the variables that hold a tenant to its part of a device: torch's own limit, or the client's side of MPS
    (NVIDIA, Multi-Process Service, "Environment Variables")."""
    if part.mode.kind == "time":
        return {DEVICE_MEMORY_VARIABLE: str(part.memory_bytes)} if part.memory_bytes else {}
    variables = {"CUDA_MPS_PIPE_DIRECTORY": str(mps_pipes(os.environ))}
    if part.mode.percent is not None:
        variables["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = str(part.mode.percent)
    if part.memory_bytes:
        variables["CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"] = f"0={part.memory_bytes >> 20}M"
    return variables


def node_variables(cluster: Cluster | None, nodes: int) -> dict[str, str]:
    """Return the variables of a launch on the first `nodes` of several hosts, 0 for all.

    The value of NODE_VARIABLE is added once the slice exists.

    On a single host ranks listen for each other on the loopback, whatever address the host's name has. PET_* are
    torchrun's own names for the defaults of its flags.
    """
    if cluster is None or nodes == 1:
        return {} if "GLOO_SOCKET_IFNAME" in os.environ else {"GLOO_SOCKET_IFNAME": LOOPBACK}
    variables = {
        "MASTER_ADDR": cluster.host,
        "MASTER_PORT": str(cluster.port),
        "PET_NNODES": str(nodes or cluster.nodes),
        "PET_NODE_RANK": str(cluster.node),
        NODE_VARIABLE: "",
    }
    # gloo looks up the host's name, whose address is often the loopback's.
    if "GLOO_SOCKET_IFNAME" not in os.environ and (interface := interface_towards(cluster.host)):
        variables["GLOO_SOCKET_IFNAME"] = interface
    return variables


def environment_without_jobs(added: Mapping[str, str], foreign: Foreign, temporary: Path) -> dict[str, str]:
    """Return the variables of a program of `exec` on top of the caller's, whose PATH, interpreter and
    numbers of threads it keeps."""
    jobs = {name for name in VARIABLES if name not in MEETING_VARIABLES}
    callers = {"PATH", "PYTHONHOME"}.union(THREAD_VARIABLES if OMP in os.environ else ())
    callers.update(os.environ.keys() & THREAD_VARIABLES)
    environment = {name: value for name, value in added.items() if name not in jobs | callers}
    settings = Settings(**foreign.counting, directory=str(temporary), again=foreign.again)
    environment["PATH"] = callers_path()
    environment["TMPDIR"] = str(temporary)
    environment[EXEC_VARIABLE] = settings.encoded()
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HOOK), os.environ.get("PYTHONPATH")]))
    # All copies would share torchrun's own default.
    environment["PET_MASTER_PORT"] = added["MASTER_PORT"]
    if foreign.count_line:
        environment["PYTHONUNBUFFERED"] = "1"
    return environment


def own_python() -> dict[str, str]:
    """Return the variables that put our interpreter and our library before the caller's; the caller's variables for
    Python are left out if this interpreter ignores them, too."""
    heeded = not sys.flags.ignore_environment
    searched = [str(SOURCE_ROOT), os.environ.get("PYTHONPATH", "") if heeded else ""]
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": os.pathsep.join(filter(None, searched)),
        **({} if heeded or "PYTHONHOME" not in os.environ else {"PYTHONHOME": ""}),
    }


def whole_environment(added: Mapping[str, str], slice_: Slice) -> dict[str, str]:
    """Return the caller's environment with ours on top, without the variables that make the caller itself a rank.

    Device variables that would hide the slice's devices are left out too, and with ours the caller's settings of MPS.
    """
    left_out = {name for accelerator in slice_.accelerators for name in VISIBILITY[accelerator.vendor]}
    left_out.update(RANK_VARIABLES)
    # A training operator sets defaults of torchrun's flags in its pods: ranks would wait for its other nodes.
    left_out.update(name for name in os.environ if name.startswith("PET_"))
    if slice_.device_share is not None:
        left_out.update(name for name in os.environ if name.startswith("CUDA_MPS_"))
    return {name: value for name, value in os.environ.items() if name not in left_out} | dict(added)


def free_ports(count: int) -> int:
    """Return the first of `count` consecutive free ports on the loopback. Raises CotenantError if there are none."""
    for first in range(FIRST_PORT, END_OF_PORTS - count + 1, count):
        if all(_is_free(port) for port in range(first, first + count)):
            return first
    raise CotenantError(f"There are no {count} free ports in a row from {FIRST_PORT} on.", "Use fewer --users.")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
