"""Several hosts side by side: a row per host, held against its like, and for a few hosts the jobs in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from cotenant.procfs import parse_list
from cotenant.report import numbers
from cotenant.report.answer import MOST_HOSTS, UNNAMED
from cotenant.report.grid import (
    Cell,
    Column,
    Grid,
    Measurement,
    RowGroup,
    Words,
    measured_columns,
    number,
    row,
    table,
    text_column,
)
from cotenant.report.job_cells import tenant_rates, verdict_note
from cotenant.report.kept import counted, percents
from cotenant.report.numbers import ABSENT
from cotenant.report.summary import JobSummary, Summary
from cotenant.results.decoded import list_of, mapping_of, text_of
from cotenant.results.identity import natural
from cotenant.results.launches import grouped
from cotenant.results.read import again
from cotenant.results.record import CLEAN
from cotenant.results.table import AT, Rows
from cotenant.stats.hosts import HostRate, host_rates, usual
from cotenant.text import joined

OF_COUNTS = ("tenants", "processors")
"""Words of the work of a job on devices that a host with fewer devices than its like has otherwise."""
RATIO = ("ratio", "ratio_low", "ratio_high", "n", "over")
FIELDS = ("host", "device", "devices", "processors", "jobs", "rated", *RATIO, "verdict")
LEGEND = (
    "over its like: the rate of a job's slowest user over the median of the hosts with the same device (of two, over "
    "the other), the geometric mean over n jobs (of fewer than three: launches) that did equal work, with its "
    "95 % t interval."
)


@dataclass(frozen=True, slots=True)
class HostLine:
    """A host with its device model and its counts of devices and processors, None where no record file has them.

    `fewer` has the usual counts of its like, by the names of what it has fewer of.
    """

    host: str
    device: str
    counts: Mapping[str, int | None]
    jobs: Sequence[JobSummary]
    rate: HostRate | None
    fewer: Mapping[str, int]

    @property
    def verdict(self) -> str:
        """`slower`, `7 of 8 devices`, or both; "" for a host like the others."""
        fewer = [f"{self.counts[name]} of {most} {name}" for name, most in self.fewer.items()]
        return joined(", ", "slower" if self.rate is not None and self.rate.slower else "", *fewer)


@lru_cache(maxsize=1)
def host_lines(summary: Summary) -> Sequence[HostLine]:
    """Return the hosts, those with a verdict first; none for records of one host."""
    if len(summary.hosts) < 2:
        return ()
    known, lines = _hardware(summary), list[HostLine]()
    jobs = grouped(summary.jobs, lambda job: job.host)
    for device, hosts in grouped(jobs, lambda host: known[host][0]).items():
        rates = host_rates({host: _rates(jobs[host]) for host in hosts})
        for host in hosts:
            counts, fewer = known[host][1], dict[str, int]()
            for name, own in counts.items():
                most = usual([of for other in hosts if (of := known[other][1][name]) is not None] or [0])
                if own is not None and own < most:
                    fewer[name] = most
            lines.append(HostLine(host or UNNAMED, device, counts, jobs[host], rates.get(host), fewer))
    return sorted(lines, key=lambda line: (not line.verdict, natural(line.host)))


def _hardware(summary: Summary) -> dict[str, tuple[str, dict[str, int | None]]]:
    """Return each host's device model, and the counts in its newest record."""
    models = grouped(summary.jobs, lambda job: job.host)
    found: dict[str, tuple[str, dict[str, int | None]]] = {
        host: (", ".join(sorted({gpu for job in jobs for gpu in job.gpus})), {"devices": None, "processors": None})
        for host, jobs in models.items()
    }
    in_order = summary.records.by("start_time")
    newest = in_order.columns("hostname").with_row_index(AT).group_by("hostname").last()
    for entry, record in again(Rows(in_order.table, [in_order.at[at] for at in newest[AT]])):
        machine = record.machine
        devices = [mapping_of(device) for device in list_of(machine.get("accelerators"))]
        usable = text_of(mapping_of(machine.get("processors")).get("usable"))
        names = sorted({text_of(device.get("name")) for device in devices})
        model = ", ".join(names) or text_of(machine.get("model_name")) or found[entry["hostname"]][0]
        found[entry["hostname"]] = model, {"devices": len(devices), "processors": len(parse_list(usable)) or None}
    return found


def _rates(jobs: Sequence[JobSummary]) -> dict[tuple[object, ...], dict[int, float]]:
    """Return the rates of each job's slowest user by repetition: in a sum over eight a slow device is hardly seen."""
    found: dict[tuple[object, ...], dict[int, float]] = {}
    for job in jobs:
        work = dict(job.work or ())
        equal = tuple(item for item in work.items() if not (work["devices"] and item[0] in OF_COUNTS))
        slowest = {of.run_id: min(rate for rate in of.rates if rate is not None) for of in job.rates}
        found[job.suite, job.name, equal] = slowest
    return found


def host_sentences(summary: Summary) -> list[str]:
    """Return which hosts are slower than their like beyond noise, or have less; none for records of one host."""
    lines, said = host_lines(summary), list[str]()
    for line in lines:
        rate = line.rate
        if rate is not None and rate.slower and rate.interval is not None:
            low, high = (100 * end for end in rate.interval)
            share = f"{100 * rate.ratio:.0f} % ({low:.0f} to {high:.0f} %) of their rate, over {rate.n} {rate.over}"
            said.append(f"{line.host} is slower than its like: it has {share}.")
        said += [f"{line.host} has {line.counts[name]} {name}, its like {most}." for name, most in line.fewer.items()]
    if lines and not said:
        compared = any(line.rate is not None for line in lines)
        said = ["No host is slower than its like beyond noise." if compared else "No two hosts are alike."]
    return said


def _rate(line: HostLine) -> Measurement | None:
    if (rate := line.rate) is None:
        return None
    return Measurement(rate.ratio, rate.interval, counted(rate.n, rate.over), (rate.n, rate.over))


def _count(name: str, line: HostLine) -> Cell:
    return number(line.counts[name], str, name)


def _jobs(line: HostLine) -> Cell:
    rated, jobs = sum(bool(job.rates) for job in line.jobs), len(line.jobs)
    return Cell(f"{rated} of {jobs}", {"jobs": jobs, "rated": rated})


COLUMNS: Sequence[Column[HostLine]] = (
    text_column("host", lambda line: line.host, "host"),
    text_column("device", lambda line: line.device or ABSENT, "device"),
    Column("devices", partial(_count, "devices")),
    Column("processors", partial(_count, "processors")),
    Column("jobs", _jobs),
    *measured_columns("over its like", _rate, RATIO, show=numbers.ratio, span=numbers.ratio_interval),
    Column("verdict", lambda line: Cell(line.verdict, {"verdict": line.verdict}, "bold red"), left=True),
)


def hosts_grid(summary: Summary) -> Grid:
    """Return a row per host; the grid is empty for records of one host."""
    if not (lines := host_lines(summary)):
        return Grid((), ())
    rows, said = [row(COLUMNS, line) for line in lines], host_sentences(summary)
    notes: list[Words] = [((LEGEND, "dim"),), *(((text, "bold"),) for text in said)]
    document = {"schema": "cotenant-hosts-1", "hosts": [each.record for each in rows], "sentences": said}
    return Grid(COLUMNS, [RowGroup(rows)], notes=notes, fields=FIELDS, document=document)


OF_JOBS = (
    "Each user's rate, and what all users of the host keep of their rates alone there; "
    "compare A B --allow host judges whether two hosts differ beyond noise."
)


def jobs_on_hosts_grid(summary: Summary) -> Grid:
    """Return the jobs of a few hosts side by side; the grid is empty for one host, and for more than a few."""
    hosts = list(summary.hosts)
    if not 1 < len(hosts) <= MOST_HOSTS:
        return Grid((), ())
    columns: list[Column[Sequence[JobSummary]]] = [
        text_column("job", lambda jobs: jobs[0].label),
        text_column("unit", lambda jobs: f"{jobs[0].unit}/s" if jobs[0].unit else ABSENT),
        *(Column(host or UNNAMED, partial(_of_host, host), left=True) for host in hosts),
    ]
    jobs = grouped(summary.jobs, lambda job: (job.suite, job.label, job.unit)).values()
    return table(columns, jobs, notes=[((OF_JOBS, "dim"),)])


def _of_host(host: str, jobs: Sequence[JobSummary]) -> Cell:
    job = next((job for job in jobs if job.host == host), None)
    if job is None:
        return Cell()
    kept = job.kept.get(None)
    keep = "" if kept is None else f"keep {percents(kept)}"
    note = joined(", ", keep, "" if job.verdict == CLEAN else job.verdict, verdict_note(job))
    return Cell(tenant_rates(job), note=note)
