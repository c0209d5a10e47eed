"""The report as one page: its answer, its cards, and the list of its sections."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from cotenant.frames import pl
from cotenant.report.answer import MOST_HOSTS, UNNAMED, answers, least_even, sentences
from cotenant.report.beside import mix_blocks
from cotenant.report.duets import duet_sentences
from cotenant.report.hosts import host_sentences
from cotenant.report.jobs import facts
from cotenant.report.numbers import ABSENT, plain, together_percent
from cotenant.report.section import Card, Page, Section
from cotenant.report.sections import jobs, machine, neighbours, tables, top
from cotenant.report.sections.contents import Against, PageContents
from cotenant.report.summary import Summary
from cotenant.report.time_share import observed_words
from cotenant.results.columns import LAUNCH, TENANT
from cotenant.results.record import CLEAN
from cotenant.text import joined, listed, many

SECTIONS: Sequence[Callable[[PageContents], Section | None]] = (
    neighbours.mixes,
    neighbours.pairs,
    neighbours.sharing,
    neighbours.under_pressure,
    tables.duets,
    tables.hosts,
    tables.jobs_on_hosts,
    tables.results,
    jobs.jobs,
    neighbours.interference,
    tables.devices,
    tables.scaling,
    tables.meters,
    tables.findings,
    tables.failures,
    tables.left_out,
    machine.machines,
)
"""The sections in the order of the page; a section without contents returns None."""
DUETS_ON_TOP = 2
FOOTER = "Every rate is items per second; all users of a launch ran at the same time."


def page(title: str, contents: PageContents) -> str:
    """Return the page as HTML."""
    summary, against = contents.summary, contents.against
    several = len(summary.hosts) > 1
    said = [*host_sentences(summary), *answers(summary)] if several else sentences(summary)
    scores = against.scores.values() if against else ()
    missing = ", ".join(dict.fromkeys(name for score in scores for name in score.missing))
    return Page(
        title=title,
        subtitle=_subtitle(contents),
        answer=said or duet_sentences(summary.in_duets)[:DUETS_ON_TOP],
        cards=[*(_score_cards(against) if against else ()), *_host_cards(contents)],
        sections=[section for make in SECTIONS if (section := make(contents)) is not None],
        notices=[notice for make in (top.failures_on_top, top.to_do) if (notice := make(contents)) is not None],
        pictures=top.share_charts(summary),
        sentences=[f"Not in the score, so it is none of the whole suite: {missing}."] if missing else [],
        footer=FOOTER,
        all_large=several or not said,
    ).html()


def headline(summary: Summary, against: str | None = None) -> str:
    """Return the default title of a page: `cpu: 2 users on Some Processor, against V100`."""
    suites = ", ".join(dict.fromkeys(job.suite for job in summary.jobs if job.suite)) or "Records"
    users = _users(summary)
    devices = {gpu for job in summary.jobs for gpu in job.gpus}
    where = f" on {devices.pop()}" if len(devices) == 1 else ""
    held = f", against {against}" if against else ""
    return f"{suites}: {many(users, 'user')}{where}{held}" if users else f"{suites}{held}"


def _users(summary: Summary) -> int:
    """Return the largest number of tenants in a launch; the jobs of a mix count together."""
    of_mixes = (len(block.users) for block in mix_blocks(summary))
    return max((*of_mixes, *(len(job.tenants) for job in summary.jobs)), default=0)


def _subtitle(contents: PageContents) -> str:
    summary = contents.summary
    records = contents.records.columns(
        *("suite", "hostname", "isolation", "run_id", "solo", "start_time"),
        launch=LAUNCH,
        # A solo launch counts as a launch, too.
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


def _host_cards(contents: PageContents) -> Iterator[Card]:
    """Yield the cards of each host, and one on findings."""
    summary, hosts = contents.summary, contents.summary.hosts
    if len(hosts) == 1:
        yield from cards(summary)
    elif len(hosts) <= MOST_HOSTS:
        for host, of_host in hosts.items():
            # The table of hosts has the facts of the other cards.
            clean = cards(of_host)[0]
            yield clean._replace(name=f"{clean.name}, {host or UNNAMED}")
    # A rule with several remedies is one row of the table.
    severities = Counter(
        severity for severity, _ in {(finding.severity, finding.rule) for finding in contents.findings}
    )
    errors, warnings = severities["error"], severities["warning"]
    kinds = f"{many(warnings, 'kind')} of warning" if warnings else "no warning"
    yield Card("Findings", f"{errors} + {warnings}", f"{many(errors, 'error')}, {kinds}")


def _score_cards(against: Against) -> Iterator[Card]:
    for host, score in against.scores.items():
        name = f"Score, {host}" if len(against.scores) > 1 else "Score"
        unknown = "no interval: fewer than 3 repetitions have all jobs"
        span = unknown if score.interval is None else "95 %: {:.3f} .. {:.3f}".format(*score.interval)
        count = f"{len(score.present)} of {len(score.present) + len(score.missing)} jobs"
        value = ABSENT if score.value is None else f"{score.value:.3f}"
        title = f"{name} of what ran" if score.missing else name
        yield Card(title, value, f"weighted geometric mean of rate / {against.name}, {count}; {span}", lead=True)
    if (older := against.older) is not None:
        parts = f"PM {older.pm:.2f}, ST {older.st:.2f}, PG {plain(older.pg)}, BF {int(older.failures_pass)}"
        note = f"BF (2 PM + ST + 5 PG): {parts}; of mean rates, where all others here are medians"
        yield Card("Original's score", plain(older.value), note)


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
