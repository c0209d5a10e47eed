"""One grid in all its forms: narrow terminals, files, pages, and names with a special meaning in one of them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from cotenant.report.comparison import JobComparison, SuiteComparison, comparison_grid
from cotenant.report.grid import Cell, Column, Grid, Measurement, Row, RowGroup, measured_columns, row, table, word
from cotenant.report.renderers import as_csv, as_json, html, markdown, terminal
from cotenant.stats.verdict import Verdict
from report.making import printed, rows_of

ODD = "a\\[red]b|:x:\x1b[31m<b>\x07"
COLUMNS: tuple[Column[tuple[str, str]], ...] = (
    Column("suite", lambda _: word("mine", "suite"), left=True, seen="files"),
    Column("job", lambda item: word(item[0], "job"), left=True),
    Column("group", lambda item: word(item[1]), left=True),
    *measured_columns(
        "rate", lambda _: Measurement(1.5e6, (1.4e6, 1.6e6), "5L", (5,)), ("rate", "rate_low", "rate_high", "launches")
    ),
    Column("load", lambda _: Cell("90 %")),
    Column("MFU", lambda _: Cell(), optional=True),
    Column("", lambda _: Cell("########"), left=True, seen="screens"),
)


def line(job: str, group: str = "student") -> Row:
    return row(COLUMNS, (job, group))


def grid(*rows: Row) -> Grid:
    fields = ("suite", "job", "rate", "rate_low", "rate_high", "launches", "extra")
    return Grid(COLUMNS, [RowGroup(rows, "mine", "node1", [(("a note", "dim"),)])], fields=fields)


def lines(of: Grid, width: int) -> list[str]:
    return [line.plain for line in terminal(of, width)]


def test_a_terminal_wide_enough_has_one_line_a_row() -> None:
    assert lines(grid(line("vae"), line("日本")), 80) == [
        "mine  node1",
        "job   group      rate  95 % interval   n  load",
        "vae   student  1.500M   1.400-1.600M  5L  90 %  ########",
        "日本  student  1.500M   1.400-1.600M  5L  90 %  ########",
        "a note",
        "",
    ]


def test_names_lose_their_middle_and_others_their_end_to_fit() -> None:
    columns: tuple[Column[tuple[str, str]], ...] = (
        Column("job", lambda item: Cell(item[0]), left=True, least=9),
        Column("verdict", lambda item: Cell(item[1]), left=True, least=10),
        Column("n", lambda _: Cell("20")),
    )
    shortened = table(
        columns, [("convnet_distributed_fp16", "suspect foreign load"), ("日本日本日本日本日本", "clean")]
    )
    assert lines(shortened, 60)[1] == "convnet_distributed_fp16  suspect foreign load  20"
    assert lines(shortened, 30)[1:] == [
        "convnet_…fp16  suspect foreig…",
        "  n 20",
        "日本…日本日本  clean",
        "  n 20",
    ]
    assert lines(shortened, 20)[1:3] == ["convnet_distr…d_fp16", "  verdict suspect foreign load; n 20"]


def test_columns_give_way_and_the_last_ones_fold() -> None:
    found = grid(line("vae"), line("a_job_of_a_long_name"))
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
    columns = Column[str]("job", Cell), Column[str]("verdict", lambda _: Cell("failed", style="red"))
    found = table(columns, ["vae"])
    folded = list(terminal(found, 5))[2]
    parts = [(folded.plain[one.start : one.end], one.style) for one in folded.spans]
    assert parts == [("verdict ", "dim"), ("failed", "red")]


@pytest.mark.parametrize("width", [20, 40, 60])
def test_a_narrow_terminal_cuts_no_number(width: int) -> None:
    note = "A and B are the same launches; 5 launches a side would tell"
    compared = JobComparison("convnet_distributed_fp16", Verdict.UNCLEAR, 1.183e6, 1.183e6, None, note)
    text = printed([comparison_grid(SuiteComparison((compared,), None, ()))], width)
    assert text.count("1.183M") == 2
    assert " ".join(text.split()).count(note) == 1


def test_a_name_stands_there_as_it_is_and_commands_nothing() -> None:
    found = grid(line(ODD, ODD))
    assert "a\\[red]b|:x:<b>?" in "\n".join(lines(found, 200))
    assert "a\\\\\\[red\\]b\\|:x:&lt;b&gt;?" in markdown(found)
    assert markdown(table([Column[str](ODD, Cell)], ["vae"])).startswith("| a\\\\\\[red\\]b\\|:x:&lt;b&gt;? |\n")
    (record,) = rows_of(found)
    assert record["job"] == "a\\[red]b|:x:<b>?"
    page = html(found)
    assert "a\\[red]b|:x:&lt;b&gt;?" in page
    assert "<b>?" not in page
    page = html(table([Column[str]("\u202ejob\x9b", Cell)], ["\x9b31m\u202evae"]))
    assert "?job?" in page
    assert not {"\x9b", "\u202e"} & set(page)


def test_no_text_is_a_formula_a_link_or_html_and_numbers_stay_numbers() -> None:
    for beginning in ("=", "+", "-", "@", "\t=", "\r+", "\uff1d"):
        formula = f"{beginning}HYPERLINK(1)"
        rows = [Row({}, {formula: formula}), Row({}, {formula: -1.5})]
        cells = as_csv(Grid((), [RowGroup(rows)], fields=(formula,))).splitlines()
        assert cells[0].startswith("'"), beginning
        assert cells[1:] == [cells[0], "-1.5"], beginning
    hostile = "<img src=x onerror=alert(1)> ![p](http://evil) [l](javascript:x) https://evil www.e `c` \u202e\x9b31m|"
    assert markdown(table([Column[str]("job", Cell)], [hostile])).splitlines()[2] == (
        "| &lt;img src=x onerror=alert(1)&gt; !\\[p\\](http\\://evil) \\[l\\](javascript:x) https\\://evil www\\.e "
        "\\`c\\` ??31m\\| |"
    )


def test_files_have_columns_of_their_own() -> None:
    found = grid(line("vae"), Row(values={"job": "of programs", "extra": None}))
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
    document = {"at": datetime(2026, 1, 2, tzinfo=UTC), "nothing": None}
    assert json.loads(as_json(Grid((), (), document=document))) == {"at": "2026-01-02T00:00:00Z", "nothing": None}
    with pytest.raises(ValueError, match="JSON"):
        as_json(Grid((), (), document={"a": float("nan")}))


def test_what_is_too_little_for_an_interval_says_so() -> None:
    columns = measured_columns("rate", lambda value: value and Measurement(value, None, "2L"), ("rate", "low", "high"))
    assert [column.of(5.0) for column in columns] == [
        Cell("5.000", {"rate": 5.0, "low": None, "high": None}),
        Cell("too few runs"),
        Cell("2L"),
    ]
    assert [column.of(None) for column in columns] == [Cell("-")] * 3
