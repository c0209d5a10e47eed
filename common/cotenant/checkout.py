"""The places of benchmarks and job files, the program's name and version, and the default output directory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SOURCE_ROOT = Path(__file__).resolve().parents[1]
"""The directory on PYTHONPATH: `common`, or the directory of installed packages."""
_SHIPPED = SOURCE_ROOT / "cotenant" / "shipped"
INSTALLED = _SHIPPED.is_dir()
"""True for a wheel's copy, which holds the directories beside `common` inside the package (see setup.py)."""
CHECKOUT = _SHIPPED if INSTALLED else SOURCE_ROOT.parent
"""The directory of `tasks`, `profiles`, `targets` and `baselines.json`."""
TARGETS = CHECKOUT / "targets"
"""Rates to compare others with, and descriptions of systems."""
PUBLISHED = TARGETS / "published"
"""Curves that others have published."""
PROGRAM = "cotenant" if INSTALLED or Path(sys.argv[0]).name == "cotenant" else "./run.sh"
"""The command as a person types it, for usage lines, hints and the next command."""


def version() -> str:
    """Return the version of this package from pyproject.toml: a checkout's own, even if another is installed, too."""
    if INSTALLED:
        from importlib import metadata

        return metadata.version("cotenant")
    import tomllib

    return str(tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["version"])


def base_directory() -> Path:
    """Return the default directory of a suite's data and output: `BASE`, or `workspace` below the current one."""
    return Path(os.environ.get("BASE") or "workspace").absolute()


def output_directory() -> Path:
    """Return the directory in which a suite without `--outdir` puts its records, and reports look for them."""
    return Path(os.environ.get("OUTPUT_DIRECTORY") or base_directory() / "output").absolute()
