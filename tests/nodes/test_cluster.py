"""Environments of a runner, as tables of variables, and its place among the hosts by them."""

from typing import Any

import pytest

from cotenant.commands import suite_run
from cotenant.commands.given import SuiteFlags
from cotenant.commands.on_ray import as_node_0
from cotenant.commands.suite_options import cluster_flags
from cotenant.errors import CotenantError
from cotenant.nodes import slurm
from cotenant.nodes.cluster import (
    Cluster,
    ClusterFlags,
    cluster_of,
    interface_towards,
    launcher_of,
    needs_srun,
    parsed_endpoint,
)

HERE = "127.0.0.1"
POD = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": HERE, "MASTER_PORT": "23456"}
AGENT = POD | {"RANK": "2", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "1", "MASTER_PORT": "29500"}
AGENT |= {"TORCHELASTIC_RUN_ID": "r", "GROUP_RANK": "2", "GROUP_WORLD_SIZE": "4"}
SCRIPT = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_NODEID": "0", "SLURM_JOB_NODELIST": "n[1-2]"}
STEP = SCRIPT | {"SLURM_NODEID": "1", "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_NODELIST": "n[1-2]"}
STEP |= {"SLURM_STEP_TASKS_PER_NODE": "1(x2)"}
SALLOC = SCRIPT | {"SLURM_STEP_ID": "4294967290", "SLURM_STEP_NUM_NODES": "1", "SLURM_STEP_NODELIST": "n1"}
PLACES: list[tuple[str, ClusterFlags, dict[str, str], Cluster | None]] = [
    ("local", ClusterFlags(), {}, None),
    ("local", ClusterFlags(), {"RANK": "1", "WORLD_SIZE": "2"}, None),
    ("local", ClusterFlags(), SCRIPT | {"SLURM_JOB_NUM_NODES": "1"}, None),
    ("local", ClusterFlags("local"), AGENT | STEP, None),
    ("torchrun", ClusterFlags(), AGENT, Cluster(4, 2, HERE, 29501)),
    ("torchrun", ClusterFlags(), POD, Cluster(2, 1, HERE, 23457)),
    ("torchrun", ClusterFlags(nodes=3, node=1, endpoint="127.0.0.1:70"), STEP, Cluster(3, 1, HERE, 70)),
    ("torchrun", ClusterFlags(nodes=2, endpoint=HERE), {}, Cluster(2, 0, HERE, 29400)),
    ("torchrun", ClusterFlags(nodes=2, endpoint="192.0.2.1"), {}, Cluster(2, 1, "192.0.2.1", 29400)),
    ("torchrun", ClusterFlags(nodes=1), {}, None),
    ("torchrun", ClusterFlags(nodes=2, node=1, endpoint=HERE), {"RAY_ADDRESS": "h:1"}, Cluster(2, 1, HERE, 29400)),
    ("slurm", ClusterFlags(), SCRIPT, None),
    ("slurm", ClusterFlags(), SALLOC, None),
    ("slurm", ClusterFlags(), STEP, Cluster(2, 1, "n1.example", 20007)),
]
REFUSED: list[tuple[ClusterFlags, dict[str, str], str]] = [
    (ClusterFlags("ray"), {}, "--launcher ray needs --nnodes"),
    (ClusterFlags("ray", nodes=2, node=0), {}, "Leave out --node-rank and --rdzv-endpoint"),
    (ClusterFlags(nodes=2), {"RAY_ADDRESS": "h:1"}, "--launcher ray runs suites, and nothing else"),
    (ClusterFlags("local", nodes=2), {}, "--nnodes 2 are more"),
    (ClusterFlags("torchrun"), {}, "needs --nnodes and --rdzv-endpoint"),
    (ClusterFlags(nodes=2, node=2, endpoint=HERE), {}, "--node-rank 2 is none of 2 nodes"),
    (ClusterFlags(nodes=3, endpoint="192.0.2.1:70"), {}, "Nothing says which of 3 nodes this is. Give --node-rank"),
    (ClusterFlags(nodes=2, endpoint="h:x"), {}, "h:x is no HOST:PORT"),
    (ClusterFlags(nodes=2, node=1, endpoint="node..1:70"), {}, "node..1:70 is no HOST:PORT"),
    (ClusterFlags(nodes=2, endpoint="no.such.host.invalid"), {}, "cannot be resolved"),
    (ClusterFlags(), AGENT | {"LOCAL_WORLD_SIZE": "8"}, "There are 8 runners on this node"),
    (ClusterFlags(), STEP | {"SLURM_STEP_TASKS_PER_NODE": "2(x2)"}, "--ntasks-per-node=1"),
]


@pytest.fixture(autouse=True)
def _scontrol(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {"hostnames": "n1\nn2\n", "node": "NodeName=n1 NodeAddr=n1.example CPUTot=2\n"}
    monkeypatch.setattr(slurm, "_answer", lambda line: answers[line[2]])
    monkeypatch.setattr(slurm.shutil, "which", lambda name: f"/usr/bin/{name}")


def test_flags_and_environment_decide_the_launcher_and_cluster() -> None:
    for launcher, flags, environ, cluster in PLACES:
        assert (launcher_of(flags, environ), cluster_of(flags, environ)) == (launcher, cluster), (flags, environ)
        assert needs_srun(flags, environ) == (environ in (SCRIPT, SALLOC) and launcher == "slurm")


def test_what_cannot_be_is_a_sentence_with_its_remedy() -> None:
    for flags, environ, sentence in REFUSED:
        with pytest.raises(CotenantError) as raised:
            cluster_of(flags, environ)
        assert sentence in str(raised.value), raised.value


def test_endpoints_and_the_interface_towards_one() -> None:
    there = {"a:1": ("a", 1), "a": ("a", 29400), "[fd00::1]:9": ("fd00::1", 9), "[fd00::1]": ("fd00::1", 29400)}
    assert {text: parsed_endpoint(text) for text in there} == there
    for host in ("a", "fd00::1"):
        assert parsed_endpoint(Cluster(2, 0, host, 9).endpoint) == (host, 9)
    assert interface_towards(HERE) == "lo"


def test_srun_starts_one_runner_per_node(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Any] = []
    monkeypatch.setattr(slurm.os, "execve", lambda *given: begun.append(given))
    held = {"SLURM_CPUS_ON_NODE": "8", "SLURM_JOB_CPUS_PER_NODE": "8(x2)", "SLURM_GPUS_PER_TASK": "1"}
    slurm.begin_on_all_nodes(["python", "run.py"], SCRIPT | held)
    slurm.begin_on_all_nodes(["python", "run.py"], SCRIPT | held | {"SLURM_JOB_CPUS_PER_NODE": "8,4"})
    (program, words, environ), (_, unequal, _) = begun
    assert program == "/usr/bin/srun"
    assert {"--nodes=2", "--ntasks=2", "--ntasks-per-node=1", "--cpus-per-task=8"} <= set(words)
    assert words[-2:] == ["python", "run.py"]
    assert [word for word in words if word not in unequal] == ["--cpus-per-task=8"]
    assert "SLURM_GPUS_PER_TASK" not in environ
    assert slurm.held({"SLURM_CPUS_ON_NODE": "8"}) == {}
    assert slurm.held(SCRIPT | {"SLURM_MEM_PER_NODE": "512"}) == {"job": "7", "nodes": "n[1-2]", "memory_mib": "512"}


@pytest.mark.parametrize("surroundings", [SCRIPT, SALLOC])
def test_what_would_run_in_a_slurm_job_is_that_of_its_nodes(
    monkeypatch: pytest.MonkeyPatch, surroundings: dict[str, str]
) -> None:
    for name, value in surroundings.items():
        monkeypatch.setenv(name, value)
    assert cluster_of(cluster_flags(as_node_0(SuiteFlags()))) == Cluster(2, 0, HERE, 29400)


def test_a_slurm_job_that_completes_no_launch_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    ends = {("SIGTERM", False): 1, ("SIGTERM", True): 130, ("SIGINT", False): 130}
    assert {end: suite_run._status_of(*end) for end in ends} == ends
    monkeypatch.delenv("SLURM_JOB_ID")
    assert suite_run._status_of("SIGTERM", False) == 130
