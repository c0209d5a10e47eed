"""One record as pictures and cross-device tables see it: its row, and what can be drawn of the rest.

Each part is checked by itself: a foreign or damaged one is absent; the row says what the record is worth without it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import numpy as np
import numpy.typing as npt

from cotenant.finding import Finding
from cotenant.results.identity import unique_id
from cotenant.results.meters import Meter, meters_of
from cotenant.results.record import MOST, Meeting, Observed, Record
from cotenant.results.row import Row, list_of, mapping_of, row_of, whole_of
from cotenant.results.series import Series, series_of
from cotenant.stats.description import Description

T = TypeVar("T")
_FIELDS = frozenset(Record.__struct_fields__)


class Cell(msgspec.Struct, frozen=True):
    """What identifies a scaling cell beyond its row; empty or None is what the record does not know."""

    model: str = ""
    nodes: int = 1
    world_size: int | None = None
    batch_size_per_device: int | None = None
    parallelism: str = ""
    input: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Observations in the order they were made: `start_ns`, `end_ns`, `items`, and whether each was `kept`."""

    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    items: npt.NDArray[np.float64]
    kept: npt.NDArray[np.bool_]

    @property
    def rates(self) -> npt.NDArray[np.float64]:
        """Items per second of the kept ones."""
        rates: npt.NDArray[np.float64] = self.items / (self.end_ns - self.start_ns) * 1e9
        return rates[self.kept]


@dataclass(frozen=True, slots=True, eq=False)
class Detail:
    """One tenant of one launch, as far as its record can say."""

    row: Row
    statistics: Description | None
    rendezvous: Meeting | None
    spans: Spans
    findings: tuple[Finding, ...]
    meters: tuple[Meter, ...]
    cell: Cell
    slice: str
    """What was planned for it, as text: equal for equal slices. Empty where the record does not say."""
    work: str
    """As `unique_id`, without a number of workers that nobody asked for: it follows from the processors found."""
    machine: Mapping[str, Any]
    end_time: str
    series: tuple[Series, ...] = ()


def detail_of(fields: Any, path: str) -> Detail:
    """Return the detail of one decoded JSON object. Raises ForeignError where it is no record."""
    row = row_of(fields, path)
    findings = (part_of(one, Finding) for one in list_of(fields.get("findings")))
    return Detail(
        row=row,
        statistics=_statistics(fields.get("statistics")) if row.rate is not None else None,
        rendezvous=_meeting(fields.get("rendezvous")),
        spans=_spans(fields),
        findings=tuple(one for one in findings if one is not None),
        meters=meters_of(fields),
        cell=_cell(fields),
        slice=_slice(fields),
        work=_work(fields, row),
        machine=mapping_of(fields.get("machine")),
        end_time=fields["end_time"] if isinstance(fields.get("end_time"), str) else "",
        series=series_of(fields),
    )


def _spans(fields: Mapping[str, Any]) -> Spans:
    observed = part_of(fields.get("observations"), list[Observed]) or []
    skip = fields.get("skip")
    first_kept = skip if isinstance(skip, int) else 0
    possible = [(index, one) for index, one in enumerate(observed) if one.possible]
    return Spans(
        start_ns=np.array([one.start_ns for _, one in possible], np.int64),
        end_ns=np.array([one.end_ns for _, one in possible], np.int64),
        items=np.array([one.items for _, one in possible], np.float64),
        kept=np.array([index >= first_kept for index, _ in possible], np.bool_),
    )


def _statistics(value: Any) -> Description | None:
    found = part_of(value, Description)
    if found is None:
        return None
    numbers = (found.median, *(found.interval or ()))
    possible = found.n > 0 and all(map(_is_rate, numbers)) and 0 <= found.robust_spread < MOST
    return found if possible else None


def _is_rate(value: float) -> bool:
    """Whether a machine could have it, in items per second; what could not would overflow in sums and ratios."""
    return 1 / MOST < value < MOST


def _meeting(value: Any) -> Meeting | None:
    found = part_of(value, Meeting)
    if found is None:
        return None
    stamps = (found.ready_ns, found.t0_ns, found.start_ns, found.load_end_ns, *found.warm_up_ns)
    possible = all(0 <= one < MOST for one in stamps) and -MOST < found.start_skew_ns < MOST
    return found if possible and 0 <= found.overlap <= 1 else None


def _cell(fields: Mapping[str, Any]) -> Cell:
    """The model is the argument that names one (`--network`, `--arch`, `--model`); input is read where `data` is."""
    observed = mapping_of(fields.get("observed"))
    models = (fields.get(name) for name in ("network", "arch", "model"))
    batch_size = fields.get("batch_size_per_device")
    return Cell(
        model=next((one for one in models if isinstance(one, str) and one), ""),
        nodes=_count(observed.get("nodes")) or 1,
        world_size=_count(observed.get("replicas")) or _count(observed.get("world_size")),
        batch_size_per_device=_count(fields.get("batch_size") if batch_size is None else batch_size),
        parallelism=next((str(one) for one in (observed.get("parallel"), fields.get("parallel")) if one), ""),
        input="files" if fields.get("data") else "resident" if "data" in fields else "",
    )


def _slice(fields: Mapping[str, Any]) -> str:
    planned = mapping_of(mapping_of(fields.get("isolation")).get("planned"))
    return ", ".join(f"{name.replace('_', ' ')} {planned[name]}" for name in sorted(planned))


def _work(fields: Mapping[str, Any], row: Row) -> str:
    if not row.unique_id:
        return ""
    asked = any(str(word).startswith(("--workers", "-j")) for word in list_of(fields.get("command")))
    arguments = {name: fields[name] for name in fields if name not in _FIELDS and (asked or name != "workers")}
    return unique_id(row.job, row.version, arguments)


def part_of(value: Any, kind: type[T]) -> T | None:
    """Return the value as what it should be, or None where it is something else."""
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, UnicodeEncodeError, RecursionError):
        return None


def _count(value: Any) -> int | None:
    found = whole_of(value)
    return found if found is not None and found > 0 else None
