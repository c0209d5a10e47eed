"""A suite before it runs: its options resolved against this machine, its launches, and estimates of their time."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Any

from cotenant.errors import CotenantError
from cotenant.finding import Finding
from cotenant.findings import ask_all
from cotenant.findings.checks import EVERY_SUITE
from cotenant.findings.facts import Isolation, gather
from cotenant.isolation.choose import choose_backend
from cotenant.isolation.open_files import check_open_files
from cotenant.isolation.plan import Plan
from cotenant.launch.device_sharing import check_share
from cotenant.launch.duration import Pace, crowd_words, estimates_s, slowness
from cotenant.launch.needs import check_memory, imports_torch, isolation_of, loader_bytes
from cotenant.launch.resume import begun
from cotenant.launch.start import Options, Resolver
from cotenant.machine.limits import cgroup_mounts
from cotenant.machine.topology import Machine
from cotenant.results.store import check_place


class PreparedSuite:
    """Resolves options against a machine, without starting or making anything."""

    def __init__(self, options: Options, machine: Machine) -> None:
        """Resolve them. Raises CotenantError for every fault that can be found before anything runs."""
        self.options, self.machine, self.paths = options, machine, options.paths
        self._chosen = choose_backend(options.isolation, cgroup_mounts(), options.cgroup_base)
        self.backend = self._chosen.backend
        self.backend.oom_group = options.limits.on_oom == "group"
        self._resolver = Resolver(options, machine, self._chosen)
        if options.share is not None:
            check_share(options.share)
        self.starts = self._resolver.starts()
        check_memory(options, machine, self.backend, self.starts)
        check_open_files(max((len(launch.specs) for launch in self.starts), default=0))
        self.left_out = self._resolver.left_out()

    def check(self) -> None:
        """Raise CotenantError if records cannot be written, or `--resume` would continue other work."""
        options = self.options
        check_place(self.paths.output)
        if options.resume and (options.cluster is None or not options.cluster.node):
            begun(options, self.starts, self.backend.name, self.machine.hostname)

    def settle(self) -> None:
        """Move this process where the backend needs it, perhaps by restarting it once. Raises IsolationError."""
        self._chosen.settle()

    def check_room(self) -> None:
        """Raise CotenantError if records or temporary files have no room, before anything is measured in vain."""
        for finding in self.before:
            if finding.rule in ("disk_full", "not_writable") and finding.severity == "error":
                raise CotenantError(finding.sentence, finding.remedy)

    @property
    def plan(self) -> Plan:
        """The slices of jobs that run once in each slice."""
        return self._resolver.plans["student"]

    @functools.cached_property
    def before(self) -> tuple[Finding, ...]:
        """The findings on this host before anything runs, made once and kept in every record."""
        facts = replace(
            gather(self.machine, self.paths.purposes),
            isolation=self.isolation,
            plan=self.plan,
            loader_bytes=loader_bytes(self.starts),
        )
        return tuple(finding for _, answer in ask_all(EVERY_SUITE, facts) for finding in answer.findings)

    @functools.cached_property
    def isolation(self) -> Isolation:
        """The facts on the backend: the limits that it enforces on tenants."""
        return isolation_of(self.backend)

    @functools.cached_property
    def machine_facts(self) -> dict[str, Any]:
        """The facts on the machine for every record."""
        # The import is late, as it asks many packages for their versions, which takes time.
        from cotenant.machine.facts import machine_facts

        return machine_facts(self.machine, self.options.checkout)

    def estimates_s(self) -> list[float | None]:
        """Return the estimated seconds of each launch; None if its job counts its own observations.

        All are None without a time limit, shared processors and devices: timing this host takes half a second.
        """
        if self.pace is None and not self._crowded and not self.machine.accelerators:
            return [None] * len(self.starts)
        return estimates_s(self.starts, self.options.limits, self._slowness, self.pace)

    def crowd_words(self) -> str:
        """Return a sentence on the time until GO of users that share processors and import torch; "" if none do."""
        crowds = [launch for launch in self.starts if launch.sharers > 1 and imports_torch(launch)]
        return crowd_words(crowds, self._slowness) if crowds else ""

    @functools.cached_property
    def pace(self) -> Pace | None:
        """The pace that keeps the suite within its time, counted from the first access; None without such a time."""
        within_s = self.options.within_s
        return None if within_s is None else Pace(within_s, self._slowness)

    @property
    def _crowded(self) -> bool:
        return any(launch.sharers > 1 for launch in self.starts)

    @functools.cached_property
    def _slowness(self) -> float:
        return slowness()
