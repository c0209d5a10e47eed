"""Runs `cotenant compare --confirm`: launches the cells judged FASTER or SLOWER again, A and B by turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cotenant.api.comparing import Launches
from cotenant.checkout import CHECKOUT
from cotenant.commands.flags import at_dashes
from cotenant.commands.output import note, warn
from cotenant.commands.suite_flags import suite_parser
from cotenant.commands.suite_options import options_of
from cotenant.errors import CotenantError, did_you_mean
from cotenant.isolation.lock import SuiteLock, lock_path
from cotenant.launch.heading import heading
from cotenant.launch.prepared import PreparedSuite
from cotenant.launch.start import Options
from cotenant.launch.suite import SuiteRun
from cotenant.machine.facts import machine_facts
from cotenant.machine.topology import Machine, discover
from cotenant.report.progress import PlainView, Planned
from cotenant.results.decoded import Skipped, list_of, mapping_of
from cotenant.results.drawn import differences, setting_of
from cotenant.results.launches import difference_of, difference_words, launches_of
from cotenant.results.read import read_records
from cotenant.results.record_files import records_in
from cotenant.suite.cells import Job, expand
from cotenant.suite.duets import BETWEEN, words_of_sides

USAGE = f"-- FLAGS OF A {BETWEEN} FLAGS OF B launches both by turns."


@dataclass(slots=True)
class SideAgain:
    """One side that is launched again: `name` is A or B, and `jobs` has a job for each cell of its `launches`.

    `anew` are its new launches; `left_out` has a sentence on each without a rate.
    """

    name: str
    launches: Launches
    options: Options
    jobs: Mapping[str, Job]
    anew: Launches = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)


def launch_again(
    a: tuple[Path, Launches], b: tuple[Path, Launches], cells: Sequence[str], words: Sequence[str]
) -> tuple[list[Launches], list[str], str | None]:
    """Launch each cell of both sides as often as before, by turns; return the launches of A and of B.

    `words` are the flags of `run` for A, BETWEEN, and those for B; each side has a directory of its own. Without
    BETWEEN they are B's, and A keeps its old launches. Also returns sentences on launches without a rate, and the
    reason for an early end, if any. Raises CotenantError if the host, the devices, the software or the work differ from
    the side's.
    """
    machine = discover()
    if BETWEEN in words:
        of_a, of_b = words_of_sides(words, "--confirm", USAGE)
        sides = [_side("A", *a, cells, of_a, machine), _side("B", *b, cells, of_b, machine)]
    else:
        warn(f"A is not launched again: its old launches judge the new ones of B. {USAGE}")
        sides = [_side("B", *b, cells, words, machine)]
    places = {side.options.paths.output for side in sides}
    if len(places) < len(sides):
        raise CotenantError(f"A and B would write into {min(places)}.", "Give each side an --outdir of its own.")
    for side in sides:
        PreparedSuite(replace(side.options, jobs=tuple(side.jobs.values())), machine).check()
    with SuiteLock(lock_path()):
        cut_by = _launch_by_turns(sides, machine)
    left_out = [line for side in sides for line in side.left_out]
    if cut_by is None:
        warn(*left_out)
    return [sides[0].anew if len(sides) > 1 else a[1], sides[-1].anew], left_out, cut_by


def _launch_by_turns(sides: Sequence[SideAgain], machine: Machine) -> str | None:
    """Launch, B first in every other turn, so that drifts of the machine affect both sides alike; return the reason for
    an early end, if any."""
    for turn in range(max(len(side.launches[cell]) for side in sides for cell in side.jobs)):
        for side in sides[:: 1 if turn % 2 == 0 else -1]:
            due = tuple(job for cell, job in side.jobs.items() if len(side.launches[cell]) > turn)
            if not due:
                continue
            uid = 1 + turn + max(launch.run_id for cell in side.jobs for launch in side.launches[cell])
            suite = PreparedSuite(replace(side.options, jobs=due, uid=uid), machine)
            suite.settle()
            if turn == 0:
                note("\n".join(heading(suite)))
            view = PlainView([Planned(start.label) for start in suite.starts], note)
            cut_by = SuiteRun(suite, note, view).run().interrupted
            side.anew, side.left_out = launches_of(read_records([side.options.paths.output]).frame)
            _check_work(side)
            if cut_by is not None:
                return cut_by
    return None


def _side(
    name: str, place: Path, launches: Launches, cells: Sequence[str], words: Sequence[str], machine: Machine
) -> SideAgain:
    """Return the side whose records lie in `place`, to be run with these flags of `run`. Raises CotenantError."""
    options = _options(name, place, words, machine)
    side = SideAgain(name, launches, options, _jobs(options, cells))
    _check_setting(side, place, machine)
    return side


def _options(name: str, place: Path, words: Sequence[str], machine: Machine) -> Options:
    """Return the options of the runs, with an output directory that is still empty."""
    ours, others = at_dashes(words)
    description = f"Flags of the runs that confirm: those {name} was run with."
    given = suite_parser("compare A B --confirm --", description).parse_words(ours)
    if given.name or given.exclude or given.uid or given.repetitions:
        remedy = "Leave out --name, --exclude, --uid and --repetitions."
        raise CotenantError("--confirm runs again what was flagged.", remedy)
    if not place.is_dir():
        remedy = f"--confirm needs all records of {name}, where a suite wrote them."
        raise CotenantError(f"{place} is no directory.", remedy)
    whole = place.resolve()
    given.outdir = (given.outdir or whole.with_name(f"{whole.name}.confirm")).resolve()
    if given.outdir.is_relative_to(whole):
        sentence = f"{given.outdir} lies in {name}, whose launches do not count again."
        raise CotenantError(sentence, "Name another --outdir.")
    if given.outdir.exists() and (not given.outdir.is_dir() or any(given.outdir.iterdir())):
        raise CotenantError(f"{given.outdir} holds something already.", "Remove it, or add -- --outdir ANOTHER.")
    # Launches alone do not count in a comparison.
    given.baseline = given.baseline or "none"
    return options_of(given, others, machine, jobs_alone=True)


def _jobs(options: Options, cells: Sequence[str]) -> dict[str, Job]:
    """Return each cell as a job with only that cell."""
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


def _check_setting(side: SideAgain, place: Path, machine: Machine) -> None:
    """Raise CotenantError unless a side ran on this host, with these devices and versions, in a suite of this name."""
    now = _host_and_versions(machine_facts(machine, CHECKOUT))
    for record in records_in([place]):
        if isinstance(record, Skipped) or record.text_at("name") not in side.jobs:
            continue
        suite = record.text_at("suite")
        if suite not in ("", side.options.suite.name):
            sentence = f"{side.name} is of the suite {suite}, not {side.options.suite.name}."
            raise CotenantError(sentence, f"Name {side.name}'s own: -- --jobs FILE.")
        if changes := differences(_host_and_versions(record.mapping_at("machine")), now):
            sentence = f"This is not what {side.name} ran on: {'; '.join(changes)}."
            raise CotenantError(sentence, f"Confirm where {side.name} was measured.")


def _host_and_versions(machine: Mapping[str, Any]) -> dict[str, str]:
    names = [str(mapping_of(device).get("name")) for device in list_of(machine.get("accelerators"))]
    host = {"host": machine.get("hostname"), "processor": machine.get("model_name")}
    # The runner sees the installed torch, a record the one that its tenant imported.
    versions = setting_of({key: value for key, value in machine.items() if key != "torch"})
    known = {name: value for name, value in host.items() if isinstance(value, str) and value}
    return versions | known | {"accelerators": ", ".join(names) or "none"}


def _check_work(side: SideAgain) -> None:
    for cell in side.jobs:
        works = [launch.work for launches in (side.launches, side.anew) for launch in launches.get(cell, [])]
        if (difference := difference_of(works)) is not None:
            raise CotenantError(
                f"What ran again is not what {side.name} ran: {cell}: {difference_words(*difference)}.",
                f"Give the flags {side.name} was run with after --.",
            )
