"""Tables that a terminal is too narrow for."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table

from cotenant.report.comparison import Line, Lines, as_table
from cotenant.report.whole import natural_width, padded, print_whole
from cotenant.stats.comparison import Verdict

NOTE = "A and B are the same launches; 5 launches a side would tell"


def printed(table: Table, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_whole(table, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def compared(width: int) -> Table:
    line = Line("convnet_distributed_fp16", Verdict.UNCLEAR, 1.183e6, 1.183e6, None, NOTE)
    return as_table(Lines((line,), None, ()), width)


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_narrow_terminal_cuts_no_number(width: int) -> None:
    text = printed(compared(width), width)
    assert text.splitlines()[1].startswith("convnet_distributed_fp16  1.183M  1.183M  ")
    assert " ".join(word for line in text.splitlines()[1:] for word in line[-20:].split()) == NOTE


def test_a_note_has_what_room_there_is() -> None:
    table = compared(110)
    assert natural_width(table) <= 110
    assert len(printed(table, 110).splitlines()) == 3
    assert NOTE in printed(compared(160), 160)


def test_padding_is_counted_in_columns() -> None:
    assert padded("ab", 4) == "ab  "
    assert padded("日本", 5, right=True) == " 日本"
