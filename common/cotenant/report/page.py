"""The report as one HTML file: offline, light, dark and in print, everything from files escaped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any, NamedTuple

from markupsafe import Markup

from cotenant.decoding import MOST
from cotenant.frames import pl
from cotenant.report import mlbench
from cotenant.report.answer import MOST_HOSTS, UNNAMED, JobShares, answers, least_even, sentences, shares_of
from cotenant.report.beside import mix_blocks
from cotenant.report.duets import LEGEND as OF_DUETS
from cotenant.report.duets import duet_sentences, duets_view
from cotenant.report.hosts import host_sentences, hosts_view, jobs_on_hosts
from cotenant.report.interference import interference_view
from cotenant.report.jobs import explanations, facts, jobs_view
from cotenant.report.kept import QUICK
from cotenant.report.matrix import device_matrix, device_names, matrix_view
from cotenant.report.meters import NAMES, courses
from cotenant.report.numbers import ABSENT, plain, together_percent
from cotenant.report.page_beside import beside_each_other, mix_pictures, sharing, under_pressure
from cotenant.report.page_jobs import job_cards
from cotenant.report.pictures import curves as picture
from cotenant.report.pictures.rows import DESK, PHONE, kept, shares_picture
from cotenant.report.problems import (
    ReportedFinding,
    findings_view,
    first_steps,
    loss_sentences,
    losses,
    losses_view,
    reported_findings,
)
from cotenant.report.renderers import Card, Picture, template
from cotenant.report.scaling import Curves, scaling_view
from cotenant.report.summary import Summary
from cotenant.report.time_share import observed_words
from cotenant.report.view import Row, View
from cotenant.results.columns import LAUNCH, TENANT
from cotenant.results.decoded import list_of, mapping_of
from cotenant.results.read import again
from cotenant.results.record import CLEAN
from cotenant.results.table import AT, Rows
from cotenant.results.targets import Target
from cotenant.stats.interference import SuiteScore
from cotenant.text import gib, joined, listed, many

FAILURES_ON_TOP = 3
DUETS_ON_TOP = 2
SIGNS = "●■◆▲"
"""The marks of the first users in the chart on top."""


class Against(NamedTuple):
    """The suite's comparison with targets, by their name: scores per host, and the one by the older formula."""

    name: str
    targets: Mapping[str, Target]
    scores: Mapping[str, SuiteScore]
    older: mlbench.Score | None


def page(
    title: str,
    summary: Summary,
    scaling: Curves,
    against: Against | None = None,
    skipped: Sequence[str] = (),
    shared: Sequence[Row] = (),
) -> str:
    """Return the page. `skipped` are sentences on files that are no records, `shared` the points of shared devices."""
    devices, rows = device_matrix(summary)
    anchors = {job.name: f"job{index}" for index, job in reversed([*enumerate(summary.jobs)]) if job.rates}
    everything = _together(summary.records, summary.solos, summary.in_duets)
    findings = [*summary.findings, *reported_findings(summary.in_duets)]
    lost = [*summary.losses, *losses(summary.in_duets)]
    scores = against.scores.values() if against else ()
    several, duets = len(summary.hosts) > 1, duet_sentences(summary.in_duets)
    said = [*host_sentences(summary), *answers(summary)] if several else sentences(summary)
    results = jobs_view(summary, against.targets if against else {})
    return template("report.html.j2").render(
        title=title,
        answer=said or duets[:DUETS_ON_TOP],
        all_large=several or not said,
        charts=_charts(summary),
        subtitle=_subtitle(summary),
        cards=[*(_score_cards(against) if against else ()), *_host_cards(summary, findings)],
        missing=list(dict.fromkeys(name for score in scores for name in score.missing)),
        hosts=hosts_view(summary),
        jobs_on_hosts=jobs_on_hosts(summary),
        duets=duets_view(summary.in_duets),
        of_duets=OF_DUETS,
        results=results,
        explanations=explanations(summary.jobs, results.groups),
        jobs=list(job_cards(summary)),
        devices=matrix_view(devices, device_names(devices, summary), rows) if len(devices) > 1 else None,
        curves=_curves(scaling),
        blocks=page_blocks(summary),
        beside=beside_each_other(summary),
        pressed=under_pressure(summary),
        sharing=sharing(shared),
        meters=_meters(summary),
        machines=machines(summary),
        first=first_steps(findings),
        findings=findings_view(findings, anchors),
        failures=loss_sentences(lost)[:FAILURES_ON_TOP],
        losses=losses_view(lost),
        notes=[*summary.notes, *skipped],
        failed=len(everything.where(~pl.col("completed"))),
        total=len(everything),
    )


def charts_on_top(summary: Summary) -> list[Picture]:
    """Return the charts of users' shares; without any, the bars of each mix."""
    wide = [wide for wide, _ in _charts(summary)]
    return wide or list(filter(None, mix_pictures(summary)))


def _together(*parts: Rows) -> Rows:
    """Return all rows of these parts of one table."""
    return Rows(parts[0].table, [at for rows in parts for at in rows.at])


def _charts(summary: Summary) -> list[list[Picture]]:
    """Return a wide and a narrow chart for each host, if there are only a few."""
    hosts = summary.hosts
    if len(hosts) > MOST_HOSTS:
        return []
    charts = []
    for at, (host, of_host) in enumerate(hosts.items()):
        if rows := shares_of(of_host):
            title, caption = _words_of_shares(rows, any(job.mix for job in of_host.jobs))
            title = f"{host or UNNAMED}: {title}" if len(hosts) > 1 else title
            drawn = (shares_picture(rows, f"shares{at}-{width:.0f}", width) for width in (DESK, PHONE))
            charts.append([Picture(svg, title, caption) for svg in drawn])
    return charts


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
    each = "Beside copies of its own job: each" if mixed else "Each"
    return f"{each} user's rate over {over}", f"{'; '.join(caption)}."


def headline(summary: Summary, against: str | None = None) -> str:
    """Return the title of a page that was given none: `cpu: 2 users on Some Processor, against V100`."""
    suites = ", ".join(dict.fromkeys(job.suite for job in summary.jobs if job.suite)) or "Records"
    users = _users(summary)
    devices = {gpu for job in summary.jobs for gpu in job.gpus}
    where = f" on {devices.pop()}" if len(devices) == 1 else ""
    held = f", against {against}" if against else ""
    return f"{suites}: {many(users, 'user')}{where}{held}" if users else f"{suites}{held}"


def _users(summary: Summary) -> int:
    """Return the most tenants of a launch, in a mix of all its jobs together."""
    of_mixes = (len(block.users) for block in mix_blocks(summary))
    return max((*of_mixes, *(len(job.tenants) for job in summary.jobs)), default=0)


def _subtitle(summary: Summary) -> str:
    rows = _together(summary.records, summary.solos, summary.in_duets)
    records = rows.columns(
        *("suite", "hostname", "isolation", "run_id", "solo", "start_time"),
        launch=LAUNCH,
        # A launch of one user alone counts among the launches, too.
        alone_of=pl.when("solo").then(TENANT),
    )
    different = records.drop("start_time").unique()
    launches, alone = different.height, different["solo"].sum()
    days = sorted(filter(None, records["start_time"].str.slice(0, 10).unique()))
    when = f", {' to '.join(dict.fromkeys((days[0], days[-1])))}" if days else ""
    hosts, users = list(summary.hosts), _users(summary)
    return joined(
        "; ",
        facts(summary.jobs, hosts[0]) if len(hosts) == 1 else listed(host or UNNAMED for host in hosts),
        many(users, "user") if users else "",
        f"{many(launches, 'launch')}{f', {alone} of them of one user alone' if alone else ''}{when}",
        many(records.height, "record"),
        observed_words(summary) if len(hosts) == 1 else "",
    )


def _host_cards(summary: Summary, findings: Sequence[ReportedFinding]) -> Iterator[Card]:
    """Yield the cards of each host, and one on findings."""
    hosts = summary.hosts
    if len(hosts) == 1:
        yield from cards(summary)
    elif len(hosts) <= MOST_HOSTS:
        for host, of_host in hosts.items():
            # The table of hosts side by side has the other cards' facts.
            clean = cards(of_host)[0]
            yield clean._replace(name=f"{clean.name}, {host or UNNAMED}")
    # A rule may give several remedies, and is one row of the table.
    severities = Counter(severity for severity, _ in {(finding.severity, finding.rule) for finding in findings})
    errors, warnings = severities["error"], severities["warning"]
    kinds = f"{many(warnings, 'kind')} of warning" if warnings else "no warning"
    yield Card("Findings", f"{errors} + {warnings}", f"{many(errors, 'error')}, {kinds}")


def _score_cards(against: Against) -> Iterator[Card]:
    for host, score in against.scores.items():
        name = f"Score, {host}" if len(against.scores) > 1 else "Score"
        unknown = "no interval: fewer than 3 repetitions have all jobs"
        span = unknown if score.interval is None else "95 %: {:.3f} .. {:.3f}".format(*score.interval)
        of = f"{len(score.present)} of {len(score.present) + len(score.missing)} jobs"
        value = ABSENT if score.value is None else f"{score.value:.3f}"
        title = f"{name} of what ran" if score.missing else name
        yield Card(title, value, f"weighted geometric mean of rate / {against.name}, {of}; {span}", lead=True)
    if (older := against.older) is not None:
        parts = f"PM {older.pm:.2f}, ST {older.st:.2f}, PG {plain(older.pg)}, BF {int(older.failures_pass)}"
        note = f"BF (2 PM + ST + 5 PG): {parts}; of mean rates, where all others here are medians"
        yield Card("Original's score", plain(older.value), note)


def _meters(summary: Summary) -> list[Picture]:
    measured = courses(summary.records)
    several = len({host for host, _, _ in measured}) > 1
    shown = []
    for index, (host, quantity, course) in enumerate(measured):
        name, unit, _ = NAMES[quantity]
        mean = fmean(fmean(meter.mean for meter in of_launch) for of_launch in course)
        caption = f"mean {mean:.4g} {unit} over {many(len(course), 'launch')}"
        svg = picture.over_launches(course, f"m{index}")
        shown.append(Picture(svg, f"{name}, {unit}{f' ({host})' if several else ''}", caption))
    return shown


def _curves(curves: Curves) -> list[tuple[str, Markup, View]]:
    """Return the name, a picture and a table of each series that has several points."""
    shown = []
    for at, (series, points) in enumerate(curves.items()):
        drawn = picture.scaling(points, f"s{at}")
        if drawn is not None:
            grid = scaling_view({series: points})
            shown.append((str(series), drawn, replace(grid, groups=[replace(grid.groups[0], title="")])))
    return shown


def cards(summary: Summary) -> list[Card]:
    """Return the facts of the jobs of a host; a quantity that was not measured has no card."""
    jobs, counts = summary.jobs, sorted({len(job.rates) for job in summary.jobs if job.rates}) or [0]
    span = " to ".join(map(str, dict.fromkeys((counts[0], counts[-1]))))
    launches = "each measured once" if counts == [1] else f"of {span} launches each that count"
    clean = sum(job.verdict == CLEAN for job in jobs)
    shown = [Card("Jobs clean", f"{clean} / {len(jobs)}", launches)]
    if (named := least_even(jobs)) is not None:
        name, even = named
        shown.append(Card("Slowest / fastest user", f"{even.worst_over_best:.3f}", f"the least even job: {name}"))
    if overlaps := [job.overlap for job in jobs if job.overlap is not None]:
        words = "of the measured time, at the least, all users ran together"
        shown.append(Card("Together", together_percent(min(overlaps)), words))
    return shown


Facts = list[tuple[str, str]]
_OF_TORCH = {"cuda": "cuda", "hip": "hip", "cudnn": "cudnn", "float32_matmul_precision": "float32 products:"}


def machines(summary: Summary) -> list[tuple[str, Facts]]:
    """Return each host's name and the facts that its newest record holds."""
    in_order = summary.records.by("start_time")
    hosts = in_order.columns("hostname", "isolation", "gpu").with_row_index(AT)
    shown = []
    for host, at, isolation, gpu in hosts.group_by("hostname", maintain_order=True).last().iter_rows():
        newest = Rows(in_order.table, [in_order.at[at]])
        machine = next((record.machine for _, record in again(newest)), {})
        shown.append((host or UNNAMED, _facts(machine, isolation, gpu)))
    return shown


def _facts(machine: Mapping[str, Any], isolation: str, gpu: str) -> Facts:
    processors, software, torch, git = (
        mapping_of(machine.get(name)) for name in ("processors", "software", "torch", "git")
    )
    devices = Counter(
        str(mapping_of(device).get("name") or "unnamed") for device in list_of(machine.get("accelerators"))
    )
    memory, commit = machine.get("memory_bytes"), str(git.get("commit") or "")[:12]
    parts = ", ".join(f"{processors[name]} {name}" for name in ("packages", "cores") if processors.get(name))
    usable = f"processors {processors.get('usable')} of {processors.get('online')} ({parts})"
    quota = f", quota of {processors['quota']}" if processors.get("quota") else ""
    facts = {
        "Processor": machine.get("model_name"),
        "Usable": f"{usable}{quota}" if processors else "",
        "Memory": gib(memory) if isinstance(memory, int) and 0 < memory < MOST else "",
        "NUMA nodes": len(list_of(machine.get("nodes"))),
        "Accelerators": ", ".join(f"{count} x {name}" for name, count in devices.items())
        or (gpu if gpu != machine.get("model_name") else ""),
        "Isolation": isolation,
        "System": software.get("distribution"),
        "Kernel": software.get("kernel"),
        "Python": software.get("python"),
        "Packages": ", ".join(f"{name} {version}" for name, version in mapping_of(software.get("packages")).items()),
        "Torch": ", ".join(f"{word} {torch[name]}" for name, word in _OF_TORCH.items() if torch.get(name)),
        "Checkout": f"{commit}, with changes" if commit and git.get("dirty") else commit,
    }
    return [(name, str(value)) for name, value in facts.items() if value]


def page_blocks(summary: Summary) -> list[tuple[View, Markup | None]]:
    """Return a table and a picture for each suite and host; none where no job was measured in two of the three ways."""
    view = interference_view(summary)
    return [
        (replace(view, groups=[group]), kept([*group.each()], f"k{index}")) for index, group in enumerate(view.groups)
    ]
