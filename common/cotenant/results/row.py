"""One record as comparisons and reports see it: flat, typed, and the same for every format that can be read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from cotenant.results.record import MOST

SOLO = ".solo"
"""What follows a job's name in that of its solo launches."""
_NO_RECORDS = ("cotenant-rows-", "cotenant-observations-")
_UID = re.compile(r"\.R(\d+)\.D")
_FAILED = re.compile(r"\.FAIL(\.\d{8}-\d{6}-\d+)?\.json$")


class ForeignError(ValueError):
    """This is no record of ours, nor of the original suite. The text says what is missing."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One tenant of one launch. Rates are items per second over the kept observations; None is what is not known.

    `rate` is the median where the record has one, else the mean: the original suite kept no observations.
    """

    suite: str
    name: str
    run_id: int
    vcd: str
    group: str
    tenant: int | None = None
    tenants: int | None = None
    solo: bool = False
    hostname: str = ""
    gpu: str = ""
    devices: int | None = None
    suite_start_time: str = ""
    start_time: str = ""
    completed: bool
    outcome: str
    message: str = ""
    invalid: bool = False
    comparable: bool = True
    unit: str = ""
    rate: float | None = None
    rate_mean: float | None = None
    rate_min: float | None = None
    rate_max: float | None = None
    n: int | None = None
    mean_s: float | None = None
    sd_s: float | None = None
    tflops: float | None = None
    mfu: float | None = None
    batch_size: int | None = None
    precision: str = ""
    isolation: str = ""
    cache: str = ""
    processors: int | None = None
    software: str = ""
    version: str = ""
    unique_id: str = ""
    losses_non_finite: int = 0
    efficiency: float | None = None
    findings: tuple[str, ...] = ()
    ours: bool = False
    path: str = ""

    @property
    def job(self) -> str:
        """The name of the job: of a solo launch that of the launch beside which it stands."""
        return self.name.removesuffix(SOLO) if self.solo else self.name


def has_uid(path: Path) -> bool:
    """Whether the file's name says which repetition of the suite it is of."""
    return _UID.search(str(path)) is not None


def row_of(fields: Any, path: str) -> Row:
    """Return the row of one decoded JSON object. Raises ForeignError where it is no record."""
    if not isinstance(fields, Mapping):
        raise ForeignError("it is no JSON object")
    train = fields.get("train")
    if not isinstance(fields.get("name"), str) or not fields["name"]:
        raise ForeignError("it has no `name`")
    if str(fields.get("schema")).startswith(_NO_RECORDS):
        raise ForeignError("it holds exported rows or observations, which are read from an export named itself")
    if "train_item" not in fields and "outcome" not in fields:
        raise ForeignError("it has neither `train_item` nor `outcome`")
    train, items = mapping_of(train), mapping_of(fields.get("train_item"))
    statistics, isolation = mapping_of(fields.get("statistics")), mapping_of(fields.get("isolation"))
    compute = mapping_of(mapping_of(fields.get("meters")).get("compute"))
    mean, median = _positive(items.get("avg")), statistics.get("median")
    outcome = _text(fields.get("outcome"))
    # Three say so, and the worst is believed: a crashed job must not be reported as done.
    completed = bool(fields.get("completed", mean is not None)) and outcome in ("", "completed")
    completed = completed and not _FAILED.search(path)
    rate = (mean if median is None else _positive(median)) if completed else None
    findings = [mapping_of(one) for one in list_of(fields.get("findings"))]
    vcd = ",".join(map(str, fields["vcd"])) if isinstance(fields.get("vcd"), list) else _text(fields.get("vcd"))
    found = _UID.search(path)
    return Row(
        suite=_text(fields.get("suite")),
        name=fields["name"],
        run_id=whole_of(fields.get("run_id", fields.get("uid"))) or (whole_of(int(found[1])) if found else 0) or 0,
        vcd=vcd,
        group=_text(fields.get("group")) or ("all" if "," in vcd else "student"),
        tenant=whole_of(fields.get("tenant", fields.get("jr_id"))),
        tenants=whole_of(fields.get("tenants")),
        solo=fields.get("solo") is True,
        hostname=_text(fields.get("hostname")),
        gpu=_text(fields.get("gpu")),
        devices=whole_of(fields.get("devices")),
        suite_start_time=_text(fields.get("suite_start_time")),
        start_time=_text(fields.get("start_time")),
        completed=completed,
        outcome="completed" if completed else outcome if outcome != "completed" and outcome else "failed",
        message=_text(fields.get("message")),
        invalid=completed and any(one.get("severity") == "error" for one in findings),
        comparable=bool(fields.get("comparable", True)),
        unit=_text(fields.get("unit")),
        rate=rate,
        rate_mean=mean if rate is not None else None,
        rate_min=_positive(items.get("min")) if completed else None,
        rate_max=_positive(items.get("max")) if completed else None,
        n=whole_of(statistics.get("n", train.get("count"))),
        mean_s=_positive(train.get("avg")),
        sd_s=_not_negative(train.get("sd")),
        tflops=_positive(compute.get("tflops")) if completed else None,
        mfu=_positive(compute.get("mfu")) if completed else None,
        batch_size=whole_of(fields.get("batch_size")),
        precision=_text(fields.get("precision")),
        isolation=_text(isolation.get("backend")),
        cache=_text(mapping_of(isolation.get("policies")).get("cache")),
        processors=whole_of(fields.get("cpu_cores")),
        software=_text(mapping_of(mapping_of(fields.get("machine")).get("torch")).get("version")),
        version=_text(fields.get("version")),
        unique_id=_text(fields.get("unique_id")),
        losses_non_finite=whole_of(fields.get("losses_non_finite")) or _bad_losses(fields.get("batch_loss")),
        efficiency=_positive(mapping_of(mapping_of(fields.get("meters")).get("scaling")).get("efficiency")),
        findings=tuple(_text(one.get("rule")) for one in findings),
        ours="schema" in fields,
        path=path,
    )


def _bad_losses(losses: Any) -> int:
    """Count what is no finite number among the losses a record kept; a null is what JSON makes of NaN."""
    return sum(finite_of(loss) is None for loss in list_of(losses))


def mapping_of(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def list_of(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def whole_of(value: Any) -> int | None:
    """Return the value if it is a whole number of at most 64 bits, which true and false are not."""
    return value if isinstance(value, int) and not isinstance(value, bool) and -MOST <= value < MOST else None


def finite_of(value: Any) -> float | None:
    """Return the value if it is a finite number, which true and false are not."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    try:
        return float(value) if number and math.isfinite(value) else None
    except OverflowError:
        return None


def _positive(value: Any) -> float | None:
    """What no machine could have, in items or seconds, would overflow in sums and ratios."""
    found = finite_of(value)
    return found if found is not None and 1 / MOST < found < MOST else None


def _not_negative(value: Any) -> float | None:
    found = finite_of(value)
    return found if found is not None and 0 <= found < MOST else None
