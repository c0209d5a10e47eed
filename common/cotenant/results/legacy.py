"""The adapter of other formats: the original suite's two, and records of our earlier versions.

The original's older format is a file per device with an unclosed list: a `[`, then `{...},` per record. Its newer
format is one object per file. Its records have no observations; a missing or malformed value is unknown.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from cotenant.decoding import Number, Positive, Whole
from cotenant.finding import Finding
from cotenant.results.decoded import Fields, first_of, list_of, mapping_of, part_of, text_of, value_at, whole_of
from cotenant.results.export_form import ROWS
from cotenant.results.record import portable
from cotenant.results.skipped import ForeignError
from cotenant.text import many

UNNAMED = "(unnamed)"
"""The job's name if the record of a failure has none."""
_UID = re.compile(r"\.R(\d+)\.D")
_JOB = re.compile(r"(?:[^.]*)\.(.+)\.R\d+\.D")
_TIME = re.compile(r"\.(\d{8}-\d{6})-\d+\.json$")
_OF_DEVICE = re.compile(r"(.+)_([^_.]+)\.json")
_FAILURE = frozenset({"suite", "name", "run_id", "vcd"})
"""The fields of the record of a failure, besides `completed`; its name is often null."""
_FAILED = re.compile(r"\.FAIL(\.\d{8}-\d{6}-\d+)?\.json$")
_BEFORE_ASKED: Fields = {"suite_start_time": "", "asked": None, "given": None}
"""Fields that our first records lack."""


@dataclass(frozen=True, slots=True)
class LegacyRecord:
    """A record of the original suite, the `number`-th of the file `path`: `values` by the names of their columns.

    Every other column is unknown. `all_findings` has the finding on a file that its launch did not write.
    """

    values: Fields
    path: str
    number: int | None
    all_findings: list[Finding]

    @property
    def ours(self) -> bool:
        return False

    @property
    def edited(self) -> bool | None:
        return None


def legacy_record(fields: Fields, path: str, number: int | None, findings: list[Finding]) -> LegacyRecord:
    """Return the original's record with these fields. Raises ForeignError if they are no record."""
    if fields.get("completed") is not False or not fields.keys() >= _FAILURE:
        if not isinstance(fields.get("name"), str) or not fields["name"]:
            raise ForeignError("it has no `name`")
        if "train_item" not in fields and "outcome" not in fields:
            raise ForeignError("it has neither `train_item` nor `outcome`")

    def text(*names: str) -> str:
        """Return the text under the first of these names that has a value."""
        return text_of(first_of(fields, *names))

    def whole(name: str) -> int | None:
        return part_of(fields.get(name), Whole)

    def rate(name: str) -> float | None:
        return part_of(value_at(fields, "train_item", name), Number)

    outcome, vcd, mean = text("outcome"), _device(fields, path), rate("avg")
    # A crashed job must not be reported as completed: flag, outcome and the file's name must agree.
    completed = bool(fields.get("completed", part_of(mean, Positive))) and outcome in ("", "completed")
    completed = completed and not _FAILED.search(path)
    failed_as = outcome if outcome not in ("", "completed") else "failed"
    per_device = "batch_size" if fields.get("batch_size_per_device") is None else "batch_size_per_device"
    jr_id, counted, losses = whole("jr_id"), whole("losses_non_finite"), list_of(fields.get("batch_loss"))
    rules = ",".join(finding.rule for finding in findings)
    values = {
        "schema": ROWS,
        "ours": False,
        "audited": True,
        "path": text_of(path),
        "findings": rules,
        "error_findings": rules,
        "suite": text("suite") or suite_and_device(path)[0],
        "name": text("name") or _name_in(path),
        "run_id": number_in(fields, path) or 0,
        "vcd": vcd,
        "group": text("group") or ("all" if "," in vcd else "student"),
        "tenant": jr_id if fields.get("tenant") is None else whole("tenant"),
        "tenants": whole("tenants"),
        "alike": whole_of(fields.get("tenants")),
        "hostname": text("hostname"),
        "suite_start_time": text("suite_start_time"),
        "start_time": _time_of(text("start_time") or text("date")) or _time_in(path),
        "end_time": _time_of(text("end_time")),
        "completed": completed,
        "outcome": "completed" if completed else failed_as,
        "message": text("message"),
        "comparable": fields.get("comparable") is not False,
        "unit": text("unit"),
        "batch_size": whole("batch_size"),
        "batch_size_per_device": whole(per_device),
        "precision": text("precision"),
        "parallelism": text("parallel"),
        "model": text("network", "arch", "model"),
        "input": "files" if fields.get("data") else "resident" if "data" in fields else "",
        "devices": whole("devices"),
        "processors": whole("cpu_cores"),
        "gpu": text("gpu"),
        "version": text("version"),
        "rate_items_s": mean,
        "rate_mean_items_s": mean,
        "rate_min_items_s": rate("min"),
        "rate_max_items_s": rate("max"),
        "n": part_of(value_at(fields, "train", "count"), Whole),
        "mean_s": part_of(value_at(fields, "train", "avg"), Number),
        "sd_s": part_of(value_at(fields, "train", "sd"), Number),
        "losses_non_finite": sum(part_of(loss, Number) is None for loss in losses) if counted is None else counted,
    }
    return LegacyRecord(values, text_of(path), number, findings)


def of_earlier_version(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a record of ours in today's form.

    Earlier versions had no amounts and no start of a suite, and the kept share's n was `rounds`. All other later fields
    have defaults; removed fields are ignored.
    """
    kept = mapping_of(fields.get("kept"))
    renamed = {"kept": {**kept, "n": kept["rounds"]}} if "rounds" in kept and "n" not in kept else {}
    return {**_BEFORE_ASKED, **fields, **renamed}


class Repetitions:
    """Numbers the original's records that name no repetition.

    In each repetition the original appended a record to a device's file (`SUITE_DEVICE.json`), or began new files in a
    new directory: a directory's repetitions follow the repetitions of the directories read before.
    """

    def __init__(self) -> None:
        self._first: dict[tuple[str, Path], int] = {}
        self._next: Counter[str] = Counter()

    def numbered(self, values: Iterable[Any], path: Path) -> Iterator[Any]:
        """Yield the values of a file, each record with the number of its repetition."""
        suite, before = suite_and_device(str(path))[0], Counter[tuple[str, str]]()
        first = self._first.setdefault((suite, path.parent), self._next[suite]) if suite else 0
        for value in values:
            if isinstance(value, dict) and "schema" not in value and number_in(value, str(path)) is None:
                series = str(value.get("name")), str(value.get("vcd"))
                value = value | {"run_id": first + before[series]}
                before[series] += 1
                self._next[suite] = max(self._next[suite], first + before[series])
            yield value


def values_in_text(content: bytes) -> Iterator[Any]:
    """Yield the JSON objects of a file (a closed or unclosed list, or lines), and a sentence if the rest is damaged.

    Records before the damage are kept: a file that is appended to is intact up to its writer's death. Python's json
    also reads NaN and halves of surrogate pairs, which are no JSON; records of ours have neither.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        yield "it is not UTF-8"
        return
    decoder, at, end = json.JSONDecoder(), 0, len(text)
    count = 0
    while True:
        while at < end and text[at] in " \t\r\n,[]":
            at += 1
        if at == end:
            break
        try:
            value, at = decoder.raw_decode(text, at)
            value = portable(value) if isinstance(value, dict) and "schema" in value else value
        except (json.JSONDecodeError, RecursionError):
            yield f"it is cut off or damaged after {many(count, 'record')}" if count else "it is not JSON, or cut off"
            return
        except ValueError:  # a number with more digits than Python reads
            yield "it holds a number that is none"
            return
        count += 1
        yield value if not isinstance(value, str) else [value]
    if not count:
        yield "it is empty"


def suite_and_device(path: str) -> tuple[str, str]:
    """Return the parts of an older file name of the original, `SUITE_DEVICE.json`; empty texts for other names."""
    match = _OF_DEVICE.fullmatch(Path(path).name)
    return (match[1], match[2]) if match else ("", "")


def number_in(fields: Fields, path: str) -> int | None:
    """Return the number of a record's repetition, by its fields or its file's name; None if neither has one."""
    uid = _UID.search(path)
    numbers = (fields.get("run_id"), fields.get("uid"), uid and uid[1])
    return next((number for value in numbers if (number := whole_of(value)) is not None), None)


def _name_in(path: str) -> str:
    """Return the name of a failed job by its file's name."""
    in_path = _JOB.match(Path(path).name)
    return in_path[1] if in_path and in_path[1] != "None" else UNNAMED


def _device(fields: Fields, path: str) -> str:
    vcd = fields.get("vcd")
    if vcd is None:
        vcd = suite_and_device(path)[1]
    return ",".join(map(text_of, vcd)) if isinstance(vcd, list) else text_of(vcd)


def _time_of(text: str) -> str:
    """Return a time in ISO 8601; the original's older files have C's `ctime` form."""
    if text[:1].isalpha():
        with suppress(ValueError):
            return datetime.strptime(text, "%a %b %d %H:%M:%S %Y").isoformat()
    return text


def _time_in(path: str) -> str:
    """Return the time in a file's name in ISO 8601; empty if there is none."""
    if in_path := _TIME.search(path):
        with suppress(ValueError):  # digits that are no time
            return datetime.strptime(in_path[1], "%Y%m%d-%H%M%S").isoformat()
    return ""
