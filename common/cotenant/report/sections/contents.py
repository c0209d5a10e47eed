"""The contents of a report's page; each section shows a part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from cotenant.frames import pl
from cotenant.report import mlbench
from cotenant.report.problems import Loss, ReportedFinding, losses, reported_findings
from cotenant.report.scaling import Curves
from cotenant.report.summary import Summary
from cotenant.report.view import Row, View
from cotenant.results.table import Rows
from cotenant.results.targets import Target
from cotenant.stats.interference import SuiteScore


@dataclass(frozen=True)
class Against:
    """The suite's comparison with targets, by their name: scores per host, and the score by the older formula."""

    name: str
    targets: Mapping[str, Target]
    scores: Mapping[str, SuiteScore]
    older: mlbench.Score | None


@dataclass(frozen=True)
class PageContents:
    """A summary, the points of scaling series and of shared devices, the targets, and sentences on files left out."""

    summary: Summary
    scaling: Curves = field(default_factory=dict)
    against: Against | None = None
    skipped: Sequence[str] = ()
    shared: Sequence[Row] = ()

    @cached_property
    def records(self) -> Rows:
        """All records: of users together, alone and in duets."""
        parts = self.summary.records, self.summary.solos, self.summary.in_duets
        return Rows(parts[0].table, [at for rows in parts for at in rows.at])

    @cached_property
    def findings(self) -> Sequence[ReportedFinding]:
        return [*self.summary.findings, *reported_findings(self.summary.in_duets)]

    @cached_property
    def losses(self) -> Sequence[Loss]:
        return [*self.summary.losses, *losses(self.summary.in_duets)]

    @cached_property
    def failed(self) -> str:
        """`2 of 10 records`: how many did not complete."""
        return f"{len(self.records.where(~pl.col('completed')))} of {len(self.records)} records"


def notes_of(view: View) -> list[str]:
    """Return the lines below a table as sentences."""
    return ["".join(text for text, _ in words) for words in view.lines]
