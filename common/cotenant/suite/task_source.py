"""Reads a benchmark's source without importing it: torch takes seconds."""

from __future__ import annotations

import ast
import functools
import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from cotenant.files import content_of

MOST_BYTES = 1 << 20
LAYERS = Path(__file__).parents[1] / "layers"
HARNESS = LAYERS.with_name("bench")
LAYERS_MODULE = "cotenant.layers."


@dataclass(frozen=True, slots=True)
class TaskSource:
    """`trains`: the first paragraph of the benchmark's docstring. `item`: the unit of its rate; empty if unknown."""

    trains: str = ""
    item: str = ""


def task_of(command: Path) -> Path | None:
    """Return the benchmark's file that a command starts: the command, or the main.py that a script names beside it."""
    if command.suffix == ".py":
        return command if b"cotenant.bench" in _content(command) else None
    task = command.with_name("main.py")
    return task if b"main.py" in _content(command) and b"cotenant.bench" in _content(task) else None


def version_of(task: Path) -> str:
    """Return a hash over the Python files beside a benchmark and the layers they import, to detect changed work."""
    files = sorted(task.parent.glob("*.py"))
    layers, new = set[Path](), {layer for file in files for layer in _layers(file)}
    while new:
        layers |= new
        new = {layer for file in new for layer in _layers(file)} - layers
    return _hash([*files, *sorted(layers)])


@functools.cache
def harness_version() -> str:
    """Return a hash over the Python files of cotenant.bench, which makes every observation; it imports none of them."""
    return _hash(sorted(HARNESS.glob("*.py")))


def _hash(paths: Iterable[Path]) -> str:
    content = b"".join(path.name.encode() + b"\0" + path.read_bytes() for path in paths)
    return hashlib.sha256(content).hexdigest()[:16]


def source_of(task: Path) -> TaskSource:
    """Return a benchmark's own description from its file; empty if that is not Python."""
    if (module := _module(task)) is None:
        return TaskSource()
    paragraph = (ast.get_docstring(module) or "").partition("\n\n")[0]
    return TaskSource(" ".join(paragraph.split()), next(_items(module), "item"))


def _layers(file: Path) -> Iterator[Path]:
    """Yield the files of the layers that a file imports."""
    module = _module(file) if LAYERS_MODULE[:-1].encode() in _content(file) else None
    for statement in ast.walk(module) if module is not None else ():
        match statement:
            case ast.Import(names):
                imported = [alias.name for alias in names]
            case ast.ImportFrom(str(origin), names):
                imported = [origin, *(f"{origin}.{alias.name}" for alias in names)]
            case _:
                continue
        for name in imported:
            path = LAYERS / f"{name.removeprefix(LAYERS_MODULE)}.py"
            if name.startswith(LAYERS_MODULE) and path.is_file():
                yield path


def _items(module: ast.Module) -> Iterator[str]:
    """Yield the items that the classes of a module count (`item = "image"`)."""
    for statement in (line for node in module.body if isinstance(node, ast.ClassDef) for line in node.body):
        match statement:
            case ast.Assign([ast.Name("item")], ast.Constant(str(item))):
                yield item
            case ast.AnnAssign(ast.Name("item"), _, ast.Constant(str(item))):
                yield item


def _module(path: Path) -> ast.Module | None:
    """Return the syntax tree of a file; None if it is not Python."""
    try:
        return ast.parse(_content(path))
    except (SyntaxError, ValueError):
        return None


def _content(path: Path) -> bytes:
    try:
        return content_of(path, MOST_BYTES, follow=True)
    except OSError:
        return b""
