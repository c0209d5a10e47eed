"""A suite on a terminal while it runs: lines that stay, and below them the current launch and the expected end.

It has no thread and no timer: events redraw it, ticks at most once a second, and none come while tenants are timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from cotenant.report.progress import STYLES, Planned, Progress, duration_words, shortened
from cotenant.results.record import Record
from cotenant.text import printable

INTERVAL_S = 0.95
"""The least time between two drawings, except at GO: ticks come a second apart, a little early or late."""


class LiveView:
    """Draws the current launch and the suite's progress below the lines that `tell` prints.

    `lost`: the terminal is gone; nothing more is written to it, and the suite continues.
    """

    def __init__(
        self,
        planned: Sequence[Planned],
        console: Console,
        clock_s: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        """`planned`: all launches, in their order."""
        self._progress, self._clock_s = Progress(planned, clock_s), clock_s
        self._tenants = 0
        self._state, self._counting = "", False
        self._due_s, self._began = 0.0, now()
        self.lost = False
        self.console, self.now = console, now
        self._live = Live(console=console, auto_refresh=False, transient=True, get_renderable=self._region)

    def tell(self, line: str) -> None:
        """Print a line above the drawing, with `?` for control characters."""
        self.draw(Text("".join(char if char.isprintable() else "?" for char in line)))

    def preparing(self, script: str) -> None:
        # Not drawn: the script itself writes to this terminal.
        self.tell(f"data: {printable(script)}")

    def close(self) -> None:
        """Remove the drawing; the lines printed above it stay."""
        try:
            self._live.stop()
        except OSError:
            self.lost = True

    def draw(self, line: Text | None = None) -> None:
        """Redraw the region, or print a line above it."""
        if self.lost:
            return
        try:
            if line is None:
                self._live.start()
                self._live.refresh()
                return
            with self.console:  # one write for the line and the drawing below it
                if self._live.is_started:
                    self._live.refresh()
                self.console.print(line, soft_wrap=True)
        except OSError:
            self.lost = True

    def launch(self, position: int, job: str, tenants: int) -> None:
        self._tenants, self._began = tenants, self.now()
        self._progress.begin(position, job)
        self._say("entering its slices")

    def building(self, ready: int) -> None:
        self._say(f"building, {ready} of {self._tenants} ready")

    def measuring(self, about_s: float | None) -> None:
        about = ""
        if about_s is not None:
            about = f", about {about_s:.0f} s" if about_s < 100 else f", about {about_s / 60:.0f} min"
        self._progress.measure(about_s)
        # The last drawing before the launch ends has no elapsed seconds, which would stand still.
        self._due_s = 0.0
        self._say(f"measuring since {self.now():%H:%M:%S}{about}", counting=False)

    def stopping(self) -> None:
        self._say("stopping")

    def tick(self) -> None:
        if (now_s := self._clock_s()) >= self._due_s:
            self._due_s = now_s + INTERVAL_S
            self.draw()

    def ended(self, records: Sequence[Record]) -> None:
        before, verdict, after = self._progress.end(records, self.console.width)
        self._state, self._began = "", self.now()
        self.draw(Text.assemble(before, (verdict, STYLES.get(verdict.rstrip(), "bold red")), after))

    def _say(self, state: str, counting: bool = True) -> None:
        self._state, self._counting = state, counting
        self.tick()

    # The drawing

    def _region(self) -> Group:
        parts = [_line(self._suite(), "dim")]
        if self._state:
            doing = f"  {self._state}{f'  {duration_words(self._progress.elapsed_s)}' if self._counting else ''}"
            place = self._progress.place
            launch = f"{place} {shortened(self._progress.name, place, self.console.width)}"
            parts.insert(0, _line(launch, "bold").append(doing))
        return Group(*parts[: self.console.height - 1])

    def _suite(self) -> str:
        done, total = self._progress.done, len(self._progress.planned)
        failed = f", {self._progress.failed} failed" if self._progress.failed else ""
        progress = f"{done} of {total} done{failed}"
        if done == total or (left := self._progress.remaining_s()) is None:
            return progress
        # A time of day stays true while nothing is drawn; a remaining time would not.
        end = self._began + timedelta(seconds=left[0])
        if end < self.now():
            return progress
        day = "" if end - self.now() < timedelta(hours=20) else "%A "
        return f"{progress}; all by {end:{day}%H:%M}, {left[1]}"


def _line(text: str, style: str = "") -> Text:
    return Text.assemble((printable(text), style), no_wrap=True, overflow="ellipsis")
