"""The tables of a report, by their names: the function of each, and the remedy for an empty one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING

from cotenant.checkout import PROGRAM
from cotenant.errors import CotenantError

if TYPE_CHECKING:
    from cotenant.frames import pl
    from cotenant.report.summary import Summary
    from cotenant.report.view import View
    from cotenant.results.table import Rows

BESIDE = f"{PROGRAM} --mix convnet,wlm launches jobs beside each other, --pairs each pair of several."
ALONE = f"{PROGRAM} measures each user alone as well (--baseline); --isolation none runs all without slices."
SHARING = f"{PROGRAM} --users 4 --share mps shares a device, --slices 2 processors; each number has its own directory."
PRESSING = f"{PROGRAM} --name JOB --pressure dram measures one; exported rows hold too little for a curve."
DUET = f"{PROGRAM} --duet vae -- --batch-size 64 --- --batch-size 128 is one."


@dataclass(frozen=True, eq=False, repr=False)
class ResultTable:
    """One table of a result. Printed, it is the text of the terminal; a notebook shows it as a table."""

    view: View
    """Its rows and columns, from which all its forms are made."""
    notes: tuple[str, ...] = ()
    """Sentences on rows that cannot be compared."""

    def to_polars(self) -> pl.DataFrame:
        """Return the rows for programs, with numbers in all their digits, as `--format csv` prints them."""
        return self.view.frame

    def __str__(self) -> str:
        from rich.console import Console  # `report --help` imports this file only for the tables' names.

        from cotenant.report.renderers import show

        text = StringIO()
        show([self.view], Console(file=text))
        return text.getvalue()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from cotenant.report.renderers import html

        return html(self.view)


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes a table of this `subject`; `nothing` and `remedy` are the error if it is empty, which only `jobs` may be.

    `notes` yields sentences on rows that cannot be compared.
    """

    subject: str
    view: Callable[[Summary, Rows], View]
    nothing: str = ""
    remedy: str = ""
    notes: Callable[[Summary], Iterable[str]] = lambda summary: ()


def table(name: str, summary: Summary, records: Rows) -> ResultTable:
    """Return the table of this name. Raises CotenantError for an empty one, and for another name."""
    if name not in MAKERS:
        raise CotenantError(f"There is no table {name!r}.", f"There are {', '.join(MAKERS)}.")
    maker = MAKERS[name]
    view = maker.view(summary, records)
    if maker.nothing and not view.shown:
        raise CotenantError(maker.nothing, maker.remedy)
    return ResultTable(view, tuple(maker.notes(summary)))


def _jobs(summary: Summary, records: Rows) -> View:
    from cotenant.report.jobs import jobs_view

    return jobs_view(summary)


def _hosts(summary: Summary, records: Rows) -> View:
    from cotenant.report.hosts import hosts_view

    return hosts_view(summary)


def _kept(summary: Summary, records: Rows) -> View:
    from cotenant.report.kept_table import kept_view

    return kept_view(summary)


def _interference(summary: Summary, records: Rows) -> View:
    from cotenant.report.interference import interference_view

    return interference_view(summary)


def _apart(summary: Summary) -> Iterable[str]:
    from cotenant.report.interference import apart

    return apart(summary)


def _mix(summary: Summary, records: Rows) -> View:
    from cotenant.report.beside import mix_blocks, mix_view

    return mix_view(mix_blocks(summary))


def _pairs(summary: Summary, records: Rows) -> View:
    from cotenant.report.pairs import pairs_view

    return pairs_view(summary)


def _share(summary: Summary, records: Rows) -> View:
    from cotenant.report.share import share_points, share_view

    return share_view(share_points(records))


def _pressure(summary: Summary, records: Rows) -> View:
    from cotenant.report.pressure import pressure_curves, pressure_view

    return pressure_view(pressure_curves(summary))


def _duet(summary: Summary, records: Rows) -> View:
    from cotenant.report.duets import duets_view

    return duets_view(summary.in_duets)


NOT_TWICE = "No job was measured in two ways: alone in its slice, together in slices, together without."
OF_ONE_HOST = "Name the directories of several hosts, or one that holds all of them."
MAKERS: Mapping[str, Maker] = {
    "jobs": Maker("each job", _jobs),
    "hosts": Maker("hosts beside equal ones", _hosts, "All records there are of one host.", OF_ONE_HOST),
    "kept": Maker("all that is kept beside others", _kept, "No job ran beside another.", ALONE),
    "interference": Maker("the cost of copies", _interference, NOT_TWICE, ALONE, _apart),
    "mix": Maker("the cost of other jobs", _mix, "No launch ran different jobs.", BESIDE),
    "pairs": Maker("each pair of jobs", _pairs, "No two pairs of jobs have rates together and alone.", BESIDE),
    "share": Maker("users of one device", _share, "No users there shared a device or a slice.", SHARING),
    "pressure": Maker(
        "neighbours of known pressure",
        _pressure,
        "No job was measured beside a neighbour of known pressure.",
        PRESSING,
    ),
    "duet": Maker("whether B is slower than A", _duet, "No launch there was a duet.", DUET),
}
"""The tables of the cost of neighbours, and of the jobs; systems side by side have flags of their own."""
