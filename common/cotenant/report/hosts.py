"""Several hosts side by side: a row per host, compared with similar hosts, and for a few hosts the jobs in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from cotenant.procfs import parse_list
from cotenant.report import numbers
from cotenant.report.answer import MOST_HOSTS, UNNAMED
from cotenant.report.job_cells import tenant_rates, verdict_note
from cotenant.report.kept import n_text, percents
from cotenant.report.numbers import ABSENT
from cotenant.report.summary import JobSummary, Summary
from cotenant.report.view import Cell, Column, Row, RowGroup, View, common, measurement, with_ends
from cotenant.results.decoded import list_of, mapping_of, text_of
from cotenant.results.identity import natural
from cotenant.results.launches import grouped
from cotenant.results.read import again
from cotenant.results.record import CLEAN
from cotenant.results.table import AT, Rows
from cotenant.stats.hosts import HostRate, host_rates, usual
from cotenant.text import joined

OF_COUNTS = ("tenants", "processors")
"""Words of a job's work that follow from the host's number of devices."""
LEGEND = (
    "over its like: the rate of a job's slowest user over the median of the hosts with the same device (of two, over "
    "the other), the geometric mean over n jobs (of fewer than three: launches) that did equal work, with its "
    "95 % t interval."
)


@dataclass(frozen=True, slots=True)
class HostLine:
    """A host with its device model and its counts of devices and processors, None if no record file has them.

    `fewer` has the usual counts of similar hosts, by the names of the counts that are lower here.
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
    hardware, lines = _hardware(summary), list[HostLine]()
    jobs = grouped(summary.jobs, lambda job: job.host)
    for device, hosts in grouped(jobs, lambda host: hardware[host][0]).items():
        rates = host_rates({host: _rates(jobs[host]) for host in hosts})
        for host in hosts:
            counts, fewer = hardware[host][1], dict[str, int]()
            for name, count in counts.items():
                most = usual([found for other in hosts if (found := hardware[other][1][name]) is not None] or [0])
                if count is not None and count < most:
                    fewer[name] = most
            lines.append(HostLine(host or UNNAMED, device, counts, jobs[host], rates.get(host), fewer))
    return sorted(lines, key=lambda line: (not line.verdict, natural(line.host)))


def _hardware(summary: Summary) -> dict[str, tuple[str, dict[str, int | None]]]:
    """Return each host's device model and counts, from its newest record."""
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
    """Return the rates of each job's slowest user by repetition: a sum over eight would hide a slow device."""
    found: dict[tuple[object, ...], dict[int, float]] = {}
    for job in jobs:
        work = dict(job.work or ())
        equal = tuple(item for item in work.items() if not (work["devices"] and item[0] in OF_COUNTS))
        slowest = {launch.run_id: min(rate for rate in launch.rates if rate is not None) for launch in job.rates}
        found[job.suite, job.name, equal] = slowest
    return found


def host_sentences(summary: Summary) -> list[str]:
    """Return sentences on hosts that are slower than similar ones beyond noise, or have less; none for one host."""
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


FIELDS = {
    **common("host"),
    "device": "the model of its devices, or of its processors",
    "devices": "its devices, in its newest record",
    "processors": "the processors that its programs may use, in its newest record",
    "jobs": "its jobs",
    "rated": "its jobs that have a rate",
    **with_ends("ratio", "the rate of the slowest user over the median of hosts with the same device, mean over jobs"),
    "n": "the jobs, or launches, that the ratio is of",
    "over": "jobs, or launches if fewer than three jobs did equal work",
    "verdict": "slower, 7 of 8 devices, or both; empty for a host like the others",
}
COLUMNS = (
    Column("host", left=True),
    Column("device", show=lambda device: device or ABSENT, left=True),
    Column("devices"),
    Column("processors"),
    Column("jobs", ("rated", "jobs"), "{} of {}".format),
    *measurement(
        "over its like",
        ("ratio", "ratio_low", "ratio_high", "n", "over"),
        n_text,
        numbers.ratio,
        numbers.ratio_interval,
    ),
    Column("verdict", show=lambda verdict: Cell(verdict, style="bold red" if verdict else ""), left=True),
)


def _row(line: HostLine) -> Row:
    found: dict[str, Any] = {"host": line.host, "device": line.device, **line.counts, "verdict": line.verdict}
    found |= {"jobs": len(line.jobs), "rated": sum(bool(job.rates) for job in line.jobs)}
    if (rate := line.rate) is not None:
        low, high = rate.interval or (None, None)
        found |= {"ratio": rate.ratio, "ratio_low": low, "ratio_high": high, "n": rate.n, "over": rate.over}
    return found


def hosts_view(summary: Summary) -> View:
    """Return a row per host; the view is empty for records of one host."""
    said = host_sentences(summary)
    rows = [_row(line) for line in host_lines(summary)]
    lines = [((LEGEND, "dim"),), *(((text, "bold"),) for text in said)] if rows else []
    return View("hosts", FIELDS, rows, COLUMNS, lines=lines, sentences=said)


OF_JOBS = (
    "Each user's rate, and what all users of the host keep of their rates alone there; "
    "compare A B --allow host judges whether two hosts differ beyond noise."
)


def jobs_on_hosts(summary: Summary) -> View:
    """Return the jobs of a few hosts side by side, for people; the view is empty for one host, and for many."""
    hosts = list(summary.hosts)
    if not 1 < len(hosts) <= MOST_HOSTS:
        return View("jobs_on_hosts")
    columns = [Column("job", left=True), Column("unit", left=True)]
    columns += [Column(host or UNNAMED, f"of {host}", _of_host, left=True) for host in hosts]
    rows = [
        {"job": label, "unit": f"{unit}/s" if unit else ABSENT, **{f"of {host}": None for host in hosts}}
        | {f"of {job.host}": job for job in reversed(jobs)}
        for (_, label, unit), jobs in grouped(summary.jobs, lambda job: (job.suite, job.label, job.unit)).items()
    ]
    return View("jobs_on_hosts", columns=columns, groups=[RowGroup(rows)], lines=[((OF_JOBS, "dim"),)])


def _of_host(job: JobSummary) -> Cell:
    kept = job.kept.get(None)
    keep = "" if kept is None else f"keep {percents(kept)}"
    note = joined(", ", keep, "" if job.verdict == CLEAN else job.verdict, verdict_note(job))
    return Cell(tenant_rates(job), note=note)
