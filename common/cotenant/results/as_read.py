"""A record of ours as it was read from a file, with the values that follow from its parts."""

from __future__ import annotations

import functools
import itertools
import json
import math
from dataclasses import dataclass
from operator import truediv
from statistics import fmean, median
from typing import Any

from cotenant.finding import Finding
from cotenant.results.identity import NOT_WORK, TUNABLE, unique_id
from cotenant.results.rates import observed_block_sums
from cotenant.results.record import Record, cell_of, rated
from cotenant.stats.kept import round_logs

_NO_SHAPE = frozenset({"precision", "cuda", "data", "nodes", "parallel", "gradient_compression", "deterministic"})
"""Arguments on precision, input, ranks and determinism, which leave the shape of the work equal."""
_REMEDY = "Put back the file that the launch wrote, from an archive or a copy, or run the job again."


@dataclass(eq=False)
class ReadRecord:
    """A record, the `number`-th of the file `path`.

    `edited`: the journal has another digest for its file; None if no journal lists the file.
    """

    record: Record
    path: str = ""
    number: int | None = None
    edited: bool | None = False

    @property
    def ours(self) -> bool:
        return True

    @property
    def cell(self) -> str:
        """The name without the marks of a tenant alone or in a mix."""
        return cell_of(self.record.name, self.record.solo, self.record.mix)

    @property
    def neighbours(self) -> str:
        return ",".join(self.record.neighbours)

    @property
    def alike(self) -> int:
        """The number of tenants of the launch that ran its cell, itself included."""
        return self.record.neighbours.count(self.cell) + 1 if self.record.mix else self.record.tenants

    @property
    def audited(self) -> bool | None:
        """Return whether our loop observed some of its steps; None without a rate."""
        return None if self.record.statistics is None else self.record.audited

    @property
    def baseline(self) -> str:
        return (self.record.baseline or "whole") if self.record.solo else ""

    @property
    def stands_for(self) -> str:
        return ",".join(map(str, self.record.stands_for or [self.record.tenant])) if self.record.solo else ""

    @property
    def input(self) -> str:
        arguments = self.record.arguments
        return "files" if arguments.get("data") else "resident" if "data" in arguments else ""

    @functools.cached_property
    def all_findings(self) -> list[Finding]:
        """The findings of the record, and one more if it was edited or contradicts itself."""
        found = [*self.record.findings]
        if self.edited:
            found.append(edited_finding())
        elif contradiction := _contradiction(self.record):
            found.append(contradiction)
        return found

    @property
    def slice(self) -> str:
        planned = self.record.isolation.planned
        return ", ".join(f"{name.replace('_', ' ')} {planned[name]}" for name in sorted(planned))

    @property
    def work(self) -> str:
        """Like `unique_id`, without a default number of workers, which follows from the processors."""
        given = any(word.startswith(("--workers", "-j")) for word in self.record.command)
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
        """The work's arguments as JSON: like `work_but_precision`, but without source and distribution over devices."""
        if not self.record.unique_id:
            return ""
        files = {"data": "files"} if self.record.arguments.get("data") else {}
        return json.dumps(self._arguments(NOT_WORK | TUNABLE | _NO_SHAPE) | files, sort_keys=True)

    def _work(self, name: str, without: frozenset[str]) -> str:
        """Return a hash like `unique_id`, with this name and without these arguments; empty if `unique_id` is."""
        if not self.record.unique_id:
            return ""
        return unique_id(name, self.record.version, self._arguments(without))

    def _arguments(self, without: frozenset[str]) -> dict[str, Any]:
        return {name: value for name, value in self.record.arguments.items() if name not in without}


def edited_finding() -> Finding:
    """Return the finding on a record whose file changed after its launch wrote it."""
    sentence = "This record is not what its launch wrote: the journal beside it has another SHA-256."
    return Finding("edited", "error", sentence, _REMEDY)


def _contradiction(record: Record) -> Finding | None:
    """Return a finding if a record's numbers contradict its observations; None if they do not, or there are none."""
    if not record.completed or record.statistics is None:
        return None
    made = record.observations
    rows = rated(made, record.skip)
    if not rows or any(later.start_ns < earlier.end_ns for earlier, later in itertools.pairwise(made)):
        sentence = "This record has a rate, and its observations are missing, impossible, or overlap."
        return Finding("contradicted", "error", sentence, _REMEDY)
    items, seconds = [row.items or 0.0 for row in rows], [row.took_ns / 1e9 for row in rows]
    logs = [] if record.kept is None else list(round_logs(observed_block_sums(made) or []))
    numbers = [("statistics.median", record.statistics.median, median(map(truediv, items, seconds)))]
    if record.train_item is not None:
        numbers.append(("train_item.avg", record.train_item.avg, sum(items) / sum(seconds)))
    if record.kept is not None:
        numbers.append(("kept.value", record.kept.value, math.exp(fmean(logs)) if logs else math.nan))
    for name, written, now in numbers:
        if not math.isclose(now, written, rel_tol=1e-6):
            text = "unknown" if math.isnan(now) else f"{now:.6g}"
            sentence = f"Its {name} is {written:.6g}, and {text} by its own observations."
            return Finding("contradicted", "error", sentence, _REMEDY)
    return None
