"""Packages that were carried here as wheels: unpacked where the machine has none of its own."""

from __future__ import annotations

import sys
import sysconfig
import zipfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

CARRIED = ("msgspec", "gymnasium", "ale_py", "farama_notifications", "psutil", "pynvml", "cloudpickle")
"""Modules that `make gpu-wheels` brings (scripts/gpu_wheels.sh)."""


def unpack_missing(wheels: Path, site: Path) -> list[str]:
    """Unpack the wheels of packages that are missing here into `site`, and return their names.

    Compiled ones cannot be imported from an archive. One for another interpreter or processor is left.
    """
    done: list[str] = []
    for wheel in sorted(wheels.glob("*.whl")) if wheels.is_dir() else ():
        name = wheel.name.split("-")[0]
        if name not in done and fits(wheel.name) and not _installed(name):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(site)
            done.append(name)
    return done


def fits(wheel: str, python: tuple[int, int] | None = None, platform: str | None = None) -> bool:
    """Tell by its name whether a wheel is for this interpreter (`(3, 12)`) and platform (`linux-x86_64`)."""
    major, minor = python or sys.version_info[:2]
    machine = (platform or sysconfig.get_platform()).partition("-")[2]
    pythons, abis, platforms = (tag.split(".") for tag in wheel.removesuffix(".whl").split("-")[-3:])
    if "any" not in platforms and not any(
        tag.startswith(("manylinux", "linux")) and tag.endswith(machine) for tag in platforms
    ):
        return False
    own = f"cp{major}{minor}"
    if "abi3" in abis:
        return any(tag.startswith(f"cp{major}") and int(tag[3:] or 0) <= minor for tag in pythons)
    return own in pythons if "none" not in abis else bool({own, f"py{major}", f"py{major}{minor}"} & set(pythons))


def _installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False
