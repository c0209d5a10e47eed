"""`cotenant exec`: any command as a tenant, several copies of it at once, each in its own slice."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cotenant.checkout import CHECKOUT, PROGRAM
from cotenant.choices import BASELINES, READY_LIMIT_S, TIMEOUT_S
from cotenant.commands.flags import Parser, add_format, add_slice_flags, at_dashes, duration, place, share
from cotenant.errors import CotenantError

if TYPE_CHECKING:
    from cotenant.launch.start import Options

EXAMPLE = f"{PROGRAM} exec --users 2 -- python train.py --out runs/{{user}}"

COPIES = (
    "Each copy is a real run that writes: {user} in a word is its number, from 0, and COTENANT_TENANT, TMPDIR and "
    "MASTER_PORT differ for each, so that every copy can have paths of its own."
)
COUNTED = (
    "Counted are the steps of the first optimizer of torch that steps; else lines (--count-line); else each run of the "
    "whole command is one observation. Inside a program cotenant.measure counts."
)


def main(argv: Sequence[str]) -> int:
    """Run copies of a command. Returns 0 all passed, 1 one failed, 130 interrupted. Raises CotenantError."""
    ours, words = at_dashes(argv)
    given = parser().parse_words(ours)
    from cotenant.commands.suite_run import run_suite_of  # --help imports no module that launches

    if not words:
        raise CotenantError("No command stands behind --.", EXAMPLE)
    return run_suite_of(given, lambda machine: _options(given, words, bool(machine.accelerators)))


def parser() -> Parser:
    """Return the parser of `exec`."""
    parser = Parser(
        "exec",
        "Start copies of any command at once, each in its own slice, and measure what each keeps beside the others.",
        "\n".join(
            [
                f"The command stands behind --: {EXAMPLE}",
                COPIES,
                COUNTED,
                "After the measurement a program is ended: SIGTERM, and SIGKILL 10 s later.",
                "exit status: 0 passed, 1 failed, 2 wrong usage, 4 not isolated, 130 stopped",
            ]
        ),
    )
    parser.usage = "%(prog)s [flags] -- COMMAND [WORDS ...]"
    _add_counting(parser)
    add_slice_flags(parser)
    add = parser.add_argument_group("how it is measured").add_argument
    kinds = "what a copy has alone: in blocks of the same launch (blocks), in launches as long (whole), short, or none"
    add("--baseline", choices=BASELINES, default="blocks", metavar="KIND", help=kinds)
    add("--budget", type=duration, metavar="S", help="seconds a launch may measure")
    narrow = "end once half of every copy's 95 %% interval is at most this share of its median, as 1%%"
    add("--until-interval", type=share, metavar="SHARE", help=narrow)
    ready = "seconds until a copy has made its first steps, downloads included (default 600)"
    add("--ready-timeout", type=duration, default=READY_LIMIT_S, metavar="S", help=ready)
    add("--timeout", type=duration, default=TIMEOUT_S, metavar="S", help="seconds a launch may take (default 3600)")
    add("--finish", action="store_true", help="let programs go on to their own end after the measurement")
    _add_kept(parser)
    return parser


def _add_counting(parser: Parser) -> None:
    add = parser.add_argument_group("what is counted").add_argument
    add("--item", default="", metavar="NAME", help="what a step is called; `row`: count the rows of its batches")
    add("--items", type=_items, default=1.0, metavar="N", help="so many items are in a step, a line or a run")
    add("--count-line", type=_pattern, default="", metavar="REGEX", help="a line of output is a step: '^step (\\d+)'")
    ready = "count only behind a line like this, as a server's that it listens; with --count-line"
    add("--ready-line", type=_pattern, default="", metavar="REGEX", help=ready)
    add("--runs", type=int, default=10, metavar="N", help="runs of a command that does not step (default 10)")


def _add_kept(parser: Parser) -> None:
    kept = parser.add_argument_group("what is kept and printed")
    add = kept.add_argument
    add("--as", dest="name", default="", metavar="NAME", help="name of its records (default: the script's)")
    add("--outdir", type=place, metavar="DIR", help="where records go (default $BASE/output)")
    add("--uid", type=int, default=0, help="number of this repetition (default 0)")
    add("--resume", action="store_true", help="go on after the last finished launch of this --uid")
    add("--dry", action="store_true", help="every launch with its command; nothing runs")
    add("--verbose", action="store_true", help="every finding; with --dry each copy's slice, too")
    add(
        "--strict",
        nargs="?",
        const="invalid",
        choices=("invalid", "suspect"),
        help="an INVALID launch counts as failed",
    )
    add_format(kept)


def _pattern(text: str) -> str:
    try:
        re.compile(text.encode())
    except re.error as error:
        raise argparse.ArgumentTypeError(f"'{text}' is no regular expression: {error}") from None
    return text


def _items(text: str) -> float:
    try:
        items = float(text)
    except ValueError:
        items = 0.0
    if not 0 < items < float("inf"):
        raise argparse.ArgumentTypeError(f"'{text}' is no number of items")
    return items


def _options(given: argparse.Namespace, words: Sequence[str], has_devices: bool) -> Options:
    """Return the options of a suite of one job. Raises CotenantError for flags that make no sense."""
    from cotenant.commands.suite_options import AT_LEAST_S, SETTLE_S, paths_of
    from cotenant.isolation.runs import RunName
    from cotenant.launch.limits import Limits
    from cotenant.launch.start import Options
    from cotenant.suite.cells import Job
    from cotenant.suite.fields import checked_name
    from cotenant.suite.foreign import Foreign
    from cotenant.suite.jobfile import Suite

    if given.uid < 0:
        raise CotenantError(f"--uid {given.uid} is negative.", "Use --uid 0 or more.")
    if given.runs < 1:
        raise CotenantError(f"--runs {given.runs} is no number of runs.", "Count from 1.")
    if given.ready_line and not given.count_line:
        raise CotenantError("--ready-line says when to begin, and nothing what to count.", "Add --count-line REGEX.")
    foreign = Foreign(
        tuple(words), given.item, given.items, given.ready_line, given.count_line, given.runs, given.finish
    )
    name = checked_name(given.name or foreign.stem)
    job = Job(name, foreign.shown, (), "student", stem=name, foreign=foreign)
    run = RunName()
    return Options(
        suite=Suite("exec", Path.cwd() / "exec", (job,)),
        jobs=(job,),
        checkout=CHECKOUT,
        run=run,
        paths=paths_of(given.outdir, run),
        uid=given.uid,
        users=given.users,
        slices=given.slices,
        share=given.share,
        isolation=given.isolation,
        cgroup_base=given.cgroup_base,
        policy=given.plan,
        mems=given.mems,
        reserve_bytes=given.reserve,
        limits=Limits(
            timeout_s=given.timeout,
            ready_limit_s=given.ready_timeout,
            budget_s=given.budget,
            until_interval=given.until_interval,
            settle_s=SETTLE_S if has_devices else 0.0,
            at_least_s=AT_LEAST_S if has_devices and given.budget is None else 0.0,
        ),
        baseline="none" if given.isolation == "none" and given.baseline == "blocks" else given.baseline,
        resume=given.resume,
    )
