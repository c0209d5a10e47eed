"""How the shim (enter.py) is started."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from cotenant.isolation import enter
from cotenant.isolation.backend import Entry

# Imported, not run as a script: a script is compiled at every start, for two milliseconds a tenant.
START = "import sys; sys.path.insert(0, sys.argv.pop(1)); import enter; sys.exit(enter.main(sys.argv[1:]))"

PYTHON = getattr(sys, "_base_executable", "") or sys.executable
"""Not a virtual environment's: to find out that it is one takes two milliseconds, and the shim needs none of it."""


def shim_command(entry: Entry, channel: int, runner: int, command: Sequence[str]) -> list[str]:
    """Return the command line that enters a slice, speaks on descriptor `channel`, and becomes `command`."""
    mode = "FREE" if entry.processors is None else "SET" if entry.set_affinity else "CHECK"
    processors = ",".join(map(str, entry.processors or ()))
    words = [str(channel), str(runner), mode, processors, *map(str, entry.procs_files), "--", *command]
    return [PYTHON, "-I", "-S", "-c", START, str(Path(enter.__file__).parent), *words]
