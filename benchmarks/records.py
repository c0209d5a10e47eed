"""Seconds and peak memory of loading, reporting and exporting many records.

python benchmarks/run.py records [--files 10000] [--rows 1000000]

Every step runs in its own process. The synthetic records have several suites, hosts and jobs and a seeded spread; a few
are failed, INVALID or NaN. `--files` records are written as JSON files, `--rows` records as JSON lines of an export.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from cotenant.machine.facts import machine_facts
from cotenant.machine.topology import discover
from cotenant.results.columns import COLUMNS
from cotenant.results.export_form import ROWS

SUITES, HOSTS, JOBS, TENANTS = 2, 3, 20, 8
SEED = 1
LOST, INVALID, NOT_FINITE = 0.002, 0.002, 0.001
OBSERVATIONS = 20
MACHINE = machine_facts(discover(), Path(__file__).parent)
GOALS = {"report from Parquet": "<= 10 s, < 2 GB", "report from JSON lines": "<= 60 s, < 2 GB"}


@dataclass(frozen=True, slots=True)
class Tenant:
    """The facts of one synthetic record, from which its file or its row is made."""

    suite: str
    host: str
    job: int
    uid: int
    tenant: int
    rate: float
    fate: str

    @property
    def start_time(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(1_750_000_000 + 600 * self.uid + 20 * self.job))

    @property
    def suite_start_time(self) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%S+00:00", time.gmtime(1_750_000_000 + 600 * self.uid))

    @property
    def path(self) -> str:
        failed = ".FAIL" if self.fate == "failed" else ""
        day = self.start_time[:10].replace("-", "")
        return (
            f"output/{self.host}/{self.suite}.job{self.job}.R{self.uid}.D{self.tenant}{failed}.{day}-{self.job:06}.json"
        )


def tenants(count: int) -> Iterator[Tenant]:
    """Yield `count` records, whose rates depend on the job, the host, the launch's noise and the tenant's noise."""
    chance = random.Random(SEED)
    made = 0
    launches = -(-count // (SUITES * HOSTS * JOBS * TENANTS))
    for suite in range(SUITES):
        for host in range(HOSTS):
            for uid in range(launches):
                for job in range(JOBS):
                    launch = 10.0 ** (1 + job % 5) * (1 + 0.1 * host) * chance.lognormvariate(0, 0.01)
                    fates = _fates(chance)
                    for tenant in range(TENANTS):
                        if made == count:
                            return
                        made += 1
                        rate = launch * chance.lognormvariate(-0.002 * tenant, 0.004)
                        yield Tenant(f"suite{suite}", f"node{host}", job, uid, tenant, rate, fates[tenant])


def _fates(chance: random.Random) -> list[str]:
    fates = ["completed"] * TENANTS
    for fate, share in (("failed", LOST), ("invalid", INVALID), ("nan", NOT_FINITE)):
        if chance.random() < TENANTS * share:
            fates[chance.randrange(TENANTS)] = fate
    return fates


def row(one: Tenant) -> dict[str, Any]:
    """Return a record as an exported row."""
    lost = one.fate == "failed"
    rate = None if lost else one.rate
    rules = {"invalid": "overlap,foreign_load", "completed": "" if one.uid % 5 else "foreign_load"}.get(one.fate, "")
    values: dict[str, Any] = {
        "schema": ROWS,
        "suite": one.suite,
        "name": f"job{one.job}",
        "run_id": one.uid,
        "vcd": str(one.tenant),
        "group": "student",
        "tenant": one.tenant,
        "tenants": TENANTS,
        "alike": TENANTS,
        "sharers": 1,
        "share": "exclusive",
        "device_sharers": 1,
        "solo": False,
        "hostname": one.host,
        "gpu": "Invented Accelerator 80GB",
        "devices": 1,
        "suite_start_time": one.suite_start_time,
        "start_time": one.start_time,
        "end_time": one.start_time,
        "completed": not lost,
        "outcome": "out_of_memory" if lost else "completed",
        "message": "It needed more than its slice has." if lost else None,
        "invalid": one.fate == "invalid",
        "trust": "failed" if lost else "invalid" if one.fate == "invalid" else "suspect" if rules else "clean",
        "comparable": not lost,
        "audited": True,
        "unit": "item",
        "rate_items_s": rate,
        "interval_low_items_s": rate and rate * 0.99,
        "interval_high_items_s": rate and rate * 1.01,
        "robust_spread": None if lost else 0.01,
        "rate_mean_items_s": rate and rate * 0.999,
        "rate_min_items_s": rate and rate * 0.97,
        "rate_max_items_s": rate and rate * 1.03,
        "n": None if lost else OBSERVATIONS,
        "mean_s": rate and 1000 / rate,
        "sd_s": rate and 10 / rate,
        "batch_size": 64,
        "precision": "fp32",
        "isolation": "v2",
        "slice": f"processors {8 * one.tenant}-{8 * one.tenant + 7}",
        "cache": "none",
        "processors": 8,
        "software": "2.14.1",
        "version": f"{one.job:016x}",
        "unique_id": f"{one.job:064x}",
        "work": f"{one.job:064x}",
        "losses_non_finite": 3 if one.fate == "nan" else 0,
        "observed_s": None if lost else 10.0,
        "loaded_s": None if lost else 10.0,
        "rows": 64,
        "items_per_row": 1.0,
        "overlap": None if lost else 0.9 if one.fate == "invalid" else 1.0,
        "findings": rules or None,
        "error_findings": "overlap" if one.fate == "invalid" else None,
        "warning_findings": "foreign_load" if rules else None,
        "ours": True,
        "nodes": 1,
        "world_size": 1,
        "batch_size_per_device": 64,
        "input": "resident",
        "path": one.path,
    }
    return {column.name: values.get(column.name) for column in COLUMNS}


def record(one: Tenant) -> dict[str, Any]:
    """Return a record in the form of its file, with the fields that a reader uses."""
    known = row(one)
    flat = {name: known[name] for name in ("suite", "name", "run_id", "vcd", "hostname", "gpu", "devices", "group")}
    flat |= {name: known[name] for name in ("suite_start_time", "solo")}
    flat |= {name: known[name] for name in ("start_time", "end_time", "completed", "outcome", "comparable", "unit")}
    flat |= {name: known[name] for name in ("tenant", "tenants", "batch_size", "version", "unique_id")}
    rules = filter(None, (known["findings"] or "").split(","))
    severities = {"overlap": "error"}
    findings = [
        {"rule": rule, "severity": severities.get(rule, "warning"), "sentence": f"{rule} was seen.", "remedy": ""}
        for rule in rules
    ]
    second = 10**9
    length = int(1000 / one.rate * second)
    spans = [(one.uid * second + i * length, one.uid * second + (i + 1) * length) for i in range(OBSERVATIONS + 5)]
    rate = known["rate_items_s"]
    numbers = rate and {
        "train": {"avg": known["mean_s"], "count": OBSERVATIONS, "max": 0, "min": 0, "sd": known["sd_s"], "unit": "s"},
        "train_item": {
            "avg": known["rate_mean_items_s"],
            "max": known["rate_max_items_s"],
            "min": known["rate_min_items_s"],
            "range": known["rate_max_items_s"] - known["rate_min_items_s"],
            "unit": "items/sec",
        },
        "statistics": {
            "n": OBSERVATIONS,
            "median": rate,
            "interval": [known["interval_low_items_s"], known["interval_high_items_s"]],
            **dict.fromkeys(("robust_spread", "iqr", "p95_s", "sd"), 0.01),
            **dict.fromkeys(("best", "mean", "min", "max"), rate),
        },
    }
    return flat | {
        "schema": "cotenant-record-1",
        "precision": "fp32",
        "cpu_cores": known["processors"],
        "skip": 5,
        "message": known["message"] or "",
        **(numbers or {"train": None, "train_item": None, "statistics": None}),
        "batch_loss": [0.5] * 100,
        "losses_non_finite": known["losses_non_finite"],
        "machine": MACHINE | {"torch": {"version": "2.14.1"}},
        "isolation": {"backend": "v2", "policies": {"cache": "none"}},
        "observations": [{"start_ns": a, "end_ns": b, "items": 1000, "data_wait_ns": 1000} for a, b in spans],
        "findings": findings,
    }


def write_files(directory: Path, count: int) -> None:
    encoder = msgspec.json.Encoder()
    for one in tenants(count):
        path = directory / one.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(msgspec.json.format(encoder.encode(record(one)), indent=1))


def write_lines(path: Path, count: int) -> None:
    encoder = msgspec.json.Encoder()
    with path.open("wb") as file:
        for one in tenants(count):
            file.write(encoder.encode(row(one)) + b"\n")


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a process: seconds of the clock, processor seconds, and peak resident memory."""

    seconds: float
    processor_s: float
    peak_bytes: int


_LOAD = "import sys, pathlib; from cotenant.results.read import read_records; read_records([pathlib.Path(sys.argv[1])])"


def cost(words: Sequence[str]) -> Cost:
    """Run a Python process, discard its output, and return its cost. Raises RuntimeError if it fails."""
    started = time.perf_counter()
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([sys.executable, *words], stdout=subprocess.DEVNULL, stderr=said)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            said.seek(0)
            raise RuntimeError(f"{' '.join(words)}: {said.read().decode()}")
    return Cost(seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024)


def steps(place: Path, scratch: Path, many: bool) -> Iterator[tuple[str, Cost]]:
    """Yield each step's name and cost; `place` is a folder of files or, if `many`, a file of JSON lines."""
    cotenant = ["-c", "import sys; from cotenant.cli import main; sys.exit(main(sys.argv[1:]))"]
    source = "JSON lines" if many else "files"
    parquet = scratch / "rows.parquet"
    yield f"load {source}", cost(["-c", _LOAD, str(place)])
    yield f"report from {source}", cost([*cotenant, "report", str(place)])
    yield "export to Parquet", cost([*cotenant, "export", str(place), "--out", str(parquet)])
    if not many:
        lines = scratch / "few.jsonl"
        yield "export to JSON lines", cost([*cotenant, "export", str(place), "--out", str(lines)])
        yield "report from JSON lines", cost([*cotenant, "report", str(lines)])
    yield "load Parquet", cost(["-c", _LOAD, str(parquet)])
    yield "report from Parquet", cost([*cotenant, "report", str(parquet)])
    page = str(scratch / "page.html")
    yield "page from Parquet", cost([*cotenant, "report", str(parquet), "--html", page, "--format", "csv"])
    yield (
        "mlbench-report from Parquet",
        cost([*cotenant, "mlbench-report", "--reports", str(parquet), *_targets(scratch)]),
    )


def _targets(scratch: Path) -> list[str]:
    path = scratch / "targets.csv"
    lines = [f"job{job},{10.0 ** (1 + job % 5)},0.5,0.05" for job in range(JOBS)]
    path.write_text("\n".join(["job,target,perf_target,sd_target", *lines]) + "\n")
    return ["--gpu-model", str(path)]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="run.py records")
    parser.add_argument("--files", type=int, default=10_000, help="records of one JSON file each; 0 for none")
    parser.add_argument("--rows", type=int, default=1_000_000, help="records of one JSON line each; 0 for none")
    asked = parser.parse_args(argv)
    table = Table("records", "step", "seconds", "processor s", "peak memory", "goal", title="Many records")
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        for count, many in ((asked.files, False), (asked.rows, True)):
            if not count:
                continue
            place = scratch / ("rows.jsonl" if many else "files")
            print(f"{count:,} records ...", file=sys.stderr, flush=True)
            write_lines(place, count) if many else write_files(place, count)
            for name, took in steps(place, scratch, many):
                goal = GOALS.get(name, "") if many else ""
                times = (f"{took.seconds:.2f}", f"{took.processor_s:.2f}")
                table.add_row(f"{count:,}", name, *times, f"{took.peak_bytes / 1e6:,.0f} MB", goal)
    Console(width=120).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
