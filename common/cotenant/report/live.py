"""A suite on a terminal while it runs: the last results, the launch that runs, and when all may be done.

Nothing here has a thread or a timer: it is drawn when it is told something, at most twice a second, and it is told
nothing while tenants are timed.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cotenant.report.grid import STYLES
from cotenant.report.numbers import ABSENT, rate
from cotenant.results.record import INTERRUPTED, Record
from cotenant.text import printable

INTERVAL_S = 0.95
"""Between two drawings, but for the one at GO: ticks come a second apart, and a little early or late."""
SHOWN = 8
PACED = 2
"""From so many launches on there is a pace."""


class LiveView:
    """Draws below the lines that `tell` is given, which stay; what is drawn goes when it is closed.

    `lost`: the terminal is gone, and nothing more is written to it. That ends no suite.
    """

    def __init__(
        self,
        jobs: Sequence[str],
        console: Console,
        clock_s: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = datetime.now,
    ) -> None:
        """`jobs`: the names of all launches, in their order."""
        self.lost = False
        self._jobs = [printable(job) for job in jobs]
        self._console, self._clock_s, self._now = console, clock_s, now
        self._results: list[tuple[Text, ...]] = []
        self._failed = self._position = self._tenants = 0
        self._state = ""
        self._counting = False
        self._launched_s = self._due_s = 0.0
        self._began = self._ended = now()
        self._live = Live(console=console, auto_refresh=False, transient=True, get_renderable=self._region)

    def tell(self, line: str) -> None:
        """Print a line above what is drawn, as it would stand in a file, but for a terminal's control sequences."""
        shown = "".join(char if char.isprintable() else "?" for char in line)
        self._write(lambda: self._print(Text(shown)))

    def close(self) -> None:
        """Leave the terminal as it was, with the lines that were told."""
        try:
            self._live.stop()
        except OSError:
            self.lost = True

    def preparing(self, script: str) -> None:
        # Not drawn: the program writes to this terminal itself.
        self.tell(f"data: {printable(script)}")

    def launch(self, position: int, job: str, tenants: int) -> None:
        self._position, self._tenants, self._launched_s = position, tenants, self._clock_s()
        self._began = self._began if self._results else self._now()
        self._say("entering its slices")

    def building(self, ready: int) -> None:
        self._say(f"building, {ready} of {self._tenants} ready")

    def measuring(self, about_s: float | None) -> None:
        about = ""
        if about_s is not None:
            about = f", about {about_s:.0f} s" if about_s < 100 else f", about {about_s / 60:.0f} min"
        # The last drawing of a launch before it ends: without what grows.
        self._due_s = 0.0
        self._say(f"measuring since {self._now():%H:%M:%S}{about}", counting=False)

    def stopping(self) -> None:
        self._say("stopping")

    def tick(self) -> None:
        if (now_s := self._clock_s()) >= self._due_s:
            self._due_s = now_s + INTERVAL_S
            self._write(self._refresh)

    def ended(self, records: Sequence[Record]) -> None:
        ending = outcome(records)
        row = (self._place(), self._job(), ending, self._took(), node_rate(records))
        styles = ("", "", STYLES.get(ending, "bold red"), "", "")
        self._results.append(tuple(map(_line, row, styles)))
        self._failed += not all(record.completed for record in records)
        self._ended = self._now()
        self._position = 0

    def _say(self, state: str, counting: bool = True) -> None:
        self._state, self._counting = state, counting
        self.tick()

    def _refresh(self) -> None:
        self._live.start()
        self._live.refresh()

    def _print(self, line: Text) -> None:
        with self._console:  # One write: the line, and below it what is drawn as it is now.
            if self._live.is_started:
                self._live.refresh()
            self._console.print(line, soft_wrap=True)

    def _write(self, deed: Callable[[], None]) -> None:
        if not self.lost:
            try:
                deed()
            except OSError:
                self.lost = True

    # What is drawn

    def _region(self) -> Group:
        parts: list[RenderableType] = [_line(self._suite(), "dim")]
        if self._position:
            doing = f"  {self._state}{f'  {self._took()}' if self._counting else ''}"
            parts.insert(0, _line(f"{self._place()}  {self._job()}", "bold").append(doing))
        room = self._console.height - len(parts) - 2
        return Group(*([self._table(room)] if self._results and room > 0 else []), *parts)

    def _place(self) -> str:
        return f"{self._position}/{len(self._jobs)}"

    def _job(self) -> str:
        return self._jobs[self._position - 1]

    def _took(self) -> str:
        return duration(self._clock_s() - self._launched_s)

    def _table(self, room: int) -> Table:
        """Names and outcomes are shortened where a terminal is narrow, before any number is."""
        table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="bold")
        table.add_column("launch", justify="right", no_wrap=True)
        table.add_column(_line("job"))
        table.add_column(_line("outcome"))
        table.add_column("time", justify="right", no_wrap=True)
        table.add_column("rate", no_wrap=True)
        for row in self._results[-min(SHOWN, room) :]:
            table.add_row(*row)
        return table

    def _suite(self) -> str:
        done, total = len(self._results), len(self._jobs)
        failed = f", {self._failed} failed" if self._failed else ""
        progress = f"{done} of {total} launches done{failed}"
        # By the clock: a moment stays true while nothing is drawn; how long it is until then would not.
        end = self._began + (self._ended - self._began) / max(1, done) * total
        if not PACED <= done < total or end < self._now():
            return progress
        day = "" if end - self._now() < timedelta(hours=20) else "%A "
        return f"{progress}; at this pace all done by {end:{day}%H:%M}"


def _line(text: str, style: str = "") -> Text:
    return Text.assemble((text, style), no_wrap=True, overflow="ellipsis")


def outcome(records: Sequence[Record]) -> str:
    """Return PASSED, INVALID, interrupted, or how many tenants ended how."""
    if all(record.completed for record in records):
        return "INVALID" if any(record.invalid for record in records) else "PASSED"
    if {record.outcome for record in records} <= {"completed", INTERRUPTED}:
        return INTERRUPTED
    return ", ".join(f"{n} {name}" for name, n in Counter(record.outcome for record in records).items())


def node_rate(records: Sequence[Record]) -> str:
    """Return the sum of the tenants' rates with its unit; a dash where one of them has none that counts."""
    counting = (record for record in records if record.completed and not record.invalid)
    rates = [record.statistics.median for record in counting if record.statistics]
    if not records or len(rates) < len(records):
        return ABSENT
    unit = printable(records[0].unit)
    return f"{rate(sum(rates))} {unit}/s" if unit else rate(sum(rates))


def duration(seconds: float) -> str:
    """Return `0:07`, `12:34` or `1:02:03`."""
    minutes, whole = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{whole:02}" if hours else f"{minutes}:{whole:02}"
