"""A fleet run over a cluster of this process: agents as on nodes, with a program in the place of our runner."""

from __future__ import annotations

import json
import os
import random
import sys
from pathlib import Path

import pytest

from commands.calling import Capture, call, check_refusals
from cotenant.commands import fleet
from cotenant.fleet import agent as agent_module
from cotenant.fleet import cluster as clusters
from cotenant.fleet.agent import Agent, NodeOrder
from cotenant.fleet.cluster import _named, _reason
from cotenant.fleet.manifest import read_manifest
from cotenant.fleet.run import FleetPlan, FleetRun
from cotenant.fleet.tiers import WITNESSES, tier_of
from cotenant.stats.acceptance import INDEPENDENT_JOBS
from cotenant.suite.jobfile import load
from fleet.invented import COMPUTE, write_fleet
from fleet.local import LocalCluster, use_program
from tenants.suites import ROOT, until

PROGRAM = """
import json, os, pathlib, sys
words = sys.argv[1:]
out = pathlib.Path(words[words.index("--outdir") + 1])
uid = words[words.index("--uid") + 1]
out.mkdir(exist_ok=True)
(out / "s.vae.R9.D0.json.unfinished").write_text("{}")
(out / f"s.vae.R{uid}.D0.json").write_text(json.dumps({"words": words, "lock": os.environ.get("COTENANT_LOCK")}))
(out / "cotenant.journal").write_text("line")
(out / "other.bin").write_text("not for us")
print("the last line")
sys.exit(2 if os.environ["BASE"].endswith("n2") else 0)
"""


NAMES = ("n1", "n2", "n3", "n4")


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FleetPlan:
    use_program(monkeypatch, tmp_path, PROGRAM)
    words = ["--jobs", "{base}/s.json", "--isolation", "none"]
    return FleetPlan(words, ["--repeat", "5"], tmp_path / "base", tmp_path / "out", {"s.json": b"[]"}, "s", "3m")


def test_records_come_from_all_nodes_and_what_became_of_each_is_written(plan: FleetPlan) -> None:
    lines: list[str] = []
    (plan.output / "n1").mkdir(parents=True)
    stale = plan.output / "n1" / "s.vae.R9.D0.json"
    stale.write_text("of a launch that was set aside since")
    cluster = LocalCluster(NAMES, alone="n4", lost="n3")
    run = FleetRun(plan, cluster, lines.append)
    run.repetition(4, NAMES)
    found = json.loads((plan.output / "n1" / "s.vae.R4.D0.json").read_bytes())
    base = plan.base / "fleet" / "n1"
    ours = "--uid 4 --resume --users 1 --cgroup-base cotenant-n1"
    line = f"run --jobs {base}/s.json --isolation none {ours} --outdir {base}/output -- --repeat 5"
    assert found["words"] == line.split()
    assert found["lock"] == f"{base}/lock"
    # A node that is a machine of its own has the lock and the tenants of the whole machine.
    alone = json.loads((plan.output / "n4" / "s.vae.R4.D0.json").read_bytes())
    assert alone["lock"] is None
    assert "--users" not in alone["words"]
    assert not stale.exists()
    assert sorted(path.name for path in (plan.output / "n1").iterdir()) == ["cotenant.journal", "s.vae.R4.D0.json"]
    manifest = read_manifest(plan.output)
    assert {name: (node.state, node.message) for name, node in manifest.nodes.items()} == {
        "n1": ("finished", ""),
        "n2": ("failed", "the last line"),
        "n3": ("lost", "its node died."),
        "n4": ("finished", ""),
    }
    assert sorted(lines) == [
        "n1: repetition 4 is done",
        "n2: failed: the last line",
        "n3: lost: its node died.",
        "n4: repetition 4 is done",
    ]
    # Another repetition asks only the nodes that still answer; a second start asks all again.
    run.repetition(5, ["n1", "n3"])
    assert not (plan.output / "n3").exists()
    assert run.confirming(["n3", "n1"], {}, random.Random(0)) == ["n1", "n4"]
    assert run.confirming(["n3", "n1"], {"n4": "another device"}, random.Random(0)) == ["n1"]
    assert run.confirming(["n3"], {}, random.Random(0)) == []
    cluster.close()
    again = FleetRun(plan, LocalCluster(NAMES), lines.append)
    again.repetition(4, ["n3"])
    assert again.nodes["n3"].state == "finished"


def test_an_agent_says_why_nothing_runs_and_ends_what_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    agent = Agent()
    # Ray's workers are nice, and a nice runner would have nice tenants.
    depart = agent_module._depart
    monkeypatch.setattr(agent_module, "_depart", lambda: (os.nice(5), depart()))
    order = NodeOrder("/proc/none", (), {}, sys.executable, "")
    assert agent.start(order) == "/proc/none: No such file or directory."
    (tmp_path / "cotenant").mkdir()
    (tmp_path / "cotenant" / "__init__.py").touch()
    program = "import os, time\nprint('up', os.nice(0), flush=True)\ntime.sleep(60)"
    (tmp_path / "cotenant" / "__main__.py").write_text(program)
    assert agent.start(NodeOrder(str(tmp_path / "b"), (), {}, "/no/python", str(tmp_path))) == ""
    said = (tmp_path / "b" / "runner.out").read_text
    until(lambda: said().endswith("\n"), "it is up", 20)
    assert agent.news(0.0).status is None
    left = 0 if os.geteuid() == 0 else os.nice(0) + 5
    assert said() == f"up {left}\n"
    agent.stop()
    assert agent.news(0.0).status not in (None, 0)


def test_a_record_that_the_runner_sets_aside_at_this_moment_is_no_lost_node(tmp_path: Path) -> None:
    agent = Agent()
    agent._output = tmp_path
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "kept.json").write_bytes(b"{}")
    assert agent._changed() == ({"kept.json": b"{}"}, ())


def test_tiers_choose_jobs_and_share_their_time() -> None:
    assert WITNESSES == INDEPENDENT_JOBS
    jobs = load(ROOT / "baselines.json").jobs
    resources = fleet.read_resources(fleet.RESOURCES)
    whole, short, soak = (tier_of(name, jobs, resources) for name in (None, "3m", "soak"))
    assert (whole.jobs, whole.budget_s) == (jobs, None)
    assert [job.name for job in short.jobs] == [
        "toy_reg", "toy_lstm", "loader", "reso", "translator", "wlm", "atari", "ssd", "recom", "convnet_distributed",
        "dcgan_all",
    ]  # fmt: skip
    assert short.budget_s == pytest.approx(180 / 11)
    assert (soak.repetitions, soak.budget_s) == (24, pytest.approx(3600 / len(jobs)))


def test_nodes_have_names_of_their_own() -> None:
    nodes = [
        ("n1", "vm", "10.0.0.1", "n1-0-", True),
        ("10.0.0.2", "gpu7", "10.0.0.2", "gpu7", False),
        ("10.0.0.3", "vm", "10.0.0.3", "vm", True),
        ("n1", "x/y", "10.0.0.4", "n1-3", False),
        ("n1-0", "z", "10.0.0.5", "n1-0", False),
        ("a/b", "z1", "10.0.0.6", "a_b-5", False),
        ("a_b", "z2", "10.0.0.7", "a_b-6", False),
    ]
    fields = ("NodeName", "NodeManagerHostname", "NodeManagerAddress")
    named = _named([dict(zip(fields, node[:3], strict=True)) for node in nodes]).values()
    assert [(node.name, node.emulated) for node in named] == [node[3:] for node in nodes]
    assert _reason(RuntimeError("Long words\n  The node died: power.\nmore")) == "The node died: power."


def test_refusals_are_sentences(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    refused = {
        "--jobs cpu": "The package 'ray' is missing. pip install ray, in the environment",
        "--jobs none": "is neither a file nor a profile",
        "--jobs cpu -- --repeat 5": "There is no flag '--repeat'. Flags of a run stand behind --, those of benchmarks",
        "--jobs cpu -- --repetitions 2": "How often a fleet repeats a run is its tier's. Leave out --repetitions.",
        "--jobs cpu -- --isolatoin v2": "There is no flag '--isolatoin'. Did you mean '--isolation'?",
    }
    check_refusals(capsys, "fleet run", refused)
    assert clusters.INSTALL in (ROOT / "docs" / "fleet.md").read_text()


ANSWERS = """
import os, pathlib, shutil, sys
words, base = sys.argv[1:], pathlib.Path(os.environ["BASE"])
uid, out = words[words.index("--uid") + 1], words[words.index("--outdir") + 1]
for record in (base.parents[2] / "answers" / base.name).glob(f"*.R{uid}.*"):
    shutil.copy(record, out)
"""


def test_an_outlier_runs_three_times_more_at_the_same_moment_as_three_healthy_nodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    names = tuple(f"n{number}" for number in range(8))
    write_fleet(tmp_path / "answers", names, {("n2", job): 0.09 for job in COMPUTE}, again=names)
    use_program(monkeypatch, tmp_path, ANSWERS)
    cluster = LocalCluster(names)
    monkeypatch.setattr(clusters, "RayCluster", lambda address: cluster)
    words = ["--jobs", "baselines", "--node-base", tmp_path / "base", "--outdir", tmp_path / "out"]
    status, text, errors = call(capsys, "fleet", "run", *words, "--json")
    assert status == 1, errors
    verdicts = {node["node"]: node["verdict"] for node in json.loads(text)["nodes"]}
    assert verdicts == dict.fromkeys(names, "ACCEPT") | {"n2": "DEFECT"}
    assert "again, 3 times: n2, n" in errors
    healthy = {name for name in names if len(cluster.orders[name]) == 4} - {"n2"}
    assert len(healthy) == 3
    # All nodes of a repetition begin before any of them is asked for news.
    assert cluster.begun == [set(names), *[{"n2", *healthy}] * 3]
    uids = [order.words[order.words.index("--uid") + 1] for order in cluster.orders["n2"]]
    assert uids == ["0", "1", "2", "3"]
