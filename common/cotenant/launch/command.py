"""Resolves a job's `cmd`, or a command of `exec`, to an executable, and reads requests from its words."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from cotenant.errors import CotenantError, did_you_mean
from cotenant.exec import supervise
from cotenant.suite.foreign import Foreign
from cotenant.suite.installed import installed_benchmarks, installed_program
from cotenant.suite.variables import value_behind

_VERSIONS = """
import sys
from importlib import metadata
try:
    torch = "torch " + metadata.version("torch")
except metadata.PackageNotFoundError:
    torch = "without torch"
print("{} ({}, {})".format(sys.executable, sys.version.split()[0], torch))
"""
BATCH_FLAGS = ("--batch-size", "-b")
WORKERS_FLAGS = ("--workers", "-j")


def resolve_command(cmd: str, job: str, suite: Path, checkout: Path) -> Path:
    """Return the executable: looked up beside the job file, then under `tasks/`, then in the checkout.

    The last place is the benchmarks of other packages, by name; `interpreter` runs such a file.
    Raises CotenantError if it does not exist, or cannot be executed.
    """
    folders = [suite.parent, checkout / "tasks", checkout]
    for folder in folders:
        # Links are not resolved: a linked interpreter is another program than its target.
        path = (folder / cmd).absolute()
        if os.path.isfile(path):  # noqa: PTH113 # is_file raises for a name that is too long, or in a closed folder
            if not os.access(path, os.X_OK):
                raise CotenantError(f"Job '{job}': {path} is not executable.", f"chmod +x {path}")
            return path
    if (program := installed_program(cmd)) is not None:
        return program
    names = installed_benchmarks()
    names += sorted(str(path.relative_to(checkout / "tasks")) for path in checkout.glob("tasks/*/*/pytorch/run*.sh"))
    remedy = did_you_mean(cmd.removeprefix("./"), names)
    raise CotenantError(
        f"Job '{job}': there is no '{cmd}' beside {suite.name}, under tasks/ or in the checkout.",
        remedy or "A cmd is a path to an executable, or the name of an installed benchmark.",
    )


def callers_path() -> str:
    """Return the PATH of the caller: `uvx` puts the directory of its own environment, which lacks torch, before it."""
    path = os.environ.get("PATH", os.defpath)
    first, _, rest = path.partition(os.pathsep)
    # `uv run` activates its environment, as a shell does; `uvx` (uv 0.5 to 0.13) only prepends it.
    runs_a_tool = "UV" in os.environ and os.environ.get("VIRTUAL_ENV") != sys.prefix
    return rest if runs_a_tool and Path(first) == Path(sys.prefix, "bin") else path


def resolve_foreign(foreign: Foreign) -> Path:
    """Return the path of a command's first word, by the caller's PATH. Raises CotenantError."""
    name = foreign.words[0]
    if (path := shutil.which(name, path=callers_path())) is None:
        there = os.path.exists(name)  # noqa: PTH110 # It returns False for a word that is too long for a path.
        remedy = f"chmod +x {name}, or name its interpreter before it." if there else "Type it as in a shell."
        raise CotenantError(f"{name!r} is no program that can be run.", remedy)
    return Path(path).absolute()


@functools.cache
def callers_python(name: str) -> str:
    """Describe the Python that a command's first word is, else the one on the caller's PATH, which another program may
    start; "" if none answers."""
    itself = re.fullmatch(r"python[\d.]*", Path(name).name)
    names = [name] if itself else ["python", "python3"]
    path = next(filter(None, (shutil.which(python, path=callers_path()) for python in names)), None)
    try:
        line = [path or "", "-c", _VERSIONS]
        answer = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"python{'' if itself else ' on PATH'}: {answer.stdout.strip()}"


def supervised(foreign: Foreign, command: Path, tenant: int, uid: int) -> list[str]:
    """Return a tenant's command line: our process, then the program with the arguments of this copy."""
    return [sys.executable, "-I", "-S", supervise.__file__, str(command), *foreign.words_of(tenant, uid)[1:]]


def interpreter(command: Path) -> list[str]:
    """Return the words before a command: an interpreter for a module of an installed package, else none."""
    return [] if os.access(command, os.X_OK) else [sys.executable]


def number_behind(words: Sequence[str], *flags: str) -> int:
    """Return the last number behind one of a flag's names, with a space or `=` between; 0 if there is none."""
    value = value_behind(words, *flags)
    return int(value) if value.isdecimal() else 0
