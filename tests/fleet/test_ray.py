"""A real Ray cluster of three nodes on this machine, one of which dies in the middle of a fleet run, and of one job.

Ray is an extra: `pip install ray`, or `pip install --target DIR ray` and COTENANT_RAY=DIR.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from cotenant.results.journal import Launched, read_journal
from patience import HANG_S
from tenants.suites import ROOT, RUN, job, until

RAY = os.environ.get("COTENANT_RAY", "")
NAMES = ("n1", "n2", "n3")
JOBS = ("a", "b", "c", "d")
PORT = 6411
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_DISABLE_IMPORT_WARNING": "1"}


def _ray(*words: str) -> list[str]:
    start = "from ray.scripts.scripts import main; main()"
    return [sys.executable, "-c", start, *words]


@dataclass
class Cluster:
    """Three Ray nodes, each with a foreground process of its own."""

    folder: Path
    short: Path
    fronts: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [str(ROOT / "common"), RAY]))
        return os.environ | QUIET | {"PYTHONPATH": path, "BASE": str(self.folder / "base")}

    def start(self, name: str) -> None:
        head = ["--head", "--port", str(PORT), "--include-dashboard=false", "--temp-dir", str(self.short)]
        where = head if name == NAMES[0] else ["--address", f"127.0.0.1:{PORT}"]
        words = ["start", "--block", *where, "--num-cpus", "1", "--node-name", name, "--node-ip-address", "127.0.0.1"]
        line = _ray(*words, "--object-store-memory", "80000000", "--disable-usage-stats")
        lock = {"COTENANT_LOCK": str(self.folder / f"{name}.lock")}  # each is a machine of its own
        with (self.folder / f"{name}.log").open("wb") as log:
            self.fronts[name] = subprocess.Popen(
                line, env=self.environment | lock, stdout=log, stderr=subprocess.STDOUT
            )
        log_of, begun = (self.folder / f"{name}.log").read_text, "Ray runtime started"
        until(lambda: begun in log_of() or self.fronts[name].poll() is not None, f"{name} starts", HANG_S)
        assert begun in log_of(), log_of()

    def kill(self, name: str) -> None:
        """End all processes of a node at one moment, as a power cut does."""
        started = self.fronts.pop(name)
        front = psutil.Process(started.pid)
        for process in [front, *front.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        started.wait()

    def fleet(self, jobs: Path, out: Path, *flags: str) -> subprocess.Popen[str]:
        words = ["--address", f"127.0.0.1:{PORT}", "--jobs", jobs, "--outdir", out, *flags]
        return self._run("fleet", "run", *words, "--isolation", "none", "--users", 1)

    def one_job(self, jobs: Path, out: Path, *flags: str) -> subprocess.Popen[str]:
        words = ["--launcher", "ray", "--nnodes", len(NAMES), "--jobs", jobs, "--outdir", out]
        return self._run(*words, "--isolation", "none", "--users", 1, "--ready-timeout", 60, *flags)

    def _run(self, *words: object) -> subprocess.Popen[str]:
        address = {"RAY_ADDRESS": f"127.0.0.1:{PORT}"}
        pipe, line = subprocess.PIPE, [*RUN, *map(str, words)]
        return subprocess.Popen(line, env=self.environment | address, stdout=pipe, stderr=pipe, text=True)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    if not RAY:
        pytest.importorskip("ray")
    # Paths of sockets are limited.
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp", ignore_cleanup_errors=True) as short:
        made = Cluster(tmp_path, Path(short))
        try:
            for name in NAMES:
                made.start(name)
            yield made
        finally:
            for name in list(made.fronts):
                made.kill(name)


def launches(out: Path, node: str) -> list[str]:
    return sorted(
        each.label for each in read_journal(out / node).entries if isinstance(each, Launched) and each.finished
    )


def records(out: Path, node: str) -> list[str]:
    return sorted(json.loads(path.read_bytes())["name"] for path in (out / node).glob("*.R0.D*.json"))


@pytest.mark.slow
def test_a_resumed_fleet_completes_only_the_node_that_died(cluster: Cluster) -> None:
    jobs, out = cluster.folder / "sums.json", cluster.folder / "out"
    suite = [job("sums.py", "--repeat", 10, "--number", 3, "--sleep", 0.1, name=name) for name in JOBS]
    jobs.write_text(json.dumps(suite))
    run = cluster.fleet(jobs, out)
    try:
        until(lambda: (out / "n2").is_dir() and records(out, "n2"), "n2 has a record", HANG_S)
        cluster.kill("n2")
        _, errors = run.communicate(timeout=HANG_S)
    finally:
        run.kill()
    assert run.returncode == 1, errors
    assert [line for line in errors.splitlines() if line.startswith("n2 is lost (")], errors
    assert [f"{name} is done: " in errors for name in NAMES] == [True, False, True], errors
    assert records(out, "n2")
    assert [records(out, name) for name in ("n1", "n3")] == [list(JOBS)] * 2
    before = {name: sorted(path.name for path in (out / name).glob("*.json")) for name in ("n1", "n3")}
    cluster.start("n2")
    run = cluster.fleet(jobs, out, "--resume")
    _, errors = run.communicate(timeout=HANG_S)
    assert run.returncode == 0, errors
    assert [records(out, name) for name in NAMES] == [list(JOBS)] * 3
    assert [launches(out, name) for name in NAMES] == [list(JOBS)] * 3
    assert {name: sorted(path.name for path in (out / name).glob("*.json")) for name in ("n1", "n3")} == before


@pytest.mark.slow
def test_a_job_over_three_nodes_ends_on_node_loss_and_resumes(cluster: Cluster) -> None:
    jobs, out = cluster.folder / "both.json", cluster.folder / "out"
    suite = [job("ddp.sh", name=name, group="all", args={"--repeat": 40, "--number": 200}) for name in ("a", "b")]
    jobs.write_text(json.dumps(suite))

    def outcomes() -> dict[str, str]:
        found = [json.loads(path.read_bytes()) for path in out.glob("*.json")]
        return {record["name"]: record["outcome"] for record in found}

    def until_in_b(run: subprocess.Popen[str], starts: int) -> None:
        begun = cluster.folder / "base" / "ray" / "n3"
        logs = "*/output/logs/b.*.rank2.log"
        until(lambda: len(list(begun.glob(logs))) >= starts or run.poll() is not None, "b runs", HANG_S)

    run = cluster.one_job(jobs, out)
    try:
        until_in_b(run, 1)
        cluster.kill("n3")
        text, errors = run.communicate(timeout=HANG_S)
        assert (run.returncode, outcomes()) == (1, {"a": "completed", "b": "node_lost"}), (text, errors)
        assert "Node 2 (n3) is lost: " in errors
        assert "The suite ends here; the same command with --resume goes on." in text + errors
        first = {path.name for path in out.glob("*.a.*.json")}
        cluster.start("n3")
        run = cluster.one_job(jobs, out, "--resume")
        until_in_b(run, 1 + 1)
        run.send_signal(signal.SIGINT)
        text, errors = run.communicate(timeout=HANG_S)
        assert (run.returncode, outcomes()) == (130, {"a": "completed", "b": "interrupted"}), (text, errors)
        assert "Stopped by Ctrl-C" in errors
        assert "Node" not in errors, errors
        run = cluster.one_job(jobs, out, "--resume")
        text, errors = run.communicate(timeout=HANG_S)
    finally:
        run.kill()
    assert (run.returncode, outcomes()) == (0, {"a": "completed", "b": "completed"}), (text, errors)
    assert "1 launch done, 1 to come." in text
    assert {path.name for path in out.glob("*.a.*.json")} == first
    (path,) = out.glob("*.b.*.json")
    record = json.loads(path.read_bytes())
    assert {rank: len(rows) for rank, rows in record["rank_observations"].items()} == {"0": 40, "1": 40, "2": 40}
    assert [node["node"] for node in record["meters"]["nodes"]] == [1, 2]
