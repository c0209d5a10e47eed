"""`cotenant run`: flags to options, a suite run, a table."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from cotenant.commands.output import tell
from cotenant.commands.preview import dry_lines, show_lines
from cotenant.errors import EXIT_FAILED, EXIT_INTERRUPTED, EXIT_PASSED, CotenantError, did_you_mean
from cotenant.isolation.backend import RunName
from cotenant.isolation.choose import CHOICES
from cotenant.launch.cache import CACHE_POLICIES
from cotenant.launch.environment import SOURCE_ROOT
from cotenant.launch.places import Places
from cotenant.launch.start import Options
from cotenant.launch.suite import SuiteRun
from cotenant.machine.topology import Machine, discover
from cotenant.suite.jobfile import load, resolve_path
from cotenant.suite.select import select

CHECKOUT = SOURCE_ROOT.parent
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise CotenantError(f"{message[0].upper()}{message[1:]}.", "--help lists the flags.")


def main(argv: Sequence[str]) -> int:
    """Run a suite. Returns 0 all passed, 1 a job failed, 130 interrupted; raises CotenantError for the rest."""
    words = list(argv)
    split = words.index("--") if "--" in words else len(words)
    given = _parse(words[:split])
    options = _options(given, tuple(words[split + 1 :]))
    if given.show:
        tell("\n".join(show_lines(options.jobs)))
        return EXIT_PASSED
    run = SuiteRun(options)
    if given.dry:
        tell("\n".join(dry_lines(run.starts, run.chosen.backend.name)))
        return EXIT_PASSED
    tell("\n".join(run.heading()))
    report = run.run(tell)
    if report.records:
        from cotenant.report.terminal import print_suite

        print_suite(report.records, verbose=given.verbose)
    if report.interrupted:
        print(
            f"Interrupted by {report.interrupted}; the records so far are in {options.places.output}.",
            file=sys.stderr,
        )
        return EXIT_INTERRUPTED
    failed = [record for record in report.records if not record.completed]
    invalid = [record for record in report.records if record.invalid]
    return EXIT_FAILED if failed or (given.strict and invalid) else EXIT_PASSED


def _parse(words: Sequence[str]) -> argparse.Namespace:
    parser = _Parser(
        prog="run.sh",
        allow_abbrev=False,
        description="Launch every benchmark of a job file once per accelerator, all copies at once, each in its slice.",
        epilog="Arguments after -- override or extend every chosen cell's own: ./run.sh --name vae -- --repeat 5",
    )
    add = parser.add_argument
    add("--jobs", metavar="FILE", help="a job file, or the name of one in profiles/")
    add(
        "--name",
        action="append",
        default=[],
        metavar="NAMES",
        help="only these jobs: names, globs, comma lists",
    )
    add("--exclude", action="append", default=[], metavar="NAMES", help="not these jobs")
    add("--show", action="store_true", help="list the chosen jobs and stop")
    add("--dry", action="store_true", help="print each tenant's command, environment and slice, and stop")
    add("--verbose", action="store_true", help="say more: every finding of every record")
    add("--uid", type=int, default=0, help="number of this repetition of the suite (default 0)")
    add("--outdir", type=Path, help="where records go (default $BASE/output)")
    add("--users", type=int, help="tenants (default: one per accelerator, else at most two)")
    add(
        "--isolation",
        choices=CHOICES,
        default="auto",
        help="how slices are enforced; `require` refuses to degrade",
    )
    add("--no-cgexec", action="store_const", const="none", dest="isolation", help="as --isolation none")
    add("--no-nocache", action="store_true", help="accepted: no page-cache policy is the default")
    add(
        "--cache",
        choices=CACHE_POLICIES,
        default="none",
        help="page cache of a launch's input: left alone, bypassed, dropped or read before it (default none)",
    )
    add(
        "--on-oom",
        choices=("group", "process"),
        default="group",
        help="when the kernel kills a process for memory: end its tenant, or that process alone (default group)",
    )
    add(
        "--cgroup-base",
        metavar="PATH",
        help="parent of our cgroups in each hierarchy (default cotenant.<login>)",
    )
    add(
        "--plan",
        choices=("cores", "contiguous"),
        default="cores",
        help="whole cores first, or consecutive ids",
    )
    add(
        "--reserve",
        type=_bytes,
        metavar="BYTES",
        help="memory kept from tenants, K/M/G allowed (default max(1G, 3%%))",
    )
    add(
        "--timeout",
        type=float,
        default=3600.0,
        metavar="S",
        help="seconds one launch may take (default 3600)",
    )
    add("--singularity", metavar="IMG", help="run every command inside this image")
    add("--raise-error", action="store_true", help="stop after the first launch that fails")
    add("--strict", action="store_true", help="an INVALID launch counts as failed")
    given, unknown = parser.parse_known_args(list(words))
    if unknown:
        known = [name for action in parser._actions for name in action.option_strings]
        raise CotenantError(
            f"There is no flag '{unknown[0]}'.",
            did_you_mean(unknown[0].partition("=")[0], known)
            or "--help lists the flags; a benchmark's own stand after --.",
        )
    return given


def _bytes(text: str) -> int:
    unit = text[-1:].upper() if text[-1:].isalpha() else ""
    try:
        size = int(float(text.removesuffix(text[-1:]) if unit else text) * _UNITS[unit])
    except (ValueError, KeyError, OverflowError):
        raise argparse.ArgumentTypeError(f"'{text}' is no size such as 512M or 2G") from None
    if size < 0:
        raise argparse.ArgumentTypeError("a size cannot be negative")
    return size


def _options(given: argparse.Namespace, extra: tuple[str, ...]) -> Options:
    if given.uid < 0 or not given.timeout > 0:
        raise CotenantError("--uid must not be negative and --timeout must be positive.")
    path = resolve_path(given.jobs, [Path.cwd(), CHECKOUT]) if given.jobs else default_jobs(discover())
    suite = load(path)
    base = Path(os.environ.get("BASE") or "workspace").absolute()
    output = (given.outdir or Path(os.environ.get("OUTPUT_DIRECTORY") or base / "output")).absolute()
    data = Path(os.environ.get("DATA_DIRECTORY") or base / "data").absolute()
    run = RunName()
    return Options(
        suite=suite,
        jobs=select(suite.jobs, given.name, given.exclude),
        checkout=CHECKOUT,
        run=run,
        places=Places.of_run(base, data, output, run),
        uid=given.uid,
        users=given.users,
        isolation=given.isolation,
        cgroup_base=given.cgroup_base,
        policy=given.plan,
        reserve_bytes=given.reserve,
        timeout_s=given.timeout,
        singularity=given.singularity,
        cache=given.cache,
        on_oom=given.on_oom,
        raise_error=given.raise_error,
        extra=extra,
    )


def default_jobs(machine: Machine) -> Path:
    """Return the reference suite where there is an accelerator, and its CPU sizes where there is none."""
    return CHECKOUT / ("baselines.json" if machine.accelerators else "profiles/cpu.json")
