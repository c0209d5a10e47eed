"""Pictures: the points that they leave out, and their form in a page."""

from __future__ import annotations

import itertools
import re
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.report.pictures.canvas import ACCENT, axes_of, dots, svg
from cotenant.report.pictures.curves import Scale, curves_picture
from cotenant.report.pictures.rows import ChartRow, Mark, rows_picture
from cotenant.report.scaling import curves
from cotenant.report.sections.job_pictures import (
    STYLES,
    Values,
    newest_launch,
    observations,
    thinned,
    time_curves,
)
from cotenant.report.sections.tables import over_launches, speedup_curves
from cotenant.report.summary import Estimate
from cotenant.results.drawn import Drawn, MeterSpread, Spans
from cotenant.results.read import read_drawn
from cotenant.results.table import Rows
from report.making import launch, scaling, summary_of, table

FEW = len(STYLES)


@given(st.integers(1, 10_000), st.integers(10, 500))
def test_thinning_keeps_order_statistics_and_invents_no_values(n: int, most: int) -> None:
    values = np.arange(1, n + 1, dtype=float)
    found = thinned(values[::-1], most)
    assert len(found) == min(most, n)
    assert set(found) <= set(values)
    assert (found.min(), found.max()) == (1, n)
    assert np.median(found) == pytest.approx(np.median(values), abs=max(1.0, n / most))


def strips_of(rates: np.ndarray, interval: tuple[float, float] | None, n: int | None) -> tuple[str, str]:
    """The picture of one tenant, in percent of 50k items per second on an axis of 60 to 140 %, and its caption."""
    whole = {"user": Estimate(50_000, None, None, 1), "0": Estimate(float(np.median(rates)), interval, 0.1, 1, n)}
    job: Any = SimpleNamespace(tenants=whole | {"mean": whole["user"]}, rates=[1])
    flags, ends = np.ones(len(rates), bool), np.full(len(rates), 1_000_000_000)
    spans = Spans(ends - ends, ends, rates, flags, ~flags, ~flags)
    found = observations(job, [Drawn("0", 0, spans, None, [])], (0.6, 1.4), 100, "s")
    assert found is not None
    return found.svg, found.caption


def test_strips_share_one_axis_and_count_points_beyond_it() -> None:
    for rates, beyond in (50_000 * np.linspace(0.8, 1.2, 20), ""), (50_000 * np.linspace(0.25, 2.05, 10), "6"):
        text, caption = strips_of(rates, None, None)
        assert {"60 %", "80 %", "100 %", "120 %", "140 %"} == set(re.findall(r">([\d.]+ %)</text>", text))
        assert caption.endswith(f"{beyond} beyond the axis, at its end.") == bool(beyond)
    (path,) = re.findall(r'd="([^"]*)"[^>]*stroke-linecap: round', text)
    at = [float(x) for x in re.findall(r"M ?([\d.]+)", path)]
    assert (len(at), at.count(min(at)), at.count(max(at))) == (10, 2, 4)
    assert ">57.50k<" in text  # the tenant's own rate, beside its strip


def test_within_launch_intervals_are_dotted_and_others_shaded() -> None:
    rates = 50_000 * np.linspace(0.8, 1.2, 20)
    within, over = (strips_of(rates, (48_000, 52_000), n)[0] for n in (20, None))
    assert ("stroke-dasharray" in within, "opacity: 0.16" in within) == (True, False)
    assert ("stroke-dasharray" in over, "opacity: 0.16" in over) == (False, True)


def test_a_bar_is_a_part_of_its_whole() -> None:
    rows = [ChartRow(f"user {at}", f"{bar:g} of 12", bar=bar, whole=12.0) for at, bar in enumerate((3.0, 12.0))]
    text = rows_picture(rows, "m", (0.0, 12.0))
    (limit, *_) = re.findall(r'<path d="([^"]*)"[^>]*style="fill: var\(--line\)', text)
    bars = re.findall(r'<path d="([^"]*)"[^>]*style="fill: var\(--accent\)', text)

    def width(path: str) -> float:
        start, end = map(float, re.findall(r"[MH]([\d.]+)", path)[:2])
        return end - start

    assert [width(bar) / width(limit) for bar in bars] == pytest.approx([0.25, 1.0], rel=0.01)
    assert ">3 of 12<" in text


def test_marks_beyond_the_axis_are_drawn_at_its_end() -> None:
    marks = [Mark(0.5), Mark(5.0, (0.1, 9.0), within=True, sure=False)]
    text = rows_picture([ChartRow("vae", "50 %", marks)], "r", (0.0, 1.0), at=[1])
    assert "fill: var(--paper)" in text
    assert "stroke-dasharray" in text
    root = ElementTree.fromstring(text)
    places = sorted(float(one.attrib["x"]) for one in root.iter("use") if "paper" in one.attrib.get("style", ""))
    full = sorted(float(one.attrib["x"]) for one in root.iter("use") if "fill: var(--accent)" in one.attrib["style"])
    assert len(places) == len(full) == 1
    assert places[0] > full[0]


def test_a_picture_is_xml_with_one_dot_per_observation() -> None:
    axes = axes_of(1.0)
    dots(axes, np.linspace(0, 1 / 3, 100), np.full(100, 0.123456789), 2, edgecolor=ACCENT)
    text = svg(axes, "mine")
    (path,) = re.findall(r'd="([^"]*)"[^>]*stroke-linecap: round', text)
    assert (path.count("M"), path.count("h0")) == (100, 100)
    root = ElementTree.fromstring(text)
    assert root.tag == "svg"
    ids = {one.attrib["id"] for one in root.iter() if "id" in one.attrib}
    assert all(name.startswith("mine-") for name in ids)
    assert re.findall(r"\d\.\d{3,}", " ".join(one.attrib.get("d", "") for one in root.iter())) == []


def test_the_timeline_has_a_box_for_every_observation() -> None:
    rows = Rows.all(table(launch("vae", 0, 3)))
    found = newest_launch(rows, read_drawn(rows), 0, "t")
    assert found is not None
    assert "Each box" not in found.caption
    text = found.svg
    paths = re.findall(r'<path d="([^"]*)"[^>]*style="fill: var\(--accent\)[^"]*stroke: var\(--paper\)', text)
    assert sum(path.count("M") for path in paths) == 3 * 25
    assert [text.count(f">{word}<") for word in ("GO", "STOP", "user 2")] == [1, 1, 1]


def test_meters_over_launches_have_a_box_and_a_line_each() -> None:
    course = [[MeterSpread("power_w", str(i), 5, 200.0, 250.0 + i, 300.0) for i in range(4)] for _ in range(6)]
    text = over_launches(course, "m")
    (boxes,) = re.findall(r'd="([^"]*)"[^>]*style="fill: var\(--accent\)', text)
    (means,) = re.findall(r'd="([^"]*)"[^>]*stroke: currentColor', text)
    assert boxes.count("M") == means.count("M") == 6


def lines(n: int, value: float = 5.0) -> dict[str, Values]:
    return {f"line {i}": np.full(10, value) for i in range(n)}


def over_time(lines: dict[str, Values]) -> str:
    at_s = np.arange(float(len(next(iter(lines.values())))))
    return curves_picture(time_curves(at_s, lines), "t", Scale(ends=(0, at_s[-1])), Scale())


@pytest.mark.parametrize("n", [1, 2, FEW])
def test_a_few_lines_have_distinct_dashes_and_separate_names(n: int) -> None:
    root = ElementTree.fromstring(over_time(lines(n)))
    styles = [one.attrib["style"] for one in root.iter("path") if "fill: none" in one.attrib.get("style", "")]
    drawn = [style for style in styles if "var(--line)" not in style]
    assert len(set(drawn)) == n
    shown = [one for one in root.iter("text") if one.text and one.text.startswith("line ")]
    assert {one.text for one in shown} == {f"line {i}" for i in range(n)}
    heights = sorted(float(one.attrib["y"]) for one in shown)
    assert all(low - high > 8 for high, low in itertools.pairwise(heights))
    assert min(heights) > 0


def test_of_many_lines_the_range_and_the_mean_are_drawn() -> None:
    text = over_time(lines(FEW + 1))
    assert ">line 0<" not in text
    assert text.count("fill: var(--accent)") == 1
    many = {str(i): np.array([1.0, np.nan, 2.0]) for i in range(FEW + 1)}
    assert "<svg" in over_time(many)


def test_what_was_not_seen_is_a_gap() -> None:
    text = over_time({"x": np.array([1.0, 2.0, np.nan, 4.0, 5.0])})
    path, _ = re.findall(r'<path d="([^"]*)"[^>]*stroke: var\(--accent\)', text)
    assert path.count("M") == 2
    assert "<svg" in over_time(lines(1, 0.0)), "zero all along"


def test_every_text_has_a_colour_of_the_page() -> None:
    (points,) = curves(summary_of([scaling(devices) for devices in (1, 2, 8)]).jobs).values()
    text = speedup_curves(points, "s")
    assert re.search(r"<text[^>]*fill: currentColor[^>]*>ideal</text>", text)
    assert all("fill: " in tag for tag in re.findall(r"<text[^>]*>", text))


def test_dollar_signs_in_names_are_no_mathematics() -> None:
    rows = [ChartRow("vae", "SAME", [Mark(1.0)]), ChartRow("a$x^2$", "$1$ more", [Mark(1.1)])]
    named = rows_picture(rows, "r", (0.0, 2.0))
    assert ">a$x^2$</text>" in named
    assert ">$1$ more</text>" in named
    assert ">line $0$</text>" in over_time({"line $0$": np.ones(3)})
