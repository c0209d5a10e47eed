"""Asks the tools of this host whether lines for them are well formed; nothing is applied."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

LIMIT_S = 20.0
UNCHECKED = "unchecked"


def checked_by_systemd(unit: str) -> str:
    """Return the answer of `systemd-analyze verify` on the text of a slice unit; `unchecked` if it is missing."""
    if shutil.which("systemd-analyze") is None:
        return UNCHECKED
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "cotenant-check.slice"
        path.write_text(unit)
        said = _said(["systemd-analyze", "verify", str(path)])
    if said is None:
        return UNCHECKED
    # Its exit status is 0 even for unknown keys.
    wrong = next((line for line in said.splitlines() if path.name in line), "")
    return f"refused: {wrong.strip()}" if wrong else "checked by systemd-analyze verify"


def checked_by_slurm(processors: int, memory_mib: int) -> str:
    """Return whether `slurmd -C` finds enough processors and memory; `unchecked` if it is missing."""
    if shutil.which("slurmd") is None or (said := _said(["slurmd", "-C"])) is None:
        return UNCHECKED
    found = dict(re.findall(r"(\w+)=(\d+)", said))
    if not {"CPUs", "RealMemory"} <= found.keys():
        return UNCHECKED
    fits = int(found["CPUs"]) >= processors and int(found["RealMemory"]) >= memory_mib
    return "checked by slurmd -C" if fits else f"refused: slurmd -C has {found['CPUs']} CPUs, {found['RealMemory']} MB"


def _said(words: Sequence[str]) -> str | None:
    try:
        ended = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return ended.stdout + ended.stderr
