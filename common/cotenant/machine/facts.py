"""What a record keeps of its machine: the hardware, the software, and the checkout's state."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cotenant.machine.topology import Machine
from cotenant.procfs import fields, format_list, read_text

PACKAGES = ("torch", "torchvision", "numpy", "cotenant")
_GIT_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Software:
    """Versions as their owners write them; a package that is not installed is not in `packages`."""

    kernel: str
    distribution: str
    python: str
    packages: dict[str, str]


@dataclass(frozen=True, slots=True)
class GitState:
    """`dirty`: a tracked file differs from the commit."""

    commit: str
    dirty: bool


def software(root: Path = Path("/")) -> Software:
    """Return the versions of what is installed, none of which is imported for it."""
    release = read_text(root / "etc/os-release") or read_text(root / "usr/lib/os-release")
    return Software(
        kernel=os.uname().release,
        distribution=fields(release, "=").get("PRETTY_NAME", "").strip("\"'"),
        python=".".join(str(number) for number in sys.version_info[:3]),
        packages=_versions(),
    )


def git_state(directory: Path) -> GitState | None:
    """Return the commit that `directory` stands at; None without git, repository or commit."""
    # From within a hook git would look at the hook's repository, and a status may write to the index.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"}
    status = ["status", "--porcelain=v2", "--branch", "--untracked-files=no"]
    try:
        answer = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", *status],
            cwd=directory,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    lines = answer.stdout.decode(errors="replace").splitlines()
    commit = next((line.split()[-1] for line in lines if line.startswith("# branch.oid ")), "")
    if answer.returncode != 0 or not commit or commit == "(initial)":
        return None
    return GitState(commit, dirty=any(not line.startswith("#") for line in lines))


def _versions() -> dict[str, str]:
    # Needs the email and zipfile packages: too slow for those who want the topology only.
    from importlib import metadata

    versions: dict[str, str] = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return versions


def machine_facts(machine: Machine, checkout: Path) -> dict[str, Any]:
    """Return topology, memory, accelerators, software and the checkout's state as plain values."""
    state = git_state(checkout)
    return {
        "hostname": machine.hostname,
        "model_name": machine.model_name,
        "processors": {
            "usable": format_list(processor.id for processor in machine.processors),
            "online": machine.processor_total,
            "cores": len({processor.core for processor in machine.processors}),
            "packages": len({processor.package for processor in machine.processors}),
            "quota": machine.quota_processors,
        },
        "nodes": [asdict(node) for node in machine.nodes],
        "memory_bytes": machine.memory_bytes,
        "accelerators": [asdict(accelerator) for accelerator in machine.accelerators],
        "software": asdict(software()),
        "git": asdict(state) if state else None,
    }
