"""A fleet as one page that works offline: the verdicts, nodes by jobs, a distribution per job, differences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress

from cotenant.fleet.inventory import Minority
from cotenant.fleet.judgement import ORDER, Judged, coverage
from cotenant.report.fleet import advice, commands, headline, inventory_grid, matrix_grid, verdict_grid
from cotenant.report.grid import Grid
from cotenant.report.pictures.curves import distribution
from cotenant.report.problems import findings_grid, reported_findings, rules_of
from cotenant.report.renderers import Card, Picture, template
from cotenant.results.record import CLEAN, SUSPECT
from cotenant.results.table import Rows
from cotenant.stats.acceptance import NodeVerdict
from cotenant.text import many


def fleet_page(title: str, judged: Judged, odd: Sequence[Minority], groups: Sequence[Grid]) -> str:
    """Return the page; `groups` is the table of two groups side by side, where they were asked for."""
    records = judged.gathered.records
    doubt = _doubt(records)
    return template("fleet.html.j2").render(
        title=title,
        subtitle=f"{judged.gathered.frame.height:,} records",
        answer=headline(judged),
        doubt=doubt,
        kind="bad" if not judged.accepted else "some" if doubt else "good",
        findings=findings_grid(reported_findings(records), {}),
        cards=list(_cards(judged)),
        verdicts=verdict_grid(judged),
        coverage=[*coverage(judged), *advice(judged)],
        commands=commands(judged),
        matrices=[matrix_grid(of, judged) for of in judged.classes],
        distributions=list(_distributions(judged)),
        inventory=inventory_grid(odd),
        groups=groups,
    )


def _doubt(records: Rows) -> str:
    """Return a sentence if most of the fleet's rates are suspect, and by which rules: verdicts are no better then."""
    trust = records.columns("trust")["trust"]
    suspect = int((trust == SUSPECT).sum())
    if 2 * suspect <= int(trust.is_in([SUSPECT, CLEAN]).sum()):
        return ""
    rules = " and ".join(rule.replace("_", " ") for rule in rules_of(records)[:2])
    return (
        f"{suspect} of {many(len(records), 'record')} are suspect, by {rules}: no verdict here is better than they are."
    )


def _cards(judged: Judged) -> Iterator[Card]:
    counts = Counter(each.verdict for each in judged.nodes)
    yield Card("Accepted", f"{counts[NodeVerdict.ACCEPT]} / {len(judged.nodes)}", "nodes", lead=True)
    for verdict in ORDER[:-1]:
        if counts[verdict]:
            named = [each.node.name for each in judged.nodes if each.verdict is verdict]
            yield Card(verdict, str(counts[verdict]), ", ".join(named[:3]) + (" ..." if len(named) > 3 else ""))
    jobs = {job for of in judged.classes for job in of.members.jobs}
    classes = f"{many(len(judged.classes), 'class', 'es')} of equal hardware"
    yield Card("Tested", str(len(jobs)), f"{'job' if len(jobs) == 1 else 'jobs'} in {classes}")


def _distributions(judged: Judged) -> Iterator[Picture]:
    for index, of in enumerate(judged.classes):
        names = [node.name for node in of.members.nodes]
        columns = zip(of.members.jobs, of.ratios.T, of.screening.cells.low.T, strict=True)
        for at, (job, ratios, low) in enumerate(columns):
            known = ratios[ratios > 0]
            if len(known) < 2:
                continue
            of_class = f", {of.members.nodes[0].hardware}" if len(judged.classes) > 1 else ""
            caption = f"{100 * known.min():.1f} .. {100 * known.max():.1f} % of the median"
            outliers = list(compress(names, low))
            caption += f"; outliers: {', '.join(outliers[:6])}" if outliers else ""
            yield Picture(distribution(ratios, low, names, f"d{index}-{at}"), f"{job}{of_class}", caption)
