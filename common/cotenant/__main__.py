"""The entry of every program: Ctrl-C and a closing terminal are held back until the command line can handle them.

A KeyboardInterrupt while modules are imported shows a traceback or is swallowed, and in msgspec's C code it leaves
objects behind that crash the program later.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence


def start(words: Sequence[str]) -> int:
    """Run one command and return its exit status; `cli.main` handles the signals held back so far."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
    _put_last(os.environ.get("PYTHONPATH", "").split(os.pathsep))
    from cotenant.cli import main

    return main(words)


def _put_last(places: Sequence[str]) -> None:
    """Move these places of the caller's to the end of the module search path, all but this package's own place."""
    ours = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # noqa: PTH120 # pathlib may be another there.
    last = {os.path.abspath(place) for place in places if place and os.path.realpath(place) != ours}  # noqa: PTH100
    sys.path.sort(key=last.__contains__)


def entry() -> None:
    """Run the `cotenant` command."""
    sys.exit(start(sys.argv[1:]))


def mlbench_entry() -> None:
    """Run the `mlbench-report` command, by its old name."""
    sys.exit(start(["mlbench-report", *sys.argv[1:]]))


if __name__ == "__main__":
    entry()
