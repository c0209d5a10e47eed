"""The summary in a terminal: an absent number is a dash, never 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from cotenant.report.interference_text import launches_cell
from cotenant.report.meters import device_load_percent
from cotenant.report.numbers import ABSENT, at_most, interval, percent, rate
from cotenant.report.reader import may_leave
from cotenant.report.said import SEVERITIES, Said
from cotenant.report.summary import INVALID, PASSED, Estimate, Job, Summary
from cotenant.report.terminal import STYLES
from cotenant.report.whole import padded
from cotenant.stats.interference import Ratio
from cotenant.text import many, printable

INTERFERENCE = "interference"
MFU = "MFU"
OF_CEILING = "of ceiling"
HEADER = (
    "job",
    "group",
    "unit",
    "rate",
    "95 % interval",
    "n",
    "spread",
    "tenants",
    "fairness",
    "worst/best",
    "overlap",
    INTERFERENCE,
    "device load",
    MFU,
    OF_CEILING,
    "verdict",
    "findings",
)
OPTIONAL = frozenset({INTERFERENCE, "device load", MFU, OF_CEILING})
"""Columns that are left out where no job has anything in them."""
ABOVE = ("job", "rate", "95 % interval", "n", "spread", "overlap", "verdict")
LEFT = frozenset({"job", "group", "unit", "tenants", "verdict", "findings"})
SHOWN_TENANTS = 4
SHOWN_LOSSES = 50
LEGEND = (
    "n: L launches, with the 95 % t interval of their mean (3 and more) and the spread between them; "
    "o observations of a single launch's only tenant, with the interval of their median. "
    "worst/best (the tenant that was slowest in most launches)."
)
INTERFERENCE_LEGEND = (
    "interference: 1 - rate together / rate alone in the slice, with its 95 % interval and n launches; "
    "--table interference has it per tenant."
)
CEILING_LEGEND = "of ceiling: FLOP/s over those of the matrix product that --jobs ceilings measured in the same slices."


def print_summary(summary: Summary, console: Console) -> None:
    """Print a table per suite and host, and below them what is to be known about the numbers."""
    with may_leave():
        for line in summary_lines(summary, console.width):
            console.print(line, soft_wrap=not console.is_terminal)


def summary_lines(summary: Summary, width: int) -> Iterator[Text]:
    """Yield the report's lines: one per job where `width` has room for all columns, else two."""
    for (suite, host), group in groupby(summary.jobs, key=lambda job: (job.suite, job.host)):
        jobs = list(group)
        yield Text.assemble((printable(suite) or "suite", "bold"), f"  {printable(facts(jobs, host))}")
        rows = [cells(job) for job in jobs]
        header = header_of(jobs)
        wide = [[row[name] for name in header] for row in rows]
        if _total([header, *wide]) <= width:
            yield from _table(header, wide)
        else:
            yield from _narrow(rows, width)
        yield Text("")
    if summary.jobs:
        yield Text(LEGEND, "dim")
    if any(job.interference is not None for job in summary.jobs):
        yield Text(INTERFERENCE_LEGEND, "dim")
    if any(job.compute is not None and job.compute.of_ceiling is not None for job in summary.jobs):
        yield Text(CEILING_LEGEND, "dim")
    yield from _below(summary)


def header_of(jobs: Sequence[Job]) -> list[str]:
    """Return the columns in which any of the jobs has something."""
    rows = [cells(job) for job in jobs]
    return [name for name in HEADER if name not in OPTIONAL or any(row[name] != ABSENT for row in rows)]


def facts(jobs: Sequence[Job], host: str) -> str:
    """Return what holds for all jobs of a suite on one host: `node1: Some Processor; 2 tenants, isolation v1`."""
    works = [dict(job.work) for job in jobs if job.work is not None]
    gpus = ", ".join(sorted({gpu for job in jobs for gpu in job.gpus}))
    parts = {
        "isolation": sorted({work["isolation"] for work in works if work["isolation"]}),
        "torch": sorted({work["software"] for work in works if work["software"]}),
    }
    said = [f"{name} {', '.join(values)}" for name, values in parts.items() if values]
    return "; ".join(part for part in (f"{host or 'an unnamed host'}{f': {gpus}' if gpus else ''}", *said) if part)


def cells(job: Job) -> dict[str, str]:
    """Return a job's line as text, by column."""
    even, load_percent = job.evenness, device_load_percent(job.members)
    slowest = f" ({printable(even.slowest)})" if even is not None and even.slowest is not None else ""
    lost = job.interference.node if job.interference is not None else None
    return {
        "job": printable(job.label),
        "group": printable(job.group),
        "unit": f"{printable(job.unit)}/s" if job.unit else ABSENT,
        **estimate_cells(job.node),
        "tenants": _rates(job),
        "fairness": ABSENT if even is None else f"{even.jain:.4f}",
        "worst/best": ABSENT if even is None else f"{even.worst_over_best:.3f}{slowest}",
        "overlap": ABSENT if job.overlap is None else at_most(job.overlap),
        "device load": ABSENT if load_percent is None else f"{load_percent:.0f} %",
        MFU: _share(job.compute.mfu if job.compute is not None else None),
        OF_CEILING: _share(job.compute.of_ceiling if job.compute is not None else None),
        INTERFERENCE: ABSENT if lost is None else interference_cell(lost),
        "verdict": printable(job.verdict),
        "findings": finding_counts(job.findings),
    }


def estimate_cells(found: Estimate | None) -> dict[str, str]:
    """Return rate, interval, n and spread as text."""
    if found is None:
        return dict.fromkeys(("rate", "95 % interval", "n", "spread"), ABSENT)
    return {
        "rate": rate(found.rate),
        "95 % interval": interval(*found.interval) if found.interval else "n too small",
        "n": f"{found.launches}L" if found.observations is None else f"{found.observations}o",
        "spread": ABSENT if found.spread is None else percent(found.spread),
    }


def interference_cell(found: Ratio) -> str:
    """Return `4.6 % (3.9..5.2 %, n 5)`: what neighbours cost, its interval, and of how many launches."""
    lost, n = percent(found.interference), launches_cell(found)
    if found.interval is None:
        return f"{lost} (n too small: {n})"
    # Its low end is where most is kept.
    high, low = (1 - end for end in found.interval)
    return f"{lost} ({100 * low:.1f}..{percent(high)}, n {n})"


def finding_counts(counts: Mapping[str, int]) -> str:
    """Return `2 errors, 1 warning`; information is no reason to look."""
    shown = ((counts.get(name, 0), name) for name in SEVERITIES if name != "info")
    return ", ".join(f"{n} {name}{'s' if n > 1 else ''}" for n, name in shown if n) or ABSENT


def style_of(verdict: str) -> str:
    """Return the colour of a verdict."""
    return "green" if verdict == PASSED else "yellow" if verdict.endswith(PASSED) or verdict == INVALID else "bold red"


def _share(value: float | None) -> str:
    return ABSENT if value is None else percent(value)


def _rates(job: Job) -> str:
    """Every tenant's rate; of many the slowest and the fastest."""
    if len(job.tenants) < 2:
        return ABSENT
    shown = [rate(one.rate) for one in job.tenants.values()]
    if len(shown) > SHOWN_TENANTS:
        ordered = sorted(one.rate for one in job.tenants.values())
        return f"{len(shown)}: {rate(ordered[0])}..{rate(ordered[-1])}"
    return " ".join(shown)


def _narrow(rows: Sequence[dict[str, str]], width: int) -> Iterator[Text]:
    """Two lines a job; one more where its name leaves no room."""
    names = max(len(row["job"]) for row in rows)
    above = [[row[name] for name in ABOVE] for row in rows]
    if _total([ABOVE, *above]) > width:
        names = 8
        above = [
            [row["job"] if len(row["job"]) <= names else "", *line[1:]] for row, line in zip(rows, above, strict=True)
        ]
    lines = list(_table(ABOVE, above))
    yield lines[0]
    for row, line in zip(rows, lines[1:], strict=True):
        if len(row["job"]) > names:
            yield Text(row["job"])
        yield line
        shared = f": {row['tenants']}; fairness {row['fairness']}, worst/best {row['worst/best']}"
        shared += f"; interference {row[INTERFERENCE]}" if row[INTERFERENCE] != ABSENT else ""
        load = "".join(f"; {name} {row[name]}" for name in ("device load", MFU, OF_CEILING) if row[name] != ABSENT)
        found = f"; {row['findings']}" if row["findings"] != ABSENT else ""
        below = f"  {row['group']}, {row['unit']}{shared if row['fairness'] != ABSENT else ''}{load}{found}"
        yield Text(below, "dim")


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Text]:
    widths = [max(map(cell_len, column)) for column in zip(header, *rows, strict=True)]
    yield Text(_aligned(header, header, widths), "bold")
    at = list(header).index("verdict")
    for row in rows:
        line = Text(_aligned(header, row, widths))
        start = len(_aligned(header[:at], row[:at], widths[:at])) + 2
        line.stylize(style_of(row[at]), start, start + len(row[at]))
        yield line


def _aligned(header: Sequence[str], row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [padded(cell, width, right=name not in LEFT) for name, cell, width in zip(header, row, widths, strict=True)]
    return "  ".join(cells).rstrip()


def _total(rows: Sequence[Sequence[str]]) -> int:
    return sum(max(map(cell_len, column)) for column in zip(*rows, strict=True)) + 2 * (len(rows[0]) - 1)


def _below(summary: Summary) -> Iterator[Text]:
    for loss in summary.losses[:SHOWN_LOSSES]:
        where = f"{printable(loss.job)} R{loss.run_id} tenant {printable(loss.tenant)}: "
        more = f"  [{loss.aborted} more aborted with it]" if loss.aborted else ""
        text = f"{loss.outcome}: {printable(loss.message)}".removesuffix(": ")
        yield Text.assemble((where, "bold"), text, (more, "dim"))
    yield from _more(len(summary.losses), "tenants that did not finish")
    for note in summary.notes[:SHOWN_LOSSES]:
        yield Text(printable(note), "dim")
    yield from _more(len(summary.notes), "notes of this kind")
    for one in summary.findings:
        if one.severity != "info":
            yield Text.assemble(
                (f"{one.severity}: ", STYLES[one.severity]), printable(sentence(one)), (where_of(one), "dim")
            )
    infos = sum(one.severity == "info" for one in summary.findings)
    if infos:
        yield Text(f"{infos} more for information: they stand in --html and --format json.", "dim")


def _more(count: int, of: str) -> Iterator[Text]:
    if count > SHOWN_LOSSES:
        yield Text(f"{count - SHOWN_LOSSES:,} more {of}: they stand in --format json.", "dim")


def sentence(one: Said) -> str:
    """Return the first sentence of a finding with its remedy; its rule, where no more is known."""
    return f"{one.sentence} {one.remedy}".strip() or one.rule


def where_of(one: Said) -> str:
    """Return how many records say so, and of which jobs."""
    more = f" and {len(one.jobs) - SHOWN_TENANTS} more" if len(one.jobs) > SHOWN_TENANTS else ""
    alike = "" if one.alike else ", each with its own numbers"
    return f"  [{many(one.count, 'record')}{alike}: {', '.join(map(printable, one.jobs[:SHOWN_TENANTS]))}{more}]"
