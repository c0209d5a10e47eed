"""Where this checkout lies, and where a suite writes that is given no other place."""

from __future__ import annotations

import os
from pathlib import Path

SOURCE_ROOT = Path(__file__).resolve().parents[1]
"""The directory that stands on PYTHONPATH: `common`."""
CHECKOUT = SOURCE_ROOT.parent


def base_directory() -> Path:
    """Return where everything lies that a suite is given no place for: `BASE`, or `workspace` below where we are."""
    return Path(os.environ.get("BASE") or "workspace").absolute()


def output_directory() -> Path:
    """Return where a suite puts its records that is given no `--outdir`, and where reports look for them."""
    return Path(os.environ.get("OUTPUT_DIRECTORY") or base_directory() / "output").absolute()
