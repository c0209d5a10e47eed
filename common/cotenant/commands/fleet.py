"""`cotenant fleet run`: a suite on each living node of a Ray cluster, and all records in one directory."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence

from cotenant.checkout import PROGRAM, base_directory
from cotenant.commands.flags import Parser, at_dashes, given_path
from cotenant.commands.given import SuiteFlags
from cotenant.commands.output import note
from cotenant.commands.run import parser as run_parser
from cotenant.commands.suite_flags import jobs_path
from cotenant.errors import EXIT_FAILED, EXIT_PASSED, CotenantError
from cotenant.machine.topology import discover
from cotenant.removed import removed
from cotenant.results.store import prepare_directory
from cotenant.suite.jobfile import load, select
from cotenant.text import listed


def main(argv: Sequence[str]) -> int:
    """Run a suite on each node. Returns 0 if all jobs passed on all nodes, else 1; raises CotenantError."""
    ours, extra = at_dashes(argv)
    if ours and not ours[0].startswith("-"):
        word, *ours = ours
        if word != "run":
            raise CotenantError(f"A fleet has no '{word}'.", removed(word, "fleet") or f"It is {PROGRAM} fleet run.")
    given, words = parser().parse_known_args(ours)
    for word in words:
        if word.startswith("-") and (sentence := removed(word.partition("=")[0], "fleet")):
            raise CotenantError(f"The flag '{word}' was removed.", sentence)
    of_run = SuiteFlags.of(run_parser().parse_words(words))
    path, output = jobs_path(of_run.jobs or "baselines", discover()), given.outdir.absolute()
    select(load(path).entries, of_run.name, of_run.exclude)
    from cotenant.fleet.cluster import RayCluster, job_file
    from cotenant.fleet.run import run_everywhere

    prepare_directory(output, "--outdir names another directory.")
    jobs, files = job_file(path)
    # Ray prints lines about nodes that die.
    with contextlib.redirect_stdout(sys.stderr), contextlib.closing(RayCluster(given.address)) as cluster:
        note(f"{path.stem} on {listed(cluster.nodes, 12)}; records: {output}")
        line = ["run", *words, "--jobs", jobs, "--outdir", "output", *(["--", *extra] if extra else [])]
        passed = run_everywhere(cluster, base_directory() / "fleet", line, files, output, note)
    note(f"The hosts side by side: {PROGRAM} report {output} --table hosts")
    return EXIT_PASSED if passed else EXIT_FAILED


def parser() -> Parser:
    """Return the parser of `fleet run`, without the flags of a run."""
    parser = Parser(
        "fleet run",
        "Run a suite on each living node of a Ray cluster at once, and gather the records: a folder a node. It also "
        "takes the flags of a run, as --jobs and --budget; a node works below this host's BASE. Arguments after -- go "
        "to the benchmarks.",
        "Exit status: 0 if all jobs passed on all nodes, else 1.",
    )
    add = parser.add_argument
    add("--address", default="auto", metavar="HOST:PORT", help="the Ray cluster (default auto: this host's)")
    outdir = "where records are collected (default $BASE/fleet-records)"
    add("--outdir", type=given_path, metavar="DIR", default=base_directory() / "fleet-records", help=outdir)
    return parser
