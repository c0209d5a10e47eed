"""What runs on this host: kernel, distribution, Python, package versions, the state of a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from cotenant.procfs import fields, read_text

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
