"""Read the names of the symbols that a shared library needs from other libraries."""

from __future__ import annotations

import mmap
import struct
from pathlib import Path

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNAMIC_SYMBOLS = 11
"""SHT_DYNSYM of elf.h; the structs above have the layout of its 64-bit structures."""


def undefined_symbols(library: Path) -> set[str]:
    """Return the names of a 64-bit library's undefined symbols, without their versions."""
    undefined = set[str]()
    with library.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
        *_, at, _, _, _, _, size, count, _ = _HEADER.unpack_from(image)
        sections = [_SECTION.unpack_from(image, at + index * size) for index in range(count)]
        for _, kind, _, _, start, length, link, _, _, _ in sections:
            if kind != _DYNAMIC_SYMBOLS:
                continue
            names = sections[link][4]
            for offset in range(start, start + length, _SYMBOL.size):
                name, _, _, section, _, _ = _SYMBOL.unpack_from(image, offset)
                if not section:
                    undefined.add(image[names + name : image.find(b"\0", names + name)].decode())
    return undefined
