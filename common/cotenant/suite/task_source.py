"""What a benchmark's source says of it, read without importing it: torch takes seconds."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cotenant.files import open_regular

MOST_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class TaskSource:
    """`trains`: the first paragraph of the benchmark's docstring. `item`: what its rate counts; empty if unknown."""

    trains: str = ""
    item: str = ""


def task_of(command: Path) -> Path | None:
    """Return the file of the benchmark that a command starts: itself, or the main.py that a script names beside it."""
    if command.suffix == ".py":
        return command if b"cotenant.bench" in _content(command) else None
    task = command.with_name("main.py")
    return task if b"main.py" in _content(command) and b"cotenant.bench" in _content(task) else None


def source_of(task: Path) -> TaskSource:
    """Return what the file of a benchmark says of it; nothing where that is no Python."""
    try:
        module = ast.parse(_content(task))
    except (SyntaxError, ValueError):
        return TaskSource()
    paragraph = (ast.get_docstring(module) or "").partition("\n\n")[0]
    return TaskSource(" ".join(paragraph.split()), next(_items(module), "item"))


def _items(module: ast.Module) -> Iterator[str]:
    """Yield what the classes of a module count (`item = "image"`)."""
    for statement in (line for each in module.body if isinstance(each, ast.ClassDef) for line in each.body):
        match statement:
            case ast.Assign([ast.Name("item")], ast.Constant(str(item))):
                yield item
            case ast.AnnAssign(ast.Name("item"), _, ast.Constant(str(item))):
                yield item


def _content(path: Path) -> bytes:
    try:
        with open_regular(path, follow=True) as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""
