"""What an acceptance run keeps: rows of JSON, one a line, each on the disk before the next thing is done."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PASS, FAIL, SKIP = "PASS", "FAIL", "SKIP"
BEGIN, VERDICT, CHECKS = "begin", "verdict", "checks"
"""Tables of every part: when it began, how it ended, and what it looked at."""


@dataclass(frozen=True)
class Verdict:
    """PASS, FAIL or SKIP, and the sentence that says why."""

    word: str
    sentence: str


class Skip(Exception):  # noqa: N818
    """Raised in a part, or in one of its checks, that cannot be had here; says why."""


class Book:
    """The rows of one results folder. Each has a `part`, a `table` of it, and what that table's columns hold."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "results.jsonl"

    def add(self, part: str, table: str, **columns: Any) -> None:
        """Append a row and wait until the disk has it: the machine may be taken away at any moment."""
        line = json.dumps({"part": part, "table": table, **columns}, default=str)
        with self.path.open("a+b") as file:
            # A line that was cut off by a kill must not swallow this one.
            end = file.seek(0, os.SEEK_END)
            if end:
                file.seek(end - 1)
                if file.read(1) != b"\n":
                    file.write(b"\n")
            file.write(line.encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def rows(self, part: str, table: str | None = None) -> list[dict[str, Any]]:
        """Return a part's rows since it last began, of one table or of all."""
        kept: list[dict[str, Any]] = []
        for row in self._all():
            if row["part"] == part:
                kept = [] if row["table"] == BEGIN else kept
                kept.append(row)
        return [row for row in kept if table in (None, row["table"])]

    def verdict(self, part: str) -> dict[str, Any] | None:
        """Return the row of a part's verdict, None where it never came to one."""
        return next(reversed(self.rows(part, VERDICT)), None)

    def _all(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        for line in self.path.read_text(errors="replace").splitlines():
            try:
                row = json.loads(line)
            except ValueError:
                continue  # Cut off by a kill.
            if isinstance(row, dict) and {"part", "table"} <= row.keys():
                yield row


def replace(path: Path, text: str) -> None:
    """Write a file so that whoever reads it finds the old one or the new one, also after a power cut."""
    aside = path.with_name(f"{path.name}.new")
    with aside.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)


def overall(checks: list[dict[str, Any]]) -> Verdict:
    """Return a part's verdict from its checks: one that fails is enough, and one that passes where none fails.

    Of a check that was made again the last time counts.
    """
    checks = list({row["check"]: row for row in checks}.values())
    by_word = {word: [row for row in checks if row["verdict"] == word] for word in (FAIL, PASS, SKIP)}
    failed, passed, skipped = by_word[FAIL], by_word[PASS], by_word[SKIP]
    if failed:
        more = f" ({len(failed)} of {len(checks)} checks failed)" if len(failed) > 1 else ""
        return Verdict(FAIL, f"{failed[0]['check']}: {failed[0]['sentence']}{more}")
    if passed:
        names = ", ".join(row["check"] for row in skipped)
        less = f"; not looked at: {names}" if skipped else ""
        return Verdict(PASS, f"{len(passed)} of {len(checks)} checks passed{less}.")
    if skipped:
        reasons = dict.fromkeys(row["sentence"] for row in skipped)
        return Verdict(SKIP, " ".join(reasons))
    return Verdict(FAIL, "It looked at nothing.")
