"""A suite before it runs: its options resolved against this machine, its launches, and estimates of them."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from cotenant.errors import CotenantError
from cotenant.finding import Finding
from cotenant.findings import ask_all
from cotenant.findings.checks import EVERY_SUITE
from cotenant.findings.facts import Isolation, gather
from cotenant.isolation.choose import choose_backend
from cotenant.isolation.plan import Plan
from cotenant.launch.device_sharing import check_share
from cotenant.launch.duration import Pace, crowd_words, estimates_s, slowness
from cotenant.launch.needs import check_memory, isolation_of, loader_bytes
from cotenant.launch.resume import begun
from cotenant.launch.start import Options, Resolver, Start
from cotenant.machine.limits import cgroup_mounts
from cotenant.machine.topology import Machine
from cotenant.results.store import check_place


class PreparedSuite:
    """Resolves options against a machine. Nothing runs, and nothing is made."""

    def __init__(self, options: Options, machine: Machine) -> None:
        """Raises CotenantError for everything that can be known to be wrong before anything runs."""
        self.options, self.machine, self.paths = options, machine, options.paths
        self._chosen = choose_backend(options.isolation, cgroup_mounts(), options.cgroup_base)
        self.backend = self._chosen.backend
        self.backend.oom_group = options.limits.on_oom == "group"
        self._resolver = Resolver(options, machine, self._chosen)
        if options.share is not None:
            check_share(options.share, machine.accelerators, self.backend)
        self.starts = self._resolver.starts()
        check_memory(options, machine, self.backend, self.starts)
        self.left_out = self._resolver.left_out()

    def check(self) -> None:
        """Raise CotenantError where records have no place, or `--resume` would go on with other work."""
        options = self.options
        check_place(self.paths.output)
        if options.resume and (options.cluster is None or not options.cluster.node):
            begun(options, self.expected, self.backend.name, self.machine.hostname)

    def settle(self) -> None:
        """Go where the backend needs us: this program may begin anew, once, and not return. Raises IsolationError."""
        self._chosen.settle()

    def check_room(self) -> None:
        """Raise CotenantError where records or temporary files have no room: a lost result was measured in vain."""
        for finding in self.before:
            if finding.rule in ("disk_full", "not_writable") and finding.severity == "error":
                raise CotenantError(finding.sentence, finding.remedy)

    @property
    def expected(self) -> tuple[Start, ...]:
        """The launches there are where all that are to be of blocks can be."""
        return tuple(start for start in self.starts if not start.without_blocks)

    @property
    def plan(self) -> Plan:
        """The slices of jobs that run once on each."""
        return self._resolver.plans["student"]

    @functools.cached_property
    def before(self) -> tuple[Finding, ...]:
        """The findings on this host before anything runs on it: made once, and kept in every record."""
        facts = dataclasses.replace(
            gather(self.machine, self.paths.purposes),
            isolation=self.isolation,
            plan=self.plan,
            loader_bytes=loader_bytes(self.starts),
        )
        return tuple(finding for _, answer in ask_all(EVERY_SUITE, facts) for finding in answer.findings)

    @functools.cached_property
    def isolation(self) -> Isolation:
        """The limits that the backend holds tenants to."""
        return isolation_of(self.backend)

    @functools.cached_property
    def machine_facts(self) -> dict[str, Any]:
        """The machine, as every record tells of it."""
        # Not before: it asks for versions of much that takes its time to import.
        from cotenant.machine.facts import machine_facts

        return machine_facts(self.machine, self.options.checkout)

    def estimates_s(self) -> list[float | None]:
        """Return how long each of the expected launches will take, None where its job counts what it measures.

        Seeing how slow this host is takes half a second: of short suites on their own processors nobody asks it.
        """
        if self.pace is None and not self._crowded and not self.machine.accelerators:
            return [None] * len(self.expected)
        return estimates_s(self.expected, self.options.limits, self._slowness, self.pace)

    def crowd_words(self) -> str:
        """Return how long users that share processors take until GO; "" where none does."""
        return crowd_words(self.expected, self._slowness) if self._crowded else ""

    @functools.cached_property
    def pace(self) -> Pace | None:
        """The pace that keeps the suite within its time, from when it is asked first on; None without such a time."""
        within_s = self.options.within_s
        return None if within_s is None else Pace(within_s, self._slowness)

    @property
    def _crowded(self) -> bool:
        return any(start.sharers > 1 for start in self.expected)

    @functools.cached_property
    def _slowness(self) -> float:
        return slowness()
