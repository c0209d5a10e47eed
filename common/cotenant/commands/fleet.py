"""`cotenant fleet`: the suite on every node of a cluster, and a verdict on each node."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from cotenant.checkout import CHECKOUT, PROGRAM
from cotenant.commands.flags import Parser, add_format, place
from cotenant.commands.output import tell, tell_grid, warn
from cotenant.commands.records import no_record, spooled
from cotenant.errors import EXIT_FAILED, EXIT_PASSED, CotenantError, did_you_mean

RESOURCES = CHECKOUT / "profiles" / "resources.csv"
EPILOG = "Exit status: 0 where every node is accepted, else 1. How a verdict is made: docs/fleet.md"


def main(argv: Sequence[str]) -> int:
    """Run a fleet, or report on one. Returns 0 where every node is accepted, else 1; raises CotenantError."""
    deeds: dict[str, Callable[[argparse.Namespace], int]] = {"report": _report}
    if not argv or argv[0] in ("-h", "--help"):
        tell(f"usage: {PROGRAM} fleet report [flags] DIR ...\n\nEach has --help.")
        return EXIT_PASSED
    if argv[0] not in deeds:
        hint = did_you_mean(argv[0], deeds) or f"It is `{PROGRAM} fleet report DIR`."
        raise CotenantError(f"A fleet has no '{argv[0]}'.", hint)
    return deeds[argv[0]](parsers()[argv[0]].parse_words(argv[1:]))


def parsers() -> dict[str, Parser]:
    """Return the parser of `fleet report`."""
    report = Parser(
        "fleet report",
        "A verdict on each node of a fleet, from records of all nodes: those of a node in a folder of its name.",
        EPILOG,
    )
    add = report.add_argument
    where = "what was gathered: a directory with a folder for each node, or an export, whose nodes are the hosts"
    add("places", metavar="DIR", type=place, nargs="+", help=where)
    add_report_flags(report)
    return {"report": report}


def add_report_flags(parser: Parser) -> None:
    """Add the flags that say what a report is of, and how it is printed."""
    add = parser.add_argument
    add("--nodes", type=Path, metavar="FILE", help="the nodes there should be, a name a line: others are ABSENT")
    what = "NAME=GLOBS of nodes; given twice, the two groups are compared"
    add("--group", metavar="NAME=NODES", action="append", default=[], help=what)
    leaning = "which job leans on which resource (default profiles/resources.csv)"
    add("--resources", type=Path, metavar="FILE", default=RESOURCES, help=leaning)
    add("--html", type=Path, metavar="FILE", help="write one page that works offline")
    add("--parquet", type=Path, metavar="FILE", help="write a row for each node, job and repetition")
    add_format(parser, ("md", "csv", "json"))


def _report(given: argparse.Namespace) -> int:
    return report(given.places, given)


def report(places: Sequence[Path], given: argparse.Namespace) -> int:
    """Judge what lies in these places, print it, and return the exit status."""
    # What reads records is heavier than the parser needs.
    from cotenant.fleet.gathered import gather
    from cotenant.fleet.inventory import minorities
    from cotenant.fleet.judgement import judge
    from cotenant.fleet.manifest import expected_of, read_manifest
    from cotenant.fleet.resources import read_resources
    from cotenant.report.fleet import cells, fleet_grids, verdict_grid
    from cotenant.report.renderers import show
    from cotenant.results.exports import write_parquet
    from cotenant.results.read import read_records
    from cotenant.results.store import whole, write_named

    resources = read_resources(given.resources)
    manifests = [manifest for each in places if (manifest := read_manifest(each)) is not None]
    expected = {name: node for manifest in manifests for name, node in manifest.nodes.items()}
    if given.nodes is not None:
        expected = expected_of(given.nodes, expected)
    records = read_records(spooled(places))
    if not len(records.table) and not expected:
        raise no_record(places)
    gathered = gather(places, records, resources)
    judged, odd = judge(gathered, expected), minorities(gathered)
    groups = None
    if given.group:
        from cotenant.report.fleet_groups import chosen, groups_grid  # scipy.stats takes a second to import

        groups = groups_grid(chosen(given.group, gathered), gathered)
    if given.html is not None:
        from cotenant.report.fleet_page import fleet_page  # matplotlib takes a second to import

        title = manifests[0].suite if manifests else places[0].resolve().name
        content = fleet_page(f"Fleet: {title}", judged, odd, groups).encode(errors="replace")
        write_named(given.html, content, "--html names another file.")
        warn(f"{given.html} is written.")
    if given.parquet is not None:
        with whole(given.parquet, "--parquet names another file.") as file:
            write_parquet(cells(judged).lazy(), file)
        warn(f"{given.parquet} is written.")
    if given.format == "text":
        show([*fleet_grids(judged, odd), *([groups] if groups is not None else [])])
    else:
        tell_grid(verdict_grid(judged, odd), given.format)
    return EXIT_PASSED if judged.accepted else EXIT_FAILED
