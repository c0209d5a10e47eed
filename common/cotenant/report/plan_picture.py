"""The picture of a plan: sockets and nodes as boxes, cores as cells, and below it what each tenant has.

Readable without colour, and in a file: tenants are letters, colours only repeat them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from string import ascii_lowercase, ascii_uppercase

from rich import console as rich_console
from rich.box import ROUNDED
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.style import Style
from rich.table import Table
from rich.text import Text

from cotenant.report.grid import STYLES, Cell, Column, Grid, Row, RowGroup
from cotenant.report.numbers import ABSENT
from cotenant.report.plan_shape import BoxShape, CoreShape, DeviceShape, PlanShape
from cotenant.report.renderers import may_leave, terminal
from cotenant.text import many

WIDEST = 120
_FRAME = 4  # a box's two borders and the spaces inside them
_GAP = 2
_RESERVE, _UNUSED = "=", "."


def print_plan(shape: PlanShape, console: Console | None = None) -> None:
    """Print the machine, the slices and the findings, at most 120 columns wide."""
    console = console or Console()
    with may_leave():
        for part in plan_lines(shape, min(console.width, WIDEST)):
            # Off a terminal there is no width to fit: a finding in a file is one line, as long as it is.
            unbound = isinstance(part, Text) and (bool(part.no_wrap) or not console.is_terminal)
            console.print(part, highlight=False, soft_wrap=unbound, width=min(console.width, WIDEST))


def plan_lines(shape: PlanShape, width: int) -> Iterator[RenderableType]:
    """Yield the parts of the picture, for `width` columns."""
    names = Names(len(shape.tenants))
    yield from _heading(shape)
    yield ""
    yield from _sockets(shape, names, width)
    yield _key(shape)
    yield ""
    yield from terminal(_tenants(shape, names), width)
    yield ""
    yield from _memory(shape, names, width)
    if shape.findings:
        yield ""
    for finding in sorted(shape.findings, key=lambda finding: list(STYLES).index(finding.severity)):
        text = f"{finding.sentence} {finding.remedy}".rstrip()
        yield Text.assemble((f"{finding.severity}: ", STYLES[finding.severity]), text)


def _heading(shape: PlanShape) -> Iterator[Text]:
    cores = sum(len(box.cores) for box in shape.boxes)
    sockets = len({box.package for box in shape.boxes if box.package is not None})
    nodes = len({box.node for box in shape.boxes})
    online, usable = shape.processors_online, shape.processors_usable
    counted = [
        f"{usable} of {many(online, 'processor')}" if usable < online else many(usable, "processor"),
        many(cores, "core"),
        many(sockets, "socket"),
        many(nodes, "node"),
        _size(shape.memory_bytes),
    ]
    yield Text.assemble((shape.hostname, "bold"), f": {shape.model_name}")
    yield Text(", ".join(counted))
    first, total = shape.tenants[0], len(shape.tenants)
    given = f"{many(first.processor_total, 'processor')} and {_size(first.memory_bytes)}"
    how = "whole cores first" if shape.policy == "cores" else "consecutive ids"
    yield Text(f"{many(total, 'tenant')} with {given}{' each' if total > 1 else ''}, {how}")
    yield Text(f"isolation {shape.backend}{'; not held: ' if shape.unenforced else ''}{', '.join(shape.unenforced)}")


def _sockets(shape: PlanShape, names: Names, width: int) -> Iterator[RenderableType]:
    """Yield the boxes, those of a socket with several nodes inside one of their own."""
    several = len({box.node for box in shape.boxes}) > 1
    ids = max(len(str(core.processors[0])) for box in shape.boxes for core in box.cores)
    plain: list[Panel] = []
    for package, group in groupby(shape.boxes, key=lambda box: box.package):
        boxes = list(group)
        nested = len(boxes) > 1 and package is not None
        room = _nested_room(boxes, names, ids, width - _FRAME) if nested else width - _FRAME
        made = [_box(box, names, room, nested, several, ids) for box in boxes]
        if nested:
            yield Panel.fit(
                _side_by_side(made, width - _FRAME), title=f"socket {package}", title_align="left", box=ROUNDED
            )
        else:
            plain += made
    if shape.homeless_devices:
        plain.append(_framed("on an unknown node", _device_lines(shape.homeless_devices, names, width - _FRAME)))
    if plain:
        yield _side_by_side(plain, width)


def _nested_room(boxes: Sequence[BoxShape], names: Names, ids: int, width: int) -> int:
    """Return the columns inside a box: two boxes stand in a line where that leaves room for eight cores in each."""
    cell = max(len(core.processors) for box in boxes for core in box.cores) * names.width + 1
    half = width // 2 - _FRAME
    return half if half - ids - 2 * _GAP >= 8 * cell - 1 else width - _FRAME


def _box(box: BoxShape, names: Names, room: int, nested: bool, several: bool, ids: int) -> Panel:
    """Return the box of a socket's part of a node. One node's memory is the machine's, which the heading says.

    `ids` is the width of a row's first processor, the same in all boxes.
    """
    kinds = max((len(core.kind) for core in box.cores), default=0)
    rows = [
        Text.assemble((first.rjust(ids), "dim"), " " * _GAP, cells, (f"{' ' * _GAP}{kind}" if kind else "", "dim"))
        for first, cells, kind in core_rows(box.cores, names, room - ids - kinds - 2 * _GAP)
    ]
    where = [] if nested or box.package is None else [f"socket {box.package}"]
    if several or nested:
        where += [f"node {box.node}", _size(box.memory_bytes)]
    rows = rows or [Text("no processors", "dim")]
    return _framed(", ".join(where), [*rows, *_device_lines(box.devices, names, room)])


def _device_lines(devices: Sequence[DeviceShape], names: Names, room: int) -> list[Text]:
    lines: list[Text] = []
    for name, cells in device_cells(devices, names):
        fits = len(name) + _GAP + cells.cell_len <= room
        lines += [Text.assemble((name, "italic"), " " * _GAP, cells)] if fits else [Text(name, "italic"), cells]
    return lines


def _framed(title: str, lines: Sequence[Text]) -> Panel:
    width = max([len(title) + 2, *(line.cell_len for line in lines)]) + _FRAME
    return Panel(rich_console.Group(*lines), title=title, title_align="left", box=ROUNDED, width=width)


def _side_by_side(panels: Sequence[Panel], width: int) -> Table:
    """Return the panels, as many in a line as fit, all as wide as the widest."""
    widest = min(width, max(panel.width or 0 for panel in panels))
    for panel in panels:
        panel.width = widest
    grid = Table.grid()
    per_line = width // widest
    for start in range(0, len(panels), per_line):
        grid.add_row(*panels[start : start + per_line])
    return grid


def _key(shape: PlanShape) -> Text:
    """Return what a cell means, as far as this picture has it."""
    threads = max((len(core.processors) for box in shape.boxes for core in box.cores), default=1)
    parts = ["a cell is a core" + (", a letter one of its processors" if threads > 1 else "")]
    if shape.processors_unused:
        parts.append("- is nobody's")
    return Text("; ".join(parts), "dim")


TENANTS = (
    Column("letter", "tenant", left=True),
    Column("tenant", ""),
    Column("processors", "processors", left=True),
    *(Column(key, key) for key in ("cores", "nodes", "devices", "memory")),
)


def _tenants(shape: PlanShape, names: Names) -> Grid:
    """Return a row per tenant, and what is left over."""
    rows = [
        Row(
            {
                "letter": Cell(names.of(tenant.tenant), style=str(style_of(tenant.tenant))),
                "tenant": Cell(str(tenant.tenant)),
                "processors": Cell(tenant.processors),
                "cores": Cell(str(tenant.core_total)),
                "nodes": Cell(tenant.nodes),
                "devices": Cell(",".join(tenant.devices) or ABSENT),
                "memory": Cell(_size(tenant.memory_bytes)),
            }
        )
        for tenant in shape.tenants
    ]
    devices = chain(shape.homeless_devices, *(box.devices for box in shape.boxes))
    idle = ",".join(device.label for device in devices if not device.tenants)
    if shape.processors_unused or idle:
        left = dict.fromkeys(("cores", "nodes", "memory"), ABSENT)
        left |= {"letter": "nobody", "processors": shape.processors_unused or ABSENT, "devices": idle or ABSENT}
        rows.append(Row({key: Cell(text, style="dim") for key, text in left.items()}))
    return Grid(TENANTS, [RowGroup(rows)])


def _memory(shape: PlanShape, names: Names, width: int) -> Iterator[Text]:
    """Yield a bar of the machine's memory, where its tenants fit one, and its sum."""
    each, total = shape.tenants[0].memory_bytes, len(shape.tenants)
    parts = [(each, names.of(tenant.tenant)[0], style_of(tenant.tenant)) for tenant in shape.tenants]
    parts += [(shape.memory_unused_bytes, _UNUSED, style_of(None)), (shape.reserve_bytes, _RESERVE, style_of(None))]
    title = "memory  "
    room = width - len(title)
    bar, done = Text(title), 0
    for size, letter, style in parts:
        done += size
        end = (2 * room * done + shape.memory_bytes) // (2 * shape.memory_bytes)
        bar.append(letter * (end + len(title) - len(bar)), style)
    if total * 2 <= room:
        yield bar
    summands = [f"{total} x {_size(each)}", f"{_size(shape.reserve_bytes)} in reserve ({_RESERVE})"]
    if shape.memory_unused_bytes >> 20:
        summands.append(f"{_size(shape.memory_unused_bytes)} unused{f' ({_UNUSED})' if _UNUSED in bar.plain else ''}")
    yield Text(f"{_size(shape.memory_bytes)} = {' + '.join(summands)}")


def _size(size_bytes: int) -> str:
    """Return `122.1 GiB`: four digits, in MiB below one GiB."""
    scale, unit = (1 << 30, "GiB") if size_bytes >= 1 << 30 else (1 << 20, "MiB")
    return f"{f'{size_bytes / scale:#.4g}'.rstrip('.')} {unit}"


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
