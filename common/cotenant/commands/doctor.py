"""`cotenant doctor`: finds obstacles to good numbers, on this host and in the jobs that are to run on it."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cotenant.commands.flags import Parser, add_format, at_dashes
from cotenant.commands.given import SuiteFlags
from cotenant.commands.output import tell_view
from cotenant.commands.suite_flags import suite_parser
from cotenant.commands.suite_options import options_of
from cotenant.errors import EXIT_FAILED, EXIT_PASSED, CotenantError, IsolationError
from cotenant.finding import Finding
from cotenant.findings import ask_all
from cotenant.findings.checks import CHECKS
from cotenant.findings.facts import Facts, Isolation, gather
from cotenant.isolation.choose import Chosen, choose_backend
from cotenant.isolation.unenforced import NoIsolation
from cotenant.launch.needs import isolation_of, loader_bytes, needs_of, self_test
from cotenant.launch.start import Options, Resolver
from cotenant.machine.cpu import speed_over
from cotenant.machine.limits import cgroup_mounts
from cotenant.machine.load import load_over
from cotenant.machine.topology import Machine, discover

if TYPE_CHECKING:
    from cotenant.isolation.plan import Plan

WINDOW_S = 0.25
SPEED_WINDOW_S = 1.5


def main(argv: Sequence[str]) -> int:
    """Print every check's answer. Returns 0, or 1 if a finding is an error; raises CotenantError for wrong usage."""
    ours, others = at_dashes(argv)
    given = parser().parse_words(ours)
    flags = SuiteFlags.of(given)
    machine = discover()
    answers = list(ask_all(CHECKS, examine(options_of(flags, others, machine), machine, quick=given.quick)))
    from cotenant.report.checkup import checkup_view

    tell_view(checkup_view(answers), given.format)
    return EXIT_FAILED if any(answer.severity == "error" for _, answer in answers) else EXIT_PASSED


def examine(options: Options, machine: Machine, quick: bool) -> Facts:
    """Return the facts about this host and the jobs that `options` would run; `quick` leaves out slow checks."""
    # Measured first, before this program loads the machine itself.
    load = load_over(WINDOW_S)
    speed = None if quick else speed_over(SPEED_WINDOW_S)
    facts = gather(machine, options.paths.purposes, load)
    isolation, chosen = _isolation(options)
    plan, refusal = _plan(options, machine, chosen)
    facts = dataclasses.replace(
        facts,
        isolation=isolation,
        plan=plan,
        plan_refusal=refusal,
        self_test=None if quick else self_test(),
        speed=speed,
    )
    if plan is None:
        return facts
    needs, starts = needs_of(options, machine, chosen)
    return dataclasses.replace(facts, jobs=needs, loader_bytes=loader_bytes(starts))


def _isolation(options: Options) -> tuple[Isolation, Chosen]:
    """Return the backend that would enforce slices, or else the one without slices."""
    try:
        chosen = choose_backend(options.isolation, cgroup_mounts(), options.cgroup_base)
    except IsolationError as error:
        refusal = Finding("not_isolated", "error", error.sentence, error.remedy)
        return Isolation("", NoIsolation.unenforced, (refusal,)), Chosen(NoIsolation())
    return isolation_of(chosen.backend, chosen.findings), chosen


def _plan(options: Options, machine: Machine, chosen: Chosen) -> tuple[Plan | None, Finding | None]:
    try:
        return Resolver(options, machine, chosen).plans["student"], None
    except CotenantError as error:
        return None, Finding("no_plan", "error", error.sentence, error.remedy)


def parser() -> Parser:
    """Return the parser of `doctor`."""
    parser = suite_parser(
        "doctor",
        "Find problems that would spoil numbers, on this host and for the jobs that these flags would run.",
        "Exit status: 0, or 1 if a finding is an error. Every check: docs/troubleshooting.md",
        dict.fromkeys(("--fix", "--repair"), "Doctor changes nothing: each finding says what to do."),
    )
    add_format(parser)
    quick = "leave out checks that take seconds: the processor's speed over time, the self-test of torch"
    parser.add_argument("--quick", action="store_true", help=quick)
    return parser
