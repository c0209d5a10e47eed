"""Tenants in an image: their slices are made outside of it, and hold the processes of the container.

An engine without a daemon starts a container in the caller's cgroups, the cgroups of the tenant's slice. The
containers of a daemon would be in the daemon's cgroups.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cotenant.errors import CotenantError
from cotenant.machine.accelerators import Accelerator
from cotenant.procfs import read_text
from cotenant.protocol.messages import RUN_VARIABLE, TENANT_VARIABLE

Kind = Literal["singularity", "podman"]
_SHM = "/dev/shm:/dev/shm"
PID_MAX = Path("/proc/sys/kernel/pid_max")
OF_THE_IMAGE = frozenset({"PATH"})
"""Variables that are not passed to an image of Docker's kind: its own values locate its Python."""
_DEVICES: dict[Kind, dict[str, tuple[str, ...]]] = {
    "singularity": {"nvidia": ("--nv",), "amd": ("--rocm",)},
    "podman": {
        "nvidia": ("--device", "nvidia.com/gpu=all"),
        "amd": ("--device", "/dev/kfd", "--device", "/dev/dri", "--group-add", "keep-groups"),
    },
}
"""Options that give a container the host's devices; the tenant's environment chooses among them."""


@dataclass(frozen=True, slots=True)
class Image:
    """An image, and the `program` that runs it."""

    kind: Kind
    program: str
    name: str

    def __str__(self) -> str:
        return f"{self.name} ({Path(self.program).name})"

    def around(
        self,
        command: Sequence[str],
        accelerators: Sequence[Accelerator],
        places: Collection[Path],
        environment: Mapping[str, str],
    ) -> list[str]:
        """Return the line that runs `command` inside the image, with these paths of the host under the same names.

        `environment` holds the variables that the tenant has on top of the caller's.
        """
        binds = sorted(map(str, places))
        vendors = sorted({accelerator.vendor for accelerator in accelerators})
        devices = [word for vendor in vendors for word in _DEVICES[self.kind].get(vendor, ())]
        if self.kind == "singularity":
            mounts = [word for bind in binds for word in ("--bind", bind)]
            return [self.program, "exec", *devices, *mounts, self.name, *command]
        mounts = [word for bind in binds for word in ("--volume", f"{bind}:{bind}")]
        names = [word for name in sorted(environment.keys() - OF_THE_IMAGE) for word in ("--env", name)]
        # --replace: the container of a tenant's last launch may be left if its engine was killed.
        name = _name(environment[RUN_VARIABLE], environment[TENANT_VARIABLE])
        options = [*_podman_run(os.geteuid()), "--replace", f"--name={name}"]
        return [self.program, *options, *devices, *mounts, *names, self.name, *command]

    def removal(self, run: str, tenants: Iterable[int]) -> list[str]:
        """Return the line that removes the containers of these tenants, or nothing if the engine keeps none.

        Podman keeps a container as `Up` when the processes that watch it are killed with its slice.
        """
        names = [_name(run, str(tenant)) for tenant in tenants]
        return [self.program, "rm", "--force", "--ignore", "--time=0", *names] if self.kind == "podman" else []


def _name(run: str, tenant: str) -> str:
    return f"cotenant-{run}.t{tenant}"


def _podman_run(user: int) -> list[str]:
    """Return podman's options: no cgroups of its own, the host's network and /dev/shm, the same limits and user.

    Limits are given because podman otherwise raises them, which a root without all capabilities may not. It accepts no
    limit of processes above the kernel's own.
    """
    most = {"nofile": resource.getrlimit(resource.RLIMIT_NOFILE)[1], "nproc": _processes()}
    limits = [f"--ulimit={name}={number}:{number}" for name, number in most.items()]
    userns = ["--userns=keep-id"] if user else []
    return ["run", "--rm", "--cgroups=disabled", "--network=host", "--volume", _SHM, *limits, *userns]


def _processes() -> int:
    """Return the most processes that a user of this host may have."""
    limit, possible = resource.getrlimit(resource.RLIMIT_NPROC)[1], int(read_text(PID_MAX) or 32768)
    return possible if limit == resource.RLIM_INFINITY else min(limit, possible)


def image_of(singularity: str | None, docker: str | None) -> Image | None:
    """Return the image that a flag names, None without one. Raises CotenantError if it cannot be run here."""
    if singularity is not None:
        program = shutil.which("apptainer") or shutil.which("singularity")
        if program is None:
            raise CotenantError(
                "--singularity needs apptainer or singularity.", "Install one of them, or leave the flag out."
            )
        if not Path(singularity).exists():
            raise CotenantError(f"--singularity: there is no image {singularity}.", "Name an image file or directory.")
        return Image("singularity", program, str(Path(singularity).absolute()))
    if docker is not None:
        program = shutil.which("podman")
        if program is None:
            raise CotenantError(
                "--docker needs podman: the containers of Docker's daemon do not live in a user's slice.",
                "apt-get install podman; it runs the same images.",
            )
        asked = subprocess.run([program, "image", "exists", docker], capture_output=True, text=True, check=False)
        if asked.returncode == 1:
            raise CotenantError(f"--docker: podman knows no image {docker}.", f"podman pull {docker}")
        if asked.returncode:
            said = asked.stderr.strip() or f"it ended with status {asked.returncode}"
            raise CotenantError(f"--docker: podman does not work here: {said.rstrip('.')}.", "Try: podman info")
        return Image("podman", program, docker)
    return None
