"""The entry of every program: Ctrl-C and a closing terminal are held back until the command line can handle them.

A KeyboardInterrupt while modules are imported shows a traceback or is swallowed, and in msgspec's C code it leaves
objects behind that crash the program later.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence


def start(words: Sequence[str]) -> int:
    """Run one command and return its exit status; `cli.main` handles the signals held back so far."""
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGHUP))
    from cotenant.cli import main

    return main(words)


def entry() -> None:
    """The `cotenant` command."""
    sys.exit(start(sys.argv[1:]))


def mlbench_entry() -> None:
    """The `mlbench-report` command, by its old name."""
    sys.exit(start(["mlbench-report", *sys.argv[1:]]))


if __name__ == "__main__":
    entry()
