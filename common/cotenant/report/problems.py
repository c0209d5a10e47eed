"""What records say besides their rates: findings with their remedies, and tenants that did not finish."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from cotenant.finding import Finding, Severity
from cotenant.report.grid import STYLES, Cell, Column, Grid, Words, table, word
from cotenant.report.numbers import ABSENT
from cotenant.results.columns import TENANT
from cotenant.results.launches import ABORTED
from cotenant.results.table import Rows
from cotenant.text import listed, many, printable

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
NUMBER = r"\d[\d.,]*"


@dataclass(frozen=True, slots=True)
class ReportedFinding:
    """A finding of `count` records, its numbers aside; `sentence` is the first of them."""

    severity: Severity
    rule: str
    sentence: str
    remedy: str
    count: int
    alike: bool
    jobs: Sequence[str]


@dataclass(frozen=True, slots=True)
class Loss:
    """A tenant that did not finish, and why; `aborted` others of its launch were ended by its fault."""

    job: str
    run_id: int
    tenant: str
    outcome: str
    message: str
    aborted: int = 0


def reported_findings(records: Rows) -> list[ReportedFinding]:
    """Return the findings, the worst first; sentences that differ in their numbers only are one."""
    numberless = pl.col("sentence").str.replace_all(NUMBER, "#")
    alike = records.findings().group_by("severity", "rule", "remedy", numberless=numberless, maintain_order=True)
    findings = alike.agg(
        pl.col("sentence").first(),
        count=pl.len(),
        alike=pl.col("sentence").n_unique() == 1,
        jobs=pl.col("name").cast(pl.String).unique(maintain_order=True),
    )
    lines = [ReportedFinding(**line) for line in findings.drop("numberless").iter_rows(named=True)]
    return sorted(lines, key=lambda finding: SEVERITIES.index(finding.severity))


def losses(records: Rows) -> list[Loss]:
    """Return the tenants that did not finish; those that another's fault ended are counted with its first."""
    launches: dict[tuple[str, ...], list[Loss]] = defaultdict(list)
    lost = records.where(~pl.col("completed"))
    columns = lost.columns("name", "run_id", TENANT, "outcome", "message", "suite", "hostname", "isolation")
    for name, run_id, tenant, outcome, message, *place in columns.iter_rows():
        launches[name, str(run_id), *place].append(Loss(name, run_id, tenant, outcome, message))
    causes = []
    for of_launch in launches.values():
        culprits = [loss for loss in of_launch if loss.outcome != ABORTED] or of_launch
        aborted = len(of_launch) - len(culprits)
        causes += [replace(culprits[0], aborted=aborted), *culprits[1:]]
    return causes


# The views

SHOWN = 50
SHOWN_JOBS = 4


def lines_below(
    losses: Sequence[Loss],
    notes: Sequence[str],
    findings: Sequence[ReportedFinding],
    printed: Collection[Finding] = (),
    verbose: bool = False,
) -> Iterator[Words]:
    """Yield failures, notes, and the findings; if `verbose` also information, and those `printed` before."""
    yield from _first([_loss_words(loss) for loss in losses], "tenants that did not finish")
    yield from _first([((note, "dim"),) for note in notes], "notes of this kind")
    before = [] if verbose else [(finding.rule, finding.sentence) for finding in printed]
    new = [each for each in findings if not each.alike or (each.rule, each.sentence) not in before]
    for finding in new:
        if verbose or finding.severity != "info":
            yield (f"{finding.severity}: ", STYLES[finding.severity]), (sentence(finding), ""), (_where(finding), "dim")
    infos = sum(finding.severity == "info" for finding in new)
    if infos and not verbose:
        yield ((f"{infos} more for information: they stand in --html and --format json.", "dim"),)


def _first(lines: Sequence[Words], of: str) -> Iterator[Words]:
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield ((f"{len(lines) - SHOWN:,} more {of}: they stand in --format json.", "dim"),)


def _loss_words(loss: Loss) -> Words:
    where = f"{loss.job} R{loss.run_id} tenant {loss.tenant}: "
    more = f"  [{loss.aborted} more aborted with it]" if loss.aborted else ""
    return (where, "bold"), (f"{loss.outcome}: {printable(loss.message)}".removesuffix(": "), ""), (more, "dim")


def sentence(finding: ReportedFinding) -> str:
    """Return the first sentence of a finding with its remedy; its rule, where no more is known."""
    return f"{finding.sentence} {finding.remedy}".strip() or finding.rule


def _where(finding: ReportedFinding) -> str:
    """Return how many records have it, and of which jobs."""
    alike = "" if finding.alike else ", each with its own numbers"
    return f"  [{many(finding.count, 'record')}{alike}: {listed(map(printable, finding.jobs), SHOWN_JOBS)}]"


def findings_grid(findings: Sequence[ReportedFinding]) -> Grid:
    """Return a row per finding, with its remedy and its jobs, for a page."""
    columns: Sequence[Column[ReportedFinding]] = (
        Column("severity", lambda finding: word(finding.severity, style=STYLES[finding.severity]), left=True),
        Column("what was found", _numbered_sentence, left=True, words=True),
        Column("remedy", lambda finding: word(finding.remedy), left=True, words=True),
        Column("records", lambda finding: word(str(finding.count))),
        Column("jobs", lambda finding: word(", ".join(finding.jobs)), left=True, words=True),
    )
    return table(columns, findings)


def _numbered_sentence(finding: ReportedFinding) -> Cell:
    return Cell(finding.sentence or finding.rule, note="" if finding.alike else "(the first of several numbers)")


def losses_grid(losses: Sequence[Loss]) -> Grid:
    """Return a row per tenant that did not finish, for a page."""
    columns: Sequence[Column[Loss]] = (
        Column("job", lambda loss: word(loss.job), left=True),
        Column("uid", lambda loss: word(str(loss.run_id))),
        Column("tenant", lambda loss: word(loss.tenant)),
        Column("outcome", lambda loss: word(loss.outcome, style="bold red"), left=True),
        Column("message", _message, left=True, words=True),
    )
    return table(columns, losses)


def _message(loss: Loss) -> Cell:
    return Cell(loss.message, note=f"({loss.aborted} more aborted with it)" if loss.aborted else "")


def finding_counts(counts: Mapping[str, int]) -> str:
    """Return `2 errors, 1 warning`; information is no reason to look."""
    shown = ((counts.get(name, 0), name) for name in SEVERITIES if name != "info")
    return ", ".join(many(n, name) for n, name in shown if n) or ABSENT
