"""What was asked is what ran: the seed on the tenant's command line against the one that it says it had."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cotenant.finding import Finding

if TYPE_CHECKING:
    from cotenant.results.record import Record

FLAG = "--seed"


def check(record: Record) -> Finding | None:
    words, seen = record.command, record.arguments.get("seed")
    asked = [words[index + 1] for index, word in enumerate(words[:-1]) if word == FLAG]
    if not asked or not isinstance(seen, int) or not asked[-1].isdecimal() or int(asked[-1]) == seen:
        return None
    return Finding(
        "seed",
        "warning",
        f"Asked for seed {asked[-1]}, but it ran with seed {seen}.",
        "Let the benchmark take --seed: every tenant and every repetition has its own.",
    )
