"""Caches which arguments benchmarks refuse, by a hash of everything that such an answer depends on.

That is the benchmark's files and ours, the interpreter and the places of its packages, the environment, the directory,
this host, and the words of the launch. A benchmark that reads other files is asked every time (bench/refusals.py).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from cotenant.checkout import CHECKOUT, SOURCE_ROOT
from cotenant.files import Directory, content_of
from cotenant.machine.topology import Machine

NAME = "refusals.json"
MOST_BYTES = 4 << 20
MOST_KEPT = 4000
"""Most answers; the oldest are removed first. A suite of the reference has some sixty."""
OF_SHELLS = {"_", "SHLVL", "OLDPWD", "PWD"}
"""Variables that change with every shell command without effect on an answer; the directory counts by itself."""
WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class AnswerCache:
    """Answers by their hash, in a directory that only this user can write: other users' files are not read."""

    def __init__(self, machine: Machine) -> None:
        self._surroundings = _surroundings(machine)
        self._kept = _read()

    def key(self, task: Path, words: Sequence[str]) -> str:
        """Return the hash of the question which of these words a benchmark refuses, with its present surroundings."""
        return _hash(self._surroundings, _hash_of_files(sorted(task.parent.glob("*.py"))), str(task), *words)

    def get(self, key: str) -> str | None:
        """Return the answer, empty if nothing is refused; None if it is not known."""
        return self._kept.get(key)

    def add(self, answers: Mapping[str, str]) -> None:
        """Store these answers, too. If they cannot be written, the benchmarks are asked again."""
        kept = {key: answer for key, answer in self._kept.items() if key not in answers} | dict(answers)
        self._kept = dict(list(kept.items())[-MOST_KEPT:])
        with suppress(OSError, RuntimeError):
            cache_place().mkdir(mode=0o700, parents=True, exist_ok=True)
            with _own_directory() as directory:
                directory.write(NAME, json.dumps(self._kept).encode())


def cache_place() -> Path:
    """Return the directory: in the user's own cache (XDG Base Directory Specification). Raises RuntimeError."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache").absolute() / "cotenant"


@contextmanager
def _own_directory() -> Iterator[Directory]:
    """Yield the directory. Raises PermissionError if another user owns it, or may write there."""
    with Directory(cache_place()) as directory:
        found = os.fstat(directory.fileno())
        if found.st_uid != os.geteuid() or found.st_mode & WRITABLE_BY_OTHERS:
            raise PermissionError(f"{directory} is not this user's alone")
        yield directory


def _read() -> dict[str, str]:
    """Return the stored answers; none if another user made the file, or if it is damaged."""
    with suppress(OSError, RuntimeError, ValueError), _own_directory() as directory, directory.open(NAME) as file:
        found = os.fstat(file.fileno())
        kept = json.loads(file.read(MOST_BYTES)) if found.st_uid == os.geteuid() else {}
        if isinstance(kept, dict) and all(isinstance(answer, str) for answer in kept.values()):
            return kept
    return {}


def _surroundings(machine: Machine) -> str:
    """Return a hash of everything on which all answers depend."""
    variables = sorted(f"{name}={value}" for name, value in os.environ.items() if name not in OF_SHELLS)
    # To install, remove or move a package changes the modification time of its directory.
    places = [f"{place} {_changed_ns(place)}" for place in sys.path if place and Path(place) != CHECKOUT]
    own = _hash_of_files(sorted((SOURCE_ROOT / "cotenant").rglob("*.py")))
    return _hash(sys.version, sys.executable, repr(machine), os.getcwd(), own, *places, "", *variables)  # noqa: PTH109


def _changed_ns(place: str) -> int:
    try:
        return Path(place).stat().st_mtime_ns
    except OSError:
        return 0


def _hash_of_files(files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with suppress(OSError):
            content = hashlib.sha256(content_of(path, follow=True)).digest()
            digest.update(f"{path}\0".encode(errors="surrogateescape") + content)
    return digest.hexdigest()


def _hash(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
