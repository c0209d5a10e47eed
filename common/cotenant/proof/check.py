"""The result of a check of an archive, and the words of a record in it."""

from __future__ import annotations

from dataclasses import dataclass

from cotenant.results.record import Record

SHOWN = 3
"""Most things that a note lists."""


@dataclass(frozen=True, slots=True)
class ProofCheck:
    """The result of one check; `wrong` has a sentence for each thing that does not hold, `note` further information."""

    name: str
    looked_at: str
    wrong: tuple[str, ...] = ()
    note: str = ""


def name_of(record: Record) -> str:
    return f"{record.name}, repetition {record.run_id}, user {record.tenant}"
