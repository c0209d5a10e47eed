"""The vendors' visible-devices variables: which devices a caller may use, and in which order."""

from __future__ import annotations

import re
from collections.abc import Sequence


def select(value: str, uuids: Sequence[str]) -> tuple[int, ...]:
    """Return the chosen positions in the value's own order, by CUDA's rules.

    Entries are positions, or (beginning with a letter) UUIDs or prefixes of one that fit one device only. The
    first invalid entry ends the list, a repeated one voids it; an empty value and -1 choose nothing.
    https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
    """
    entries = [entry.strip() for entry in value.split(",")]
    by_uuid = entries[0][:1].isalpha()
    chosen: list[int] = []
    for entry in entries:
        position = _by_uuid(entry, uuids) if by_uuid else _by_number(entry, len(uuids))
        if position is None:
            break
        if position in chosen:
            return ()
        chosen.append(position)
    return tuple(chosen)


def _by_number(entry: str, total: int) -> int | None:
    # As strtol reads it: `1gpu` is 1.
    number = re.match(r"\+?([0-9]+)", entry)
    position = int(number[1]) if number else -1
    return position if 0 <= position < total else None


def _by_uuid(entry: str, uuids: Sequence[str]) -> int | None:
    fitting = [position for position, uuid in enumerate(uuids) if entry and uuid.startswith(entry)]
    return fitting[0] if len(fitting) == 1 else None
