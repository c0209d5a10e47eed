"""Runs `cotenant compare --confirm`: the cells that came out FASTER or SLOWER are launched again on B's side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cotenant.checkout import CHECKOUT
from cotenant.commands.flags import at_dashes
from cotenant.commands.output import note, warn
from cotenant.commands.suite_flags import suite_parser
from cotenant.commands.suite_options import options_of
from cotenant.errors import CotenantError, did_you_mean
from cotenant.isolation.lock import SuiteLock, lock_path
from cotenant.launch.start import Options
from cotenant.launch.suite import SuiteRun
from cotenant.machine.facts import machine_facts
from cotenant.machine.topology import Machine, discover
from cotenant.report.progress import PlainView, Planned
from cotenant.results.decoded import Skipped, list_of, mapping_of, text_of
from cotenant.results.drawn import differences, setting_of
from cotenant.results.launches import LaunchRecords, difference_of, difference_words, launches_of
from cotenant.results.read import read_records
from cotenant.results.record_files import records_in
from cotenant.suite.cells import Job, expand

Launches = dict[str, list[LaunchRecords]]


def launch_again(
    place: Path, b: Launches, cells: Sequence[str], words: Sequence[str]
) -> tuple[Launches, list[str], str | None]:
    """Launch each cell of B as often as B did, all cells by turns, into a directory of its own; return its launches.

    `words` are flags of `run`. Also returns sentences on launches without a rate, and what cut it short, if anything
    did. Raises CotenantError where this is not the host, the devices and the software of B, or the work not B's.
    """
    machine = discover()
    options = _options(place, words, machine)
    jobs = _jobs(options, cells)
    _check_setting(place, cells, options, machine)
    SuiteRun(replace(options, jobs=tuple(jobs.values())), machine).check()
    with SuiteLock(lock_path()):
        return _launched_again(b, jobs, options, machine)


def _launched_again(
    b: Launches, jobs: Mapping[str, Job], options: Options, machine: Machine
) -> tuple[Launches, list[str], str | None]:
    cells = tuple(jobs)
    free_uid = 1 + max(launch.run_id for cell in cells for launch in b[cell])
    for turn in range(max(len(b[cell]) for cell in cells)):
        due = tuple(jobs[cell] for cell in cells if len(b[cell]) > turn)
        run = SuiteRun(replace(options, jobs=due, uid=free_uid + turn), machine)
        run.settle()
        if turn == 0:
            note("\n".join(run.heading()))
        report = run.run(note, PlainView([Planned(start.label) for start in run.starts], note))
        repeated, left_out = launches_of(read_records([options.paths.output]).frame)
        _check_work(b, repeated, cells)
        if report.interrupted:
            return repeated, left_out, report.interrupted
    for line in left_out:
        warn(line)
    return repeated, left_out, None


def _options(place: Path, words: Sequence[str], machine: Machine) -> Options:
    """Return the options of the runs, with an output directory in which nothing lies yet."""
    ours, others = at_dashes(words)
    description = "Flags of the runs that confirm: those B was run with."
    given = suite_parser("compare A B --confirm --", description).parse_words(ours)
    if given.name or given.exclude or given.uid:
        raise CotenantError("--confirm runs again what was flagged.", "Leave out --name, --exclude and --uid.")
    if not place.is_dir():
        raise CotenantError(f"{place} is no directory.", "--confirm needs all records of B, where a suite wrote them.")
    whole = place.resolve()
    given.outdir = (given.outdir or whole.with_name(f"{whole.name}.confirm")).resolve()
    if given.outdir.is_relative_to(whole):
        raise CotenantError(f"{given.outdir} lies in B, whose launches do not count again.", "Name another --outdir.")
    if given.outdir.exists() and (not given.outdir.is_dir() or any(given.outdir.iterdir())):
        raise CotenantError(f"{given.outdir} holds something already.", "Remove it, or add -- --outdir ANOTHER.")
    # A launch alone counts in no comparison.
    given.baseline = given.baseline or "none"
    return options_of(given, others, machine)


def _jobs(options: Options, cells: Sequence[str]) -> dict[str, Job]:
    """Return each cell as a job of that cell alone."""
    known = {
        cell.label: replace(job, stem=cell.label, args=tuple((key, (value,)) for key, value in cell.args))
        for job in options.jobs
        for cell in expand(job)
    }
    for cell in cells:
        if cell not in known:
            hint = did_you_mean(cell, known) or "Name B's own: -- --jobs FILE."
            raise CotenantError(f"{options.suite.path} has no job '{cell}', which is to be confirmed.", hint)
    return {cell: known[cell] for cell in cells}


def _check_setting(place: Path, cells: Sequence[str], options: Options, machine: Machine) -> None:
    """Raise CotenantError unless B ran on this host, with these devices and this software, and from a file so named."""
    now = _host_and_versions(machine_facts(machine, CHECKOUT))
    for record in records_in([place]):
        if isinstance(record, Skipped) or record.at("name") not in cells:
            continue
        suite = text_of(record.at("suite"))
        if suite not in ("", options.suite.name):
            raise CotenantError(
                f"B is of the suite {suite}, not {options.suite.name}.", "Name B's own: -- --jobs FILE."
            )
        if changes := differences(_host_and_versions(mapping_of(record.at("machine"))), now):
            raise CotenantError(f"This is not what B ran on: {'; '.join(changes)}.", "Confirm where B was measured.")


def _host_and_versions(machine: Mapping[str, Any]) -> dict[str, str]:
    names = [str(mapping_of(device).get("name")) for device in list_of(machine.get("accelerators"))]
    host = {"host": machine.get("hostname"), "processor": machine.get("model_name")}
    # A runner knows torch as it is installed, not as a tenant imported it.
    versions = setting_of({key: value for key, value in machine.items() if key != "torch"})
    known = {name: value for name, value in host.items() if isinstance(value, str) and value}
    return versions | known | {"accelerators": ", ".join(names) or "none"}


def _check_work(b: Launches, repeated: Launches, cells: Sequence[str]) -> None:
    for cell in cells:
        works = [launch.work for launches in (b, repeated) for launch in launches.get(cell, [])]
        if (difference := difference_of(works)) is not None:
            raise CotenantError(
                f"What ran again is not what B ran: {cell}: {difference_words(*difference)}.",
                "Give the flags B was run with after --.",
            )
