"""The tables of a report, by their names: the function of each, and the remedy for an empty one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from io import StringIO
from typing import Literal

from rich.console import Console

from cotenant.checkout import PROGRAM
from cotenant.errors import CotenantError
from cotenant.frames import pl
from cotenant.report.beside import mix_blocks, mix_view
from cotenant.report.duets import duets_view
from cotenant.report.hosts import hosts_view
from cotenant.report.interference import apart, interference_view
from cotenant.report.jobs import jobs_view
from cotenant.report.kept_table import kept_view
from cotenant.report.pairs import pairs_view
from cotenant.report.pressure import pressure_curves, pressure_view
from cotenant.report.renderers import html, show
from cotenant.report.share import share_points, share_view
from cotenant.report.summary import Summary
from cotenant.report.view import View
from cotenant.results.table import Rows

TableName = Literal["jobs", "hosts", "kept", "interference", "mix", "pairs", "share", "pressure", "duet"]

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
        text = StringIO()
        show([self.view], Console(file=text))
        return text.getvalue()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html(self.view)


@dataclass(frozen=True, slots=True)
class Maker:
    """Makes a table; `nothing` and `remedy` are the error if it is empty, which only `jobs` may be.

    `notes` yields sentences on rows that cannot be compared.
    """

    view: Callable[[Summary, Rows], View]
    nothing: str = ""
    remedy: str = ""
    notes: Callable[[Summary], Iterable[str]] = lambda summary: ()


def table(name: TableName, summary: Summary, records: Rows) -> ResultTable:
    """Return the table of this name. Raises CotenantError for an empty one, and for another name."""
    if name not in MAKERS:
        raise CotenantError(f"There is no table {name!r}.", f"There are {', '.join(MAKERS)}.")
    maker = MAKERS[name]
    view = maker.view(summary, records)
    if maker.nothing and not view.shown:
        raise CotenantError(maker.nothing, maker.remedy)
    return ResultTable(view, tuple(maker.notes(summary)))


MAKERS: Mapping[TableName, Maker] = {
    "jobs": Maker(lambda summary, records: jobs_view(summary)),
    "hosts": Maker(
        lambda summary, records: hosts_view(summary),
        "All records there are of one host.",
        "Name the directories of several hosts, or one that holds all of them.",
    ),
    "kept": Maker(lambda summary, records: kept_view(summary), "No job ran beside another.", ALONE),
    "interference": Maker(
        lambda summary, records: interference_view(summary),
        "No job was measured in two ways: alone in its slice, together in slices, together without.",
        ALONE,
        apart,
    ),
    "mix": Maker(lambda summary, records: mix_view(mix_blocks(summary)), "No launch ran different jobs.", BESIDE),
    "pairs": Maker(
        lambda summary, records: pairs_view(summary), "No two pairs of jobs have rates together and alone.", BESIDE
    ),
    "share": Maker(
        lambda summary, records: share_view(share_points(records)),
        "No users there shared a device or a slice.",
        SHARING,
    ),
    "pressure": Maker(
        lambda summary, records: pressure_view(pressure_curves(summary)),
        "No job was measured beside a neighbour of known pressure.",
        PRESSING,
    ),
    "duet": Maker(lambda summary, records: duets_view(summary.in_duets), "No launch there was a duet.", DUET),
}
"""The tables of the cost of neighbours, and of the jobs; systems side by side have flags of their own."""
