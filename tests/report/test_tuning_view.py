"""A search as people see it: a line for each launch, or a table that is drawn while nothing is timed."""

from __future__ import annotations

import io
from datetime import datetime

from rich.console import Console

from cotenant.report.renderers import terminal
from cotenant.report.tuning import LiveSearch, PlainSearch, ends_within_s, search_grid
from cotenant.tuning.search import Knob, Search, Space
from cotenant.tuning.trial import Setting, Trial


def search() -> Search:
    found = Search(Space(Setting(8), (Knob("--compile"),)))
    for size, rate in ((8, 100.0), (32, 140.0), (32, 138.0)):
        found.take(Trial(Setting(size), rate, seconds=10.0))
    found.take(Trial(Setting(128), None, "out_of_memory", "It needed more.", seconds=10.0))
    return found


def test_every_setting_has_its_rate_its_launches_and_what_it_gains() -> None:
    lines = [line.plain.split("  ") for line in terminal(search_grid(search(), "vae", "image"), 120)]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert cells[0] == ["vae", "image/s of all users together"]
    assert cells[2] == ["batch 8", "100.0", "87.87-113.8", "1", "1.000", "the job's own"]
    assert cells[3] == ["batch 32", "139.0", "126.9-152.3", "2", "1.390", "best"]
    assert cells[4][0] == "batch 128"
    assert cells[4][-1] == "out of memory"


def test_the_end_is_bounded_by_launches_and_by_the_budget() -> None:
    """21 launches at most: ten for the batch size, one for the knob, four around it, six for the gain."""
    assert [ends_within_s(search(), budget_s) for budget_s in (3600, 60, 30)] == [17 * 10.0, 20.0, 0.0]


def test_off_a_terminal_each_launch_is_a_line() -> None:
    lines: list[str] = []
    PlainSearch("vae", 60.0, lines.append).settings(search(), "image")
    assert lines == ["vae 4/21  batch 128  out of memory  best: batch 32; at most 20 s more"]


def test_on_a_terminal_the_table_stands_above_the_launch_that_runs() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, height=30, color_system=None)
    view = LiveSearch("vae", 60.0, console, now=lambda: datetime(2026, 1, 2, 10, 0, 0))
    view.settings(search(), "image")
    view.launch(1, "vae.b64", 2)
    drawn = len(screen.getvalue())
    view.tick()  # nothing is drawn without news: tenants may be timed
    assert len(screen.getvalue()) == drawn
    view.measuring(3.2)
    view.close()
    shown = screen.getvalue()
    assert "batch 32" in shown
    assert "vae.b64  measuring since 10:00:00, about 3 s" in shown
    assert "4 launches of about 21 at most; done by 10:00 at the latest" in shown
