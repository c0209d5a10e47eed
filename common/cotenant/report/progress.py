"""The progress of a suite: a line for each launch that has ended, and how long the rest may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any, NamedTuple

from cotenant.report import numbers
from cotenant.results.record import CLEAN, INTERRUPTED, INVALID, SUSPECT, Record
from cotenant.text import printable

STYLES = {CLEAN: "green", SUSPECT: "yellow", INTERRUPTED: "yellow"}
"""Styles of verdicts; all others are bad."""
MOST_MIXED = 8
"""Most rates with different units in a line; a launch of pairs has dozens."""
LEAST_NAME, BESIDE_NAME = 8, 43
"""The least characters of a name on a narrow terminal, and the usual characters of the other columns."""


class Planned(NamedTuple):
    """A launch of a suite: its name for people, whether it is solo, and its expected seconds.

    The seconds are from its last run, or `estimated` from a calibration of half a second.
    """

    name: str
    alone: bool = False
    seconds: float | None = None
    estimated: bool = False


def shortened(name: str, place: str, width: int | None) -> str:
    """Return a name, shortened to fit beside two tenants' rates: to the same length for all names of a suite."""
    if width is None:
        return name
    room = max(LEAST_NAME, width - len(place) - BESIDE_NAME)
    return name[:room] if len(name.rstrip()) <= room else f"{name[: room - 1]}…"


class Progress:
    """The launches of a suite, in their order, with the seconds that ended launches took."""

    def __init__(self, planned: Sequence[Planned], clock_s: Callable[[], float] = time.monotonic) -> None:
        self.planned = [launch._replace(name=printable(launch.name)) for launch in planned]
        self.took_s: dict[int, float] = {}
        self.failed = 0
        self.position = 0
        self.name = ""
        """The name of the newest launch."""
        self._measured_s: float | None = None
        self._clock_s, self._began_s = clock_s, clock_s()
        self._width = max((len(launch.name) for launch in self.planned), default=0)

    @property
    def elapsed_s(self) -> float:
        """The time since the current launch began."""
        return self._clock_s() - self._began_s

    @property
    def done(self) -> int:
        """The number of ended launches, including launches before a resumption."""
        return self.position if self.position in self.took_s else max(0, self.position - 1)

    def begin(self, position: int, job: str) -> None:
        """Begin the launch at this position, from 1 on."""
        while len(self.planned) < position:
            # A later repetition has more launches if some jobs proved to need more memory.
            self.planned.append(Planned(printable(job)))
        self.name = self.planned[position - 1].name
        self.position, self._began_s, self._measured_s = position, self._clock_s(), None

    def measure(self, about_s: float | None) -> None:
        """Note the seconds that the launch still needs, now that all tenants are ready; None if no batch was timed."""
        self._measured_s = None if about_s is None else self.elapsed_s + about_s

    def end(self, records: Sequence[Record], width: int | None = None) -> tuple[str, str, str]:
        """End the launch with these records; return its verdict between the texts before and after it.

        The name is shortened to fit a terminal of this `width`. Place and name are equally wide throughout a suite.
        """
        seconds = self.took_s[self.position] = self.elapsed_s
        self.failed += not all(record.completed for record in records)
        before = f"{self.place} {shortened(f'{self.name:<{self._width}}', self.place, width)}  "
        together = [record for record in records if not record.solo]
        turns = [record for record in records if record.solo] if together else []
        alone = f"; alone {rates_text(turns)}" if turns else ""
        after = f"  {duration_words(seconds):>5}  {rates_text(together or records)}{alone}"
        return before, f"{verdict_text(records):<{len(SUSPECT)}}", after

    @property
    def place(self) -> str:
        """The place of the newest launch: ` 2/21`."""
        total = str(len(self.planned))
        return f"{self.position:{len(total)}}/{total}"

    def remaining_s(self) -> tuple[float, str] | None:
        """Return the seconds that the remaining launches take, and the source of that number; None if unknown.

        A launch without an expected time counts as the mean of its kind, alone or together.
        """
        expected = [(launch, launch.seconds) for launch in self.planned if launch.seconds is not None]
        ended = [(self.planned[position - 1], took) for position, took in self.took_s.items()] or expected
        seconds, left = 0.0, self.planned[self.done :]
        if self._measured_s is not None and self.position not in self.took_s:
            left, seconds = left[1:], self._measured_s
        for launch in left:
            if launch.seconds is not None:
                seconds += launch.seconds
                continue
            alike = [took for other, took in ended if other.alone == launch.alone] or [took for _, took in ended]
            if not alike:
                return None
            seconds += fmean(alike)
        if not expected:
            return seconds, "at this pace"
        by_estimate = any(launch.estimated for launch, _ in expected)
        return seconds, "by a calibration of half a second" if by_estimate else "by the last run here"


def verdict_text(records: Sequence[Record]) -> str:
    """Return clean, suspect, INVALID, interrupted, or the outcome of the first tenant that failed."""
    if all(record.completed for record in records):
        if any(record.invalid for record in records):
            return INVALID
        return SUSPECT if any(record.suspect for record in records) else CLEAN
    ended = [record.outcome for record in records if record.outcome not in ("completed", INTERRUPTED)]
    # An aborted tenant ended because of another tenant: that outcome says more.
    return min(ended, key=lambda outcome: outcome == "aborted", default=INTERRUPTED)


def rates_text(records: Sequence[Record]) -> str:
    """Return the tenants' rates with their unit, for many the lowest and highest; a dash if one has no valid rate."""
    counting = (record for record in records if record.completed and not record.invalid)
    rates = [record.statistics.median for record in counting if record.statistics]
    if not records or len(rates) < len(records):
        return numbers.ABSENT
    units = [printable(record.unit) for record in records]
    if len({record.unit for record in records}) > 1:
        if len(records) > MOST_MIXED:
            return f"{len(records)} rates"
        return " + ".join(f"{numbers.rate(rate)} {unit}/s" for rate, unit in zip(rates, units, strict=True))
    many = len(rates) > numbers.SHOWN_TENANTS
    text = numbers.interval(min(rates), max(rates)) if many else numbers.rates(rates, " + ")
    return f"{text} {units[0]}/s" if units[0] else text


def duration_words(seconds: float) -> str:
    """Return `16 s`, from ten minutes on `12 min`, from two hours on `2.4 h`."""
    if seconds < 600:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


class PlainView:
    """A suite's progress without drawing: a line for each ended launch."""

    def __init__(self, planned: Sequence[Planned], tell: Callable[[str], None]) -> None:
        self._progress, self.tell = Progress(planned), tell

    def _nothing(self, *values: Any, **named: Any) -> None:
        pass

    preparing = building = measuring = stopping = tick = _nothing

    def launch(self, position: int, job: str, tenants: int) -> None:
        self._progress.begin(position, job)

    def ended(self, records: Sequence[Record]) -> None:
        self.tell("".join(self._progress.end(records)).rstrip())
