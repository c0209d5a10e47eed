"""When a launch's records are written, decides which launch of the repetition counts; the other is set aside."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping

from cotenant.results.record import Record

SUPERSEDED = ".superseded"
"""The suffix of a record that does not count, so that no reader takes its file for a record."""


def superseded(new: Mapping[str, Record], older: Mapping[str, Record]) -> list[str]:
    """Return the files of the records that do not count, among a launch's `new` and `older` ones, both by file.

    A launch supersedes older launches of its repetition. If a tenant failed, an older launch that completed counts
    instead: a failed second run of a job does not hide its first.
    """
    files: list[str] = []
    of_new, of_older = _by_repetition(new), _by_repetition(older)
    for repetition in of_new.keys() & of_older.keys():
        launches = defaultdict[str, list[Record]](list)
        for record in of_older[repetition].values():
            launches[record.start_time].append(record)
        failed = not _completed(of_new[repetition].values())
        stays = failed and any(map(_completed, launches.values()))
        files += (of_new if stays else of_older)[repetition]
    return sorted(files)


def _completed(launch: Iterable[Record]) -> bool:
    return all(record.completed for record in launch)


def _by_repetition(records: Mapping[str, Record]) -> dict[Hashable, dict[str, Record]]:
    found = defaultdict[Hashable, dict[str, Record]](dict)
    for file, record in records.items():
        found[_repetition_of(record)][file] = record
    return found


def _repetition_of(record: Record) -> Hashable:
    """Return the values that are equal in the records of one repetition of a launch on one host.

    The tenants of a mix or duet have several names, and fail together; solo launches have one tenant each.
    """
    side = f".{record.duet.side}" if record.duet else ""
    launch = record.mix or record.name.removesuffix(side)
    lone = (record.baseline, record.tenant) if record.solo else None
    return record.suite, record.hostname, launch, record.isolation.backend, record.run_id, lone
