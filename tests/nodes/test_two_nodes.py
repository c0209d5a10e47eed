"""Two nodes on the loopback: one launch, one record of both, and an end for both whatever ends one."""

import signal

import pytest

from nodes.emulated import Nodes, two
from tenants.suites import ROOT, job, until

__all__ = ["two"]
pytestmark = pytest.mark.slow
SCALING = str(ROOT / "tasks/image_classification/scaling/pytorch/run.sh")
LIMIT_S = 240.0


def test_two_nodes_are_one_launch_with_one_record(two: Nodes) -> None:
    plain = job("sums.py", "--repeat", 6, name="plain")
    both = job("host.sh", name="both", group="all", args={"--repeat": 6, "--number": 3})
    two.start([both, plain], "--ready-timeout", 60)
    assert two.ended(LIMIT_S) == [0, 0], two.said()
    assert "plain: left out, as over several nodes only jobs of the group all run." in two.leader.said()
    (record,) = two.leader.records()
    assert two.suites[1].records() == []
    assert {rank: len(rows) for rank, rows in record["rank_observations"].items()} == {"0": 6, "1": 6}
    alone = record["rank_observations"]["0"]
    assert [row["items"] for row in record["observations"]] == [2 * row["items"] for row in alone]
    (node,) = record["meters"]["nodes"]
    assert (node["node"], node["outcome"], node["shared"]) == (1, "completed", True)
    # One machine has one clock.
    assert abs(node["offset_ns"]) <= node["offset_error_ns"]
    assert record["rendezvous"]["overlap"] > 0
    t0_ns = record["rendezvous"]["t0_ns"]
    for rows in record["rank_observations"].values():
        assert t0_ns <= rows[0]["start_ns"] + node["offset_error_ns"]
    (finding,) = [one for one in record["findings"] if one["rule"] == "shared_nodes"]
    assert finding["sentence"].startswith("This is a shared rate")


def test_torchrun_trains_one_model_over_two_nodes(two: Nodes) -> None:
    args = {"--repeat": 4, "--number": 2, "--batch-size": 2, "--network": "squeezenet1_1", "--size": 32}
    args |= {"--no-cuda": "", "--nodes": [1, 2, 3], "--parallel": "fsdp"}
    two.start([{"name": "scaling", "cmd": SCALING, "cgroup": "all", "args": args}], "--ready-timeout", 200)
    assert two.ended(LIMIT_S) == [0, 0], two.said()
    assert "scaling: cells of --nodes 3 are left out: there are 2." in two.leader.said()
    one, both = two.leader.records()
    assert (one["observed"]["world_size"], one["observed"]["parallel"]) == (1, "fsdp")
    assert "nodes" not in one["observed"]
    assert (both["observed"]["world_size"], both["observed"]["nodes"]) == (2, 2)
    assert (both["batch_size"], both["batch_size_per_device"]) == (4, 2)
    assert both["observed"]["audit"]["differences"] == []


def test_a_runner_that_is_killed_ends_the_launch_and_a_second_start_goes_on(two: Nodes) -> None:
    jobs = [job("host.sh", name=name, group="all", args={"--repeat": 60, "--number": 20}) for name in ("a", "b")]
    two.start(jobs, "--ready-timeout", 60)
    # It follows: from then on node 0 waits for it.
    until(lambda: list(two.suites[1].output.glob("logs/a.*")), "the first launch has begun", 60, two.said)
    two.running[1].kill()
    leader, follower = two.ended(60)
    assert (leader, follower) == (1, -signal.SIGKILL), two.said()
    (record,) = two.leader.records()
    assert record["outcome"] == "node_lost"
    assert record["message"].startswith("Node 1 (")
    assert "has left" in record["message"]
    assert "The suite ends here; the same command with --resume goes on." in two.leader.said()
    two.start(jobs, "--ready-timeout", 60, "--resume")
    assert two.ended(LIMIT_S) == [0, 0], two.said()
    assert {name: len(of) for name, of in two.leader.by_job().items()} == {"a": 1, "b": 1}
    assert two.leader.outcomes() == ["completed", "completed"]


def test_other_jobs_are_refused_and_told_so(two: Nodes) -> None:
    two.running = [
        two.start_one(node, [job("host.sh", group="all", args={"--repeat": 6 + node})], "--ready-timeout", 10)
        for node in (0, 1)
    ]
    assert two.ended(60) == [2, 2], two.said()
    assert "Not all of 2 nodes came" in two.leader.said()
    assert "it has other jobs, arguments, limits, devices or software than node 0" in two.suites[1].said()
