"""What a maker of a set declares. A new set is one file in `makers/` and one name in its list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

SIZES = ("small", "full")
"""The size classes, in the order in which a later one satisfies an earlier one."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file of a set: its path below the set's folder, `/` between the names.

    `items` is what it adds to its split's count (a file of labels adds none); `arguments` is whatever
    the maker's `content` needs beside the path.
    """

    path: str
    split: str
    items: int
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """One size class of a set: the bytes it is expected to take, and its files."""

    estimated_bytes: int
    parts: Callable[[], Iterable[Part]]


Content = Callable[[Part, int], Iterable[bytes]]
"""(part, seed) -> the file's bytes, piece by piece. It must pickle: it runs in a worker."""


@dataclass(frozen=True, slots=True)
class Maker:
    """A fake set in its true format. `version` grows with every change of the bytes made.

    A maker's module imports what draws only inside `content`, so that asking what is present stays quick.
    """

    name: str
    folder: str
    about: str
    version: int
    sizes: Mapping[str, Recipe]
    content: Content
