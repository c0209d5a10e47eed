"""A running suite's output, reaper, cgroups and folders: made before its first launch, removed after its last."""

from __future__ import annotations

import contextlib
import functools
import shlex
import signal
from collections.abc import Callable
from dataclasses import dataclass

from cotenant.isolation.choose import isolation_errors
from cotenant.isolation.open_files import raise_limit
from cotenant.isolation.processes import adopt_orphans, await_reapers, sweep_marked
from cotenant.launch.output import Output
from cotenant.launch.paths import REMEDY, remove_tree
from cotenant.launch.prepared import PreparedSuite
from cotenant.launch.reaper import Reaper, remove_containers
from cotenant.results.store import prepare_directory


@dataclass(frozen=True, slots=True)
class Resources:
    """The things that a suite holds while it runs; `own_children` are the children that this process had before."""

    output: Output
    reaper: Reaper
    own_children: set[int]


def acquire(suite: PreparedSuite, stack: contextlib.ExitStack, tell: Callable[[str], None]) -> Resources:
    """Make the resources, which `stack` undoes when it closes; remove leftovers of dead runs. Raises CotenantError."""
    run, paths, backend = suite.options.run, suite.paths, suite.backend
    suite.check_room()
    raise_limit()
    output = Output(paths.output)
    stack.callback(output.close)
    image, tenants = suite.options.image, {spec.slice.tenant for launch in suite.starts for spec in launch.specs}
    removal = [] if image is None else image.removal(str(run), sorted(tenants))
    reaper = Reaper(str(run), backend.location(), paths.own, output.directory, removal)
    # The reaper comes first and is dismissed last, so that it knows of everything that is made.
    stack.callback(_warn, tell, reaper.dismiss)
    # If our parent ignored SIGCHLD, so would we, and the exit status of our children would be lost.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    reaper.ensure()
    if removal:
        stack.callback(_warn, tell, functools.partial(remove_containers, removal), shlex.join(removal))
    for finding in output.put_right():
        tell(f"warning: {finding.sentence} {finding.remedy}")
    for directory in paths.own:
        stack.callback(_warn, tell, functools.partial(remove_tree, directory), REMEDY)
    prepare_directory(paths.temporary, "BASE names another place for temporary files.")
    paths.sockets.mkdir(mode=0o700)
    own_children = adopt_orphans()
    with isolation_errors():
        await_reapers()
        # Cgroups come first: a dead run's fork bomb ends with its slice, but would outrun a search by marker.
        backend.sweep()
        sweep_marked()
        for left in paths.sweep():
            tell(f"warning: {left} {REMEDY}")
        backend.open(run)
    stack.callback(isolation_errors()(backend.close))
    return Resources(output, reaper, own_children)


def _warn(tell: Callable[[str], None], step: Callable[[], str], remedy: str = "") -> None:
    """Do a step of the cleanup, and tell the sentence that it returns, if any."""
    if sentence := step():
        tell(f"warning: {sentence} {remedy}".rstrip())
