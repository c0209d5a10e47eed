"""What pictures leave out, and how they stand in a page."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.report.pictures.canvas import ACCENT, axes_of, dots, svg
from cotenant.report.pictures.curves import over_launches
from cotenant.report.pictures.strips import thinned
from cotenant.report.pictures.timeline import timeline
from cotenant.results.meters import Meter
from report.making import detail, launch


@given(st.lists(st.floats(1, 1e6), min_size=1, max_size=200), st.integers(2, 50))
def test_thinning_keeps_the_ends_and_invents_nothing(rates: list[float], most: int) -> None:
    values = np.array(rates)
    found = thinned(values, most)
    assert len(found) == min(most, len(rates))
    assert set(found) <= set(rates)
    assert (found.min(), found.max()) == (min(rates), max(rates))


@given(st.integers(1, 10_000), st.integers(10, 500))
def test_thinning_keeps_the_order_statistics(n: int, most: int) -> None:
    values = np.arange(1, n + 1, dtype=float)
    assert np.median(thinned(values, most)) == pytest.approx(np.median(values), abs=max(1.0, n / most))


def test_a_picture_is_xml_with_short_numbers_and_its_own_ids() -> None:
    axes = axes_of(1.0)
    dots(axes, [0.123456789, 0.5], [0.2, 0.3], 2, edgecolor=ACCENT)
    text = svg(axes, "mine")
    root = ElementTree.fromstring(text)
    assert root.tag == "svg"
    ids = {one.attrib["id"] for one in root.iter() if "id" in one.attrib}
    assert all(name.startswith("mine-") for name in ids)
    assert re.findall(r"\d\.\d{3,}", " ".join(one.attrib.get("d", "") for one in root.iter())) == []


def test_a_dot_per_observation() -> None:
    axes = axes_of(1.0)
    dots(axes, np.linspace(0, 1, 7), np.full(7, 0.5), 2, edgecolor=ACCENT)
    (path,) = re.findall(r'd="([^"]*)"[^>]*stroke-linecap: round', svg(axes, "x"))
    assert path.count("M") == 7


def boxes_of(text: str) -> int:
    """The observations' boxes: filled with the accent, edged with the paper."""
    paths = re.findall(r'<path d="([^"]*)"[^>]*style="fill: var\(--accent\)[^"]*stroke: var\(--paper\)', text)
    return sum(path.count("M") for path in paths)


def test_every_observation_of_every_tenant_has_its_box_in_the_timeline() -> None:
    found = timeline([detail(one) for one in launch("vae", 0, 3)], "t")
    assert found is not None
    text, said = found
    assert said == ""
    assert boxes_of(text) == 3 * 25
    assert [text.count(f">{word}<") for word in ("GO", "STOP", "tenant 2")] == [1, 1, 1]


def test_meters_over_launches_have_a_box_and_a_line_each() -> None:
    course = [[Meter("power_w", str(i), 5, 200.0, 250.0 + i, 300.0) for i in range(4)] for _ in range(6)]
    text = over_launches(course, "m")
    (boxes,) = re.findall(r'd="([^"]*)"[^>]*style="fill: var\(--accent\)', text)[:1]
    assert boxes.count("M") == 1
    assert text.count("fill: var(--accent)") == 6
    assert len(re.findall(r"stroke: currentColor", text)) == 6
