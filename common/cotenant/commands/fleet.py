"""`cotenant fleet`: runs the suite on every node of a cluster, and gives a verdict on each node."""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cotenant.api.records import no_record
from cotenant.checkout import CHECKOUT, base_directory
from cotenant.commands.flags import Parser, add_format, at_dashes, place, subcommand
from cotenant.commands.output import note, tell_grid, warn, write_page
from cotenant.commands.records import spooled
from cotenant.commands.suite_flags import HINT, add_jobs, jobs_path
from cotenant.errors import EXIT_FAILED, EXIT_PASSED, CotenantError
from cotenant.fleet.resources import read_resources
from cotenant.fleet.tiers import TIERS, Tier, tier_of
from cotenant.machine.topology import discover
from cotenant.suite.cells import Job
from cotenant.suite.jobfile import load, select
from cotenant.text import listed

if TYPE_CHECKING:
    from cotenant.fleet.judgement import Judged
    from cotenant.fleet.run import FleetPlan

RESOURCES = CHECKOUT / "profiles" / "resources.csv"
BEHIND = "Flags of a run stand behind --, those of benchmarks behind another: -- --isolation v2 -- --batch-size 8."
EPILOG = "Exit status: 0 where every node is accepted, else 1. How a verdict is made: docs/fleet.md"


def main(argv: Sequence[str]) -> int:
    """Run a fleet, or report on one. Returns 0 if every node is accepted, else 1; raises CotenantError."""
    ours, others = at_dashes(argv)
    command = subcommand("fleet", {"run": "[flags] [-- flags of a run]", "report": "[flags] DIR ..."}, ours)
    if command is None:
        return EXIT_PASSED
    given = parsers()[command].parse_words(ours[1:])
    if given.group and given.format != "text" and given.html is None:
        raise CotenantError(f"--format {given.format} holds no groups.", "--group goes with text and --html.")
    return _run(given, others) if command == "run" else _report(given, others)


def parsers() -> dict[str, Parser]:
    """Return the parsers of `fleet run` and `fleet report`."""
    run = Parser(
        "fleet run",
        "Run a suite on every node of a Ray cluster at once, gather the records, run outliers again, and judge each "
        "node. A second start with the same flags goes on where the first ended.",
        f"Flags of a run stand behind --, such as --isolation, and behind another -- those of benchmarks.\n{EPILOG}",
    )
    add = run.add_argument
    add("--address", default="auto", metavar="HOST:PORT", help="the Ray cluster (default auto: that of this host)")
    add_jobs(add)
    add("--tier", choices=TIERS, help="measured time on a node (default: as much as the job file says); soak is a day")
    add("--uid", type=int, default=0, help="number of the first repetition (default 0)")
    add("--rounds", type=int, default=3, metavar="N", help="how often outliers run again (default 3; 0: never)")
    add(
        "--outdir",
        type=place,
        metavar="DIR",
        help="where records come to, a folder a node (default $BASE/fleet-records)",
    )
    below = "where nodes work, each in a folder of its own below (default the BASE of this host)"
    add("--node-base", type=place, metavar="DIR", help=below)
    add_report_flags(run)
    report = Parser(
        "fleet report",
        "A verdict on each node of a fleet, from records of all nodes: those of a node in a folder of its name.",
        EPILOG,
    )
    add = report.add_argument
    where = "what was gathered: a directory with a folder for each node, or an export, whose nodes are the hosts"
    add("places", metavar="DIR", type=place, nargs="+", help=where)
    add_report_flags(report)
    return {"run": run, "report": report}


def add_report_flags(parser: Parser) -> None:
    """Add the flags that choose the records of a report, and how it is printed."""
    add = parser.add_argument
    add("--nodes", type=Path, metavar="FILE", help="the nodes there should be, a name a line: others are ABSENT")
    what = "NAME=GLOBS of nodes; given twice, the two groups are compared"
    add("--group", metavar="NAME=NODES", action="append", default=[], help=what)
    leaning = "which job leans on which resource (default profiles/resources.csv)"
    add("--resources", type=Path, metavar="FILE", default=RESOURCES, help=leaning)
    add("--html", type=Path, metavar="FILE", help="write one page that works offline")
    add("--parquet", type=Path, metavar="FILE", help="write a row for each node, job and repetition")
    add_format(parser, ("md", "csv", "json"))


def _report(given: argparse.Namespace, others: tuple[str, ...]) -> int:
    if others:
        raise CotenantError("Words behind -- are flags of a run.", "Leave them out: a report runs nothing.")
    return _print(_judged(given.places, given), given.places, given)


def _run(given: argparse.Namespace, others: tuple[str, ...]) -> int:
    from cotenant.fleet.cluster import RayCluster
    from cotenant.fleet.run import FleetRun

    plan, tier = _plan(given, others)
    # Ray prints lines on dying nodes, and standard output may be a document.
    with contextlib.redirect_stdout(sys.stderr), contextlib.closing(RayCluster(given.address)) as cluster:
        fleet, places = FleetRun(plan, cluster, note), [plan.output]
        note(f"{plan.suite}: {listed(cluster.nodes, 12)}; records: {plan.output}")
        after = given.uid + tier.repetitions
        for uid in range(given.uid, after):
            fleet.repetition(uid, list(cluster.nodes))
        judged = _judged(places, given)
        hardware = {name: node.hardware for name, node in judged.gathered.nodes.items()}
        names = fleet.confirming(judged.suspects, hardware, random.Random()) if given.rounds > 0 else []
        if names:
            note(f"again, {given.rounds} times: {listed(names, 12)}")
            for uid in range(after, after + given.rounds):
                fleet.repetition(uid, names)
            judged = _judged(places, given)
    return _print(judged, places, given)


def _plan(given: argparse.Namespace, others: tuple[str, ...]) -> tuple[FleetPlan, Tier]:
    """Return the command that every node is to run. Raises CotenantError for a wrong job file, or no job."""
    from cotenant.fleet.orders import job_file
    from cotenant.fleet.run import FleetPlan

    flags, extra = at_dashes(others)
    _check_flags(flags)
    path = jobs_path(given.jobs or "baselines", discover())
    suite = load(path)
    entries = select(suite.entries, given.name, given.exclude)
    tier = tier_of(
        given.tier, tuple(each for each in entries if isinstance(each, Job)), read_resources(given.resources)
    )
    if not tier.jobs:
        raise CotenantError(
            "There is no job to run on a node.", "--name and --exclude choose jobs, and mixes are none."
        )
    jobs, files = job_file(path, suite.name)
    budget = [] if tier.budget_s is None else ["--budget", f"{tier.budget_s:.1f}"]
    names = [word for job in tier.jobs for word in ("--name", job.name)]
    # Losses are compared between nodes after equal work: to settle for a time may take any number of steps.
    words = ["--jobs", jobs, *names, "--settle", "0", *budget, *flags]
    base = (given.node_base or base_directory()).absolute()
    plan = FleetPlan(
        suite=suite.name,
        tier=given.tier or "",
        words=words,
        extra=extra,
        base=base,
        output=(given.outdir or base_directory() / "fleet-records").absolute(),
        files=files,
    )
    return plan, tier


def _check_flags(flags: Sequence[str]) -> None:
    """Raise CotenantError here, once, for a word that is no flag of a run."""
    from cotenant.commands.run import parser

    try:
        given = parser().parse_words(flags)
    except CotenantError as error:
        raise CotenantError(error.sentence, BEHIND if error.remedy == HINT else error.remedy) from error
    if given.repetitions is not None:
        raise CotenantError("How often a fleet repeats a run is its tier's.", "Leave out --repetitions.")


def _judged(places: Sequence[Path], given: argparse.Namespace) -> Judged:
    """Return the verdicts on the records in these places. Raises CotenantError without records."""
    # Imported here, since the parser does not need the modules that read records.
    from cotenant.fleet.gathered import gather
    from cotenant.fleet.judgement import judge
    from cotenant.fleet.manifest import expected_of, read_manifest
    from cotenant.results.read import read_records

    resources = read_resources(given.resources)
    manifests = [manifest for each in places if (manifest := read_manifest(each)) is not None]
    expected = {name: node for manifest in manifests for name, node in manifest.nodes.items()}
    if given.nodes is not None:
        expected = expected_of(given.nodes, expected)
    records = read_records(spooled(places))
    if not len(records.table) and not expected:
        raise no_record(places)
    return judge(gather(places, records, resources), expected)


def _print(judged: Judged, places: Sequence[Path], given: argparse.Namespace) -> int:
    """Print the verdicts, write the requested files, and return the exit status."""
    from cotenant.fleet.inventory import minorities
    from cotenant.report.fleet import cells, inventory_grid, matrix_grid, verdict_grid
    from cotenant.report.renderers import show
    from cotenant.results.exports import write_parquet
    from cotenant.results.store import whole

    odd, groups = minorities(judged.gathered), []
    if given.group:
        from cotenant.report.fleet_groups import chosen, groups_grid  # scipy.stats takes a second to import

        groups = [groups_grid(chosen(given.group, judged.gathered.nodes), judged.gathered)]
    if given.html is not None:
        from cotenant.report.fleet_page import fleet_page  # matplotlib takes a second to import

        write_page(given.html, fleet_page(f"Fleet: {places[0].resolve().name}", judged, odd, groups))
    if given.parquet is not None:
        with whole(given.parquet, "--parquet names another file.") as file:
            write_parquet(cells(judged).lazy(), file)
        warn(f"{given.parquet} is written.")
    if given.format == "text":
        matrices = (matrix_grid(of, judged) for of in judged.classes)
        show([verdict_grid(judged), *matrices, inventory_grid(odd), *groups])
    else:
        tell_grid(verdict_grid(judged, odd), given.format)
    return EXIT_PASSED if judged.accepted else EXIT_FAILED
