"""Shows a search for a job's fastest setting, while it runs and after it: each setting with its rate and gain."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from statistics import fmean
from typing import NamedTuple

from rich.console import Console, Group
from rich.text import Text

from cotenant.report import numbers
from cotenant.report.grid import Cell, Column, Grid, Measurement, measured_columns, table, text_column, word
from cotenant.report.live import Drawing
from cotenant.report.progress import Silent, duration_words
from cotenant.report.renderers import terminal
from cotenant.text import printable
from cotenant.tuning.search import Search
from cotenant.tuning.trial import Setting, StepEstimate, estimates, gain


class SettingLine(NamedTuple):
    """A setting with its rate, and this over the job's own; `note` says why it has none, or that it is the best."""

    setting: Setting
    estimate: StepEstimate | None
    gain: StepEstimate | None
    note: str


def setting_lines(search: Search) -> Iterator[SettingLine]:
    """Yield a line for each setting, in the order in which they were tried."""
    known, base = estimates(search.trials), search.space.base
    best = search.leader if search.gain is None else search.best
    for setting in dict.fromkeys(trial.setting for trial in search.trials):
        refused = [trial.outcome for trial in search.trials if trial.setting == setting and trial.rate is None]
        notes = [outcome.replace("_", " ") for outcome in refused[:1]]
        notes += ["the job's own"] * (setting == base) + ["best"] * (setting == best and setting in known)
        won = (search.gain if setting == search.leader else None) or gain(search.trials, base, setting)
        yield SettingLine(setting, known.get(setting), won, ", ".join(notes))


def _rate(line: SettingLine) -> Measurement | None:
    of = line.estimate
    return None if of is None else Measurement(of.rate, of.interval, str(of.n))


def _gain(line: SettingLine) -> Cell:
    if (gained := line.gain) is None:
        return Cell()
    note = f"({numbers.ratio_interval(*gained.interval)})" if gained.interval else ""
    return Cell(numbers.ratio(gained.rate), note=note)


COLUMNS: Sequence[Column[SettingLine]] = (
    text_column("setting", lambda line: str(line.setting)),
    *measured_columns("rate", _rate, (), n="launches"),
    Column("over the job's", _gain),
    Column("", lambda line: word(line.note, style="bold green" if "best" in line.note else ""), left=True),
)


def search_grid(search: Search, name: str, unit: str) -> Grid:
    """Return a row for each setting; rates are those of all users together."""
    return table(COLUMNS, setting_lines(search), name, f"{unit}/s of all users together" if unit else "")


class PlainSearch(Silent):
    """A search where nothing can be drawn: a line for each launch."""

    def __init__(self, name: str, budget_s: float, tell: Callable[[str], None]) -> None:
        self.tell = tell
        self._name, self._budget_s = name, budget_s

    def settings(self, search: Search, unit: str) -> None:
        trial = search.trials[-1]
        place = f"{self._name} {len(search.trials)}/{search.space.most_launches}"
        rate = f"{numbers.rate(trial.rate)} {unit}/s" if trial.rate is not None else trial.outcome.replace("_", " ")
        best = f"best: {search.leader}" if search.leader != trial.setting else "best"
        left = ends_within_s(search, self._budget_s)
        self.tell(f"{place}  {trial.setting}  {rate}  {best}; at most {duration_words(left)} more")


class LiveSearch(Drawing, Silent):
    """A search on a terminal: the table so far, the current launch, and the latest end.

    Like `LiveView` it is drawn only on events, and there are none while tenants are timed.
    """

    def __init__(
        self, name: str, budget_s: float, console: Console, now: Callable[[], datetime] = datetime.now
    ) -> None:
        self._name, self._budget_s = name, budget_s
        self._lines: list[Text] = []
        self._launch, self._state, self._end = "", "", ""
        super().__init__(console, self._region, now)

    def settings(self, search: Search, unit: str) -> None:
        self._lines = list(terminal(search_grid(search, self._name, unit), self.console.width))
        end = self.now() + timedelta(seconds=ends_within_s(search, self._budget_s))
        most = search.space.most_launches
        self._end = f"{len(search.trials)} launches of about {most} at most; done by {end:%H:%M} at the latest"
        self._say("")

    def launch(self, position: int, job: str, tenants: int) -> None:
        self._launch = printable(job)
        self._say("entering its slices")

    def building(self, ready: int) -> None:
        self._say(f"building, {ready} ready")

    def measuring(self, about_s: float | None) -> None:
        about = "" if about_s is None else f", about {duration_words(about_s)}"
        self._say(f"measuring since {self.now():%H:%M:%S}{about}")

    def stopping(self) -> None:
        self._say("stopping")

    def _say(self, state: str) -> None:
        self._state = state
        self.draw()

    def _region(self) -> Group:
        running = Text(f"{self._launch}  {self._state}" if self._state else "", "bold", no_wrap=True)
        lines = [*self._lines, running, Text(self._end, "dim", no_wrap=True)]
        return Group(*lines[-(self.console.height - 1) :])


def ends_within_s(search: Search, budget_s: float) -> float:
    """Return the most seconds until the search ends, at its pace and within its budget."""
    seconds = [trial.seconds for trial in search.trials]
    left = max(0, search.space.most_launches - len(seconds))
    return max(0.0, min(left * fmean(seconds), budget_s - sum(seconds)))
