"""Problems in records: findings with their remedies, and tenants that did not finish."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

from cotenant.checkout import PROGRAM
from cotenant.finding import Severity
from cotenant.frames import pl
from cotenant.report.numbers import ABSENT, SHOWN_TENANTS
from cotenant.report.view import COMMAND, STYLES, Cell, Column, RowGroup, View, Words
from cotenant.results.columns import LAUNCH, TENANT
from cotenant.results.identity import job_and_cell
from cotenant.results.launches import ABORTED, grouped
from cotenant.results.record import IN_MIX, SOLO
from cotenant.results.table import Rows
from cotenant.suite.duets import BETWEEN
from cotenant.suite.foreign import SUITE as OF_COMMANDS
from cotenant.text import listed, many, noun, printable

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")
_WORST = pl.coalesce("effect", "value").arg_max().fill_null(0)
GRAVEST = pl.col("sentence").get(_WORST)
"""The sentence of the finding with the greatest effect, or value, else of the first finding."""


@dataclass(frozen=True, slots=True)
class ReportedFinding:
    """A finding of `count` records; among sentences that differ in their numbers, `sentence` is the worst."""

    severity: Severity
    rule: str
    sentence: str
    remedy: str
    count: int
    alike: bool
    jobs: Sequence[str]
    run: str
    """The words of the run of the worst record, and the jobs of that run that have the finding."""
    run_jobs: Sequence[str]
    value: float | None = None
    effect: float | None = None


@dataclass(frozen=True, slots=True)
class Loss:
    """A tenant that did not finish, and why; its failure ended other tenants of the launch, `aborted` in number."""

    job: str
    run_id: int
    tenant: str
    outcome: str
    message: str
    aborted: int = 0


def reported_findings(records: Rows) -> list[ReportedFinding]:
    """Return the findings, errors first, then by effect; findings with the same rule and remedy are merged."""
    alike = records.findings().group_by("severity", "rule", "remedy", maintain_order=True)
    name, run = pl.col("name").cast(pl.String), pl.col("run_words").cast(pl.String)
    findings = alike.agg(
        GRAVEST,
        count=pl.len(),
        alike=pl.col("sentence").n_unique() == 1,
        jobs=name.unique(maintain_order=True),
        run=run.get(_WORST),
        run_jobs=name.filter(run == run.get(_WORST)).unique(maintain_order=True),
        value=pl.col("value").get(pl.coalesce("effect", "value").arg_max()),
        effect=pl.col("effect").max(),
    )
    lines = [ReportedFinding(**row) for row in findings.iter_rows(named=True)]
    return sorted(lines, key=lambda finding: (SEVERITIES.index(finding.severity), -(finding.effect or 0.0)))


def rules_of(records: Rows) -> list[str]:
    """Return the rules of the errors and warnings in records, the most frequent first."""
    doubtful = records.findings().filter(pl.col("severity") != "info")
    return [rule for rule, _ in Counter(doubtful["rule"]).most_common()]


def losses(records: Rows) -> list[Loss]:
    """Return the tenants that did not finish; tenants that another's failure ended are counted with it."""
    lost = records.where(~pl.col("completed"))
    place = ("suite", "hostname", "isolation")
    rows = lost.columns("name", "run_id", TENANT, "outcome", "message", *place, launch=LAUNCH).iter_rows()
    causes = []
    for of_one in grouped(rows, lambda row: (row[1], *row[5:])).values():
        of_launch = [Loss(*row[:5]) for row in of_one]
        culprits = [loss for loss in of_launch if loss.outcome != ABORTED] or of_launch
        aborted = len(of_launch) - len(culprits)
        causes += [replace(culprits[0], aborted=aborted), *culprits[1:]]
    return causes


# The views

SHOWN = 50
MOST_AT_END = 3
"""Most findings at a suite's end."""
COMMANDS = {"slow_user": f"{PROGRAM} plan"}
"""Commands that resolve a finding."""
CHANGES = {
    "slow_start": "-- --skip {value:.0f}",
    # More batches may have been loaded ahead than a launch observes.
    "loaded_ahead": "-- --skip {value:.0f} --repeat {thrice:.0f}",
    "drift": "--settle 10s",
    "few_observations": "--budget 30s",
    # The refusal names the needs of this host, container or batch system.
    "not_enforced": "--isolation require",
    **dict.fromkeys(("foreign_load", "stolen", "swapped", "memory_kills", "throttled", "device_in_use", "bursts"), ""),
}
"""The change with which another run resolves a finding; empty if the host was the cause."""
OF_NO_JOB = (IN_MIX, ".duet.")
"""Parts of the names of records of mixes and duets, which `--name` does not know."""
NOT_OF_EXEC = ("--settle", "--skip")
SHOWN_JOBS = 4
SHOWN_FORMS = 2
"""Most further sentences of a rule below its worst one."""


def lines_below(
    losses: Sequence[Loss], notes: Sequence[str], findings: Sequence[ReportedFinding], verbose: bool = False
) -> Iterator[Words]:
    """Yield failures, notes, and the findings; if `verbose`, also informational ones."""
    yield from _first(_loss_lines(losses), "launches that did not finish")
    yield from _first([((note, "dim"),) for note in notes], "notes of this kind")
    shown = [finding for finding in findings if verbose or finding.severity != "info"]
    for finding in shown:
        said = f"{finding.sentence} {finding.remedy}".strip() or finding.rule
        alike = "" if finding.alike else ", this the worst"
        where = f"  [{many(finding.count, 'record')}{alike}: {listed(map(printable, finding.jobs), SHOWN_JOBS)}]"
        yield (f"{finding.severity}: ", STYLES[finding.severity]), (said, ""), (where, "dim")
    if infos := len(findings) - len(shown):
        yield ((f"{many(infos, 'finding')} more for information: --html and --format json hold them.", "dim"),)


class FirstStep(NamedTuple):
    """One of the gravest findings, and the command that resolves it, "" if there is none."""

    finding: ReportedFinding
    jobs: str
    command: str


def first_steps(findings: Iterable[ReportedFinding]) -> list[FirstStep]:
    """Return the first steps: the gravest findings that a command resolves, in the order of `findings`."""
    return [step for step in _steps(findings) if step.command][:MOST_AT_END]


def _steps(findings: Iterable[ReportedFinding]) -> list[FirstStep]:
    steps = []
    for finding in findings:
        if finding.severity != "info":
            names = dict.fromkeys(name.removesuffix(SOLO) for name in finding.jobs)
            steps.append(FirstStep(finding, listed(map(printable, names), SHOWN_JOBS), _command(finding)))
    return steps


def _command(finding: ReportedFinding) -> str:
    """Return the command that resolves a finding, "" if none does."""
    change = CHANGES.get(finding.rule)
    if change is None or not finding.run or ("{value" in change and finding.value is None):
        return COMMANDS.get(finding.rule, "")
    flags, _, behind = change.format(value=finding.value, thrice=3 * (finding.value or 0.0)).partition("-- ")
    return _again(shlex.split(finding.run), finding.run_jobs, flags.split(), behind.split())


def _again(run: Sequence[str], jobs: Sequence[str], flags: Sequence[str], behind: Sequence[str]) -> str:
    """Return the command that launches these jobs of a run again, with these flags, and others after `--`.

    `--name` knows no cells, mixes, pairs or duets: their run is launched as a whole. The command is "" if the run
    cannot take the flags.
    """
    dashes = run.index("--") if "--" in run else len(run)
    ours, others = [word for word in run[1:dashes] if word != "--resume"], run[dashes + 1 :]
    is_exec = run[0] == OF_COMMANDS
    if (is_exec and {*NOT_OF_EXEC} & {*flags, *behind}) or (behind and BETWEEN in others):
        return ""
    names = dict.fromkeys(job_and_cell(name.removesuffix(SOLO))[0] for name in jobs)
    if not is_exec and not any(part in name for name in names for part in OF_NO_JOB):
        flags = ["--name", ",".join(names), *flags]
    theirs = [*_without(others, behind), *behind] if behind else others
    words = (
        PROGRAM,
        *(run[:1] if is_exec else ()),
        *_without(ours, flags),
        *flags,
        *(("--", *theirs) if theirs else ()),
    )
    return printable(shlex.join(words))


def _without(words: Sequence[str], changed: Sequence[str]) -> list[str]:
    """Return words without the changed flags and their values."""
    flags = {word for word in changed if word.startswith("-")}
    pairs = zip(["", *words], words, strict=False)
    return [word for before, word in pairs if before not in flags and word.partition("=")[0] not in flags]


def to_do(findings: Iterable[ReportedFinding]) -> Iterator[Words]:
    """Yield the gravest findings with their remedies, and below each the command that resolves it, if there is one."""
    for step in _steps(findings)[:MOST_AT_END]:
        finding = step.finding
        said = f"{finding.sentence} {finding.remedy}".strip() or finding.rule
        yield (f"{finding.severity}: ", STYLES[finding.severity]), (said, ""), (f"  [{step.jobs}]", "dim")
        if step.command:
            yield ((f"  {step.command}", COMMAND),)


def _first(lines: Sequence[Words], label: str) -> Iterator[Words]:
    yield from lines[:SHOWN]
    if len(lines) > SHOWN:
        yield ((f"{len(lines) - SHOWN:,} more {label}: they stand in --format json.", "dim"),)


def loss_sentences(losses: Sequence[Loss]) -> list[str]:
    """Return the lines on tenants that did not finish as sentences: job, repetition, users, and the reason."""
    return ["".join(text for text, _ in words) for words in _loss_lines(losses)]


def _loss_lines(losses: Sequence[Loss]) -> list[Words]:
    """Return a line for the tenants of each launch that ended for the same reason."""
    lines: list[Words] = []
    of_launches = grouped(losses, lambda loss: (loss.job, loss.run_id, loss.outcome, loss.message))
    for (job, run_id, outcome, message), alike in of_launches.items():
        users = f"{noun(len(alike), 'user')} {listed((loss.tenant for loss in alike), SHOWN_TENANTS)}"
        why = f"{outcome}: {printable(message)}".removesuffix(": ")
        aborted = sum(loss.aborted for loss in alike)
        more = f"  [{aborted} more aborted with it]" if aborted else ""
        lines.append(((f"{job}, repetition {run_id}, {users}: ", "bold"), (why, ""), (more, "dim")))
    return lines


def rule_anchors(findings: Sequence[ReportedFinding]) -> dict[str, str]:
    """Return the place of each rule's row on a page; a rule with several severities has the worst one's."""
    return {rule: anchor for (_, rule), anchor in reversed(_places(findings).items())}


def _places(findings: Sequence[ReportedFinding]) -> dict[tuple[Severity, str], str]:
    return {place: f"finding{index}" for index, place in enumerate(dict.fromkeys(map(_place, findings)))}


FINDING_FIELDS = {
    "severity": "error, warning or info",
    "rule": "the rule, or check",
    "sentence": "the finding with the greatest effect",
    "remedy": "how to mend it",
    "count": "the records that have it",
    "alike": "whether all of them have the same sentence",
    "jobs": "a list of the jobs that have it",
    "run": "the words of the run of the worst record",
    "run_jobs": "a list of the jobs of that run that have it",
    "value": "the number in the sentence",
    "effect": "the share by which it can have moved the rate at the most",
}
LOSS_FIELDS = {
    "job": "the name of the record",
    "run_id": "the number of the repetition",
    "tenant": "the number of the user",
    "outcome": "how it ended",
    "message": "why",
    "aborted": "other users of the launch that its failure ended",
}


def findings_view(findings: Sequence[ReportedFinding], anchors: Mapping[str, str] = MappingProxyType({})) -> View:
    """Return a row per finding; on a page one per rule. `anchors` are the jobs' places on it."""
    places = _places(findings)
    columns = (
        Column("rule", ("rule", "place"), lambda rule, at: Cell(rule.replace("_", " "), anchor=at), left=True),
        Column("severity", show=lambda severity: Cell(severity, style=STYLES[severity]), left=True),
        Column("worst value", ("worst", "more"), lambda worst, more: Cell(worst, note=more), left=True, words=True),
        Column("remedy", left=True, words=True),
        Column("records", "count"),
        Column("jobs", show=partial(_job_links, anchors=anchors), left=True, words=True),
    )
    shown = [_of_rule(alike) | {"place": places[place]} for place, alike in grouped(findings, _place).items()]
    rows = [asdict(finding) for finding in findings]
    return View("findings", FINDING_FIELDS, rows, columns, [RowGroup(shown)] if shown else [])


def _place(finding: ReportedFinding) -> tuple[Severity, str]:
    return finding.severity, finding.rule


def _of_rule(alike: Sequence[ReportedFinding]) -> dict[str, Any]:
    """Return the row of one rule's findings of one severity; there is at least one."""
    first, *others = alike
    more = ["Also:", *(finding.sentence for finding in others[:SHOWN_FORMS])] if others else []
    if len(others) > SHOWN_FORMS:
        more.append(f"{len(others) - SHOWN_FORMS} more in --format json.")
    return {
        "rule": first.rule,
        "severity": first.severity,
        "worst": first.sentence or first.rule,
        "more": " ".join(more),
        "remedy": first.remedy,
        "count": sum(finding.count for finding in alike),
        "jobs": list(dict.fromkeys(name.removesuffix(SOLO) for finding in alike for name in finding.jobs)),
    }


def _job_links(names: Sequence[str], anchors: Mapping[str, str]) -> Cell:
    if len(anchors) > SHOWN_JOBS and {*names} >= anchors.keys():
        return Cell("", links=[(f"all {len(names)} jobs", "jobs")])
    return Cell("", links=[(name, anchors.get(name, "")) for name in names])


def losses_view(losses: Sequence[Loss]) -> View:
    """Return a row per tenant that did not finish."""
    columns = (
        Column("job", left=True),
        Column("uid", "run_id"),
        Column("user", "tenant"),
        Column("outcome", show=partial(Cell, style="bold red"), left=True),
        Column("message", ("message", "aborted"), _message, left=True, words=True),
    )
    return View("failures", LOSS_FIELDS, [asdict(loss) for loss in losses], columns)


def _message(text: str, aborted: int) -> Cell:
    return Cell(text, note=f"({aborted} more aborted with it)" if aborted else "")


def finding_counts(counts: Mapping[str, int]) -> str:
    """Return `2 errors, 1 warning`; informational findings need no attention."""
    return ", ".join(many(counts[name], name) for name in ("error", "warning") if counts.get(name)) or ABSENT
