"""Draws `docs/architecture.svg`: the rooms of the package in layers, with arrows for the imports between them.

Run `python scripts/architecture.py` after a change of the rooms; the tests hold the arrows against LAYERS.
"""

from __future__ import annotations

import ast
import functools
import math
import sys
from collections import defaultdict
from pathlib import Path
from xml.sax.saxutils import escape

CHECKOUT = Path(__file__).resolve().parents[1]
PACKAGE = CHECKOUT / "common" / "cotenant"
PICTURE = CHECKOUT / "docs" / "architecture.svg"
GROUND = (
    "errors",
    "finding",
    "text",
    "procfs",
    "files",
    "nesting",
    "decoding",
    "checkout",
    "choices",
    "confidential",
    "removed",
    "frames",
)
BESIDE = {"cli": "commands", "__main__": "commands", "chrono": "exec"}
"""The room of each file that lies beside the rooms and is not of the ground."""
LAYERS = (
    ("commands", "layers"),
    ("api", "questions"),
    ("report", "launch", "bench", "proof"),
    ("findings", "meters", "fleet"),
    ("results", "isolation", "datasets", "nodes", "exec"),
    ("stats", "suite", "machine", "protocol"),
    ("ground",),
)
"""From the top; an arrow runs downwards only. `ground` stands for the files that every room may use."""
TASKS_OF_ROOMS = {
    "commands": "one file a command",
    "api": "what `import cotenant` offers",
    "report": "views, pages, pictures",
    "proof": "archives that others verify",
    "launch": "start, GO, stop, reaper",
    "exec": "any program as a tenant",
    "bench": "the measured loop; torch",
    "layers": "parts of tasks' Transformers",
    "findings": "rules on numbers and hosts",
    "fleet": "nodes of Ray",
    "results": "records and the one table",
    "isolation": "plan, cgroups, entering",
    "meters": "load, power, devices",
    "questions": "the fastest batch size",
    "suite": "job file to cells",
    "stats": "numbers in, numbers out",
    "machine": "what this host is",
    "protocol": "READY, GO, DONE, STOP",
    "nodes": "which of several hosts",
    "datasets": "make, fetch, check",
    "ground": ", ".join(GROUND),
}


@functools.cache
def imported(path: Path) -> set[str]:
    """Return the modules that a file imports, also in functions or only for types, and the names it takes from them."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            assert node.module is not None
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def modules() -> dict[str, Path]:
    """Return every module and package below ours by its dotted name."""
    paths = sorted(set(PACKAGE.rglob("*.py")) - {PACKAGE / "__init__.py"})
    names = (".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in paths)
    return dict(zip((name.removesuffix(".__init__") for name in names), paths, strict=True))


def arrows_between_files() -> dict[str, set[str]]:
    """Return for each module of the package the modules of the package that it imports."""
    known = modules()
    return {name: (imported(path) & known.keys()) - {name} for name, path in known.items()}


def room_of(module: str) -> str:
    """Return the room of a module of the package, also if its file lies beside the rooms."""
    place = module.split(".")[1]
    return "ground" if place in GROUND else BESIDE.get(place, place)


def arrows_between_rooms() -> dict[tuple[str, str], int]:
    """Return the number of imports from one room to another."""
    counts: dict[tuple[str, str], int] = defaultdict(int)
    for module, targets in arrows_between_files().items():
        for target in targets:
            ends = room_of(module), room_of(target)
            if ends[0] != ends[1]:
                counts[ends] += 1
    return dict(counts)


def circles() -> list[list[str]]:
    """Return the groups of files that import each other in a cycle (Tarjan, 1972: strongly connected components)."""
    targets = arrows_between_files()
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    groups: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        stack.append(module)
        for target in targets[module]:
            if target not in number:
                visit(target)
            if target in stack:
                low[module] = min(low[module], low[target])
        if low[module] == number[module]:
            group = stack[stack.index(module) :]
            del stack[-len(group) :]
            if len(group) > 1:
                groups.append(sorted(group))

    for module in targets:
        if module not in number:
            visit(module)
    return groups


HEAD = (
    '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto" '
    'markerUnits="userSpaceOnUse"><path d="M0,0 L8,4 L0,8 z" fill="#5b7083"/></marker></defs>'
)
WIDTH, ROOM_WIDTH, ROOM_HEIGHT, LAYER_HEIGHT = 1000, 190, 52, 112
LETTER_WIDTH, MARGIN = 6.4, 10
"""Pixels: the mean width of a letter of 11 px in a wide font, and the free space left and right of a line together."""


def picture() -> str:
    """Return the drawing: a box per room with its numbers of files and lines, and arrows, thicker for more imports."""
    place = {
        room: (WIDTH * (2 * index + 1) / (2 * len(rooms)), 40 + layer * LAYER_HEIGHT)
        for layer, rooms in enumerate(LAYERS)
        for index, room in enumerate(rooms)
    }
    sizes: dict[str, list[int]] = defaultdict(list)
    for module, path in modules().items():
        sizes[room_of(module)].append(path.read_text().count("\n"))
    height = 40 + len(LAYERS) * LAYER_HEIGHT - 20
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif">',
        HEAD,
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    # Arrows to the ground are left out: every room has one.
    for (source, target), count in sorted(arrows_between_rooms().items()):
        if source in place and target in place and target != "ground":
            lines.append(_arrow(place[source], place[target], count))
    for room, (x, y) in place.items():
        lines += _room(room, x, y, sizes[room])
    return "\n".join([*lines, "</svg>", ""])


def _arrow(source: tuple[float, float], target: tuple[float, float], count: int) -> str:
    (x0, y0), (x1, y1) = (source[0], source[1] + ROOM_HEIGHT), (target[0], target[1] - 2)
    bend = (y1 - y0) * 0.45
    stroke = 0.8 + min(count, 40) / 16
    return (
        f'<path d="M{x0:.0f},{y0:.0f} C{x0:.0f},{y0 + bend:.0f} {x1:.0f},{y1 - bend:.0f} {x1:.0f},{y1:.0f}" '
        f'fill="none" stroke="#5b7083" stroke-opacity="0.55" stroke-width="{stroke:.1f}" marker-end="url(#head)"/>'
    )


def _room(room: str, x: float, y: float, files: list[int]) -> list[str]:
    width = max(ROOM_WIDTH, math.ceil(len(TASKS_OF_ROOMS[room]) * LETTER_WIDTH) + MARGIN)
    left = x - width / 2
    size = f"{len(files)} files, {sum(files):,} lines"
    box = f'x="{left:.0f}" y="{y:.0f}" width="{width}" height="{ROOM_HEIGHT}" rx="6"'
    return [
        f'<rect {box} fill="#eef4f8" stroke="#2f5d7c"/>',
        f'<text x="{x:.0f}" y="{y + 18:.0f}" text-anchor="middle" font-size="14" font-weight="bold">{room}</text>',
        f'<text x="{x:.0f}" y="{y + 33:.0f}" text-anchor="middle" font-size="11">{escape(TASKS_OF_ROOMS[room])}</text>',
        f'<text x="{x:.0f}" y="{y + 46:.0f}" text-anchor="middle" font-size="10" fill="#555">{size}</text>',
    ]


def main() -> int:
    PICTURE.write_text(picture())
    return 0


if __name__ == "__main__":
    sys.exit(main())
