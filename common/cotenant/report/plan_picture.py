"""The picture of a plan: sockets and nodes as boxes, cores as cells, and below them each tenant's part.

Tenants are letters, which colours only repeat, so that the picture is also readable in a file. Tenants that share
processors have the same letter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import StringIO
from itertools import chain, groupby
from string import ascii_letters
from typing import Any

from rich import console as rich_console
from rich.box import ROUNDED
from rich.columns import Columns
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.text import Text

from cotenant.report.numbers import ABSENT
from cotenant.report.renderers import may_leave, terminal
from cotenant.report.view import STYLES, Cell, Column, View
from cotenant.text import joined, many

Document = Mapping[str, Any]
"""The document that `plan --json` prints, or a part of it."""
Letters = Mapping[int | None, tuple[str, str]]
"""The letter and the colour of each tenant, by its part of the processors; under None, those of free cores."""

WIDEST = 120
_FRAME = 4  # a box's two borders and the spaces inside them
_GAP = "  "
_NOBODY = "-"
_LETTERS = ascii_letters.swapcase()
# Pastels on which black is legible, unlike their neighbours; they repeat after the twelfth tenant, letters do not.
_COLOURS = (117, 215, 150, 218, 229, 147, 80, 209, 186, 182, 115, 252)
_ROW = 32
"""Most cores in a row."""


def plan_text(plan: Document) -> str:
    """Return the text that `print_plan` prints without a terminal."""
    text = StringIO()
    # In a notebook rich would display the text instead of printing it.
    print_plan(plan, Console(file=text, width=WIDEST, color_system=None, force_jupyter=False))
    return text.getvalue()


def print_plan(plan: Document, console: Console | None = None) -> None:
    """Print the machine, the slices and the findings, at most 120 columns wide."""
    console = console or Console()
    width = min(console.width, WIDEST)
    with may_leave():
        for part in _parts(plan, width):
            # A file has no width to fit: a finding is one line, however long.
            unbound = isinstance(part, Text) and (bool(part.no_wrap) or not console.is_terminal)
            console.print(part, highlight=False, soft_wrap=unbound, width=width)


def _parts(plan: Document, width: int) -> Iterator[RenderableType]:
    yield from _heading(plan)
    yield ""
    yield _boxes(plan, width)
    threads = max(len(core["processors"]) for core in _cores(plan["boxes"]))
    key = f"a cell is a core{', a letter one of its processors' if threads > 1 else ''}"
    yield Text(f"{key}; {_NOBODY} is nobody's" if plan["processors_unused"] else key, "dim")
    yield ""
    yield from terminal(_tenants(plan), width)
    yield ""
    yield Text(_memory(plan))
    if plan["findings"]:
        yield ""
    for finding in sorted(plan["findings"], key=lambda finding: list(STYLES).index(finding["severity"])):
        severity, text = finding["severity"], f"{finding['sentence']} {finding['remedy']}".rstrip()
        yield Text.assemble((f"{severity}: ", STYLES[severity]), text)


def _heading(plan: Document) -> Iterator[Text]:
    boxes, tenants = plan["boxes"], plan["tenants"]
    online, usable = plan["processors_online"], plan["processors_usable"]
    counts = [
        f"{usable} of {many(online, 'processor')}" if usable < online else many(usable, "processor"),
        many(len(_cores(boxes)), "core"),
        many(len({box["package"] for box in boxes} - {None}), "socket"),
        many(len({box["node"] for box in boxes}), "node"),
        _size(plan["memory_bytes"]),
    ]
    yield Text.assemble((plan["hostname"], "bold"), f": {plan['model_name']}")
    yield Text(", ".join(counts))
    share = f"{many(tenants[0]['processor_total'], 'processor')} and {_size(tenants[0]['memory_bytes'])}"
    how = "whole cores first" if plan["policy"] == "cores" else "consecutive ids"
    yield Text(f"{many(len(tenants), 'user')} with {share}{' each' if len(tenants) > 1 else ''}, {how}")
    if (sharers := tenants[0]["sharers"]) > 1:
        yield Text(f"shared: {sharers} users have the same processors, each its own memory")
    yield Text(joined("; not held: ", f"isolation {plan['backend']}", ", ".join(plan["unenforced"])))


def _cores(boxes: Iterable[Document]) -> list[Document]:
    return list(chain.from_iterable(box["cores"] for box in boxes))


def _boxes(plan: Document, width: int) -> Columns:
    """Return a box for each socket's part of a node, all as wide as the widest, as many per line as fit.

    Each row of a box begins with its first processor's number. A single node's memory is in the heading.
    """
    boxes, letters, room = plan["boxes"], _letters(plan), width - _FRAME
    several = len({box["node"] for box in boxes}) > 1
    ids = max(len(str(core["processors"][0])) for core in _cores(boxes))
    shown: list[tuple[str, list[Text]]] = []
    for box in boxes:
        socket = "" if box["package"] is None else f"socket {box['package']}"
        size = _size(box["memory_bytes"]) if box["memory_bytes"] else ""
        node = joined(", ", f"node {box['node']}", size) if several else ""
        rows = [*_core_rows(box["cores"], letters, ids, room)] or [Text("no processors", "dim")]
        shown.append((joined(", ", socket, node), [*rows, *_device_lines(box["devices"], letters, room)]))
    if homeless := plan["homeless_devices"]:
        shown.append(("on an unknown node", _device_lines(homeless, letters, room)))
    widest = max(max(len(title) + 2, *(line.cell_len for line in lines)) for title, lines in shown)
    wide = min(width, widest + _FRAME)
    panels = [
        Panel(rich_console.Group(*lines), title=title, title_align="left", box=ROUNDED, width=wide)
        for title, lines in shown
    ]
    return Columns(panels, padding=0)


def _letters(plan: Document) -> Letters:
    parts = {tenant["tenant"]: tenant["part"] for tenant in plan["tenants"]}
    total = len(set(parts.values()))
    letters = {
        tenant: (letters_of(part, total), f"black on color({_COLOURS[part % len(_COLOURS)]})")
        for tenant, part in parts.items()
    }
    return letters | {None: (letters_of(None, total), "dim")}


def _core_rows(cores: Sequence[Document], letters: Letters, ids: int, width: int) -> Iterator[Text]:
    """Yield rows of cores with equally many processors and one kind: all in a row, or a power of two in each."""
    for (threads, kind), group in groupby(cores, key=lambda core: (len(core["processors"]), core["kind"])):
        alike = list(group)
        behind = f"{_GAP}{kind}" if kind else ""
        room = width - ids - len(_GAP + behind)
        most = max(1, min(_ROW, (room + 1) // (threads * len(letters[None][0]) + 1)))
        per_row = len(alike) if len(alike) <= most else 1 << (most.bit_length() - 1)
        for start in range(0, len(alike), per_row):
            row = alike[start : start + per_row]
            cells = Text(" ").join(
                Text.assemble(*(letters[sharers[0] if sharers else None] for sharers in core["tenants"]))
                for core in row
            )
            first = str(row[0]["processors"][0]).rjust(ids)
            yield Text.assemble((first, "dim"), _GAP, cells, (behind, "dim"))


def _device_lines(devices: Sequence[Document], letters: Letters, room: int) -> list[Text]:
    """Return a line for each device model with its devices and their tenants: `NVIDIA H200  0 A  1 B`."""
    lines: list[Text] = []
    for name, group in groupby(devices, key=lambda device: str(device["name"])):
        cells = Text(_GAP).join(
            Text.assemble(f"{device['label']} ", *dict.fromkeys(letters[user] for user in device["tenants"] or [None]))
            for device in group
        )
        line = Text.assemble((name, "italic"), _GAP, cells)
        lines += [line] if line.cell_len <= room else [Text(name, "italic"), cells]
    return lines


HEADINGS = ("", "user", "processors", "shared by", "cores", "nodes", "devices", "memory")


def _tenants(plan: Document) -> View:
    """Return a row per tenant, and one for the processors and devices without a tenant."""
    letters, lines = _letters(plan), list[list[Cell]]()
    for tenant in plan["tenants"]:
        letter, style = letters[tenant["tenant"]]
        words = (
            tenant["tenant"],
            tenant["processors"],
            tenant["sharers"] if tenant["sharers"] > 1 else "",
            tenant["core_total"],
            tenant["nodes"],
            ",".join(tenant["devices"]) or ABSENT,
            _size(tenant["memory_bytes"]),
        )
        lines.append([Cell(letter, style=style), *(Cell(str(word)) for word in words)])
    everything = chain(plan["homeless_devices"], *(box["devices"] for box in plan["boxes"]))
    idle = ",".join(device["label"] for device in everything if not device["tenants"])
    if plan["processors_unused"] or idle:
        left = ("nobody", "", plan["processors_unused"] or ABSENT, "", ABSENT, ABSENT, idle or ABSENT, ABSENT)
        lines.append([Cell(word, style="dim") for word in left])
    columns = [
        Column(heading, show=lambda cell: cell, left=heading in ("", "processors"), optional=heading == "shared by")
        for heading in HEADINGS
    ]
    return View("slices", columns=columns, rows=[dict(zip(HEADINGS, line, strict=True)) for line in lines])


def _memory(plan: Document) -> str:
    tenants, unused = plan["tenants"], plan["memory_unused_bytes"]
    parts = joined(
        " + ",
        f"{len(tenants)} x {_size(tenants[0]['memory_bytes'])}",
        f"{_size(plan['reserve_bytes'])} in reserve",
        f"{_size(unused)} unused" if unused >> 20 else "",
    )
    return f"memory: {_size(plan['memory_bytes'])} = {parts}"


def _size(size_bytes: int) -> str:
    """Return `122.1 GiB`: four digits, in MiB below one GiB."""
    scale, unit = (1 << 30, "GiB") if size_bytes >= 1 << 30 else (1 << 20, "MiB")
    return f"{f'{size_bytes / scale:#.4g}'.rstrip('.')} {unit}"


def letters_of(tenant: int | None, total: int) -> str:
    """Return the name of one of `total` tenants: `A`, or `A0` if there are more than 52; dashes for None."""
    digits = len(str((total - 1) // len(_LETTERS))) if total > len(_LETTERS) else 0
    if tenant is None:
        return _NOBODY * (1 + digits)
    letter, number = divmod(tenant, 10**digits)
    return _LETTERS[letter] + str(number).zfill(digits)[:digits]
