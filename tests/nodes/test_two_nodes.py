"""Two nodes on the loopback: one launch, one record of both, and an end for both whatever ends one."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from nodes.emulated import Nodes, nodes, two
from patience import HANG_S
from tenants.suites import ROOT, TENANTS, has_v1, job, script, until

__all__ = ["two"]
pytestmark = pytest.mark.slow
SCALING = str(ROOT / "tasks/image_classification/scaling/pytorch/run.sh")
READY_S = 30


def trained(name: str = "both", **args: int | str) -> dict[str, Any]:
    """A job of one small model over all ranks."""
    given = {"--repeat": 6, "--number": 3, "--batch-size": 8} | {
        f"--{flag.replace('_', '-')}": value for flag, value in args.items()
    }
    return job("ddp.sh", name=name, group="all", args=given)


LONG = {"repeat": 5000, "number": 20}
"""A launch that lasts until something ends it."""


def in_load(two: Nodes, name: str) -> None:
    log = two.leader.output / "logs" / f"{name}.R0.T0.log"
    until(lambda: log.exists() and "Batch Loss" in log.read_text(), f"{name} is measured", seen=two.said)


def test_two_nodes_are_one_launch_with_one_record(two: Nodes) -> None:
    plain = job("sums.py", "--repeat", 6, name="plain")
    two.start([trained(), plain], "--ready-timeout", READY_S)
    assert two.ended(HANG_S) == [0, 0], two.said()
    assert "plain: left out, as over several nodes only jobs of the group all run." in two.leader.said()
    assert "both: completed." in two.suites[1].said()
    (record,) = two.leader.records()
    assert two.suites[1].records() == []
    assert {rank: len(rows) for rank, rows in record["rank_observations"].items()} == {"0": 6, "1": 6}
    alone = record["rank_observations"]["0"]
    assert [row["items"] for row in record["observations"]] == [2 * row["items"] for row in alone]
    (node,) = record["meters"]["nodes"]
    assert (node["node"], node["shared"], node["isolation"]["backend"]) == (1, True, "none")
    # Its times are those since its own GO, which both left at one moment.
    first = [rows[0]["start_ns"] - record["rendezvous"]["t0_ns"] for rows in record["rank_observations"].values()]
    assert all(0 <= after_ns < 1e9 for after_ns in first)
    (finding,) = [one for one in record["findings"] if one["rule"] == "shared_nodes"]
    assert finding["sentence"].startswith("This is a shared rate")


def test_torchrun_trains_one_model_over_two_nodes(two: Nodes) -> None:
    args = {"--repeat": 4, "--number": 2, "--batch-size": 2, "--network": "squeezenet1_1", "--size": 32}
    args |= {"--no-cuda": "", "--nodes": [1, 2, 3], "--parallel": "fsdp"}
    two.start([{"name": "scaling", "cmd": SCALING, "cgroup": "all", "args": args}], "--ready-timeout", 200)
    assert two.ended(HANG_S) == [0, 0], two.said()
    assert "scaling: cells of --nodes 3 are left out: there are 2." in two.leader.said()
    one, both = two.leader.records()
    assert (one["observed"]["world_size"], one["observed"]["parallel"]) == (1, "fsdp")
    assert "nodes" not in one["observed"]
    assert (both["observed"]["world_size"], both["observed"]["nodes"]) == (2, 2)
    assert (both["batch_size"], both["batch_size_per_device"]) == (4, 2)
    assert both["observed"]["audit"]["differences"] == []


def test_a_failed_rank_is_quoted_and_the_next_launch_follows(two: Nodes) -> None:
    """One process on each node that knows of no other has no part in a launch of both."""
    apart = script(two.leader.folder / "apart.sh", f'exec python {TENANTS / "ddp.py"} "$@"')
    jobs = [trained("odd", die_at=5, die_how="raise", die_who=1), trained("apart") | {"cmd": str(apart)}, trained()]
    two.start(jobs, "--ready-timeout", READY_S)
    assert two.ended(HANG_S) == [1, 1], two.said()
    odd, alone, both = two.leader.records()
    assert (odd["outcome"], both["outcome"]) == ("failed", "completed"), two.said()
    assert odd["message"].startswith("Node 1 (")
    assert odd["message"].endswith("rank 1: ValueError: an odd batch")
    assert "was not started as one of their ranks" in alone["message"]


def test_a_killed_rank_ends_the_launch_and_resume_continues(two: Nodes) -> None:
    jobs = [trained("a"), trained("b", **LONG)]
    two.start(jobs, "--ready-timeout", READY_S)
    in_load(two, "b")
    (pid,) = [pid for pid in two.suites[1].processes() if _rank_of(pid) == "1"]
    os.kill(pid, signal.SIGKILL)
    assert two.ended(60) == [1, 1], two.said()
    _, lost = two.leader.records()
    assert (lost["name"], lost["outcome"]) == ("b", "node_lost")
    assert lost["message"].startswith("Node 1 (")
    assert "is lost" in lost["message"]
    assert "The suite ends here; the same command with --resume goes on." in two.leader.said()
    for suites in two.suites:
        suites.gone(5)
    # The other node has no journal, and finds where node 0 is.
    for log in two.leader.output.glob("logs/b.*"):
        log.unlink()
    two.start(jobs, "--ready-timeout", READY_S, "--resume")
    skipped = "a: aborted. Node 0 is at its launch b already"
    until(lambda: skipped in two.suites[1].said(), "node 1 finds where node 0 is", seen=two.said)
    in_load(two, "b")
    two.running[0].send_signal(signal.SIGINT)
    assert two.ended(60)[0] == 130
    assert two.leader.outcomes() == ["completed", "interrupted"]


@pytest.mark.parametrize("node", [0, 1])
def test_a_runner_that_is_killed_ends_both_nodes(tmp_path: Path, node: int) -> None:
    with nodes(tmp_path, [[], []], isolation="v1" if has_v1() else "none") as two:
        two.start([trained(**LONG), trained("next")], "--ready-timeout", READY_S)
        in_load(two, "both")
        two.running[node].kill()
        assert two.ended(60) == [[-signal.SIGKILL, 1], [1, -signal.SIGKILL]][node], two.said()
        for suites in two.suites:
            suites.gone(5)
        assert [record["outcome"] for record in two.leader.records()] == ["node_lost"] * node
        assert ("Node 0 does not answer at 127.0.0.1:" in two.suites[1].said()) == (not node)


def test_other_jobs_and_a_node_that_does_not_come_are_named(two: Nodes) -> None:
    two.running = [two.start_one(node, [trained(repeat=6 + node)], "--ready-timeout", READY_S) for node in (0, 1)]
    assert two.ended(60) == [1, 1], two.said()
    (record,) = two.leader.records()
    assert record["outcome"] == "node_lost"
    assert "differs from node 0 in the jobs." in record["message"]
    assert "differs from node 0 in the jobs." in two.suites[1].said()
    two.running = [two.start_one(0, [trained()], "--ready-timeout", 10, "--uid", 1)]
    assert two.running[0].wait(HANG_S) == 1
    record = two.leader.records()[-1]
    assert record["message"].startswith("Not all of 2 nodes came to 127.0.0.1:"), record["message"]
    assert "missing are 1" in record["message"]


def _rank_of(pid: int) -> str:
    variables = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next((text.partition(b"=")[2].decode() for text in variables if text.startswith(b"RANK=")), "")
