"""Checks an archive: every hash, the journal's chain, and every number, computed again from raw observations.

Records cannot show that a program did the work it names: launch it yourself to check that.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import msgspec

from cotenant.errors import CotenantError
from cotenant.proof.archive import RECORD, ArchiveManifest, sha256
from cotenant.results.identity import with_efficiency
from cotenant.results.journal import FILE as JOURNAL
from cotenant.results.journal import Launched, Started, parsed
from cotenant.results.rates import derived_meters, kept_by_blocks, numbers_of
from cotenant.results.record import Record, counted, rated, restored
from cotenant.results.superseded import SUPERSEDED
from cotenant.stats.tenants import common_load, overlap
from cotenant.text import listed, many

UNREADABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""The errors raised if loosely typed fields of a record hold values that no run writes."""


@dataclass(frozen=True, slots=True)
class ArchiveCheck:
    """The result of one check; `wrong` has a sentence for each thing that does not hold, `note` further information."""

    name: str
    looked_at: str
    wrong: tuple[str, ...] = ()
    note: str = ""


def checks_of(manifest: ArchiveManifest, members: Mapping[str, bytes]) -> list[ArchiveCheck]:
    """Return the checks of hashes, journal and numbers."""
    hashes = ArchiveCheck("hashes", many(len(manifest.members), "file"), tuple(_differences(manifest, members)))
    return [hashes, _journal(manifest, members), _numbers(members)]


def _differences(manifest: ArchiveManifest, members: Mapping[str, bytes]) -> Iterator[str]:
    for name, digest in manifest.members.items():
        if name not in members:
            yield f"{name} is missing."
        elif sha256(members[name]) != digest:
            yield f"{name} is not what was archived."
    yield from (f"{name} was put in." for name in members if name not in manifest.members)


def _journal(manifest: ArchiveManifest, members: Mapping[str, bytes]) -> ArchiveCheck:
    """Check that each launch in the journal left its records unchanged, and that each record belongs to one."""
    try:
        journal = parsed(members.get(JOURNAL, b""), JOURNAL)
    except CotenantError as error:
        return ArchiveCheck("journal", "chained by hashes", (str(error),))
    starts = [entry for entry in journal.entries if isinstance(entry, Started)]
    launches = [entry for entry in journal.entries if isinstance(entry, Launched)]
    wrong = [] if journal.entries else ["There is no journal: nothing says which launches there were."]
    if journal.head != manifest.journal_head:
        wrong.append("The journal does not have the end that the archive names.")
    made = Counter(_repetition(launch) for launch in launches)
    for launch in launches:
        wrong += _wrong_records(launch, members, may_be_superseded=made[_repetition(launch)] > 1)
    written = journal.records
    foreign = [name for name in members if name.endswith(RECORD) and name not in written]
    wrong += [f"{name} stands in no launch of the journal." for name in foreign]
    ended = sum(launch.finished for launch in launches)
    looked_at = f"{many(len(starts), 'start')}, {many(len(launches), 'launch')}, {ended} of them finished"
    return ArchiveCheck("journal", looked_at, tuple(wrong), _unlaunched(starts, launches))


def _repetition(launch: Launched) -> tuple[str, int, str, str]:
    return launch.suite, launch.uid, launch.label, launch.host


def _wrong_records(launch: Launched, members: Mapping[str, bytes], may_be_superseded: bool) -> Iterator[str]:
    """Yield sentences on records that are missing, or changed.

    `--resume` renames the records of an unfinished launch. Of two launches of one repetition, the records of the one
    that does not count are renamed.
    """
    suffixes = ["", *([] if launch.finished else [".unfinished"]), *([SUPERSEDED] if may_be_superseded else [])]
    for name, digest in launch.records.items():
        place = next((name + suffix for suffix in suffixes if name + suffix in members), "")
        if place not in members:
            yield f"{name} of launch {launch.label}, repetition {launch.uid}, is missing."
        elif sha256(members[place]) != digest:
            yield f"{name} is not what launch {launch.label}, repetition {launch.uid}, wrote."


def _unlaunched(starts: Iterable[Started], launches: Iterable[Launched]) -> str:
    """Return the launches that suites announced and never finished."""
    announced = {(start.suite, start.uid, label) for start in starts for label in start.launches}
    missing = announced - {(launch.suite, launch.uid, launch.label) for launch in launches if launch.finished}
    names = sorted(f"{label} (repetition {uid})" for _, uid, label in missing)
    return f"Announced, and never finished: {listed(names, 3)}." if names else ""


def _numbers(members: Mapping[str, bytes]) -> ArchiveCheck:
    """Check every statistic, overlap and efficiency: compute it again from raw observations."""
    records, wrong = [], list[str]()
    for name, content in members.items():
        if name.endswith(RECORD):
            try:
                records.append(restored(content))
            except msgspec.MsgspecError as error:
                wrong.append(f"{name} is no record of this version: {error}.")
    if not records and not wrong:
        wrong.append("It holds no record: there is nothing to verify.")
    runs = defaultdict[tuple[object, ...], list[Record]](list)
    for launch in _launches(records):
        earlier = runs[launch[0].hostname, launch[0].suite, launch[0].run_id, launch[0].suite_start_time]
        for record in launch:
            user = f"{record.name}, repetition {record.run_id}, user {record.tenant}"
            try:
                for sentence in chain(_wrong_statistics(record, earlier), _wrong_overlap(record, launch)):
                    wrong.append(f"{user}: {sentence}")
            except UNREADABLE as error:
                wrong.append(f"{user}: it holds numbers that no run writes: {error}.")
        earlier += launch
    return ArchiveCheck("numbers", f"{many(len(records), 'record')}, computed again from observations", tuple(wrong))


def _launches(records: Iterable[Record]) -> Iterable[list[Record]]:
    """Return the records of each launch by tenant, launches in the order of their starts."""
    launches: dict[tuple[object, ...], list[Record]] = defaultdict(list)
    for record in sorted(records, key=lambda record: (record.start_time, record.tenant)):
        name = record.mix or record.name
        launches[record.hostname, record.suite, record.run_id, name, record.start_time].append(record)
    return launches.values()


def _wrong_statistics(record: Record, earlier: Sequence[Record]) -> Iterator[str]:
    measured = rated(record.observations, record.skip) if record.completed else []
    kept = kept_by_blocks(record.observations) if record.completed else None
    made = (record.train, record.train_item, record.statistics, record.kept)
    for now, written in zip((*numbers_of(measured), kept), made, strict=True):
        if (now is None) != (written is None):
            yield "its statistics do not follow from its observations."
        elif now is not None:
            yield from _other_values(_plain(now), _plain(written))
    bare = msgspec.structs.replace(record, meters=record.meters | {"scaling": {}})
    meters = derived_meters(record) | {"scaling": with_efficiency(bare, earlier).meters["scaling"]}
    for meter in ("compute", "steps", "steps_alone", "scaling"):
        yield from _other_values(_plain(meters.get(meter, {})), record.meters.get(meter, {}), f"{meter} ")


def _plain(numbers: object) -> dict[str, Any]:
    """Return numbers in the form that a record's file has."""
    return msgspec.json.decode(msgspec.json.encode(numbers), type=dict[str, Any])


def _other_values(now: Mapping[str, Any], written: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for name in sorted({*now, *written}):
        if now.get(name) != written.get(name):
            yield f"its {prefix}{name} is {written.get(name)}, and {now.get(name)} by its observations."


def _wrong_overlap(record: Record, launch: Sequence[Record]) -> Iterator[str]:
    meetings = [other.rendezvous for other in launch if other.completed and other.rendezvous is not None]
    if record.rendezvous is None or len(meetings) != record.tenants:
        return
    loads = [(meeting.start_ns, meeting.load_end_ns) for meeting in meetings]
    loads += [
        (node["start_ns"], node["load_end_ns"]) for node in record.meters.get("nodes", ()) if node.get("start_ns")
    ]
    early = record.sharers > 1 or "settle_s" in record.isolation.policies
    load = common_load(loads, meetings[0].t0_ns if early else None)
    now = overlap([(seen.start_ns, seen.end_ns) for seen in counted(record.observations, record.skip)], load)
    if now != record.rendezvous.overlap:
        yield f"its overlap is {record.rendezvous.overlap}, and {now} by its observations."
