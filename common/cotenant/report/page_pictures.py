"""What a launch's devices and slices did while its tenants were timed, as pictures over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from markupsafe import Markup

from cotenant.report.meters import NAMES
from cotenant.report.pictures.course import FEW, Line, over_time
from cotenant.results.drawn import Course, Kind
from cotenant.text import printable

LEAST_LOOKS = 3
"""Fewer are no course: the mean says as much."""
WHOSE: dict[Kind, str] = {"device": "devices", "tenant": "tenants' slices", "host": "host"}


@dataclass(frozen=True, slots=True)
class Picture:
    """An SVG element and the words below it."""

    svg: Markup
    title: str
    caption: str


def over_time_pictures(found: Sequence[Course], name: str) -> list[Picture]:
    """Return a picture per quantity; what the host has left only where no slice counts what it holds."""
    kinds = {one.kind for one in found}
    shown = [one for one in found if one.kind != "host" or kinds == {"host"}]
    return [
        _picture(kind, quantity, of, f"{name}{kind[0]}{index}")
        for index, ((kind, quantity), of) in enumerate(_grouped(shown))
        if max(int((~np.isnan(one.values)).sum()) for one in of) >= LEAST_LOOKS
    ]


def _grouped(found: Sequence[Course]) -> Iterator[tuple[tuple[Kind, str], list[Course]]]:
    order = {name: index for index, name in enumerate(NAMES)}
    ordered = sorted(found, key=lambda one: (list(WHOSE).index(one.kind), order[one.quantity]))
    for key, of in groupby(ordered, key=lambda one: (one.kind, one.quantity)):
        yield key, list(of)


def _picture(kind: Kind, quantity: str, found: Sequence[Course], name: str) -> Picture:
    quantity_name, unit, scale = NAMES[quantity]
    lines = [Line(_label(one), one.at_s, one.values / scale) for one in found]
    most = max(lines, key=lambda one: float(np.nanmax(one.values)))
    whose = most.label if len(lines) > 1 else ""
    of = f"{len(lines)} {WHOSE[kind]}: from the lowest to the highest, and their mean" if len(lines) > FEW else ""
    every_s = float(np.median(np.diff(found[0].at_s)))
    parts = (
        of,
        f"most {np.nanmax(most.values):.4g} {unit}{f' ({whose})' if whose else ''}",
        f"a look every {every_s:.1f} s",
    )
    title = quantity_name if kind == "host" else f"{quantity_name}, {WHOSE[kind]}"
    return Picture(Markup(over_time(lines, name)), f"{title}, {unit}", "; ".join(part for part in parts if part))


def _label(one: Course) -> str:
    return one.of if one.kind == "host" else f"{one.kind} {printable(one.of)}"
