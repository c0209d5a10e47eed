"""`list`: shows the jobs of a suite from their benchmarks' sources and their last launches. Nothing is started."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cotenant.checkout import CHECKOUT, output_directory
from cotenant.choices import FORMS
from cotenant.commands.flags import Parser, add_format, given_path
from cotenant.commands.output import tell_view
from cotenant.commands.suite_flags import add_jobs, jobs_path
from cotenant.errors import EXIT_PASSED, CotenantError
from cotenant.launch.command import resolve_command
from cotenant.machine.topology import discover
from cotenant.report.catalogue import CatalogueEntry, catalogue_view
from cotenant.results.as_read import ReadRecord
from cotenant.results.last import LastLaunch, last_launches
from cotenant.results.record import record_name
from cotenant.results.record_files import records_in
from cotenant.suite.cells import Job, expand
from cotenant.suite.jobfile import Suite, load, select
from cotenant.suite.mixes import Mix
from cotenant.suite.task_source import TaskSource, source_of, task_of

_DATA = re.compile(r"\$(?:DATA_DIRECTORY|\{DATA_DIRECTORY\})/?(\S*)")


def main(argv: Sequence[str]) -> int:
    """Print the jobs. Returns 0; raises CotenantError for a wrong job file, or a name that no job in it has."""
    given = parser().parse_words(argv)
    suite = load(jobs_path(given.jobs, discover()))
    output = given.outdir or output_directory()
    records = records_in([output]) if output.is_dir() else ()
    last = last_launches((read.record for read in records if isinstance(read, ReadRecord)), suite.name)
    chosen = select(suite.entries, given.name, given.exclude)
    entries = [_entry(entry, suite, last) if isinstance(entry, Job) else _of_mix(entry, last) for entry in chosen]
    tell_view(catalogue_view(suite.name, entries, str(output)), given.format)
    return EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `list`."""
    parser = Parser("list", "List the jobs of a suite: what each trains, what its rate counts, and how long it takes.")
    add_jobs(parser.add_argument)
    last = "where the last launches are (default: the workspace's output)"
    parser.add_argument("--outdir", type=given_path, metavar="DIR", help=last)
    add_format(parser, FORMS)
    return parser


def _entry(job: Job, suite: Suite, last: Mapping[str, LastLaunch]) -> CatalogueEntry:
    source = _source(job, suite)
    launches = [last.get(cell.label) for cell in expand(job)]
    ended = [launch for launch in launches if launch is not None]
    counts = {launch.parameters for launch in ended}
    texts = [text for key, values in job.args for text in (key, *values) if isinstance(text, str)]
    data = dict.fromkeys(match[1] or "." for text in texts for match in _DATA.finditer(text))
    return CatalogueEntry(
        job=job.stem,
        group=job.group,
        cells=len(launches),
        item=source.item,
        parameters=counts.pop() if len(counts) == 1 else None,
        data=", ".join(data),
        seconds=sum(launch.seconds for launch in ended) if len(ended) == len(launches) else None,
        trains=source.trains,
        cmd=job.cmd,
    )


def _of_mix(mix: Mix, last: Mapping[str, LastLaunch]) -> CatalogueEntry:
    first = mix.apart[0] if mix.pairs else mix
    launch = last.get(record_name(mix.labels[0], solo=False, mix=first.name))
    return CatalogueEntry(
        job=mix.name,
        group="student",
        cells=1,
        item="",
        parameters=None,
        data="",
        seconds=None if launch is None else launch.seconds,
        trains=f"{', '.join(dict.fromkeys(mix.labels) if mix.pairs else mix.labels)} beside each other",
        cmd="",
    )


def _source(job: Job, suite: Suite) -> TaskSource:
    """Return the description in the source of a job's benchmark; empty for other programs, and for a missing file."""
    try:
        task = task_of(resolve_command(job.cmd, job.name, suite.path, CHECKOUT))
    except CotenantError:
        return TaskSource()
    return TaskSource() if task is None else source_of(task)
