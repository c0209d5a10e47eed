"""Records the start of a tenant's interpreter: variables and files that act before the benchmark, and their source."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cotenant.checkout import SOURCE_ROOT
from cotenant.confidential import is_confidential
from cotenant.exec.settings import HOOK
from cotenant.files import content_of
from cotenant.suite.task_source import harness_version

LOADERS = ("PYTHON", "LD_")
"""Prefixes of the variables that the interpreter and the dynamic linker obey (python(1), ld.so(8))."""
STARTUP = ("sitecustomize", "usercustomize")
"""The modules that `site` imports before a program, from anywhere on its path."""
OWN = HOOK / "sitecustomize.py"
"""Our own start-up file."""
MOST_BYTES = 1 << 20
CALLER, PROGRAM = "caller", "program"


def origin_of(pid: int) -> dict[str, Any]:
    """Return the variables of a process's start that can run or replace code, and the files that ran first.

    Each has its SHA-256 and its source: the caller, whose environment every tenant inherits, or the program, which is
    any script that ran before. Both parts are empty for a process that cannot be read.
    """
    there = _variables(pid)
    variables = {
        name: {
            "sha256": "" if is_confidential(name) else _sha256(os.fsencode(value)),
            "set_by": _setter(name, value),
        }
        for name, value in sorted(there.items())
        if name.startswith(LOADERS) and (name != "PYTHONPATH" or _places(value))
    }
    path = there.get("PYTHONPATH", "")
    hook = [str(HOOK)] if str(HOOK) in path.split(os.pathsep) else []
    files = {str(file): _described(content, path) for file, content in _startup_files([*hook, *_places(path)])}
    return {"harness": harness_version(), "variables": variables, "startup": files}


def _described(content: bytes, path: str) -> dict[str, str]:
    digest, set_by = _sha256(content), _setter("PYTHONPATH", path)
    ours = OWN.relative_to(SOURCE_ROOT).as_posix() if digest == _sha256(OWN.read_bytes()) else ""
    return {"sha256": digest, "set_by": set_by, "ours": ours}


def _setter(name: str, value: str) -> str:
    if name == "PYTHONPATH":
        return CALLER if set(_places(value)) <= set(_places(os.environ.get(name, ""))) else PROGRAM
    return CALLER if os.environ.get(name) == value else PROGRAM


def _places(path: str) -> list[str]:
    """Return the part of a PYTHONPATH that is not ours: every tenant gets our library or our hook before it."""
    places, ours = [place for place in path.split(os.pathsep) if place], (str(SOURCE_ROOT), str(HOOK))
    return [place for place in places if not Path(place).is_absolute() or os.path.realpath(place) not in ours]


def _startup_files(places: list[str]) -> Iterator[tuple[Path, bytes]]:
    for place in map(Path, places):
        for name in STARTUP:
            for file in (place / f"{name}.py", place / name / "__init__.py"):
                try:
                    yield file, content_of(file, MOST_BYTES, follow=True)
                except OSError:
                    continue


def _variables(pid: int) -> dict[str, str]:
    try:
        content = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return {}
    pairs = (os.fsdecode(text).partition("=") for text in content.split(b"\0") if text)
    return {name: value for name, _, value in pairs}


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
