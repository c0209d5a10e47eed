"""`cotenant capacity`: finds how many users this machine can carry."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cotenant.checkout import PROGRAM
from cotenant.commands import exec as execution
from cotenant.commands.flags import (
    Parser,
    add_format,
    add_slice_flags,
    at_dashes,
    duration,
    given_path,
    positive_number,
    share,
)
from cotenant.commands.given import CommandFlags, SuiteFlags, add_flags
from cotenant.commands.output import note, tell, tell_view, write_page
from cotenant.commands.suite_flags import add_jobs
from cotenant.errors import EXIT_FAILED, EXIT_PASSED, CotenantError
from cotenant.text import many

if TYPE_CHECKING:
    from cotenant.isolation.device_modes import ShareMode
    from cotenant.launch.start import Options
    from cotenant.machine.topology import Machine
    from cotenant.stats.capacity import Requirement

EXAMPLE = f"{PROGRAM} capacity --name vae --keep 0.5"
BUDGET_S = 1200.0


def main(argv: Sequence[str]) -> int:
    """Launch more and more users. Returns 0 if the answer is confirmed, else 1. Raises CotenantError."""
    ours, words = at_dashes(argv)
    given = parser().parse_words(ours)
    requirement = _requirement(given)
    from cotenant.isolation.lock import SuiteLock, lock_path  # --help imports no module that launches
    from cotenant.launch.capacity import CapacityRun
    from cotenant.launch.crowd_launches import SuiteLaunches
    from cotenant.machine.topology import discover
    from cotenant.report.capacity import capacity_view
    from cotenant.report.paste import paste_lines

    say = note if given.format == "json" else tell
    machine = discover()
    options = _options(given, words, machine)
    launches = [SuiteLaunches(_in_mode(options, mode), machine, requirement, say) for mode in given.share or (None,)]
    answers = []
    with SuiteLock(lock_path()):
        for crowd in launches:
            say(crowd.tenancy)
            found = CapacityRun(crowd, crowd.label, requirement, given.budget, given.users).run()
            answers.append(replace(found, share=str(crowd.mode or "")))
    pasted = [str(lines) for found in answers if found.settled for lines in paste_lines(found, machine)]
    if given.html is not None:
        from cotenant.report.view_pages import capacity_page  # matplotlib takes a second to import

        write_page(given.html, capacity_page(answers, pasted))
    tell_view(capacity_view(answers), given.format)
    if given.format == "text":
        tell("".join(f"\n{text}" for text in pasted))
    return EXIT_PASSED if all(answer.settled for answer in answers) else EXIT_FAILED


def parser() -> Parser:
    """Return the parser of `capacity`."""
    parser = Parser(
        "capacity",
        "How many users can this machine carry? Launch more and more of one job, or command, until one has too little.",
        "\n".join(
            [
                EXAMPLE,
                f"{PROGRAM} capacity --keep 0.5 -- python train.py --out runs/{{user}}",
                execution.COPIES,
                execution.COUNTED,
                "Nothing is applied: the answer comes with settings for systemd, JupyterHub and Slurm.",
                "exit status: 0 confirmed, 1 no answer, 2 wrong usage, 4 not isolated, 130 stopped",
            ]
        ),
    )
    parser.usage = "%(prog)s [flags] --name JOB\n       %(prog)s [flags] -- COMMAND [WORDS ...]"
    add_jobs(parser.add_argument_group("what runs").add_argument)
    enough = parser.add_argument_group("what each user needs")
    add = enough.add_mutually_exclusive_group().add_argument
    add("--keep", type=share, metavar="SHARE", help="share of its rate alone, as 0.5 (the default) or 50%%")
    add("--rate", type=positive_number("rate"), metavar="ITEMS_S", help="items a second")
    add("--p95", type=_seconds, metavar="TIME", help="95 %% of steps within this time, as 200ms; for jobs that serve")
    execution.add_counting(parser)
    add_slice_flags(parser, most=True)
    add = parser.add_argument_group("how it is measured").add_argument
    whole = "time of the whole search; with several modes of --share, of each mode (default 20m)"
    add("--budget", type=duration, default=BUDGET_S, metavar="S", help=whole)
    add_flags(add, "--ready-timeout", "--timeout")
    printed = parser.add_argument_group("what is kept and printed")
    add = printed.add_argument
    where = "where records go, a directory for each number of users (default $BASE/capacity)"
    add("--outdir", type=given_path, metavar="DIR", help=where)
    add("--html", type=given_path, metavar="FILE", help="write one page that works offline")
    add_format(printed)
    return parser


def _seconds(text: str) -> float:
    return duration(text[:-2]) / 1000 if text.endswith("ms") else duration(text)


def _requirement(given: argparse.Namespace) -> Requirement:
    from cotenant.stats.capacity import Requirement

    if given.rate is not None:
        return Requirement("rate", given.rate)
    return Requirement("keep", given.keep or 0.5) if given.p95 is None else Requirement("p95", given.p95)


def _options(given: argparse.Namespace, words: Sequence[str], machine: Machine) -> Options:
    """Return the options of a suite of this one job. Raises CotenantError for flags that make no sense."""
    from cotenant.checkout import base_directory
    from cotenant.commands.suite_options import options_of

    named = bool(given.name or given.jobs or given.exclude)
    if named == bool(words):
        raise CotenantError("Capacity is found for one job (--name), or for one command after --.", EXAMPLE)
    # Not below the output of suites: a report on that would take these launches for newer ones of the suite's job.
    output = given.outdir or base_directory() / "capacity"
    fixed: dict[str, Any] = {"budget": None, "baseline": "none", "share": None, "outdir": output}
    if words:
        options = execution.options_of_command(CommandFlags.of(given, **fixed, name=""), words, machine)
    else:
        options = options_of(SuiteFlags.of(given, **fixed), (), machine, jobs_alone=True)
        if len(options.jobs) != 1:
            raise CotenantError(f"{len(options.jobs)} jobs are chosen.", "Choose one by --name.")
    slices = given.slices or len(machine.accelerators) or 1
    if given.users is not None and given.users < max(1, slices):
        raise CotenantError(
            f"--users {given.users} leaves a slice without a user, of {many(slices, 'slice')}.",
            f"Use --users {max(1, slices)} or more.",
        )
    return replace(options, slices=slices, users=slices, baseline="none", within_s=None)


def _in_mode(options: Options, mode: ShareMode | None) -> Options:
    """Return the options with users sharing a device in this mode, which has a directory of its own if it is named."""
    if mode is None:
        return options
    return replace(
        options, share=mode, paths=replace(options.paths, output=options.paths.output / str(mode).replace(":", "-"))
    )
