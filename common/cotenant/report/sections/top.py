"""The top of a report's page: failures, the first things to do, and the chart of each user's share."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from cotenant.report.answer import MOST_HOSTS, NAMED, UNNAMED, JobShares, shares_of
from cotenant.report.kept import QUICK
from cotenant.report.pictures.canvas import DESK, PHONE, shares_axis
from cotenant.report.pictures.rows import ChartRow, mark_of, rows_picture
from cotenant.report.problems import first_steps, loss_sentences
from cotenant.report.section import Notice, NoticePoint, Picture
from cotenant.report.sections.contents import PageContents
from cotenant.report.sections.neighbours import mix_pictures
from cotenant.report.summary import Summary
from cotenant.text import listed

FAILURES_ON_TOP = 3
SIGNS = "●■◆▲"
"""The marks of the first users in the chart."""


def failures_on_top(contents: PageContents) -> Notice | None:
    if not (points := [NoticePoint(said) for said in loss_sentences(contents.losses)[:FAILURES_ON_TOP]]):
        return None
    title = f"{contents.failed} have no number, since a user's program did not finish."
    return Notice(title, points, alarm=True, more=("All failures", "failures"))


def to_do(contents: PageContents) -> Notice | None:
    points = [
        NoticePoint(found.sentence or found.rule, found.severity, f"{found.remedy} ({jobs})", command)
        for found, jobs, command in first_steps(contents.findings)
    ]
    return Notice("What to do first", points) if points else None


def charts_on_top(summary: Summary) -> list[Picture]:
    """Return the charts of users' shares; without any, the bars of each mix."""
    return share_charts(summary) or [*filter(None, mix_pictures(summary))]


def share_charts(summary: Summary) -> list[Picture]:
    """Return a chart for each host; none for more than MOST_HOSTS."""
    hosts = summary.hosts
    if len(hosts) > MOST_HOSTS:
        return []
    charts = []
    for at, (host, of_host) in enumerate(hosts.items()):
        if rows := shares_of(of_host):
            title, caption = _words_of_shares(rows, any(job.mix for job in of_host.jobs))
            title = f"{host or UNNAMED}: {title}" if len(hosts) > 1 else title
            wide, narrow = (shares_chart(rows, f"shares{at}-{width:.0f}", width) for width in (DESK, PHONE))
            charts.append(Picture(wide, title, caption, f"{title}, as in the table of results", narrow))
    return charts


def shares_chart(shares: Sequence[JobShares], name: str, width: float = DESK) -> Markup:
    """Return a row for each job in this order, the first on top; suspect jobs are hollow."""
    rows = [
        ChartRow(
            entry.job.label,
            _numbers(entry),
            [mark_of(share, entry.job.doubt is None) for share in entry.shares.values()],
        )
        for entry in shares
    ]
    ends = shares_axis(end for row in rows for mark in row.marks for end in mark.ends)
    return rows_picture(rows, name, ends, height=0.165, width=width, at=[1])


def _numbers(entry: JobShares) -> str:
    ratios = [100 * share.value for share in entry.shares.values()]
    if len(ratios) > NAMED:
        return f"{min(ratios):.0f} .. {max(ratios):.0f} %"
    return " · ".join(f"{ratio:.0f}" for ratio in ratios) + " %"


def _words_of_shares(rows: Sequence[JobShares], mixed: bool) -> tuple[str, str]:
    """Return title and caption of the chart on top: each user's rate over its rate alone, or over an equal share."""
    most = max(len(row.shares) for row in rows)
    users = ", ".join(f"{mark} user {user}" for user, mark in enumerate(SIGNS[:most]))
    caption = [f"{users}{' and on' if most > len(SIGNS) else ''}", "hollow: suspect"]
    within = {share.within for row in rows for share in row.shares.values() if share.interval is not None}
    if False in within:
        caption.append("solid bars: 95 % intervals over launches")
    if True in within:
        caption.append("dotted bars: of one launch's rounds or observations, which know nothing of other launches")
    if equal := [row.job.label for row in rows if not row.of_alone]:
        which = "All jobs" if len(equal) == len(rows) else listed(equal)
        caption.append(f"{which}: over an equal share, since no launch alone was measured (--baseline blocks)")
    if any(row.quick for row in rows):
        caption.append(QUICK.rstrip("."))
    over = "what it has alone" if len(equal) < len(rows) else "an equal share"
    subject = "Beside copies of its own job: each" if mixed else "Each"
    return f"{subject} user's rate over {over}", f"{'; '.join(caption)}."
