"""Data for the chosen jobs: each benchmark's own `download_dataset.sh`, where a job reads from the data directory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from cotenant.launch.environment import SOURCE_ROOT, Places
from cotenant.suite.cells import Cell
from cotenant.suite.variables import names_in
from cotenant.suite.words import words


def needs_data(cell: Cell) -> bool:
    """Does the cell's command line name the data directory?"""
    texts = [word for key, value in cell.args for word in (key, *words(value))]
    return any("DATA_DIRECTORY" in names_in(text) for text in texts)


def maker_of(command: Path) -> Path | None:
    """Return the `download_dataset.sh` of the benchmark that `command` starts, or None where it has none."""
    script = command.parent.parent / "download_dataset.sh"
    return script if script.is_file() and os.access(script, os.X_OK) else None


def prepare(script: Path, places: Places) -> str | None:
    """Run a maker, which does nothing where its set is present; return why the data is missing, or None."""
    added: Mapping[str, str] = {
        "BASE": str(places.base),
        "DATA_DIRECTORY": str(places.data),
        "VENV": sys.prefix,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)]),
        "PYTHONPATH": os.pathsep.join(filter(None, [str(SOURCE_ROOT), os.environ.get("PYTHONPATH")])),
    }
    try:
        ended = subprocess.run([str(script)], env=os.environ | added, stdin=subprocess.DEVNULL, check=False)
    except OSError as error:
        return f"{script} could not be run: {error.strerror}."
    if ended.returncode:
        return f"{script} ended with exit status {ended.returncode}; run it by hand to see why."
    return None
