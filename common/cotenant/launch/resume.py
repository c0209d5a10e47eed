"""Resumes a suite that ended early: finds its finished launches and their records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import msgspec

from cotenant.confidential import arguments_without, is_secret, words_without
from cotenant.errors import CotenantError
from cotenant.files import content_of
from cotenant.isolation.slice import Slice
from cotenant.launch.command import callers_python
from cotenant.launch.output import Output
from cotenant.launch.planned import PlannedLaunch, Program
from cotenant.launch.start import Options
from cotenant.machine.facts import installed
from cotenant.procfs import format_list
from cotenant.results.journal import ARGUMENTS, Journal, Launched, Started, now, read_journal
from cotenant.results.record import Record, restored
from cotenant.results.superseded import SUPERSEDED
from cotenant.suite.task_source import harness_version, task_of, version_of
from cotenant.text import listed, many

SET_ASIDE = ".unfinished"
"""The suffix of a record whose launch did not end, so that no reader takes it for a record."""
SHOWN = 24
"""Differences are shown with values of at most this many letters."""


@dataclass(frozen=True, slots=True)
class ResumeState:
    """The finished part of a resumed suite: the keys of its finished launches, and their records in order.

    `lost` are the names of records that are gone, or cannot be read.
    """

    finished: frozenset[str] = frozenset()
    records: list[Record] = field(default_factory=list)
    sentences: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


def begin(options: Options, starts: Sequence[PlannedLaunch], backend: str, host: str, kept: Output) -> ResumeState:
    """Write the start of a suite into its directory's journal; with `--resume` return the state to continue from.

    Raises CotenantError if the run that began there had other conditions, or the journal is damaged.
    """
    before = earlier(options, starts, backend, host) if options.resume else None
    started = Started(
        suite=options.suite.name,
        uid=options.uid,
        host=host,
        time=now(),
        launches=tuple(start.key for start in starts),
        conditions=conditions_of(options, starts, backend),
        resumed=before is not None,
    )
    kept.journal(started)
    if before is not None:
        return before
    anew = f"Repetition {options.uid} has not begun in {options.paths.output}: it begins now."
    return ResumeState(sentences=(anew,) if options.resume else ())


def earlier(options: Options, starts: Sequence[PlannedLaunch], backend: str, host: str) -> ResumeState | None:
    """Return the finished part of a repetition that has begun in its directory; None if it has not begun.

    Records of a launch that did not end are set aside. Raises CotenantError as `begin` does.
    """
    journal, start = begun(options, starts, backend, host)
    return None if start is None else _progress(journal, start, starts, options.paths.output)


def repetitions_begun(options: Options, host: str) -> int:
    """Return the number of a suite's repetitions that one run began: in order, each later than the one before."""
    journal, before = read_journal(options.paths.output), ""
    for number in range(options.repetitions):
        start = journal.last_start(options.suite.name, options.uid + number, host)
        if start is None or start.time < before:
            return number
        before = start.time
    return options.repetitions


def begun(options: Options, starts: Sequence[PlannedLaunch], backend: str, host: str) -> tuple[Journal, Started | None]:
    """Return a directory's journal and a repetition's last start there. Raises CotenantError as `begin` does."""
    journal = read_journal(options.paths.output)
    start = journal.last_start(options.suite.name, options.uid, host)
    if start is not None:
        conditions = conditions_of(options, starts, backend) | {"host": host}
        _check_alike(start.conditions | {"host": start.host}, conditions, options.uid)
    return journal, start


def conditions_of(options: Options, starts: Sequence[PlannedLaunch], backend: str) -> dict[str, str]:
    """Return the conditions that decide how a launch runs, under names that users know."""
    work = [
        [start.key, *(part for program in programs for part in _work_of(program))]
        for start in starts
        for programs in [start.programs if start.mix else start.programs[:1]]
    ]
    slices = dict.fromkeys((spec.slice.tenant, _slice_words(spec.slice)) for start in starts for spec in start.specs)
    reserve = () if options.reserve_bytes is None else (f"{options.reserve_bytes} bytes in reserve",)
    limits, commands = options.limits, {program.command for start in starts for program in start.programs}
    sources = [version_of(task) for task in map(task_of, sorted(commands)) if task is not None]
    return {
        "the jobs": hashlib.sha256(json.dumps(work).encode()).hexdigest(),
        ARGUMENTS: json.dumps(words_without(options.typed)),
        "the slices": "; ".join([*(words for _, words in slices), *reserve]),
        "isolation": backend,
        "--share": str(options.share),
        "--baseline": options.baseline,
        "--nnodes": str(options.cluster.nodes if options.cluster else 1),
        "the image": str(options.image),
        "limits and budgets": json.dumps({**limits.policies(), "timeout": limits.timeout_s}, sort_keys=True),
        "the benchmarks' sources": hashlib.sha256("".join(sources).encode()).hexdigest(),
        "cotenant.bench": harness_version(),
        **_software(options, starts),
    }


def _software(options: Options, starts: Sequence[PlannedLaunch]) -> dict[str, str]:
    """Return the versions that decide rates: for commands of `exec` the caller's Python's, else ours."""
    commands = [program.cell.job.foreign for start in starts for program in start.programs]
    names = dict.fromkeys(foreign.words[0] for foreign in commands if foreign is not None)
    if not names:
        return installed()
    # An image does not use the caller's Python.
    return {} if options.image is not None else {"the Python of the command": "; ".join(map(callers_python, names))}


def _slice_words(slice_: Slice) -> str:
    """Return a slice's processors, its memory's nodes and its devices; not its bytes, which may change with a boot."""
    devices = [f"{device.name} {device.index}" for device in slice_.accelerators]
    return ", ".join([f"{format_list(slice_.processors)} on node {format_list(slice_.nodes)}", *devices])


def _work_of(program: Program) -> list[object]:
    """Return a program's command, its arguments and variables without secrets, which do not change the work, the
    batch size from the table of sizes, and the words and the counting of a program of `exec`."""
    job, size = program.cell.job, program.size
    given = [[*arguments_without(dict(pairs), hides=is_secret).items()] for pairs in (program.cell.args, job.env)]
    counted = [] if job.foreign is None else [[*job.foreign.arguments.values(), *job.foreign.counting.values()]]
    return [job.cmd, *given, None if size is None else size.batch_size, *counted]


def _check_alike(before: dict[str, str], today: dict[str, str], uid: int) -> None:
    other = [
        name if old is None or max(len(old), len(value)) > SHOWN else f"{name} ({old}, now {value})"
        for name, value in today.items()
        if (old := before.get(name)) != value
    ]
    if other:
        raise CotenantError(
            f"Repetition {uid} began with other conditions: {listed(other)}.",
            "Give the flags it began with, or begin anew: with another --uid, or --outdir.",
        )


def _progress(journal: Journal, start: Started, starts: Sequence[PlannedLaunch], output: Path) -> ResumeState:
    finished = {launch.label: launch for launch in journal.launches_since(start) if launch.finished}
    # These include other hosts' launches: they may run the same repetition into the same directory.
    ended = [entry for entry in journal.entries if isinstance(entry, Launched) and entry.finished]
    aside = _set_aside({name for launch in ended for name in launch.records}, start, output)
    to_come = sum(launch.key not in finished for launch in starts)
    done = many(len(finished), "launch")
    sentences = [f"Going on with repetition {start.uid}, begun {start.time[:19]}Z: {done} done, {to_come} to come."]
    if aside:
        sentences.append(f"Records of a launch that did not end: {many(len(aside), 'file')}, now *{SET_ASIDE}.")
    names = [name for launch in finished.values() for name in launch.records]
    records = {name: _record(output / name) or _record(output / (name + SUPERSEDED)) for name in names}
    lost = tuple(name for name, record in records.items() if record is None)
    if lost:
        gone = f"{many(len(lost), 'record')} of these launches cannot be read, which are not made again"
        sentences.append(f"{gone}: {listed(lost, 3)}. A run of their jobs without --resume has new ones.")
    there = [record for record in records.values() if record is not None]
    return ResumeState(frozenset(finished), there, tuple(sentences), lost)


def _set_aside(kept: Collection[str], start: Started, output: Path) -> list[Path]:
    """Rename the records that this repetition has written here since its start, except those in `kept`.

    Records of another host stay: their launch may have ended just now, with its line in the journal still to come.
    """
    aside = []
    for path in sorted(output.glob(f"*.R{start.uid}.D*.json")):
        record = None if path.name in kept else _record(path)
        if record is None or (record.suite, record.hostname) != (start.suite, start.host):
            continue
        if datetime.fromisoformat(record.start_time) >= datetime.fromisoformat(start.time):
            aside.append(path.rename(path.with_name(path.name + SET_ASIDE)))
    return aside


def _record(path: Path) -> Record | None:
    """Return a record; None if it cannot be read, or its times are not in the runner's form."""
    try:
        record = restored(content_of(path))
        times = [datetime.fromisoformat(text) for text in (record.suite_start_time, record.start_time)]
    except (OSError, msgspec.MsgspecError, ValueError):
        return None
    return record if all(time.tzinfo is not None for time in times) else None
