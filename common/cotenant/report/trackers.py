"""Summaries in the files of other programs that track or compare benchmarks: one function per form, each in TRACKERS.

A function takes a summary and the file named by a person, and returns JSON values to be written, by their paths: at
least one at the named path. Only launches that count are included.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from cotenant.errors import CotenantError
from cotenant.results.columns import TENANT
from cotenant.results.read import again
from cotenant.results.record import counts
from cotenant.text import listed, printable

if TYPE_CHECKING:
    from cotenant.report.summary import JobSummary, Summary

Files = dict[Path, Any]
_COMMIT_FILE = re.compile(r"([0-9a-f]{8,64})-(.+)\.json")
_UNKNOWN: tuple[Any, ...] = (None, "", 0)


class Measure(NamedTuple):
    """A quantity, the higher the better: its name, its unit, its estimate, and one value per launch."""

    name: str
    unit: str
    value: float
    interval: tuple[float, float] | None
    values: list[float]


@dataclass(frozen=True, slots=True, eq=False)
class TrackedUser:
    """A user of a job, as a tracker knows it."""

    job: JobSummary
    user: str
    parts: tuple[str, ...]
    """The parts of its name: suite, job, host if the summary has several, and user."""

    @property
    def name(self) -> str:
        return "/".join(self.parts)

    @property
    def rate(self) -> Measure:
        """Items per second."""
        estimate, rates = self.job.tenants[self.user], self.job.together.of(self.user)
        return Measure(
            "throughput", f"{self.job.unit or 'item'}/s", estimate.rate, estimate.interval, [*rates.values()]
        )

    @property
    def measures(self) -> list[Measure]:
        """Its rate, and the kept share of its rate alone, if known."""
        kept = self.job.kept.get(self.user)
        shares = [] if kept is None else [Measure("kept", "of the rate alone", kept.value, kept.interval, [kept.value])]
        return [self.rate, *shares]

    @property
    def work(self) -> dict[str, Any]:
        """The values equal in its launches, by their words in comparisons."""
        return dict(self.job.work or ())

    @property
    def facts(self) -> dict[str, str]:
        """The known facts on its launches, a line each."""
        work = self.work
        facts = {
            "suite": self.job.suite,
            "host": self.job.host,
            "job": self.job.label,
            "user": self.user,
            "users": work.get("tenants"),
            "mix": self.job.mix,
            "isolation": self.job.isolation,
            "device": work.get("device"),
            "precision": work.get("precision"),
            "batch_size": work.get("batch_size"),
            "torch": work.get("software"),
            "verdict": self.job.verdict,
            "warning": self.job.doubt.rule if self.job.doubt else "",
        }
        return {name: printable(str(value)) for name, value in facts.items() if value not in _UNKNOWN}


def bmf(summary: Summary, out: Path) -> Files:
    """Bencher's metric format, for `bencher run --adapter json --file FILE`."""
    return {
        out: {
            user.name: {
                measure.name: {"value": measure.value, **_ends(measure, "lower_value", "upper_value")}
                for measure in user.measures
            }
            for user in _users(summary)
        }
    }


def hud(summary: Summary, out: Path) -> Files:
    """Records of the benchmark database of PyTorch's HUD, schema v3, with a value per launch.

    Values of `extra_info` are strings there. Its uploader adds repository, commit and workflow.
    """
    records = []
    for user in _users(summary):
        facts, work = user.facts, user.work
        serves = user.job.members.columns("steps")["steps"].count() > 0
        mode = "inference" if serves else "training" if work.get("audited") else ""
        device = "gpu_info" if work.get("devices") else "cpu_info"
        runner = {"name": user.job.host, device: facts.get("device", ""), "gpu_count": work.get("devices") or 0}
        for measure in user.measures:
            ends = {name: str(value) for name, value in _ends(measure, "low", "high").items()}
            records.append(
                {
                    "benchmark": {
                        "name": user.job.suite or "cotenant",
                        "mode": mode,
                        "dtype": facts.get("precision", ""),
                        "extra_info": facts,
                    },
                    "model": {"name": user.job.label, "origins": ["cotenant"]},
                    "metric": {
                        "name": f"{measure.name}({measure.unit})",
                        "benchmark_values": measure.values,
                        "extra_info": ends,
                    },
                    "runners": [runner],
                    "dependencies": {"torch": {"version": facts.get("torch", "")}},
                }
            )
    return {out: records}


def github_action_benchmark(summary: Summary, out: Path) -> Files:
    """An array for the tool `customBiggerIsBetter` of that action."""
    entries = []
    for user in _users(summary):
        for measure in user.measures:
            entry = {
                "name": user.name if measure.name == "throughput" else f"{user.name} {measure.name}",
                "unit": measure.unit,
                "value": measure.value,
                "extra": "\n".join(f"{name}: {fact}" for name, fact in user.facts.items()),
            }
            if measure.interval is not None:
                low, high = measure.interval
                entry["range"] = f"± {(high - low) / 2:#.4g}"  # the action does not read a single digit
            entries.append(entry)
    return {out: entries}


def pyperf(summary: Summary, out: Path) -> Files:
    """Seconds per step, a value per kept observation and a run per launch, for `pyperf compare_to` and `hist`."""
    benchmarks = []
    for user in _users(summary):
        if runs := list(_runs(user)):
            facts = {name: fact for name, fact in user.facts.items() if name not in ("host", "user")}
            name = {"name": user.name, "unit": "second", "hostname": user.job.host or "unknown"}
            benchmarks.append({"metadata": facts | name, "runs": runs})
    if not benchmarks:
        raise CotenantError(
            "No record there has observations, and pyperf compares these.",
            "Name the directory that the suite wrote its records to, not an export of it.",
        )
    return {out: {"version": "1.0", "benchmarks": benchmarks}}


def _runs(user: TrackedUser) -> Iterator[dict[str, Any]]:
    """Yield pyperf's runs: of each launch the seconds per step of observations beside all users."""
    members = user.job.members.where(TENANT.eq(user.user))
    for row, record in again(members):
        number, made = record.arguments.get("number"), record.observations
        steps = number if isinstance(number, int) and number > 0 else 1
        kept = counts(made, record.skip)
        first = kept.index(True) if any(kept) else len(made)
        seconds = [observation.took_ns / 1e9 / steps for observation in made]
        values = [value for value, counted in zip(seconds, kept, strict=True) if counted]
        if values and min(values) > 0:
            warm_ups = [
                [steps, value] for value, seen in zip(seconds[:first], made, strict=False) if seen.kind == "all"
            ]
            when = {"date": row["start_time"]} if _moment(row["start_time"]) else {}
            yield {"values": values, "warmups": warm_ups, "metadata": {"loops": steps} | when}


def asv(summary: Summary, out: Path) -> Files:
    """Seconds per item (there less is better), for `asv publish`; --out is results/HOST/COMMIT-NAME.json.

    asv gets machine and commit from that path. machine.json beside the file and benchmarks.json above it are written,
    too; asv's own entries there stay.
    """
    named, hosts = _COMMIT_FILE.fullmatch(out.name), summary.hosts
    if named is None:
        example = out.with_name("$(git rev-parse HEAD)-cotenant.json")
        raise CotenantError(f"asv files results by machine and commit; '{out.name}' names none.", f"--out {example}")
    if len(hosts) > 1:
        raise CotenantError(
            f"asv has a folder for each machine, and these are records of {listed(hosts)}.",
            "Export the records of each host into its own.",
        )
    machine = out.absolute().parent.name
    results, described = {}, {}
    for user in _users(summary):
        name = ".".join(part.replace(" ", "") for part in user.parts)
        times = [1 / rate for rate in user.rate.values]
        results[name] = [[1 / user.rate.value], [], "1", _milliseconds(user.job), [times]]
        fixed = {"version": "1", "type": "time", "unit": "seconds", "params": [], "param_names": [], "timeout": 0}
        described[name] = {"name": name, "code": user.name, **fixed}
    index, about = out.absolute().parents[1] / "benchmarks.json", out.with_name("machine.json")
    return {
        index: _known(index) | described | {"version": 2},
        about: _known(about) | {"machine": machine, "version": 1},
        out: {
            "version": 2,
            "commit_hash": named[1],
            "env_name": named[2],
            "env_vars": {},
            "date": max(_milliseconds(job) for job in summary.jobs),
            "python": "",
            "requirements": {},
            "params": {"machine": machine},
            "result_columns": ["result", "params", "version", "started_at", "samples"],
            "results": results,
            "durations": {},
        },
    }


TRACKERS: dict[str, Callable[[Summary, Path], Files]] = {
    "bmf": bmf,
    "hud": hud,
    "github-action-benchmark": github_action_benchmark,
    "pyperf": pyperf,
    "asv": asv,
}


def _users(summary: Summary) -> list[TrackedUser]:
    """Return the users of all jobs that have a rate. Raises CotenantError without any."""
    several = len(summary.hosts) > 1
    users = []
    for job in summary.jobs:
        places = [job.suite, job.label, job.host if several else ""]
        for user in job.tenants:
            parts = (*filter(None, places), f"user {user}")
            users.append(TrackedUser(job, user, tuple(map(printable, parts))))
    if not users:
        raise CotenantError("No job there has a rate that counts.", "`report` says why.")
    return users


def _known(path: Path) -> dict[str, Any]:
    """Return the object in one of asv's files; an empty one if there is no file."""
    if not path.exists():
        return {}
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
    except (OSError, msgspec.DecodeError) as error:
        raise CotenantError(f"{path} is no file of asv's: {error}.", "Move it away.") from None


def _ends(measure: Measure, low: str, high: str) -> dict[str, float]:
    return {} if measure.interval is None else dict(zip((low, high), measure.interval, strict=True))


def _moment(text: str) -> datetime | None:
    """Return a record's time; None if it is invalid, as the original's may be."""
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _milliseconds(job: JobSummary) -> int:
    """Return the begin of a job's newest launch, in milliseconds since 1970; 0 if unknown."""
    moment = _moment(max((launch.start_time for launch in job.rates), default=""))
    return 0 if moment is None else round(moment.timestamp() * 1000)
