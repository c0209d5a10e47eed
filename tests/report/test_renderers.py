"""One view in all its forms: narrow terminals, files, pages, and names with a special meaning in one of them."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest

from cotenant.frames import pl
from cotenant.report.comparison import JobComparison, SuiteComparison, comparison_view
from cotenant.report.renderers import as_csv, as_json, html, markdown, terminal
from cotenant.report.view import Cell, Column, Row, RowGroup, View, measurement, with_ends
from cotenant.stats.verdict import Verdict
from report.making import printed, rows_of

ODD = "a\\[red]b|:x:\x1b[31m<b>\x07"
FIELDS = {"suite": "a suite", "job": "a job", **with_ends("rate", "a rate"), "launches": "an n", "extra": "more"}
COLUMNS = (
    Column("suite", left=True, seen="files"),
    Column("job", left=True),
    Column("group", left=True),
    *measurement("rate", ("rate", "rate_low", "rate_high", "launches"), "{}L".format),
    Column("load", show="{} %".format),
    Column("MFU", optional=True),
    Column("", "bar", left=True, seen="screens"),
)


def line(job: str, group: str = "student") -> dict[str, object]:
    measured = {"rate": 1.5e6, "rate_low": 1.4e6, "rate_high": 1.6e6, "launches": 5}
    return {"suite": "mine", "job": job, **measured, "group": group, "load": 90, "MFU": None, "bar": "########"}


def made(*rows: dict[str, object], **more: Any) -> View:
    group = RowGroup([row for row in rows if "bar" in row], "mine", "node1", [(("a note", "dim"),)])
    return View("made", FIELDS, rows, COLUMNS, [group], **more)


def of(heading: str, *texts: str) -> View:
    return View("of", {}, [{heading: text} for text in texts], [Column(heading, left=True)])


def lines(of: View, width: int) -> list[str]:
    return [line.plain for line in terminal(of, width)]


def test_a_terminal_wide_enough_has_one_line_a_row() -> None:
    assert lines(made(line("vae"), line("日本")), 80) == [
        "mine  node1",
        "job   group      rate  95 % interval   n  load",
        "vae   student  1.500M   1.400-1.600M  5L  90 %  ########",
        "日本  student  1.500M   1.400-1.600M  5L  90 %  ########",
        "a note",
        "",
    ]


def test_names_lose_their_middle_and_others_their_end_to_fit() -> None:
    columns = (Column("job", left=True, least=9), Column("verdict", left=True, least=10), Column("n"))
    items = [("convnet_distributed_fp16", "suspect foreign load"), ("日本日本日本日本日本", "clean")]
    shortened = View("shortened", {}, [{"job": job, "verdict": verdict, "n": 20} for job, verdict in items], columns)
    assert lines(shortened, 60)[1] == "convnet_distributed_fp16  suspect foreign load  20"
    assert lines(shortened, 30)[1:] == [
        "convnet_…fp16  suspect foreig…",
        "  n 20",
        "日本…日本日本  clean",
        "  n 20",
    ]
    assert lines(shortened, 20)[1:3] == ["convnet_distr…d_fp16", "  verdict suspect foreign load; n 20"]


def test_columns_give_way_and_the_last_ones_fold() -> None:
    found = made(line("vae"), line("a_job_of_a_long_name"))
    assert "########" in lines(found, 72)[2]
    whole = "vae                   student  1.500M   1.400-1.600M  5L  90 %"
    assert lines(found, 71)[2] == lines(found, 62)[2] == whole
    assert lines(found, 61)[1:4] == [
        "job                   group      rate  95 % interval   n",
        "vae                   student  1.500M   1.400-1.600M  5L",
        "  load 90 %; ########",
    ]
    assert lines(found, 46)[4:6] == [
        "a_job_of_a_long_name  student  1.500M",
        "  95 % interval 1.400-1.600M; n 5L; load 90 %; ########",
    ]
    below = "  group student; rate 1.500M; 95 % interval 1.400-1.600M; n 5L; load 90 %; ########"
    assert lines(found, 5)[2:5] == ["job", "vae", below]


def test_what_folds_keeps_its_colour() -> None:
    columns = Column("job"), Column("verdict", show=partial(Cell, style="red"))
    found = View("coloured", {}, [{"job": "vae", "verdict": "failed"}], columns)
    folded = list(terminal(found, 5))[2]
    parts = [(folded.plain[one.start : one.end], one.style) for one in folded.spans]
    assert parts == [("verdict ", "dim"), ("failed", "red")]


@pytest.mark.parametrize("width", [20, 40, 60])
def test_a_narrow_terminal_cuts_no_number(width: int) -> None:
    note = "A and B are the same launches; 5 launches a side would tell"
    compared = JobComparison("convnet_distributed_fp16", Verdict.UNCLEAR, 1.183e6, 1.183e6, None, note)
    text = printed([comparison_view(SuiteComparison((compared,), None, ()))], width)
    assert text.count("1.183M") == 2
    assert " ".join(text.split()).count(note) == 1


def test_a_name_stands_there_as_it_is_and_commands_nothing() -> None:
    found = made(line(ODD, ODD))
    assert "a\\[red]b|:x:<b>?" in "\n".join(lines(found, 200))
    assert "a\\\\\\[red\\]b\\|:x:&lt;b&gt;?" in markdown(found)
    assert markdown(of(ODD, "vae")).startswith("| a\\\\\\[red\\]b\\|:x:&lt;b&gt;? |\n")
    (record,) = rows_of(found)
    assert record["job"] == "a\\[red]b|:x:<b>?"
    page = html(found)
    assert "a\\[red]b|:x:&lt;b&gt;?" in page
    assert "<b>?" not in page
    page = html(of("\u202ejob\x9b", "\x9b31m\u202evae"))
    assert "?job?" in page
    assert not {"\x9b", "\u202e"} & set(page)


def test_rendered_text_is_never_a_formula_link_or_html() -> None:
    for beginning in ("=", "+", "-", "@", "\t=", "\r+", "\uff1d"):
        formula = f"{beginning}HYPERLINK(1)"
        cells = as_csv(View("formulas", {formula: "", "n": ""}, [{formula: formula, "n": -1.5}])).splitlines()
        assert cells[0].startswith("'"), beginning
        assert cells[1] == f"{cells[0].removesuffix(',n')},-1.5", beginning
    hostile = "<img src=x onerror=alert(1)> ![p](http://evil) [l](javascript:x) https://evil www.e `c` \u202e\x9b31m|"
    assert markdown(of("job", hostile)).splitlines()[2] == (
        "| &lt;img src=x onerror=alert(1)&gt; !\\[p\\](http\\://evil) \\[l\\](javascript:x) https\\://evil www\\.e "
        "\\`c\\` ??31m\\| |"
    )


def test_files_have_columns_of_their_own() -> None:
    found = made(line("vae"), {"job": "of programs"})
    assert markdown(found).splitlines() == [
        "| suite | job | group | rate | 95 % interval | n | load |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: |",
        "| mine | vae | student | 1.500M | 1.400-1.600M | 5L | 90 % |",
    ]
    assert as_csv(found).splitlines() == [
        "suite,job,rate,rate_low,rate_high,launches,extra",
        "mine,vae,1500000.0,1400000.0,1600000.0,5,",
        ",of programs,,,,,",
    ]
    assert "of programs" not in "\n".join(lines(found, 80)) + html(found)


def test_programs_read_rows_and_the_meanings_of_their_columns() -> None:
    at = datetime(2026, 1, 2, tzinfo=UTC)
    part = View("more", {"at": "a time"}, [{"at": at}])
    found = json.loads(as_json(made(line("vae"), notes=["left out"], sentences=["said"], parts=[part])))
    assert found == {
        "schema": "cotenant-view-1",
        "view": "made",
        "columns": FIELDS,
        "rows": [{name: line("vae").get(name) for name in FIELDS}],
        "notes": ["left out"],
        "sentences": ["said"],
        "parts": {
            "more": {
                "schema": "cotenant-view-1",
                "view": "more",
                "columns": {"at": "a time"},
                "rows": [{"at": "2026-01-02T00:00:00Z"}],
                "notes": [],
            }
        },
    }
    assert json.loads(as_json(View("empty", FIELDS)))["rows"] == []
    with pytest.raises(ValueError, match="JSON"):
        as_json(View("none", {"a": ""}, [{"a": float("nan")}]))


def test_people_see_a_filter_of_the_frame_and_lines_below_a_row() -> None:
    rows = [{"job": "vae", "tenant": None, "why": "slow"}, {"job": "vae", "tenant": "0", "why": ""}]
    found = View("filtered", {"job": "", "tenant": "", "why": ""}, rows, [Column("job", left=True)])
    whole = found.frame.filter(pl.col("tenant").is_null())
    shown = replace(found, groups=[RowGroup(whole)], below=lambda row: [((row["why"], "dim"),)])
    assert lines(shown, 80) == ["job", "vae", "     slow"]
    assert len(rows_of(shown)) == 2
    assert html(shown).count("<tr>") == 2


def test_an_absent_value_is_a_dash_and_an_absent_field_blank() -> None:
    column = Column("jobs", ("rated", "jobs"), "{} of {}".format)
    rows: list[Row] = [{"rated": 1, "jobs": 2}, {"rated": None, "jobs": 2}, {}]
    assert [column.cell(row) for row in rows] == [Cell("1 of 2"), Cell(), Cell("")]
    assert column.cell({"rated": 0, "jobs": 2}) == Cell("0 of 2"), "a zero is known"


def test_what_is_too_little_for_an_interval_says_so() -> None:
    columns = measurement("rate", ("rate", "low", "high", "n"), "{}L".format, once=lambda n: n == 1)
    row: Row = {"rate": 5.0, "low": None, "high": None, "n": 2}
    assert [column.cell(row).text for column in columns] == ["5.000", "too few runs", "2L"]
    assert columns[1].cell({**row, "n": 1}).text == "measured once"
    assert [column.cell({**row, "rate": None}) for column in columns] == [Cell()] * 3
