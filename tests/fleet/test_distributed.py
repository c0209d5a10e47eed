"""A distributed job over a cluster of this process: the orders of each node, and the end of all when one ends."""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import pytest

from commands.calling import Capture, call, check_refusals
from cotenant.errors import CotenantError
from cotenant.fleet import cluster as clusters
from cotenant.fleet import distributed
from cotenant.fleet.distributed import DistributedJob, DistributedPlan
from cotenant.fleet.node import NodeRunner
from fleet.local import LocalCluster, use_program

PROGRAM = """
import json, os, pathlib, signal, sys, time
words = sys.argv[1:]
flag = lambda name: [words[at + 1] for at, word in enumerate(words) if word == name][-1]
rank, out = flag("--node-rank"), pathlib.Path(flag("--outdir"))
deeds = dict(word.split("=") for word in words[words.index("--") + 1:])
seen = {"words": words, "files": sorted(os.listdir(out))}
seen |= {"base": os.environ["BASE"]}
(out / f"s.both.R{rank}.D0.json").write_text(json.dumps(seen))
print(f"node {rank} runs", flush=True)
print(f"As a page: cotenant report {out}", end="", flush=True)
time.sleep(0.2)
print(f" --html page.html; a log is {out.absolute()}/logs/a.log", flush=True)
print("a note", file=sys.stderr, flush=True)
deed = deeds.get(rank, "0")
try:
    time.sleep(0 if deed.isdecimal() else 60)
except KeyboardInterrupt:
    print("Interrupted by SIGINT")
    sys.exit(130)
print("Isolation is required.", file=sys.stderr)
sys.exit(int(deed))
"""


class Run:
    """A job over the nodes of a cluster, with its printed output."""

    def __init__(self, place: Path, cluster: LocalCluster, *deeds: str, resume: bool = False) -> None:
        self.cluster, self.output = cluster, place / "out"
        self.output.mkdir(exist_ok=True)
        self.lines: list[str] = []
        self.printed = [b"", b""]
        words = ["--jobs", "s.json", *(["--resume"] if resume else [])]
        plan = DistributedPlan(words, deeds, place / "base", self.output, {"s.json": b"[]"}, 2, resume)
        self.status = DistributedJob(plan, cluster, self._show, self.lines.append).run()
        cluster.close()

    def _show(self, out: bytes, err: bytes) -> None:
        self.printed = [self.printed[0] + out, self.printed[1] + err]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_program(monkeypatch, tmp_path, PROGRAM)
    monkeypatch.setattr(distributed, "STOPPING_S", 0.3)
    return tmp_path


def test_each_node_is_told_its_rank_and_node_0_is_kept(place: Path) -> None:
    (place / "out").mkdir()
    for name in ("cotenant.journal", "s.a.R0.D0.json", "other.txt"):
        (place / "out" / name).write_text("{}")
    # Node 0 ends with the status of a suite with a failed job.
    run = Run(place, LocalCluster(("n1", "n2", "n3")), "0=1", resume=True)
    assert (run.status, run.lines) == (1, [f"Ray nodes: n1, n2. The records come to {place}/out."])
    log = run.cluster.orders["n1"].folder / "output/logs/a.log"
    page = f"As a page: cotenant report {place}/out --html page.html; a log is {log}"
    assert run.printed == [f"node 0 runs\n{page}\n".encode(), b"a note\nIsolation is required.\n"]
    seen = [
        json.loads((run.cluster.orders[name].folder / "output" / f"s.both.R{rank}.D0.json").read_bytes())
        for rank, name in enumerate(("n1", "n2"))
    ]
    assert sorted(path.name for path in run.output.iterdir()) == [
        "cotenant.journal", "other.txt", "s.a.R0.D0.json", "s.both.R0.D0.json",
    ]  # fmt: skip
    assert [each["files"] for each in seen] == [["cotenant.journal", "s.a.R0.D0.json"], []]
    words = [each["words"] for each in seen]
    endpoint = words[0][words[0].index("--rdzv-endpoint") + 1]
    assert endpoint.startswith("127.0.0.1:")
    for rank in (0, 1):
        place_of = ["--launcher", "torchrun", "--nnodes", "2", "--node-rank", str(rank), "--rdzv-endpoint", endpoint]
        flags = ["run", "--jobs", "s.json", "--resume", *place_of, "--outdir"]
        assert words[rank] == [*flags, str(run.cluster.orders[f"n{rank + 1}"].folder / "output"), "--", "0=1"]
    assert {each["base"] for each in seen} == {str(place / "base")}


@pytest.mark.parametrize(
    ("lost", "deeds", "status", "line"),
    [
        ("n2", ["0=wait"], 1, "Node 1 (n2) is lost: its node died."),
        ("n1", ["1=wait"], 1, "Node 0 (n1) is lost: its node died."),
        ("", ["0=wait", "1=4"], 4, "Node 1 (n2): Isolation is required."),
    ],
)
def test_what_ends_one_node_ends_all_and_is_named(
    lost: str, deeds: list[str], status: int, line: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distributed, "ENDING_S", 0.3)
    run = Run(place, LocalCluster(("n1", "n2"), lost=lost), *deeds)
    rest = "n2" if lost == "n1" else "n1"
    assert (run.status, run.lines[1:]) == (status, [line, f"What still runs is ended: {rest}."])
    if rest == "n1":
        assert run.printed[0].startswith(b"node 0 runs\n")
        assert run.printed[0].endswith(b"\nInterrupted by SIGINT\n")
        assert [path.name for path in run.output.iterdir()] == ["s.both.R0.D0.json"]


def test_ctrl_c_ends_all_nodes_and_a_node_without_a_runner_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(LocalCluster):
        pressed = False

        def news(self, names: frozenset[str]):  # type: ignore[no-untyped-def]
            if not self.pressed and all((order.folder / "runner.err").read_bytes() for order in self.orders.values()):
                self.pressed = True
                raise KeyboardInterrupt
            return super().news(names)

    run = Run(place, Interrupted(("n1", "n2")), "0=wait", "1=wait")
    assert (run.status, run.lines[1:]) == (130, ["What still runs is ended: n1, n2."])
    assert all(news[1] == 130 for _, news in run.cluster.news(frozenset(("n1", "n2"))))
    monkeypatch.setattr(distributed, "ENDING_S", 0.3)
    (place / "base" / "ray").rename(place / "elsewhere")
    (place / "base" / "ray").mkdir()
    (place / "base" / "ray" / "n2").write_text("a file")
    run = Run(place, LocalCluster(("n1", "n2")), "0=wait")
    assert run.status == 1
    assert run.lines[1].startswith("Node 1 (n2): ")
    assert run.lines[1].endswith("Not a directory.")


def test_the_command_sends_its_flags_and_its_job_file(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    made: list[LocalCluster] = []

    def cluster(address: str) -> LocalCluster:
        assert address == "auto"
        made.append(LocalCluster(("n1", "n2")))
        return made[0]

    monkeypatch.setattr(clusters, "RayCluster", cluster)
    monkeypatch.setattr("cotenant.commands.on_ray.signal.signal", lambda *_: None)
    monkeypatch.setenv("BASE", str(place / "base"))
    jobs = place / "mine.json"
    jobs.write_text('[{"name": "a", "cmd": "/bin/true", "cgroup": "all"}]')
    by_ray = ["--launcher", "ray", "--nnodes", 2, "--jobs", jobs, "--outdir", place / "out"]
    status, out, errors = call(capsys, *by_ray, "--", "1=0")
    assert (status, out.splitlines()[0]) == (0, "node 0 runs")
    assert errors.startswith(f"Ray nodes: n1, n2. The records come to {place}/out.\na note\n")
    order = made[0].orders["n2"]
    assert order.files == {"mine.json": jobs.read_bytes()}
    assert [*order.words[:6], order.words[-2:]] == ["run", *map(str, by_ray[:5]), ("--", "1=0")]
    assert [order.words[at + 1] for at, word in enumerate(order.words) if word == "--jobs"][-1] == "mine.json"


def test_too_few_ray_nodes_or_a_missing_ray_is_explained(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    with pytest.raises(CotenantError, match="Of the Ray cluster 1 nodes answer, not 2"):
        Run(place, LocalCluster(("n1",)))
    monkeypatch.setitem(sys.modules, "ray", None)
    refused = {"--nnodes 2 --jobs cpu": "The package 'ray' is missing. pip install ray, in the environment"}
    check_refusals(capsys, "run --launcher ray", refused)


def test_a_free_port_is_free() -> None:
    socket.create_server(("", NodeRunner().free_port())).close()
