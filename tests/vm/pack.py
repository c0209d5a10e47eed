"""Fill a folder for the guest, which is offline: the runner, torch-free tenants, and their packages.

Run by the environment's own Python as `python pack.py FOLDER`. That has to be the version of the guest's, 3.11:
compiled packages are copied as they are.
"""

from __future__ import annotations

import compileall
import py_compile
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GUEST_PYTHON = (3, 11)
PARTS = ("common/cotenant", "tests/tenants", "tests/vm", "run.py", "cgroup_setup.sh")
PACKAGES = ("msgspec", "rich", "numpy", "psutil")
"""The packages that the runner imports; torch is not among them."""
UNNEEDED = re.compile(r"(^|/)(tests|__pycache__)/|^\.\.|\.(pyi|a|h)$")


def needed(names: tuple[str, ...]) -> list[metadata.Distribution]:
    """Return these distributions and those they require on this machine."""
    found: dict[str, metadata.Distribution] = {}
    queue = list(names)
    while queue:
        name = queue.pop().lower().replace("_", "-")
        if name not in found:
            found[name] = metadata.distribution(name)
            requires = (line for line in found[name].requires or () if ";" not in line)
            queue += [re.split(r"[^\w.-]", line, maxsplit=1)[0] for line in requires]
    return list(found.values())


def pack(folder: Path) -> None:
    """Copy the parts of the checkout to `cotenant`, the packages to `packages`."""
    skip = shutil.ignore_patterns("__pycache__")
    for part in PARTS:
        target = folder / "cotenant" / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, target, ignore=skip)
        else:
            shutil.copy2(ROOT / part, target)
    for distribution in needed(PACKAGES):
        for file in distribution.files or ():
            if UNNEEDED.search(str(file)) is None:
                target = folder / "packages" / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file.locate(), target)


if __name__ == "__main__":
    if sys.version_info[:2] != GUEST_PYTHON:
        sys.exit(f"pack.py: The guest runs Python 3.11, this is {sys.version.split()[0]}. Name such a VENV.")
    pack(Path(sys.argv[1]))
    # An emulated processor takes minutes for a compilation of a second here.
    compileall.compile_dir(sys.argv[1], quiet=1, invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
