"""A live view that is told of a suite by hand: its text, how often it is drawn, and the lines that stay."""

from __future__ import annotations

import io
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from rich.console import Console

from cotenant.report.live import LiveView
from cotenant.report.progress import Planned
from cotenant.results.record import Record
from report.making import launch, lost
from report.screen import Screen

NOON = datetime(2026, 3, 14, 12, 0)


@dataclass
class Told:
    """A view on a terminal of this size, whose clock only a test moves."""

    jobs: list[str]
    width: int = 80
    height: int = 24
    now_s: float = 0.0
    stream: io.StringIO = field(default_factory=io.StringIO)

    def __post_init__(self) -> None:
        console = Console(file=self.stream, width=self.width, height=self.height, force_terminal=True)
        planned = [Planned(job) for job in self.jobs]
        self.view = LiveView(planned, console, lambda: self.now_s, lambda: NOON + timedelta(seconds=self.now_s))

    @property
    def screen(self) -> Screen:
        screen = Screen(self.width)
        screen.feed(self.stream.getvalue())
        return screen

    @property
    def shown(self) -> list[str]:
        return self.screen.shown

    def whole_launch(self, position: int, records: list[Record], seconds: float = 60) -> None:
        """Tell the view of a launch from its begin to its line, in four steps of a quarter of `seconds`."""
        view = self.view
        view.launch(position, self.jobs[position - 1], len(records))
        for deed in (
            lambda: view.building(len(records)),
            lambda: view.measuring(seconds),
            view.stopping,
            lambda: view.ended(records),
        ):
            self.now_s += seconds / 4
            deed()


def test_the_phases_of_a_launch() -> None:
    told = Told(["vae", "cart"])
    seen = []
    for deed in (
        lambda: told.view.launch(1, "vae", 2),
        lambda: told.view.building(0),
        lambda: told.view.building(1),
        lambda: told.view.measuring(25.4),
        lambda: told.view.stopping(),
    ):
        deed()
        seen.append(told.shown[0])
        told.now_s += 2
    assert seen == [
        "1/2 vae  entering its slices  0 s",
        "1/2 vae  building, 0 of 2 ready  2 s",
        "1/2 vae  building, 1 of 2 ready  4 s",
        "1/2 vae  measuring since 12:00:06, about 25 s",
        "1/2 vae  stopping  8 s",
    ]
    assert told.shown[1:] == ["0 of 2 done"]
    for about_s, words in ((None, ":10"), (99.4, ":10, about 99 s"), (7200, ":10, about 120 min")):
        told.view.measuring(about_s)
        assert told.shown[0].endswith(f"measuring since 12:00{words}")


def test_lines_of_launches_that_ended_and_when_all_may_be_done() -> None:
    told = Told(["vae", "ssd", "cart", "wlm"])
    told.whole_launch(1, launch("vae"))
    told.view.launch(2, "ssd", 2)
    # After the first launch it says a time of day: a number of seconds would be stale while nothing is drawn.
    assert told.shown[-1] == "1 of 4 done; all by 12:04, at this pace"
    told.whole_launch(2, lost("ssd", 0))
    told.view.launch(3, "cart", 2)
    assert told.shown == [
        "1/4 vae   clean     60 s  7688 + 7604 image/s",
        "2/4 ssd   out_of_memory   60 s  -",
        "3/4 cart  entering its slices  0 s",
        "2 of 4 done, 1 failed; all by 12:04, at this pace",
    ]
    told.now_s += 5
    told.view.measuring(None)
    assert "5 s" not in told.shown[-2]


def test_it_is_drawn_at_most_twice_a_second() -> None:
    told = Told(["vae"])
    told.view.launch(1, "vae", 64)
    drawn, size = [], told.stream.tell()
    for index in range(1000):
        told.now_s += 0.01
        told.view.building(index % 64)
        if index == 500:
            told.view.measuring(None)
        if told.stream.tell() > size:
            drawn.append(told.now_s)
        size = told.stream.tell()
    assert len(drawn) >= 9
    assert all(late - early > 0.9 for early, late in zip(drawn, drawn[2:], strict=False))
    # Ticks that come a little early are drawn as well.
    for step_s in (1.001, 0.999, 1.002, 0.998, 1.0):
        told.now_s, size = told.now_s + step_s, told.stream.tell()
        told.view.tick()
        assert told.stream.tell() > size


def test_what_was_told_stays_and_all_else_goes_without_a_thread() -> None:
    before = threading.active_count()
    told = Told(["vae", "cart"])
    told.whole_launch(1, launch("vae"))
    told.view.launch(2, "cart", 2)
    assert not told.screen.cursor_shown
    assert threading.active_count() == before
    told.view.tell("warning: a sentence")
    told.view.close()
    assert told.shown == ["1/2 vae   clean     60 s  7688 + 7604 image/s", "warning: a sentence"]
    assert told.screen.cursor_shown


@pytest.mark.parametrize("width", [20, 60, 80, 200])
@pytest.mark.parametrize("height", [3, 24])
def test_it_fits_every_terminal(width: int, height: int) -> None:
    names = ["convnet_distributed_fp16_on_every_device", "ssd", "漢字" * 30, "x"]
    told = Told([*names, "last"], width, height)
    for position, name in enumerate(names, 1):
        told.whole_launch(position, launch(name, 0, 8) if position % 2 else lost(name, 0))
    told.view.launch(5, "last", 2)
    assert told.shown[-2].startswith("5/5 last"[:width])
    ended = [line for line in told.shown if line.startswith(("1/5", "2/5", "3/5", "4/5"))]
    assert len(ended) == 4
    if width >= 60:
        assert all("clean" in line or "out_of_memory" in line for line in ended)
        assert len(told.shown) == 6, "one line each"


def test_nothing_interprets_a_name() -> None:
    name = "[red]odd[/red] :smile: \x1b[2J\r\n\x07job"
    told = Told([name, "b"], width=120)
    told.whole_launch(1, launch(name, part={"item": "[b]\x1b[2J"}))
    told.view.tell("warning: \x1b[2J[bold]x[/bold]")
    told.view.launch(2, "b", 1)
    assert any("[red]odd[/red] :smile: ?job" in line for line in told.shown)
    assert "warning: ?[2J[bold]x[/bold]" in told.shown


class Hung(io.StringIO):
    """A terminal that goes away."""

    gone = False

    def write(self, text: str) -> int:
        if self.gone:
            raise OSError(5, "Input/output error")
        return super().write(text)


def test_a_terminal_that_is_gone_ends_nothing() -> None:
    stream = Hung()
    told = Told(["vae", "cart"], stream=stream)
    told.view.launch(1, "vae", 2)
    stream.gone = True
    told.whole_launch(1, launch("vae"))
    assert told.view.lost
    told.view.close()
    stream.gone = False
    told.view.tell("a line")
    assert "a line" not in stream.getvalue()
