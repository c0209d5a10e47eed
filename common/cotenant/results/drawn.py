"""Reads the parts of a record that pictures draw: observations, samples of meters, the machine.

No table has them: `read.again` reads them from the record's file.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from cotenant.decoding import MOST, Number, Positive, Whole
from cotenant.results.decoded import Fields, list_of, mapping_of, part_of, value_at
from cotenant.results.record import Meeting, Observed, Record, counts

HOST = "host"
CHECKOUT = "git"
DEVICE_QUANTITIES = ("load_percent", "power_w", "memory_used_bytes", "temperature_c", "clock_mhz")
HOST_QUANTITIES = ("available_bytes",)

Kind = Literal["device", "tenant", "host"]
Numbers = npt.NDArray[np.float64]
DRAWN: Mapping[Kind, tuple[str, ...]] = {
    "device": ("power_w", "load_percent", "memory_used_bytes"),
    "tenant": ("memory_used_bytes",),
    "host": ("available_bytes",),
}
"""Quantities that are drawn over time."""


@dataclass(frozen=True, slots=True, eq=False)
class Spans:
    """Observations in order of time: `start_ns`, `end_ns`, `items`, and whether each was `kept`.

    `alone`: made in a block of this tenant only. `held`: interrupted by other tenants' blocks, in which the tenant was
    held still. `audits`: beginning and end of each audit, which is between two observations.
    """

    start_ns: npt.NDArray[np.int64]
    end_ns: npt.NDArray[np.int64]
    items: npt.NDArray[np.float64]
    kept: npt.NDArray[np.bool_]
    alone: npt.NDArray[np.bool_]
    held: npt.NDArray[np.bool_]
    audits: Sequence[tuple[int, int]] = ()

    @property
    def rates(self) -> npt.NDArray[np.float64]:
        """Items per second of the kept observations."""
        rates: npt.NDArray[np.float64] = self.items / (self.end_ns - self.start_ns) * 1e9
        return rates[self.kept]


_Sample = Annotated[float, msgspec.Meta(ge=0, lt=float(MOST))]


class MeterSpread(msgspec.Struct, frozen=True):
    """The samples of one quantity; its name ends with its unit. `of` is a device's index, or `host`."""

    quantity: str
    of: str
    n: Annotated[int, msgspec.Meta(ge=1)]
    min: _Sample
    mean: _Sample
    max: _Sample


class _Energy(msgspec.Struct, frozen=True):
    energy_j: Positive
    energy_window_s: Positive


@dataclass(frozen=True, slots=True, eq=False)
class Course:
    """One quantity over time; `of` is a device's index, a tenant's number or `host`.

    `at_s`: seconds after t0, ascending. `values`: one per time, NaN if a reading lacked it; at least one is a number.
    """

    quantity: str
    kind: Kind
    of: str
    at_s: Numbers
    values: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """The drawn parts of one tenant of one launch; `meters` are of its host and its training devices."""

    tenant: str
    run_id: int
    spans: Spans
    meeting: Meeting | None
    meters: list[MeterSpread]


def spans_of(record: Record) -> Spans:
    """Return the possible observations, kept or not."""
    made_in_order = record.observations
    flags = counts(made_in_order, record.skip)
    is_possible = np.array([made.possible for made in made_in_order], np.bool_)
    possible = [made for made in made_in_order if made.possible]
    audited = part_of(value_at(record.observed, "audit", "after"), list[Whole]) or []
    audits = [at for at in audited if 0 < at < len(made_in_order)]
    return Spans(
        start_ns=np.array([made.start_ns for made in possible], np.int64),
        end_ns=np.array([made.end_ns for made in possible], np.int64),
        items=np.array([made.items for made in possible], np.float64),
        kept=np.array(flags, np.bool_)[is_possible],
        alone=np.array([made.kind == "only" for made in possible], np.bool_),
        held=np.array(_held(made_in_order), np.bool_)[is_possible],
        audits=[(made_in_order[at - 1].end_ns, made_in_order[at].start_ns) for at in audits],
    )


def _held(observations: Sequence[Observed]) -> list[bool]:
    """Return for each observation whether it contains other tenants' blocks: their numbers are missing around it."""
    blocks = [made.block for made in observations]
    before = itertools.accumulate(blocks, _newest)
    after = list(itertools.accumulate(reversed(blocks), _newest))[::-1]
    return [
        block is None and last is not None and following is not None and following - last > 1
        for block, last, following in zip(blocks, before, after, strict=True)
    ]


def _newest(last: int | None, block: int | None) -> int | None:
    return last if block is None else block


def own_meters(record: Record) -> list[MeterSpread]:
    """Return the samples of the host and of the record's training devices while tenants were timed."""
    places = [(str(device.get("index")), DEVICE_QUANTITIES, device) for device in _own_devices(record)]
    sampled = [
        part_of({**mapping_of(spreads.get(quantity)), "quantity": quantity, "of": label}, MeterSpread)
        for label, quantities, spreads in (*places, (HOST, HOST_QUANTITIES, mapping_of(record.meters.get("memory"))))
        for quantity in quantities
    ]
    return [meter for meter in sampled if meter is not None]


def _own_devices(record: Record) -> list[Fields]:
    """Return the meters of the record's training devices."""
    devices = map(mapping_of, mapping_of(record.meters.get("devices")).values())
    return [device for device in devices if str(device.get("index")) in record.vcd.split(",")]


def own_power_w(record: Record) -> float | None:
    """Return the mean power in watts of all training devices together, by their energy counters.

    None for training on a processor, or if a device counted no energy, or counted it for too short a time.
    """
    if record.observed.get("device") == "cpu":
        return None
    counted = part_of(_own_devices(record), list[_Energy])
    return sum(energy.energy_j / energy.energy_window_s for energy in counted) if counted else None


def courses_of(record: Record) -> list[Course]:
    """Return the series in the record's meters."""
    series = mapping_of(record.meters.get("series"))
    at_s = _numbers(series.get("at_s"), -float(MOST))
    if not len(at_s) or np.isnan(at_s).any() or (np.diff(at_s) < 0).any():
        return []
    # Older records round times: if several readings have one time, the last counts.
    last = np.append(np.diff(at_s) > 0, True)
    return [
        Course(quantity, kind, label, at_s[last], values[last])
        for kind, label, quantities in _looked_at(series, mapping_of(record.meters.get("devices")))
        for quantity in DRAWN[kind]
        if len(values := _numbers(quantities.get(quantity), 0.0)) == len(at_s) and not np.isnan(values[last]).all()
    ]


def _looked_at(series: Fields, devices: Fields) -> Iterator[tuple[Kind, str, Fields]]:
    """Yield kind, label and quantities of each series; devices are stored by uuid, and `devices` has their index."""
    for uuid, quantities in mapping_of(series.get("devices")).items():
        if (index := part_of(mapping_of(devices.get(uuid)).get("index"), Whole)) is not None:
            yield "device", str(index), mapping_of(quantities)
    for tenant, quantities in mapping_of(series.get("tenants")).items():
        yield "tenant", tenant, mapping_of(quantities)
    yield "host", HOST, mapping_of(series.get("host"))


def _numbers(value: Any, least: float) -> Numbers:
    """Return a list's numbers, with NaN for values that are no number or less than `least`."""
    numbers = [part_of(number, Number) for number in list_of(value)]
    return np.array([np.nan if number is None or number < least else number for number in numbers], np.float64)


def setting_of(machine: Fields) -> dict[str, str]:
    """Return the known versions in a record's `machine`, by component.

    Software, drivers and the checkout may change between launches.
    """
    software, git, torch = (mapping_of(machine.get(key)) for key in ("software", "git", "torch"))
    commit = git.get("commit")
    drivers = [mapping_of(device).get("driver") for device in list_of(machine.get("accelerators"))]
    versions: dict[str, Any] = {
        **mapping_of(software.get("packages")),
        "python": software.get("python"),
        "kernel": software.get("kernel"),
        "distribution": software.get("distribution"),
        "driver": ", ".join(sorted({driver for driver in drivers if isinstance(driver, str)})),
        "CUDA": torch.get("cuda"),
        "ROCm": torch.get("hip"),
        CHECKOUT: f"{commit[:12]}{' and changes' if git.get('dirty') else ''}" if isinstance(commit, str) else "",
    }
    # The torch that the tenant imported counts more than the installed one.
    versions |= {"torch": torch["version"]} if torch.get("version") else {}
    return {name: value for name, value in versions.items() if isinstance(value, str) and value}


def joint_setting(machines: Iterable[Fields]) -> dict[str, str]:
    """Return the known versions in these `machine` parts; several versions of a component become one text."""
    seen: dict[str, set[str]] = defaultdict(set)
    for machine in machines:
        for name, version in setting_of(machine).items():
            seen[name].add(version)
    return {name: " and ".join(sorted(versions)) for name, versions in seen.items()}


def version_differences(before: Mapping[str, str], after: Mapping[str, str], beside: Collection[str] = ()) -> list[str]:
    """Return `torch 2.14.0 -> 2.14.1` for each common component with a new version, except components in `beside`."""
    return [
        f"{name} {before[name]} -> {after[name]}"
        for name in sorted((before.keys() & after.keys()).difference(beside))
        if before[name] != after[name]
    ]
