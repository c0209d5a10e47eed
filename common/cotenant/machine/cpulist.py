"""The kernel's list format for processors and nodes: `0-3,8,10-11`."""

from __future__ import annotations

from collections.abc import Iterable


def parse(text: str) -> tuple[int, ...]:
    """Return the listed ids, ascending and each once; raise ValueError where `text` is no such list."""
    ids: set[int] = set()
    for part in text.split(","):
        word = part.strip()
        if not word:
            continue
        first, dash, last = word.partition("-")
        low = _number(first, text)
        high = _number(last, text) if dash else low
        if high < low:
            raise ValueError(f"{word!r} in the list {text.strip()!r} runs backwards")
        ids.update(range(low, high + 1))
    return tuple(sorted(ids))


def format_list(ids: Iterable[int]) -> str:
    """Return the shortest list that `parse` reads back; an empty string for no ids."""
    runs: list[list[int]] = []
    for number in sorted(set(ids)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)


def _number(word: str, text: str) -> int:
    # isdigit alone admits superscripts and other scripts, int alone admits signs and underscores.
    if not (word.isascii() and word.isdigit()):
        raise ValueError(f"{word!r} in the list {text.strip()!r} is no number")
    return int(word)
