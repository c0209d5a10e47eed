"""Fill a folder for the guest with the parts of the checkout that it runs, compiled; packages are shared with it.

Run by the environment's own Python as `python pack.py FOLDER`. That has to be the version of the guest's, 3.11:
compiled packages are used as they are.
"""

from __future__ import annotations

import compileall
import py_compile
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUEST_PYTHON = (3, 11)
PARTS = (
    "common/cotenant",
    "tests/tenants",
    "tests/isolation",
    "tests/patience.py",
    "tests/vm",
    "tasks",
    "baselines.json",
    "profiles",
    "requirements.txt",
    "scripts/environment.sh",
    "run.py",
    "run.sh",
    "cgroup_setup.sh",
)


def pack(folder: Path) -> None:
    """Copy the parts of the checkout to `cotenant`."""
    skip = shutil.ignore_patterns("__pycache__")
    for part in PARTS:
        target = folder / "cotenant" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target, ignore=skip)
        else:
            shutil.copy2(ROOT / part, target)


if __name__ == "__main__":
    if sys.version_info[:2] != GUEST_PYTHON:
        sys.exit(f"pack.py: The guest runs Python 3.11, this is {sys.version.split()[0]}. Name such a VENV.")
    pack(Path(sys.argv[1]))
    # An emulated processor takes minutes for a compilation of a second here.
    compileall.compile_dir(sys.argv[1], quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
