"""What a benchmark's program imports, read from its source: nothing is imported to find out."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import accumulate
from pathlib import Path

from cotenant.checkout import SOURCE_ROOT

_EXCUSED = {"ImportError", "ModuleNotFoundError", "Exception"}


def missing_packages(command: Path) -> tuple[str, ...]:
    """Return the packages that `command`, or the `main.py` beside it, imports and that are not installed.

    The modules and packages beside it count, too; an import whose failure is caught does not.
    """
    program = command if command.suffix == ".py" else command.parent / "main.py"
    return tuple(sorted(name for name in _packages(program) if not _installed(name)))


@cache
def _packages(program: Path) -> frozenset[str]:
    """Return the top-level packages that a program, what lies beside it and the modules of cotenant import."""
    found: set[str] = set()
    waiting, seen = [program], {program}
    while waiting:
        file = waiting.pop()
        # Of cotenant what is imported at once: most functions in it are of no use to this program.
        for name in _imports(file, everywhere=file.parent == program.parent):
            package = name.partition(".")[0]
            ours = _files_of(SOURCE_ROOT if package == "cotenant" else program.parent, name)
            found |= set() if ours else {package}
            waiting += set(ours) - seen
            seen |= set(ours)
    return frozenset(found - {"cotenant"} - sys.stdlib_module_names)


def _files_of(root: Path, dotted: str) -> list[Path]:
    """Return the files of a module below `root`, its packages included; the last word may be something in a module."""
    places = list(accumulate(dotted.split("."), Path.joinpath, initial=root))[1:]
    files = [file for place in places for file in (place / "__init__.py", place.with_suffix(".py"))]
    return [file for file in files if file.is_file()]


def _imports(file: Path, everywhere: bool) -> Iterator[str]:
    """Yield the dotted names that a file imports, also within functions where `everywhere`."""
    try:
        waiting: list[ast.AST] = [ast.parse(file.read_bytes())]
    except (OSError, SyntaxError, ValueError):
        return
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif not _optional(node) and (everywhere or not isinstance(node, ast.FunctionDef)):
            waiting += ast.iter_child_nodes(node)


def _optional(node: ast.AST) -> bool:
    """Is what this node imports not needed: for types only, or with a way out where it is missing?"""
    if isinstance(node, ast.If):
        return ast.unparse(node.test).endswith("TYPE_CHECKING")
    if not isinstance(node, ast.Try):
        return False
    caught = (ast.unparse(handler.type) if handler.type else "Exception" for handler in node.handlers)
    return any(_EXCUSED & set(re.findall(r"\w+", names)) for names in caught)


@cache
def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
