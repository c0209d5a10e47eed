"""The reaper: one small process per suite that outlives a killed runner and leaves nothing of its run behind.

Run as `python -I -S reaper.py PARTS`, where PARTS is the descriptor of a file with the parts of the run in JSON. The
file is complete before the reaper starts, so that a runner may die at any moment. Standard input is a pipe from the
runner, which writes `done` at its end; the end of the pipe without it means that the runner died. PR_SET_PDEATHSIG is
not enough: it reaches the runner's direct children, while torchrun's ranks and the data loader's workers live on.

A runner that is stopped by a signal may have left tenants frozen: after STOPPED_S the reaper thaws them.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cotenant.files import Directory

SOURCE_ROOT = Path(__file__).resolve().parents[2]
GRACE_S = 5.0
STOPPED_S, LOOK_S = 30.0, 5.0
HALF_WRITTEN = r"\.{}-[0-9a-f]{{16}}\.tmp"
"""The temporary name of a file that files.Directory writes; it contains the writer's process id."""


class Reaper:
    """The runner's side: starts the reaper's process, starts a new one if it was killed, and ends it."""

    def __init__(
        self,
        run: str,
        slices: dict[str, Any],
        directories: tuple[Path, ...],
        output: Directory,
        removal: Sequence[str] = (),
    ) -> None:
        """Note a run's parts: `slices` is the backend's `location`, `removal` the line that removes containers."""
        self._output = output.fileno()
        self._parts = {
            "run": run,
            "slices": slices,
            "directories": [str(path) for path in directories],
            "output": [str(output), self._output],
            "removal": list(removal),
        }
        self._process: subprocess.Popen[bytes] | None = None

    def ensure(self) -> None:
        """Start a reaper if none lives. If it dies at once, the next call starts another."""
        from cotenant.protocol.messages import REAPER_VARIABLE

        if self._process is not None:
            if self._process.poll() is None:
                return
            self._process.communicate()  # Closes our end of its pipe.
        with os.fdopen(os.memfd_create("parts"), "w+") as file:
            json.dump(self._parts, file)
            file.seek(0)
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", __file__, str(file.fileno())],
                env={**os.environ, REAPER_VARIABLE: str(self._parts["run"])},
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                pass_fds=[file.fileno(), self._output],
                start_new_session=True,
            )

    @property
    def pids(self) -> set[int]:
        return set() if self._process is None else {self._process.pid}

    def dismiss(self) -> str:
        """End the reaper, since the runner has cleaned up by itself. Return a warning, usually ""."""
        if self._process is None or self._process.poll() is not None:
            return ""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.communicate(b"done\n", GRACE_S)
            return ""
        self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(GRACE_S)
            return f"The reaper (pid {self._process.pid}) did not end within {GRACE_S:g} s and was killed."
        return f"The reaper (pid {self._process.pid}) cannot be killed."


def remove_containers(removal: Sequence[str]) -> str:
    """Have the engine remove a run's containers; return its complaint, usually ""."""
    try:
        subprocess.run(removal, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=60)
    except subprocess.CalledProcessError as error:
        return f"Containers of this run are left: {error.stderr.strip().rstrip('.')}."
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Containers of this run are left: {error}."
    return ""


def reap(parts: dict[str, Any]) -> None:
    """Kill every process of a run and remove its cgroups and directories. A failure does not stop the rest."""
    from cotenant.files import Directory
    from cotenant.isolation.leftovers import clear_slices
    from cotenant.isolation.processes import kill_marked
    from cotenant.launch.paths import remove_tree

    run, slices = parts["run"], parts["slices"]
    # Slices come first, since a fork bomb would outrun the search for its marker.
    with contextlib.suppress(OSError):
        clear_slices(slices, run)
    with contextlib.suppress(OSError):
        kill_marked(run)
    if parts["removal"]:
        remove_containers(parts["removal"])
    for directory in parts["directories"]:
        remove_tree(Path(directory))
    half_written = re.compile(HALF_WRITTEN.format(run.partition("-")[0]))
    path, descriptor = parts["output"]
    output = Directory(Path(path), descriptor)
    for name in filter(half_written.fullmatch, output.names()):
        output.remove(name)


def await_end(parts: dict[str, Any]) -> bool:
    """Wait for the runner's `done` or its death, and thaw its tenants while it is stopped; return whether it died."""
    from cotenant.isolation.leftovers import thaw
    from cotenant.procfs import process_of

    runner = int(parts["run"].partition("-")[0])
    stopped_looks = 0
    while not select.select([sys.stdin], [], [], LOOK_S)[0]:
        process = process_of(runner)
        stopped_looks = stopped_looks + 1 if process is not None and process.state in "Tt" else 0
        if stopped_looks * LOOK_S >= STOPPED_S:
            with contextlib.suppress(OSError):
                thaw(parts["slices"], parts["run"])
    return sys.stdin.readline() != "done\n"


def main(argv: list[str]) -> int:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    sys.path.insert(0, str(SOURCE_ROOT))
    # Import them now, as the checkout may change while a suite runs.
    for name in ("files", "isolation.leftovers", "isolation.processes", "launch.paths", "procfs"):
        importlib.import_module(f"cotenant.{name}")
    with os.fdopen(int(argv[0])) as file:
        parts = json.load(file)
    if await_end(parts):
        reap(parts)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
