"""What was seen over the time of a launch, as far as pictures show it; whatever is malformed is left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from cotenant.results.meters import HOST
from cotenant.results.record import MOST
from cotenant.results.row import finite_of, list_of, mapping_of, whole_of

Kind = Literal["device", "tenant", "host"]
Numbers = npt.NDArray[np.float64]
DRAWN: Mapping[Kind, tuple[str, ...]] = {
    "device": ("power_w", "load_percent", "memory_used_bytes"),
    "tenant": ("memory_used_bytes",),
    "host": ("available_bytes",),
}


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """One quantity, whose name ends with its unit; `of` is a device's index, a tenant's number or `host`.

    `at_s`: seconds after t0, ascending. `values`: as many, NaN where a look did not see it; at least one did.
    """

    quantity: str
    kind: Kind
    of: str
    at_s: Numbers
    values: Numbers


def series_of(fields: Mapping[str, Any]) -> tuple[Series, ...]:
    """Return the series that the record's `meters` hold."""
    meters = mapping_of(fields.get("meters"))
    told = mapping_of(meters.get("series"))
    at_s = _numbers(told.get("at_s"), -float(MOST))
    if not len(at_s) or np.isnan(at_s).any() or (np.diff(at_s) < 0).any():
        return ()
    # Of looks at one time, as older records round it, the last.
    last = np.append(np.diff(at_s) > 0, True)
    return tuple(
        Series(quantity, kind, of, at_s[last], values[last])
        for kind, of, quantities in _places(told, mapping_of(meters.get("devices")))
        for quantity in DRAWN[kind]
        if len(values := _numbers(quantities.get(quantity), 0.0)) == len(at_s) and not np.isnan(values[last]).all()
    )


def _places(told: Mapping[str, Any], devices: Mapping[str, Any]) -> Iterator[tuple[Kind, str, Mapping[str, Any]]]:
    """Devices stand by their uuid: who they are to a reader is said beside their spreads."""
    for uuid, quantities in mapping_of(told.get("devices")).items():
        if (index := whole_of(mapping_of(devices.get(uuid)).get("index"))) is not None:
            yield "device", str(index), mapping_of(quantities)
    for number, quantities in mapping_of(told.get("tenants")).items():
        yield "tenant", number, mapping_of(quantities)
    yield "host", HOST, mapping_of(told.get("host"))


def _numbers(value: Any, least: float) -> Numbers:
    """Return a list's numbers, NaN for each that is none or could not be."""
    found = (finite_of(one) for one in list_of(value))
    return np.array([one if one is not None and least <= one < MOST else np.nan for one in found], np.float64)
