"""The cells of a plan's picture: a letter and a colour for each tenant, a cell for each core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from string import ascii_lowercase, ascii_uppercase

from rich.style import Style
from rich.text import Text

from cotenant.report.plan_shape import CoreShape, DeviceShape

IDLE = "-"
_LETTERS = ascii_uppercase + ascii_lowercase
# Pastels on which black is legible, neighbours unlike; they come again after the twelfth tenant, letters do not.
_COLOURS = (117, 215, 150, 218, 229, 147, 80, 209, 186, 182, 115, 252)
_ROW = 32
"""At most so many cores stand in a row."""


@dataclass(frozen=True, slots=True)
class Names:
    """What each of `total` tenants is called in the picture: a letter, and digits where letters do not suffice."""

    total: int

    @property
    def width(self) -> int:
        """The characters of every name."""
        return 1 + self._digits

    def of(self, tenant: int | None) -> str:
        """Return `A`, with more than 52 tenants `A0`; dashes for nobody."""
        if tenant is None:
            return IDLE * self.width
        scale: int = 10**self._digits
        letter = _LETTERS[tenant // scale]
        return f"{letter}{tenant % scale:0{self._digits}d}" if self._digits else letter

    def cell(self, tenant: int | None) -> Text:
        """Return the name in its colour."""
        return Text(self.of(tenant), style_of(tenant))

    @property
    def _digits(self) -> int:
        digits = 0
        while len(_LETTERS) * 10**digits < self.total:
            digits += 1
        return digits


def style_of(tenant: int | None) -> Style:
    """Return a tenant's colour; nobody's is dim."""
    if tenant is None:
        return Style(dim=True)
    return Style(color="black", bgcolor=f"color({_COLOURS[tenant % len(_COLOURS)]})")


def core_rows(cores: Sequence[CoreShape], names: Names, width: int) -> Iterator[tuple[str, Text, str]]:
    """Yield rows of at most `width` columns: the first core's first processor, a cell per core, their kind.

    Cores of one row are alike in width and kind.
    """
    for (threads, kind), group in groupby(cores, key=lambda core: (len(core.processors), core.kind)):
        alike = list(group)
        per_row = _per_row(len(alike), threads * names.width + 1, width)
        for start in range(0, len(alike), per_row):
            row = alike[start : start + per_row]
            yield str(row[0].processors[0]), Text(" ").join(_core(core, names) for core in row), kind


def device_cells(devices: Iterable[DeviceShape], names: Names) -> Iterator[tuple[str, Text]]:
    """Yield, for each name of device, its devices with their tenants: `0 A  1 B`."""
    for name, group in groupby(devices, key=lambda device: device.name):
        cells = [
            Text(" ").join([Text(device.label), _join(names.cell(tenant) for tenant in device.tenants or (None,))])
            for device in group
        ]
        yield name, Text("  ").join(cells)


def _per_row(cores: int, cell: int, width: int) -> int:
    """Return how many cells of a row fit: all of them, or a power of two, as machines count."""
    most = max(1, min(_ROW, width // cell))
    return cores if cores <= most else 1 << (most.bit_length() - 1)


def _core(core: CoreShape, names: Names) -> Text:
    return _join(names.cell(tenant) for tenant in core.tenants)


def _join(cells: Iterable[Text]) -> Text:
    return Text().join(list(cells))
