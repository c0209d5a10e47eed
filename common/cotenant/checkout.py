"""Where benchmarks and job files lie, how this program is called, its version, and where a suite writes by default."""

from __future__ import annotations

import os
import sys
from pathlib import Path

SOURCE_ROOT = Path(__file__).resolve().parents[1]
"""The directory that stands on PYTHONPATH: `common`, or where packages are installed."""
_SHIPPED = SOURCE_ROOT / "cotenant" / "shipped"
INSTALLED = _SHIPPED.is_dir()
"""Whether this is a wheel's copy: then what a checkout has beside `common` lies inside the package (see setup.py)."""
CHECKOUT = _SHIPPED if INSTALLED else SOURCE_ROOT.parent
"""The directory of `tasks`, `profiles`, `targets` and `baselines.json`."""
TARGETS = CHECKOUT / "targets"
"""Rates that others are held against, and descriptions of systems."""
PUBLISHED = TARGETS / "published"
"""Curves that others have published."""
PROGRAM = "cotenant" if INSTALLED or Path(sys.argv[0]).name == "cotenant" else "./run.sh"
"""The command as a person types it, for usage lines, hints and the next command."""


def version() -> str:
    """Return the version of this package, as pyproject.toml has it: a checkout's own, whatever is installed beside."""
    if INSTALLED:
        from importlib import metadata

        return metadata.version("cotenant")
    import tomllib

    return str(tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["version"])


def base_directory() -> Path:
    """Return where everything lies that a suite is given no place for: `BASE`, or `workspace` below where we are."""
    return Path(os.environ.get("BASE") or "workspace").absolute()


def output_directory() -> Path:
    """Return where a suite puts its records that is given no `--outdir`, and where reports look for them."""
    return Path(os.environ.get("OUTPUT_DIRECTORY") or base_directory() / "output").absolute()
