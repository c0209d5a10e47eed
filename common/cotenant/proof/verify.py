"""Checks an archive: every hash, the journal's chain, every number made anew from raw observations, every rule.

Each check has a name and a sentence. That a program did the work it names cannot be seen from records: for that there
are the audit step, and launches of one's own.
"""

from __future__ import annotations

import hashlib
import shlex
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from cotenant.errors import CotenantError
from cotenant.proof.archive import Unpacked
from cotenant.proof.check import SHOWN, ProofCheck, name_of
from cotenant.results.build import kept_by_blocks, meters_of, numbers_of
from cotenant.results.journal import ARGUMENTS, Journal, Launched, Started, parsed
from cotenant.results.journal import FILE as JOURNAL
from cotenant.results.record import Record, counted, rated, restored
from cotenant.stats.tenants import common_load, overlap
from cotenant.suite.task_source import harness_version
from cotenant.text import listed, many

SET_ASIDE = ".unfinished"
UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Errors from fields whose types a record leaves open, where they hold values that no run has written."""


def checks_of(archive: Unpacked, versions: Collection[str]) -> list[ProofCheck]:
    """Return all checks. `versions`: the hashes of the sources of this checkout's benchmarks."""
    damage = (f"The archive is damaged: {archive.damage}.",) if archive.damage else ()
    checks = [ProofCheck("archive", many(len(archive.manifest.members), "member"), damage)]
    records, unread = _records(archive)
    launches = _launches(records)
    none = () if records or unread else ("It holds no record: there is nothing that could hold.",)
    checks.append(ProofCheck("records", many(len(records), "record"), (*unread, *none)))
    journal, unreadable = _parsed(archive)
    return [
        *checks,
        _class(records, journal),
        _journal(archive, journal, unreadable),
        _numbers(launches),
        _rules(launches),
        _sources(records, versions),
    ]


def _records(archive: Unpacked) -> tuple[list[Record], list[str]]:
    records, unread = [], []
    for name, content in archive.members.items():
        if name.endswith(".json"):
            try:
                records.append(restored(content))
            except msgspec.MsgspecError as error:
                unread.append(f"{name} is no record of this version: {error}.")
    return records, unread


def _parsed(archive: Unpacked) -> tuple[Journal, str]:
    """Return the journal and "", or an empty one and the reason."""
    try:
        return parsed(archive.members.get(JOURNAL, b""), JOURNAL), ""
    except CotenantError as error:
        return Journal(), str(error)


def _class(records: Sequence[Record], journal: Journal) -> ProofCheck:
    classes = sorted({record.run_class for record in records})
    note = "No table may hold results of both." if len(classes) > 1 else ""
    if "base" in classes and (typed := _typed(journal)):
        note = f"{note} These arguments stood behind --, and base results have none: {listed(typed, SHOWN)}.".lstrip()
    return ProofCheck("class", " and ".join(classes) or "none", note=note)


def _typed(journal: Journal) -> list[str]:
    """Return the arguments behind `--` of each start that had any; none where one cannot be read."""
    starts = [entry for entry in journal.entries if isinstance(entry, Started)]
    try:
        words = [msgspec.json.decode(start.conditions.get(ARGUMENTS, "[]"), type=list[str]) for start in starts]
    except msgspec.MsgspecError:
        return []
    return list(dict.fromkeys(shlex.join(each) for each in words if each))


def _journal(archive: Unpacked, journal: Journal, unreadable: str) -> ProofCheck:
    """Every launch that the journal has left its records, unchanged, and no record came by another way."""
    if unreadable:
        return ProofCheck("journal", "chained by hashes", (unreadable,))
    wrong, known = [], set[str]()
    if not journal.entries:
        wrong.append("There is no journal: nothing says which launches there were.")
    elif not archive.members[JOURNAL].endswith(b"\n"):
        wrong.append("The journal's last line is cut off.")
    if journal.head != archive.manifest.journal_head:
        wrong.append("The journal does not end where the archive says.")
    launches = [entry for entry in journal.entries if isinstance(entry, Launched)]
    for launch in launches:
        for name, digest in launch.records.items():
            known.add(name)
            # Of a launch that did not end `--resume` sets records aside; any other one's count.
            place = name if launch.finished or name in archive.members else name + SET_ASIDE
            content = archive.members.get(place)
            if content is None:
                wrong.append(f"{name} of launch {launch.label}, repetition {launch.uid}, is missing.")
            elif hashlib.sha256(content).hexdigest() != digest:
                wrong.append(f"{name} is not what launch {launch.label}, repetition {launch.uid}, wrote.")
    foreign = [name for name in archive.members if name.endswith(".json") and name not in known]
    wrong += [f"{name} stands in no launch of the journal." for name in foreign]
    starts = sum(isinstance(entry, Started) for entry in journal.entries)
    ended = sum(launch.finished for launch in launches)
    looked_at = f"{many(starts, 'start')}, {many(len(launches), 'launch', 'es')}, {ended} of them finished"
    return ProofCheck("journal", looked_at, tuple(wrong), _unlaunched(journal.entries, launches))


def _unlaunched(entries: Sequence[object], launches: Sequence[Launched]) -> str:
    """Return the launches that suites announced and never made: a suite that was broken off shows it."""
    announced = {
        (start.suite, start.uid, label) for start in entries if isinstance(start, Started) for label in start.launches
    }
    missing = announced - {(launch.suite, launch.uid, launch.label) for launch in launches if launch.finished}
    names = sorted(f"{label} (repetition {uid})" for _, uid, label in missing)
    return f"Announced, and never finished: {listed(names, SHOWN)}." if names else ""


def _numbers(launches: Sequence[Sequence[Record]]) -> ProofCheck:
    """Make every statistic, and every overlap, anew from raw observations."""
    records = [record for launch in launches for record in launch]
    wrong = list[str]()
    for record in records:
        try:
            wrong += [f"{name_of(record)}: {sentence}" for sentence in _wrong_statistics(record)]
        except UNREADABLE as error:
            wrong.append(f"{name_of(record)}: it holds no numbers that a run writes: {error}.")
    for launch in launches:
        if all(record.completed and record.rendezvous for record in launch) and len(launch) == launch[0].tenants:
            try:
                wrong += [f"{name_of(record)}: {sentence}" for record, sentence in _wrong_overlaps(launch)]
            except UNREADABLE as error:
                wrong.append(f"{name_of(launch[0])}: there is no overlap of its observations: {error}.")
    return ProofCheck("numbers", f"{many(len(records), 'record')}, made anew from raw observations", tuple(wrong))


def _wrong_statistics(record: Record) -> Iterator[str]:
    measured = rated(record.observations, record.skip) if record.completed else []
    kept = kept_by_blocks(record.observations) if record.completed else None
    made = (record.train, record.train_item, record.statistics, record.kept)
    for now, written in zip((*numbers_of(measured), kept), made, strict=True):
        if (now is None) != (written is None):
            yield "its statistics are not those of its observations."
        elif now is not None:
            yield from _other_values(_plain(now), _plain(written))
    meters = meters_of(record)
    for meter in ("compute", "steps", "steps_alone"):
        yield from _other_values(_plain(meters.get(meter, {})), record.meters.get(meter, {}), f"{meter} ")


def _plain(numbers: object) -> dict[str, Any]:
    """Return numbers as a record's file has them."""
    return msgspec.json.decode(msgspec.json.encode(numbers), type=dict[str, Any])


def _other_values(now: Mapping[str, Any], written: Mapping[str, Any], of: str = "") -> Iterator[str]:
    for name in sorted({*now, *written}):
        if now.get(name) != written.get(name):
            yield f"its {of}{name} is {written.get(name)}, and {now.get(name)} by its observations."


def _wrong_overlaps(launch: Sequence[Record]) -> Iterator[tuple[Record, str]]:
    meetings = [record.rendezvous for record in launch if record.rendezvous is not None]
    first = launch[0]
    loads = [(meeting.start_ns, meeting.load_end_ns) for meeting in meetings]
    loads += [(node["start_ns"], node["load_end_ns"]) for node in first.meters.get("nodes", ()) if node["start_ns"]]
    early = first.sharers > 1 or "settle_s" in first.isolation.policies
    load = common_load(loads, meetings[0].t0_ns if early else None)
    for record, meeting in zip(launch, meetings, strict=True):
        now = overlap([(seen.start_ns, seen.end_ns) for seen in counted(record.observations, record.skip)], load)
        if now != meeting.overlap:
            yield record, f"its overlap is {meeting.overlap}, and {now} by its observations."


def _rules(launches: Sequence[Sequence[Record]]) -> ProofCheck:
    """Ask every rule again of every launch: a rule's finding has to stand in the record."""
    from cotenant.findings.rules import with_findings

    wrong, runs = list[str](), defaultdict[tuple[object, ...], list[Record]](list)
    for launch in launches:
        earlier = runs[launch[0].hostname, launch[0].suite, launch[0].run_id, launch[0].suite_start_time]
        try:
            asked_again = with_findings([_without_efficiency(record) for record in launch], earlier)
        except UNREADABLE as error:
            wrong.append(f"{name_of(launch[0])}: rules cannot be asked of what no run writes: {error}.")
            continue
        for record, again in zip(launch, asked_again, strict=True):
            written = {(finding.rule, finding.severity) for finding in record.findings}
            new = sorted({(finding.rule, finding.severity) for finding in again.findings} - written)
            wrong += [f"{name_of(record)}: the {severity} {rule} is missing." for rule, severity in new]
            scaling, recorded = (_plain(each.meters.get("scaling", {})) for each in (again, record))
            wrong += [f"{name_of(record)}: {sentence}" for sentence in _other_values(scaling, recorded, "scaling ")]
        earlier += launch
    return ProofCheck("rules", f"{many(len(launches), 'launch', 'es')}, every rule asked again", tuple(wrong))


def _without_efficiency(record: Record) -> Record:
    """Return the record as it was before it stood beside one device."""
    meters = {name: meter for name, meter in record.meters.items() if name != "scaling"}
    return msgspec.structs.replace(record, meters=meters)


def _sources(records: Sequence[Record], versions: Collection[str]) -> ProofCheck:
    """Whether benchmarks ran as they stand in this checkout. Other sources are no damage: they are named."""
    other = {record.name for record in records if record.version and record.version not in versions}
    note = f"Other sources than this checkout's: {listed(sorted(other), SHOWN)}." if other else ""
    harnesses = {record.harness for record in records if record.harness} - {harness_version()}
    note += f" Another cotenant.bench than this checkout's: {listed(sorted(harnesses), SHOWN)}." if harnesses else ""
    looked_at = f"{many(len(records), 'record')} beside {many(len(versions), 'benchmark')} of this checkout"
    return ProofCheck("sources", looked_at, note=note.lstrip())


def _launches(records: Sequence[Record]) -> list[list[Record]]:
    """Return the records of each launch by tenant, launches in the order of their starts."""
    launches: dict[tuple[object, ...], list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: (record.start_time, record.tenant)):
        name = record.mix or record.name
        launches[record.hostname, record.suite, record.run_id, name, record.start_time].append(record)
    return list(launches.values())
