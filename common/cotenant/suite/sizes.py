"""Batch sizes by memory class: the value of `$BATCH_SIZE` for a job, a precision and a tenant's memory.

They are in one data file, batch_sizes.toml, with a table per job and a line per precision:

    [resnet50]
    fp32 = { cpu = 2, 16gb = 128, 32gb = 296 }
    bf16 = { cpu = 2, 16gb = 256, 32gb = 592 }
    args.cpu = { --size = 64 }

    [devices."NVIDIA GeForce RTX 2080 Ti".resnet50]
    fp32 = 88

`args` are further arguments of a class. A class missing from a line has the sizes of the next smaller class in it,
but never the sizes of `cpu`. Without a line of its own tf32 has fp32's sizes and fp16 bf16's, of equal width.
"""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cotenant.choices import CLASSES, CPU, MEMORY_CLASSES
from cotenant.errors import CotenantError, did_you_mean
from cotenant.suite.variables import Value

FILE = "batch_sizes.toml"
WHOLE = "_all"
"""Ends the name of a job's twin, which trains one model over all devices with the job's sizes."""
_GIB = 1 << 30
_KEPT_BACK = 0.9
"""The least part of a device's memory that its driver leaves: a card of 16 GB shows at least 15 GiB."""
_AS_LARGE = {"tf32": "fp32", "fp16": "bf16"}
_DEVICES, _ARGS = "devices", "args"

Table = Mapping[str, Any]


def memory_class(memory_bytes: int | None) -> str | None:
    """Return the largest class that fits a device's memory; `cpu` without a device (None).

    None for less memory than the smallest class.
    """
    if memory_bytes is None:
        return CPU
    held = [name for name, gib in MEMORY_CLASSES.items() if gib * _KEPT_BACK * _GIB <= memory_bytes]
    return held[-1] if held else None


@dataclass(frozen=True, slots=True)
class Size:
    """The batch size of a job, and further arguments of the class that has it."""

    memory_class: str
    batch_size: int
    args: tuple[tuple[str, Value], ...] = ()


@dataclass(frozen=True, slots=True)
class SizeTable:
    """The contents of the file at `path`."""

    path: Path
    families: Mapping[str, Table]
    devices: Mapping[str, Mapping[str, Mapping[str, int]]]

    def size_of(self, family: str, precision: str, memory_class: str, device: str = "") -> Size | None:
        """Return the size of a job in a precision and a class; None if the file has none for so small a class.

        `device` is the driver's model name of a device that a tenant has to itself: a line for it takes precedence.
        Raises CotenantError, with the line to add, if the file lacks the job or the precision.
        """
        if family not in self.families and family.removesuffix(WHOLE) in self.families:
            family = family.removesuffix(WHOLE)
        size = self._of_class(family, precision, memory_class)
        batch_size = _of_precision(self.devices.get(device, {}).get(family, {}), precision)
        if batch_size is None:
            return size
        return Size(memory_class, batch_size, size.args if size else ())

    def _of_class(self, family: str, precision: str, memory_class: str) -> Size | None:
        table = self.families.get(family, {})
        if not (line := _of_precision(table, precision)):
            hint = "" if family in self.families else did_you_mean(family, self.families)
            add = f"Add below [{family}]: {precision} = {{ {memory_class} = 1 }}, with its batch size."
            raise CotenantError(f"{self.path}: no batch size of '{family}' in {precision}.", f"{hint} {add}".strip())
        smaller = CLASSES[1 : CLASSES.index(memory_class) + 1] if memory_class != CPU else (CPU,)
        for name in reversed(smaller):
            if name in line:
                return Size(name, line[name], tuple(table.get(_ARGS, {}).get(name, {}).items()))
        return None


def _of_precision(table: Table, precision: str) -> Any:
    """Return the entry of a precision, else of the one with equally large values."""
    return table.get(precision) or table.get(_AS_LARGE.get(precision, ""))


def load_sizes(path: Path) -> SizeTable:
    """Read the data file and check all of it. Raises a CotenantError that names the file and the line's place."""
    try:
        tables = tomllib.loads(path.read_bytes().decode())
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise CotenantError(f"{path}: the batch sizes cannot be read: {error}.", "Correct the file.") from None
    devices = tables.pop(_DEVICES, {})
    if wrong := next(itertools.chain(_wrong_families(tables), _wrong_devices(devices)), None):
        raise CotenantError(f"{path}: {wrong}.", f"Write whole numbers above 0 for {', '.join(CLASSES)}.")
    return SizeTable(path, tables, devices)


def _wrong_families(tables: Table) -> Iterator[str]:
    for family, table in tables.items():
        if not isinstance(table, dict):
            yield f"'{family}' is no table"
            continue
        for name, line in table.items():
            place = f"[{family}] {name}"
            if not isinstance(line, dict):
                yield f"{place} is no table of classes"
                continue
            yield from (f"{place} names the class '{key}'" for key in line if key not in CLASSES)
            is_right = _is_args if name == _ARGS else _is_size
            yield from (f"{place}.{key} is {value!r}" for key, value in line.items() if not is_right(value))


def _wrong_devices(devices: object) -> Iterator[str]:
    if not isinstance(devices, dict):
        yield "'devices' is no table"
        return
    for device, families in devices.items():
        for family, line in families.items() if isinstance(families, dict) else ():
            if not isinstance(line, dict) or not all(_is_size(value) for value in line.values()):
                yield f'[{_DEVICES}."{device}".{family}] is no line of batch sizes by precision'


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_args(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(arg, str | int | float) and not isinstance(arg, bool) for arg in value.values()
    )
