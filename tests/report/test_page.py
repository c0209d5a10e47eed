"""The page: offline, escaped, reproducible, and of a bounded size whatever it shows."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from html.parser import HTMLParser
from statistics import geometric_mean
from typing import Any

import msgspec
import numpy as np
import pytest

from cotenant.report import mlbench, numbers
from cotenant.report.jobs import jobs_view
from cotenant.report.matrix import device_matrix, device_names
from cotenant.report.page import cards, page
from cotenant.report.scaling import curves
from cotenant.report.sections.contents import Against, PageContents
from cotenant.report.sections.jobs import POINTS
from cotenant.report.summary import Summary, scores, summarise
from cotenant.results.rates import numbers_of
from cotenant.results.record import Observed, Record
from cotenant.results.table import Rows
from cotenant.results.targets import Target
from report.making import (
    BUSY,
    beside_dram,
    everything,
    exported,
    fields_of,
    launch,
    lost,
    over_time,
    power,
    scaling,
    solo,
    summary_of,
)
from results.made import ARGUMENTS, T0_NS, a_part

SCRIPT = "<script>alert('x')</script>"
VOID = frozenset({"meta", "br", "input"})


class Reader(HTMLParser):
    """Elements, ids, references and the text of a page; every element has to be closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str | None]] = []
        """The tag, the name and the value of each."""
        self.text = ""
        self.open: list[str] = []
        self.labelled: list[bool] = []
        self.feed(text)
        self.close()
        assert self.open == []
        self.ids = [value for _, name, value in self.attributes if name == "id" and value]
        self.links = [value for _, name, value in self.attributes if name in ("href", "src", "xlink:href") and value]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag == "input":
            self.labelled.append("label" in self.open)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def page_of(summary: Summary, **more: Any) -> str:
    return page("A title", PageContents(summary, curves(summary.jobs), **more))


def of_records(records: list[Record]) -> str:
    return page_of(summary_of(records))


def test_everything_stands_in_one_file_and_nothing_is_fetched() -> None:
    text = page_of(everything())
    seen = Reader(text)
    assert len(seen.ids) == len(set(seen.ids))
    assert {*seen.links, *re.findall(r"url\(([^)]*)\)", text)} <= {f"#{name}" for name in seen.ids}
    # For people who hear a page: headings skip no level, and every table, picture and field has a text.
    headings = [int(tag[1]) for tag in seen.tags if re.fullmatch(r"h\d", tag)]
    assert headings[0] == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(headings))
    assert seen.attributes.count(("th", "scope", "col")) == seen.tags.count("th") > 0
    assert seen.attributes.count(("svg", "aria-hidden", "true")) == seen.tags.count("svg")
    assert all(seen.labelled)
    words = re.findall(r'role="img" aria-label="([^"]+)"', text)
    assert len(words) == seen.tags.count("svg")
    assert '<html lang="en">' in text
    assert seen.tags.count("script") == 1
    assert not {"link", "img", "iframe", "object"} & set(seen.tags)
    assert "@import" not in text
    assert set(re.findall(r"""https?://[^"'\s<]+""", text)) <= {"http://www.w3.org/2000/svg"}
    pictures = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert len(pictures) >= 6
    # Pictures have the colours of the page's style.
    assert [colour for picture in pictures for colour in re.findall(r"#[0-9a-f]{6}\b", picture)] == []
    assert all("<style" not in picture and "var(--accent)" in picture for picture in pictures)


def test_what_comes_from_files_is_text() -> None:
    records = [
        *launch(SCRIPT, 0, place={"hostname": SCRIPT, "vcd": SCRIPT, "suite": SCRIPT}, part=a_part(item=SCRIPT)),
        *lost(SCRIPT, 1),
    ]
    pressed = beside_dram(job=f'"{SCRIPT}\\d')
    seen = Reader(page(SCRIPT, PageContents(summary_of([*records, *pressed]), skipped=[SCRIPT])))
    assert seen.tags.count("script") == 1  # the page's own
    assert seen.text.count(SCRIPT) > 6


@pytest.mark.parametrize("name", ["\x00\x1b[31m", "\ud800", "日本語", "$\\frac$"])
def test_odd_names_make_a_page(name: str) -> None:
    odd = {"name": name, "vcd": name, "hostname": name}
    text = page_of(summary_of([fields_of(launch("vae", 0, 1)[0]) | odd]))
    assert "Observations" in Reader(text).text
    assert text.encode(errors="replace")


def test_a_page_thins_forty_thousand_observations() -> None:
    ends = [T0_NS, *(T0_NS + np.cumsum(np.random.default_rng(1).integers(900_000, 1_100_000, 10_000))).tolist()]
    spans = itertools.pairwise(ends)
    rows = [Observed(start, end, 10, 0) for start, end in spans]
    own = dict(zip(("train", "train_item", "statistics"), numbers_of(rows), strict=True))
    records = [msgspec.structs.replace(one, observations=rows, skip=0, **own) for one in launch("vae", 0, 4)]
    text = page_of(summary_of(records))
    assert len(text) < 600_000
    drawn = re.search(r"n = 40,000 observations, 1 launch\. .*? ([\d,]+) of 40,000 observations drawn", text)
    assert int(drawn[1].replace(",", "")) <= POINTS
    assert "Each box holds up to 67 observations." in text


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("jobs", "tenants", "most"),
    [(3, 2, 143_000), pytest.param(21, 2, 1_000_000, marks=SLOW), pytest.param(21, 8, 1_500_000, marks=SLOW)],
)
def test_twenty_one_jobs_of_five_launches_are_below_a_megabyte(jobs: int, tenants: int, most: int) -> None:
    """The records have all that a host without accelerators measures: memory of every slice, tenants alone."""
    more: dict[str, Any] = {"meters": over_time(devices=0, slices=tenants)}
    records = [
        one
        for uid in range(5)
        for job in range(jobs)
        for one in (*launch(f"job{job}", uid, tenants, **more), *solo(f"job{job}", uid, tenants, **more))
    ]
    assert len(of_records(records)) < most


def test_a_picture_that_says_nothing_is_not_there() -> None:
    (one,) = launch("toy_reg", 0, 1)
    text = of_records([one])
    # A table of one device would say 100 %.
    assert not {"devices", "scaling", "failures", "findings", "duets", "meters"} & set(Reader(text).ids)
    assert of_records([one]) == text, "the same records make the same page"
    assert "Newest launch" not in page_of(summary_of([fields_of(one) | {"rendezvous": None}]))
    old = {"name": "vae", "vcd": "0", "uid": 1, "train": {"avg": 0.5, "count": 45}, "train_item": {"avg": 7680.0}}
    text = page_of(summary_of([old]))
    assert "7680" in Reader(text).text
    assert "<svg" not in text


@pytest.mark.usefixtures("unpictured")
def test_meters_are_drawn_for_several_samples_or_launches() -> None:
    text = of_records([one for uid in range(3) for one in launch("vae", uid, meters=power([300, 250 + 10 * uid]))])
    # The host had 2 GiB of memory left.
    for words in ("mean 280 W over 3 launches", "mean 2 GiB over 3 launches", "per device: power 280 W"):
        assert words in text
    assert 'id="meters"' not in of_records(launch("vae", 0, meters=power([300])))  # one launch makes no line


def test_power_and_memory_over_time_are_drawn_if_recorded() -> None:
    text = of_records(launch("vae", meters=over_time(devices=2)))
    for words in (
        "Power, devices, W",
        "most 239 W (device 1); a look every 1.0 s",
        "Memory in use, devices, GiB",
        "Memory in use, users' slices, GiB",
        "most 2 GiB (user 1); a look every 1.0 s",
    ):
        assert words in Reader(text).text
    assert text.count(">device 1<") == 2
    assert "Memory left on the host, GiB" not in text  # the slices' memory says more
    text = of_records(launch("vae", meters=over_time(devices=8)))
    assert "8 devices: from the lowest to the highest, and their mean" in text
    text = of_records(launch("vae", meters=over_time(devices=0, slices=0)))  # without slices the host's is drawn
    assert "most 8 GiB; a look every 1.0 s" in text
    assert "Memory left on the host, GiB" in text
    assert "a look every" not in of_records(launch("vae", meters=over_time(devices=2, looks=2)))


@pytest.mark.usefixtures("unpictured")
def test_scaling_is_drawn_beside_its_numbers_and_intervals() -> None:
    def cells(launches: int) -> list[list[str]]:
        text = of_records([scaling(k, uid) for uid in range(launches) for k in (1, 2)])
        assert 'id="scaling"' in text
        assert "resnet50, batch 64 per device, fp32, ddp, resident" in text
        rows = re.findall(r'<td data-of="cell" class="l"><b>1n\dg</b></td>.*', text)
        return [re.findall("<td[^>]*><span>(.*?)</span></td>", row)[3:] for row in rows]

    assert cells(2)[0] == ["1.00x", "-", "1.000", "-"]
    assert [row[1] for row in cells(2)] == ["-", "too few runs"]
    speed_up, interval, *_ = cells(3)[1]
    low, high = map(float, interval.split("-"))
    assert low < float(speed_up.removesuffix("x")) < high


def test_devices_stand_side_by_side_as_in_the_older_table() -> None:
    places = {"hostname": "a"}, {"hostname": "b"}
    here, there = ([one for uid in range(3) for one in launch("vae", uid, place=place)] for place in places)
    devices, table = device_matrix(summary_of(here))
    means = {vcd: geometric_mean(one.statistics.median for one in here if one.vcd == vcd) for vcd in ("0", "1")}
    rates = {who: each.rate for who, each in summary_of(here).jobs[0].tenants.items()}
    assert means == pytest.approx(rates)  # as in Results
    assert devices == ["0", "1"]
    expected = {vcd: mean / max(means.values()) for vcd, mean in means.items()}
    assert {vcd: shares[0] for vcd, shares in table["vae"].items()} == pytest.approx(expected)
    several = [*here, *there, *launch("wlm"), *launch("reso", place={"group": "all"}), *lost("ssd", 0)]
    devices, table = device_matrix(summary_of(several))
    assert (devices[:2], devices[-1]) == (["a:0", "a:1"], "node1:1")
    assert table.keys() == {"vae", "wlm"}
    part = a_part(item="image", arguments=ARGUMENTS | {"batch_size": 256})
    larger = launch("vae", place={"hostname": "b"}, part=part)
    _, table = device_matrix(summary_of([*here, *larger]))
    assert [*table] == ["vae of baselines on a", "vae of baselines on b"]
    assert device_names(["0"], summary_of(here)) == ["slice 0"]
    assert device_names(["0"], summary_of(launch("vae", place={"devices": 2}))) == ["D0"]


@pytest.mark.usefixtures("unpictured")
def test_exported_rows_make_a_page_without_reading_records(monkeypatch: pytest.MonkeyPatch) -> None:
    """To read the records of a million rows would take minutes and gigabytes."""
    rows = Rows.all(exported([one for uid in range(5) for one in (*launch("vae", uid), scaling(1, uid))]))
    monkeypatch.setattr("cotenant.results.read.own_records", pytest.fail)
    assert "10 launches, 2026-03-14; 15 records" in page_of(summarise(rows))


@pytest.mark.usefixtures("unpictured")
def test_the_score_card() -> None:
    summary = everything()
    targets = {"vae": Target(7000.0), "toy_reg": Target(1e6), "dcgan": Target(1.0)}
    older = mlbench.score(mlbench.results(summary.records.frame, targets), failures_passed=False)
    against = Against("MINE", targets, scores(summary, targets, list(targets)), older)
    text = Reader(page_of(summary, against=against)).text
    for words in (
        f"{against.scores['node1'].value:.3f}",
        "Score of what ran",
        "geometric mean of rate / MINE, 2 of 3 jobs",
        "Not in the score, so it is none of the whole suite: dcgan.",
        "Original's score",
    ):
        assert words in text


def test_a_card_names_the_least_even_job_beyond_noise_alone() -> None:
    assert "Slowest / fastest user" not in [card.name for card in cards(summary_of(launch("vae", tenants=5)))]
    slower = [launch("vae", uid, mean_ms=mean_ms)[at] for uid in range(3) for at, mean_ms in enumerate((300, 330))]
    summary = summary_of(slower)
    (even,) = [card for card in cards(summary) if card.name == "Slowest / fastest user"]
    view = jobs_view(summary)
    (row,) = view.groups[0].each()
    worst_over_best = next(column.cell(row).text for column in view.columns if column.heading == "worst/best")
    assert even.value == worst_over_best.partition(" ")[0] == "0.900"


@pytest.mark.usefixtures("unpictured")
def test_table_sorting_reads_numbers_with_their_unit_prefix() -> None:
    expression = re.search(r"number = /(\^.*)/\.exec", of_records(launch("vae")))
    for text, digits, letter in (
        (numbers.interval(1.66e6, 1.714e6), "1.660", "M"),
        (numbers.interval(900.0, 950.0), "900.0", ""),
        (numbers.rates([12_000.0, 11_000.0], ", "), "12.00", "k"),
        (numbers.rates([12_000.0, 11_000.0] * 4, ", "), "11.00", "k"),  # not how many users there are
        ("±0.5 %, ±0.7 %", "0.5", ""),
        ("97 % (93-101)", "97", ""),
    ):
        found = re.match(expression[1], text)
        assert found is not None, text
        assert found.groups() == (digits, letter), text
    assert re.match(expression[1], "-") is None


@pytest.mark.usefixtures("unpictured")
def test_findings_and_jobs_lead_to_each_other() -> None:
    more = replace(BUSY, sentence=BUSY.sentence.replace("3", "11"), value=11.0)
    text = of_records([*launch("vae", 0, findings=(BUSY,)), *launch("ssd", 0, findings=(more,)), *launch("wlm", 0)])
    (place,) = re.findall(r'id="(finding\d)"[^>]*><b>foreign load<', text)
    row = re.search(rf'id="{place}".*', text)
    assert "While users were timed other work kept 11 of 8 processors busy." in row[0]
    assert "kept 3 of 8" not in row[0]
    assert re.findall(r'<a href="#(job\d)">(\w+)</a>', row[0]) == [("job0", "vae"), ("job1", "ssd")]
    assert text.count(f'<small><a href="#{place}">foreign load</a></small>') == 2  # beside the two verdicts
    assert text.count(f'<a href="#{place}">foreign load</a>') == 4  # and in the two jobs' panels


@pytest.mark.usefixtures("unpictured")
def test_the_card_on_findings_counts_the_rows_of_their_table() -> None:
    more = replace(BUSY, remedy="Another remedy.")
    text = of_records([*launch("vae", 0, findings=(BUSY,)), *launch("ssd", 0, findings=(more,))])
    assert "<b>0 + 1</b><span>0 errors, 1 kind of warning</span>" in text
    assert len(re.findall(r'id="finding\d"', text)) == 1


@pytest.mark.usefixtures("unpictured")
def test_intervals_within_a_launch_are_shown_for_few_launches() -> None:
    def cells(launches: int) -> list[str]:
        text = of_records([one for uid in range(launches) for one in launch("vae", uid)])
        return re.findall(r'<td data-of="within a launch"[^>]*><span>([^<]*)</span>', text)

    (record, _) = launch("vae", 0)
    low, high = record.statistics.interval
    assert cells(1)[0].startswith(f"±{50 * (high - low) / record.statistics.median:.1f}, ")
    assert len(cells(2)) == 1
    assert cells(3) == []
