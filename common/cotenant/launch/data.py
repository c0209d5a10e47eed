"""Data sets of tenants, made by each benchmark's own `download_dataset.sh`."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from cotenant.errors import EXIT_FOREIGN_FILES
from cotenant.finding import Finding
from cotenant.isolation.entry import own_shm_can_be_had
from cotenant.isolation.processes import kill_marked
from cotenant.isolation.runs import RunName
from cotenant.launch.environment import own_python
from cotenant.launch.events import Interruption
from cotenant.launch.observer import Observer
from cotenant.launch.paths import RunPaths, is_shared_memory
from cotenant.launch.planned import PlannedLaunch
from cotenant.launch.start import Options
from cotenant.protocol.messages import RUN_VARIABLE
from cotenant.suite.cells import named_variables
from cotenant.text import listed

END_WAIT_S = 5.0
POLL_S = 0.1

Ready = list[tuple[PlannedLaunch, str | None]]
"""Starts, each with the reason why its data is missing, or None if it is there."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A maker's result: why data is `missing`, or whether it found `foreign` files, made by no maker."""

    missing: str | None = None
    foreign: bool = False


def maker_of(command: Path) -> Path | None:
    """Return the `download_dataset.sh` of the benchmark that `command` starts, or None if it has none."""
    script = command.parent.parent / "download_dataset.sh"
    return script if script.is_file() and os.access(script, os.X_OK) else None


def named_inputs(launch: PlannedLaunch, paths: RunPaths) -> tuple[Path, ...]:
    """Return the paths in the tenants' commands that are below the data directory."""
    words = {word for spec in launch.specs for word in spec.command[1:] if word.startswith("/")}
    return tuple(sorted(path for path in map(Path, words) if path.is_relative_to(paths.data)))


def prepare_data(
    options: Options, starts: Iterable[PlannedLaunch], interruption: Interruption, observer: Observer
) -> Ready:
    """Make the data that the cells of `starts` read; return each launch with the reason if its data is missing."""

    @functools.cache
    def prepare(script: Path) -> Prepared:
        if interruption.requested:
            return Prepared()
        if is_shared_memory(options.paths.data) and options.isolation != "none" and own_shm_can_be_had():
            place = f"{options.paths.data} lies in /dev/shm, but each user has a /dev/shm of its own."
            return Prepared(f"{place} Name another DATA_DIRECTORY.")
        observer.preparing(str(script))
        return _make(script, options.paths, options.run, interruption)

    ready: Ready = []
    for launch in starts:
        reading = [
            program for program in launch.different if "DATA_DIRECTORY" in named_variables(program.cell, options.extra)
        ]
        made = [prepare(script) for program in reading if (script := maker_of(program.command)) is not None]
        missing = next((prepared.missing for prepared in made if prepared.missing), None)
        foreign = missing is None and any(prepared.foreign for prepared in made)
        ready.append(_as_it_stands(launch, options.paths) if foreign else (launch, missing))
    return ready


def _as_it_stands(launch: PlannedLaunch, paths: RunPaths) -> tuple[PlannedLaunch, str | None]:
    """Return a launch that reads data made by no maker, with a finding on that, or with the reason if it cannot run."""
    if not (named := named_inputs(launch, paths)):
        return launch, None
    if absent := [path for path in named if not os.access(path, os.F_OK)]:
        return launch, f"There is no {listed(absent)}, and no set is made beside files that may be your own."
    sentence = f"{listed(named)} was read as it is: it has no manifest to check it by."
    remedy = "An empty DATA_DIRECTORY lets Cotenant make or get the set."
    finding = Finding("as_it_stands", "info", sentence, remedy)
    return replace(launch, findings=(*launch.findings, finding)), None


def _make(script: Path, paths: RunPaths, run: RunName, interruption: Interruption) -> Prepared:
    """Run a maker, which does nothing if its set is present, and leaves alone files that no maker has made.

    An interruption ends it: with SIGTERM first, so that it can clean up. All processes that it started end with it.
    """
    environment = os.environ | own_python() | {RUN_VARIABLE: str(run), "VENV": sys.prefix}
    environment |= {"BASE": str(paths.base), "DATA_DIRECTORY": str(paths.data)}
    try:
        maker = subprocess.Popen([str(script)], env=environment, stdin=subprocess.DEVNULL, start_new_session=True)
    except OSError as error:
        return Prepared(f"{script} could not be run: {error.strerror}.")
    try:
        while maker.poll() is None:
            if interruption.requested:
                os.killpg(maker.pid, signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    maker.wait(END_WAIT_S)
                return Prepared(f"{script} was interrupted.")
            with contextlib.suppress(subprocess.TimeoutExpired):
                maker.wait(POLL_S)
    finally:
        if maker.poll() is None:
            os.killpg(maker.pid, signal.SIGKILL)
        kill_marked(str(run))
        status = maker.wait()
    if status in (0, EXIT_FOREIGN_FILES):
        return Prepared(foreign=status != 0)
    return Prepared(f"{script} ended with exit status {status}; run it by hand to see why.")
