"""Checks values of decoded JSON: a record may be another program's, cut off, or damaged anywhere.

A malformed value counts as missing, and the record is used without it.
"""

from __future__ import annotations

import functools
import itertools
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean, median
from typing import Any, TypeVar, get_args

import msgspec

from cotenant.finding import Finding, Severity
from cotenant.results.identity import NOT_WORK, TUNABLE, unique_id
from cotenant.results.rates import block_sums
from cotenant.results.record import Meeting, Number, Observed, Positive, Record, Whole, cell_of, rated
from cotenant.stats.kept import round_logs

T = TypeVar("T")
Fields = Mapping[str, Any]

NAMED = 20
"""The most damaged parts of one file that are named; the others are counted."""
EDITED = "it is not what its launch wrote: the journal beside it has another SHA-256"
UNNAMED = "(unnamed)"
"""The job's name for a failure whose record has none, as in the original's records."""
_UID = re.compile(r"\.R(\d+)\.D")
_JOB = re.compile(r"(?:[^.]*)\.(.+)\.R\d+\.D")
_TIME = re.compile(r"\.(\d{8}-\d{6})-\d+\.json$")
_OF_DEVICE = re.compile(r"(.+)_([^_.]+)\.json")
_FAILURE = frozenset({"suite", "name", "run_id", "vcd"})
"""The only fields of the original's record of a failure, beside `completed`; its name is often null."""
_FAILED = re.compile(r"\.FAIL(\.\d{8}-\d{6}-\d+)?\.json$")
_OWN_FIELDS = frozenset(Record.__struct_fields__)
_NO_SHAPE = frozenset({"precision", "cuda", "data", "nodes", "parallel", "gradient_compression", "deterministic"})
"""Arguments on precision, input, ranks and determinism, which leave the shape of the work equal."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file, or a part of one, that could not be read. `reason` is a clause, or a noun if there is a `remedy`."""

    path: str
    reason: str
    remedy: str = ""

    def __str__(self) -> str:
        """Return the sentence that says so."""
        if self.remedy:
            return f"{self.path}: {self.reason} skipped; {self.remedy}."
        return f"{self.path}: {self.reason}; skipped."


def skipped_sentences(skipped: Sequence[Skipped]) -> list[str]:
    """Return a sentence for each, and one with their number if there are several."""
    lines = list(map(str, skipped))
    return [*lines, f"{len(lines)} files or parts of files are skipped."] if len(lines) > 1 else lines


class ForeignError(ValueError):
    """The object is neither a record of ours nor of the original suite. The message names the missing part."""


def mapping_of(value: Any) -> Fields:
    """Return the value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def text_of(value: Any) -> str:
    """Return a text, or a whole number as text; characters that UTF-8 cannot hold become escapes."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode(errors="backslashreplace").decode()
    return str(value) if isinstance(value, int) else ""


def part_of(value: Any, kind: type[T]) -> T | None:
    """Return the value as this type, or None if it does not fit."""
    try:
        return None if value is None else msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError):
        return None


def time_of(text: str) -> str:
    """Return a time in ISO 8601; the original's older files have the form of C's `ctime`."""
    if text[:1].isalpha():
        with suppress(ValueError):
            return datetime.strptime(text, "%a %b %d %H:%M:%S %Y").isoformat()
    return text


def suite_and_device(path: str) -> tuple[str, str]:
    """Return the parts of an older file name of the original, `SUITE_DEVICE.json`; empty texts for other names."""
    match = _OF_DEVICE.fullmatch(Path(path).name)
    return (match[1], match[2]) if match else ("", "")


def whole_of(value: Any) -> int | None:
    """Return the value if it is a whole number, or a text of one; else None."""
    return part_of(int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 20 else value, Whole)


def number_in(fields: Fields, path: str) -> int | None:
    """Return the number of a record's repetition, by its fields or its file's name; None if neither has one."""
    uid = _UID.search(path)
    numbers = (fields.get("run_id"), fields.get("uid"), uid and uid[1])
    return next((number for value in numbers if (number := whole_of(value)) is not None), None)


@dataclass(eq=False)
class Decoded:
    """A record's JSON object, the `number`-th of its file, with the values that several columns share.

    `edited` says whether by the journal its file is not the one that its launch wrote; None if no journal has it.
    """

    fields: Fields
    path: str = ""
    number: int | None = None
    edited: bool | None = False

    def __post_init__(self) -> None:
        """Raises ForeignError if the object is no record."""
        if not isinstance(self.fields, Mapping):
            raise ForeignError("it is no JSON object")
        if self.fields.get("completed") is False and self.fields.keys() >= _FAILURE:
            return
        if not isinstance(self.fields.get("name"), str) or not self.fields["name"]:
            raise ForeignError("it has no `name`")
        if "train_item" not in self.fields and "outcome" not in self.fields:
            raise ForeignError("it has neither `train_item` nor `outcome`")

    def at(self, *keys: str) -> Any:
        """Return the value under these keys; None if there is none."""
        value: Any = self.fields
        for key in keys:
            if not isinstance(value, Mapping) or key not in value:
                return None
            value = value[key]
        return value

    def text_at(self, *keys: str) -> str:
        """Return the text under these keys, as `text_of` does."""
        return text_of(self.at(*keys))

    def list_at(self, *keys: str) -> list[Any]:
        """Return the list under these keys; an empty one if there is none."""
        return list_of(self.at(*keys))

    def mapping_at(self, *keys: str) -> Fields:
        """Return the mapping under these keys; an empty one if there is none."""
        return mapping_of(self.at(*keys))

    @functools.cached_property
    def completed(self) -> bool:
        """Whether flag, outcome and file name all say that it completed: a crashed job must not be reported as done."""
        completed = bool(self.fields.get("completed", part_of(self.at("train_item", "avg"), Positive)))
        return completed and self.text_at("outcome") in ("", "completed") and not _FAILED.search(self.path)

    @property
    def outcome(self) -> str:
        outcome = self.text_at("outcome")
        return "completed" if self.completed else outcome if outcome not in ("", "completed") else "failed"

    @property
    def ours(self) -> bool:
        return "schema" in self.fields

    @functools.cached_property
    def name(self) -> str:
        """The job's name; for a failure without one, the name in its file's name."""
        if name := self.text_at("name"):
            return name
        in_path = _JOB.match(Path(self.path).name)
        return in_path[1] if in_path and in_path[1] != "None" else UNNAMED

    @property
    def solo(self) -> bool:
        return self.at("solo") is True

    @property
    def cell(self) -> str:
        """The name without the marks of a tenant alone or in a mix."""
        return cell_of(self.name, self.solo, self.text_at("mix"))

    @property
    def neighbours(self) -> str:
        return ",".join(map(text_of, self.list_at("neighbours")))

    @property
    def alike(self) -> int | None:
        """The number of tenants of the launch that ran its cell, itself included."""
        tenants = whole_of(self.at("tenants"))
        return self.list_at("neighbours").count(self.cell) + 1 if self.text_at("mix") else tenants

    @property
    def audited(self) -> bool | None:
        """Whether our loop watched some of its steps; None without a rate, and true for other suites' records."""
        if self.ours and self.at("statistics") is None:
            return None
        return not self.ours or isinstance(self.at("observed", "audit"), Mapping)

    @property
    def suite(self) -> str:
        return self.text_at("suite") or ("" if self.ours else suite_and_device(self.path)[0])

    @property
    def run_id(self) -> int:
        return number_in(self.fields, self.path) or 0

    @functools.cached_property
    def vcd(self) -> str:
        vcd = self.at("vcd")
        if vcd is None and not self.ours:
            vcd = suite_and_device(self.path)[1]
        return ",".join(map(text_of, vcd)) if isinstance(vcd, list) else text_of(vcd)

    @property
    def start_time(self) -> str:
        """The launch's start; for records of the original without one, the time in the file's name."""
        time = time_of(self.text_at("start_time") or self.text_at("date"))
        if time or self.ours or (in_path := _TIME.search(self.path)) is None:
            return time
        with suppress(ValueError):  # The digits may be no time.
            return datetime.strptime(in_path[1], "%Y%m%d-%H%M%S").isoformat()
        return ""

    @property
    def end_time(self) -> str:
        return time_of(self.text_at("end_time"))

    @property
    def unique_id(self) -> str:
        """The work's hash; empty for the original's records, whose hash includes the start time."""
        return self.text_at("unique_id") if self.ours else ""

    @property
    def group(self) -> str:
        return self.text_at("group") or ("all" if "," in self.vcd else "student")

    @property
    def input(self) -> str:
        return "files" if self.at("data") else "resident" if "data" in self.fields else ""

    @property
    def observations(self) -> list[Observed]:
        """Every observation; none if one is malformed."""
        return part_of(self.at("observations"), list[Observed]) or []

    @property
    def meeting(self) -> Meeting | None:
        """The tenant's meeting with the others; None if it is missing or impossible."""
        return part_of(self.at("rendezvous"), Meeting)

    @functools.cached_property
    def findings(self) -> list[Finding]:
        """All findings of the record, and one if it was edited or contradicts itself; an unknown severity becomes
        information."""
        own = [_finding(mapping_of(finding)) for finding in self.list_at("findings")]
        remedy = "Put back the file that the launch wrote, from an archive or a copy, or run the job again."
        if self.edited:
            sentence = "This record is not what its launch wrote: the journal beside it has another SHA-256."
            own.append(Finding("edited", "error", sentence, remedy))
        elif contradiction := self._contradiction():
            own.append(Finding("contradicted", "error", contradiction, remedy))
        return own

    def _contradiction(self) -> str:
        """Return how the record's numbers contradict its observations; empty if they do not, or there are none."""
        if not (self.ours and self.completed and self.at("statistics")):
            return ""
        made = self.observations
        rows = rated(made, whole_of(self.at("skip")) or 0)
        if not rows or any(later.start_ns < earlier.end_ns for earlier, later in itertools.pairwise(made)):
            return "This record has a rate, and its observations are missing, impossible, or overlap."
        items, seconds = [row.items or 0.0 for row in rows], [row.took_ns / 1e9 for row in rows]
        logs = list(round_logs(block_sums(made) or [])) if self.at("kept") else []
        numbers = {
            ("statistics", "median"): median(of / s for of, s in zip(items, seconds, strict=True)),
            ("train_item", "avg"): sum(items) / sum(seconds),
            ("kept", "value"): math.exp(fmean(logs)) if logs else math.nan,
        }
        for (part, name), now in numbers.items():
            written = part_of(self.at(part, name), Number)
            if written is not None and not math.isclose(now, written, rel_tol=1e-6):
                known = "unknown" if math.isnan(now) else f"{now:.6g}"
                return f"Its {part}.{name} is {written:.6g}, and {known} by its own observations."
        return ""

    @property
    def losses_non_finite(self) -> int:
        """The number by the record, else the number among its kept losses, where NaN is null."""
        counted, losses = part_of(self.at("losses_non_finite"), Whole), self.list_at("batch_loss")
        return sum(part_of(loss, Number) is None for loss in losses) if counted is None else counted

    @property
    def slice(self) -> str:
        planned = self.mapping_at("isolation", "planned")
        return ", ".join(f"{text_of(name).replace('_', ' ')} {planned[name]}" for name in sorted(planned))

    @property
    def work(self) -> str:
        """Like `unique_id`, without a default number of workers, which follows from the processors."""
        given = any(str(word).startswith(("--workers", "-j")) for word in self.list_at("command"))
        return self._work(self.cell, frozenset() if given else frozenset({"workers"}))

    @property
    def item_work(self) -> str:
        """Like `unique_id`, without arguments that tuning may change: equal for equal work of an item."""
        return self._work(self.cell, TUNABLE)

    @property
    def work_but_precision(self) -> str:
        """Like `item_work`, without name and precision: equal if at most the precision of an item's work differs."""
        return self._work("", TUNABLE | {"precision"})

    @property
    def shape(self) -> str:
        """The work's arguments as JSON: like `work_but_precision`, but for any source and form over devices."""
        if not self.unique_id:
            return ""
        files = {"data": "files"} if self.at("data") else {}
        return json.dumps(self._arguments(NOT_WORK | TUNABLE | _NO_SHAPE) | files, sort_keys=True)

    def _work(self, name: str, without: frozenset[str]) -> str:
        """Return a hash like `unique_id`, with this name and without these arguments; empty if `unique_id` is."""
        if not self.unique_id:
            return ""
        return unique_id(name, self.text_at("version"), self._arguments(without))

    def _arguments(self, without: frozenset[str]) -> dict[str, Any]:
        left_out = _OWN_FIELDS | without
        return {argument: value for argument, value in self.fields.items() if argument not in left_out}


def _finding(fields: Fields) -> Finding:
    severity = fields.get("severity")
    return Finding(
        rule=text_of(fields.get("rule")) or "unnamed",
        severity=next((known for known in get_args(Severity) if known == severity), "info"),
        sentence=text_of(fields.get("sentence")),
        remedy=text_of(fields.get("remedy")),
        value=part_of(fields.get("value"), Number),
        effect=part_of(fields.get("effect"), Number),
    )
