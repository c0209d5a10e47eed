"""Values of decoded JSON, checked: a record may be another program's, cut off or damaged anywhere.

What is malformed is absent; the record says what it is worth without it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, get_args

import msgspec

from cotenant.finding import Finding, Severity
from cotenant.results.identity import unique_id
from cotenant.results.record import SOLO, Meeting, Number, Positive, Record, Whole

T = TypeVar("T")
Fields = Mapping[str, Any]

NAMED = 20
"""How many damaged parts of one file are named; the others are counted."""
_UID = re.compile(r"\.R(\d+)\.D")
_FAILED = re.compile(r"\.FAIL(\.\d{8}-\d{6}-\d+)?\.json$")
_OWN_FIELDS = frozenset(Record.__struct_fields__)


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or what of it could not be read, and why."""

    path: str
    reason: str

    def __str__(self) -> str:
        """The sentence that says so."""
        return f"{self.path}: {self.reason}; skipped."


def skipped_sentences(skipped: Sequence[Skipped]) -> list[str]:
    """Return a sentence each, and where there are several how many they are."""
    lines = list(map(str, skipped))
    return [*lines, f"{len(lines)} files or parts of files are skipped."] if len(lines) > 1 else lines


class ForeignError(ValueError):
    """This is no record of ours, nor of the original suite. The text says what is missing."""


def mapping_of(value: Any) -> Fields:
    """Return the value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """Return the text, or the whole number as text; what no UTF-8 can hold becomes an escape."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="backslashreplace").decode()
    return str(value) if isinstance(value, int) else ""


def part_of(value: Any, kind: type[T]) -> T | None:
    """Return the value as what it should be, or None where it is something else."""
    try:
        return None if value is None else msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError):
        return None


def has_uid(path: str) -> bool:
    """Whether the file's name says which repetition of the suite it is of."""
    return _UID.search(path) is not None


class Decoded:
    """One JSON object that is a record, the `number`-th of its file, and what several columns take from it."""

    def __init__(self, fields: Any, path: str = "", number: int | None = None) -> None:
        """Raises ForeignError where the object is no record."""
        if not isinstance(fields, Mapping):
            raise ForeignError("it is no JSON object")
        if not isinstance(fields.get("name"), str) or not fields["name"]:
            raise ForeignError("it has no `name`")
        if "train_item" not in fields and "outcome" not in fields:
            raise ForeignError("it has neither `train_item` nor `outcome`")
        self.fields: Fields = fields
        self.path = path
        self.number = number

    def at(self, *keys: str) -> Any:
        """Return what stands below these keys, None where nothing does."""
        value: Any = self.fields
        for key in keys:
            if not isinstance(value, Mapping) or key not in value:
                return None
            value = value[key]
        return value

    @functools.cached_property
    def completed(self) -> bool:
        """Three say so, and the worst is believed: a crashed job must not be reported as done."""
        completed = bool(self.fields.get("completed", part_of(self.at("train_item", "avg"), Positive)))
        return completed and text_of(self.at("outcome")) in ("", "completed") and not _FAILED.search(self.path)

    @property
    def outcome(self) -> str:
        outcome = text_of(self.at("outcome"))
        return "completed" if self.completed else outcome if outcome not in ("", "completed") else "failed"

    @property
    def run_id(self) -> int:
        uid = _UID.search(self.path)
        in_name = part_of(int(uid[1]), Whole) if uid else None
        return part_of(self.fields.get("run_id", self.fields.get("uid")), Whole) or in_name or 0

    @functools.cached_property
    def vcd(self) -> str:
        vcd = self.at("vcd")
        return ",".join(map(text_of, vcd)) if isinstance(vcd, list) else text_of(vcd)

    @property
    def group(self) -> str:
        return text_of(self.at("group")) or ("all" if "," in self.vcd else "student")

    @property
    def input(self) -> str:
        return "files" if self.at("data") else "resident" if "data" in self.fields else ""

    @property
    def meeting(self) -> Meeting | None:
        """How the tenant met the others, where that is possible."""
        return part_of(self.at("rendezvous"), Meeting)

    @functools.cached_property
    def findings(self) -> list[Finding]:
        """All of the record's; one of an unknown severity is information."""
        return [_finding(mapping_of(finding)) for finding in list_of(self.at("findings"))]

    @property
    def losses_non_finite(self) -> int:
        """As the record counts them, else of the losses it kept; a null is what JSON makes of NaN."""
        counted, losses = part_of(self.at("losses_non_finite"), Whole), list_of(self.at("batch_loss"))
        return sum(part_of(loss, Number) is None for loss in losses) if counted is None else counted

    @property
    def slice(self) -> str:
        planned = mapping_of(self.at("isolation", "planned"))
        return ", ".join(f"{text_of(name).replace('_', ' ')} {planned[name]}" for name in sorted(planned))

    @property
    def work(self) -> str:
        """As `unique_id`, without a number of workers that nobody asked for: it follows from the processors."""
        if not text_of(self.at("unique_id")):
            return ""
        given = any(str(word).startswith(("--workers", "-j")) for word in list_of(self.at("command")))
        arguments = {
            name: value
            for name, value in self.fields.items()
            if name not in _OWN_FIELDS and (given or name != "workers")
        }
        name = str(self.fields["name"])
        name = name.removesuffix(SOLO) if self.at("solo") is True else name
        return unique_id(name, text_of(self.at("version")), arguments)


def _finding(fields: Fields) -> Finding:
    severity = fields.get("severity")
    return Finding(
        rule=text_of(fields.get("rule")) or "unnamed",
        severity=next((known for known in get_args(Severity) if known == severity), "info"),
        sentence=text_of(fields.get("sentence")),
        remedy=text_of(fields.get("remedy")),
    )
