"""Launches the tenants of a planned launch, with the meters around it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cotenant.isolation.backend import NotIsolatedError
from cotenant.isolation.choose import isolation_errors
from cotenant.isolation.leftovers import new_shared_files, shared_files
from cotenant.isolation.processes import end_orphans, now_ticks
from cotenant.launch.across import node_variable, waiting_s
from cotenant.launch.events import Interruption
from cotenant.launch.launch import Launch
from cotenant.launch.limits import Limits
from cotenant.launch.observer import Observer
from cotenant.launch.outcome import LaunchResult
from cotenant.launch.planned import PlannedLaunch
from cotenant.launch.prepared import PreparedSuite
from cotenant.launch.resources import Resources
from cotenant.machine.load import HostCounts, host_counts, since
from cotenant.meters.meters import meters_of
from cotenant.nodes.slurm import held
from cotenant.text import listed


@dataclass(frozen=True, slots=True)
class Launcher:
    """Measures the launches of a suite, one at a time, until `interruption` is requested."""

    suite: PreparedSuite
    resources: Resources
    interruption: Interruption
    observer: Observer

    def measure(self, planned: PlannedLaunch, limits: Limits) -> LaunchResult:
        """Launch the tenants; the host's counts cover the time before GO and after STOP, too.

        Raises IsolationError.
        """
        suite, reaper = self.suite, self.resources.reaper
        machine, slices = suite.machine, [spec.slice for spec in planned.specs]
        shared_before = shared_files().keys()
        limits, variables = limits.of_job(planned.timeout_s), None
        if planned.follows is not None:
            wait_s = waiting_s(suite.starts, planned, suite.options.limits)
            variables = node_variable(suite, planned, limits.ready_limit_s, wait_s)
            limits = limits.of_node(planned.follows, wait_s)
        begin_ticks = now_ticks()
        with meters_of(machine, slices) as sampling, self.resources.output.logs() as logs, isolation_errors():
            launch = Launch(
                planned.specs,
                suite.backend,
                self.interruption,
                limits,
                reaper.ensure,
                sampling,
                self.observer,
                logs,
                planned.design,
                {goer.tenant for goer in planned.goes_on},
                variables,
            )
            counts = self._counts()
            result = launch.run()
            meters = result.meters | {"host": since(counts, self._counts(), result.killed_outside)}
            left_behind, changes = result.left_behind, result.changes
            try:
                orphans = end_orphans(self.resources.own_children | reaper.pids, begin_ticks)
                # Processes in a slice have ended with it.
                if orphans and suite.backend.location():
                    changes += (f"users were planned in slices, but {listed(orphans.values(), 3)} lived outside",)
            except NotIsolatedError as error:
                left_behind = left_behind or str(error)
        if given := held():
            meters["slurm"] = given
        # If each tenant has a /dev/shm of its own, new files in the machine's are not theirs.
        if not suite.isolation.own_shm and (new := new_shared_files(shared_before)):
            meters["shm_kept"] = new
        return replace(result, meters=meters, left_behind=left_behind, changes=changes)

    def _counts(self) -> HostCounts:
        machine = self.suite.machine
        # The threads of a core count the same throttling: the first of them is read.
        return host_counts({processor.core for processor in machine.processors}, machine.nvidia_places)
