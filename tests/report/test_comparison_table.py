"""The lines of a comparison as a table in a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cotenant.report.comparison import Line, Lines, as_table
from cotenant.stats.comparison import Verdict


@pytest.mark.parametrize("name", ["a\\[/x]", "a\\[red]b", "[bold]", "key:x:1"])
def test_a_name_stands_there_as_it_is(name: str) -> None:
    console = Console(width=100, file=io.StringIO())
    console.print(as_table(Lines((Line(name, Verdict.INVALID, 1.0, None, None, f"of {name}"),), None), 100))
    assert isinstance(console.file, io.StringIO)
    (_, line) = console.file.getvalue().splitlines()
    assert line.split() == [name, "1.000", "-", "-", "-", "-", "INVALID", "of", name]
