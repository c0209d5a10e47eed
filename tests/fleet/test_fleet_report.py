"""`cotenant fleet report` as a person uses it, over folders of records and exports."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import polars as pl
import pytest

from commands.calling import Capture, call, check_refusals
from cotenant.errors import CotenantError
from cotenant.fleet.manifest import FleetManifest, NodeState, write_manifest
from cotenant.fleet.resources import read_resources, resource_of, witnesses
from cotenant.report.fleet_groups import chosen
from fleet.invented import COMPUTE, FAILED, JOBS, machine, put, write_fleet

NODES = [f"node{number:02}" for number in range(14)]
HEALTHY = NODES[10:]


def report(capsys: Capture, *words: object) -> tuple[int, str, str]:
    return call(capsys, "fleet", "report", *words)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """node03 loses 9 % in compute, node05 12 % in one job, node06 computes something else, node07 has another cap."""
    slow = {("node03", job): 0.09 for job in COMPUTE} | {("node05", "cart"): 0.12}
    changes = {node: {"machine": machine(power_w=650.0 if node == "node07" else 700.0)} for node in NODES}
    changes["node06"]["epoch_loss"] = [0.9 - 0.010001 * step for step in range(25)]
    place = tmp_path_factory.mktemp("fleet")
    return write_fleet(place, NODES, slow, again=["node03", "node05", *HEALTHY], changes=changes)


def test_what_is_wrong_is_named_with_the_record_that_shows_it(fleet: Path, tmp_path: Path, capsys: Capture) -> None:
    status, text, errors = report(capsys, fleet, "--parquet", tmp_path / "c.parquet")
    assert status == 1
    assert text.startswith("14 nodes: NOT ACCEPTED (3 DEFECT, 11 ACCEPT)\n")
    verdicts = text[: text.index("Tested: ")]
    for node, words in {
        "node03": ("DEFECT", "compute", "3 of 3", "node03/s."),
        "node05": ("DEFECT", "cart", "-12", "3 of 3", "node05/s.cart.R0"),
        "node06": ("DEFECT", "losses of", "differ from those of 13 nodes", "9 of 9"),
    }.items():
        (line,) = [line for line in verdicts.splitlines() if line.startswith(node)]
        assert all(word in line for word in words), line
    assert "power cap, W  700 (13)   650 (1)  node07" in text
    assert "Not tested: the fabric between nodes, hours of heat, resources processor, input, links" in text
    assert "scontrol update nodename=node03 state=drain reason='cotenant: DEFECT compute -" in text
    assert "kubectl taint nodes node06 cotenant=defect:NoSchedule" in text
    cells = pl.read_parquet(tmp_path / "c.parquet")
    assert cells.filter(pl.col("outlier"))["node"].unique().sort().to_list() == ["node03", "node05"]
    assert cells.height == (14 + 3 * 6) * len(JOBS)
    assert "c.parquet is written" in errors


@pytest.mark.slow
def test_a_page_has_a_distribution_of_each_job(fleet: Path, tmp_path: Path, capsys: Capture) -> None:
    report(capsys, fleet, "--html", tmp_path / "page.html", "--group", "a=node0*", "--group", "b=node1*")
    page = (tmp_path / "page.html").read_text()
    assert page.count("<svg") == len(JOBS)
    assert "outliers: node03" in page
    assert "A: a, 10 nodes; B: b, 4 nodes" in page


def test_other_programs_read_it(fleet: Path, tmp_path: Path, capsys: Capture) -> None:
    document = json.loads(report(capsys, fleet, "--json")[1])
    verdicts = [(node["node"], node["verdict"]) for node in document["nodes"]]
    assert (document["schema"], document["accepted"]) == ("cotenant-fleet-report-1", False)
    (slow,) = [node for node in document["nodes"] if node["node"] == "node03"]
    assert slow["ratio_low"] < slow["ratio"] < slow["ratio_high"] < 0.95
    assert [odd["nodes"] for odd in document["inventory"]] == [["node07"]]
    rows = list(csv.DictReader(io.StringIO(report(capsys, fleet, "--format", "csv")[1])))
    assert [row["verdict"] for row in rows].count("ACCEPT") == 11
    # Exported rows have hosts as nodes: the verdicts are the same, the facts that only records hold are missing.
    export = tmp_path / "rows.parquet"
    assert call(capsys, "export", fleet, "--out", export)[0] == 0
    again = json.loads(report(capsys, export, "--json")[1])
    assert [(node["node"], node["verdict"]) for node in again["nodes"]] == verdicts
    assert again["inventory"] == []


def test_a_sound_fleet_is_accepted_and_an_outlier_without_repeats_is_not(tmp_path: Path, capsys: Capture) -> None:
    place = write_fleet(tmp_path / "sound", NODES[:8])
    assert report(capsys, place)[:1] == (0,)
    (tmp_path / "names").write_text("\n".join(NODES[:9]))
    status, text, _ = report(capsys, place, "--nodes", tmp_path / "names")
    assert (status, "node08  ABSENT" in text, "no record of it came" in text) == (1, True, True)
    (place / "node02" / "s.vae.R0.D0.json").unlink()
    status, text, _ = report(capsys, place)
    assert (status, "node02  ABSENT" in text, "no record of vae" in text) == (1, True, True)
    suspicious = write_fleet(tmp_path / "odd", NODES[:8], {("node03", job): 0.1 for job in COMPUTE})
    status, text, _ = report(capsys, suspicious)
    assert status == 1
    assert "(1 SUSPECT, 7 ACCEPT)" in text
    assert "SUSPECT, UNTESTED: node03 should run again" in text
    assert "scontrol" not in text


def test_of_few_nodes_all_have_to_run_again(tmp_path: Path, capsys: Capture) -> None:
    once = write_fleet(tmp_path / "once", NODES[:4])
    status, text, _ = report(capsys, once)
    assert (status, "4 nodes: NOT ACCEPTED (4 UNTESTED)" in text) == (1, True)
    assert "4 nodes of Some Processor, 1 processor: too few to tell what is natural by one run" in text
    reasons = {each["reason"] for each in json.loads(report(capsys, once, "--json")[1])["nodes"]}
    assert all(re.fullmatch(r"of few nodes: less than \d % slower would not have been seen", each) for each in reasons)
    assert "scontrol" not in text
    status, text, _ = report(capsys, write_fleet(tmp_path / "again", NODES[:4], again=NODES[:4]))
    assert (status, "would not have been seen" in text) == (0, True)
    slow = {("node01", job): 0.1 for job in COMPUTE}
    status, text, _ = report(capsys, write_fleet(tmp_path / "slow", NODES[:4], slow, again=NODES[:4]))
    assert (status, "1 DEFECT, 3 ACCEPT" in text) == (1, True)


def test_a_bin_is_named_and_no_fault(tmp_path: Path, capsys: Capture) -> None:
    slower = {(node, job): 0.15 for node in NODES[:5] for job in COMPUTE}
    status, text, _ = report(capsys, write_fleet(tmp_path, NODES, slower))
    assert (status, "14 nodes: ACCEPTED (5 BIN, 9 ACCEPT)" in text) == (0, True)
    assert "one of 5 nodes alike, with a gap to faster ones of equal hardware" in text
    assert "scontrol" not in text


def test_a_launch_that_failed_once_is_repeated_first(tmp_path: Path, capsys: Capture) -> None:
    place = write_fleet(tmp_path, NODES[:8])
    put(place, "node02", "vae", **FAILED)
    status, text, _ = report(capsys, place)
    assert (status, "1 SUSPECT, 7 ACCEPT" in text) == (1, True)
    put(place, "node02", "vae", 1, 600.0)
    assert report(capsys, place)[0] == 0
    put(place, "node02", "vae", 1, **FAILED)
    status, text, _ = report(capsys, place)
    assert (status, "1 UNSTABLE, 7 ACCEPT" in text) == (1, True)


def test_a_job_that_fails_on_most_nodes_is_named_though_no_node_is(tmp_path: Path, capsys: Capture) -> None:
    place = write_fleet(tmp_path, NODES[:8])
    for node in NODES[:8]:
        put(place, node, "vae", **FAILED | {"outcome": "missing_data"})
    status, text, _ = report(capsys, place)
    assert (status, "8 nodes: ACCEPTED" in text) == (0, True)
    assert "Failed on most nodes, so that no node is to blame: vae (user 0 missing_data)." in text


def test_failures_losses_and_shared_hosts(tmp_path: Path, capsys: Capture) -> None:
    place = write_fleet(tmp_path / "f", NODES[:9], changes={node: {"hostname": "one"} for node in NODES[:9]})
    put(place, "node02", "vae", hostname="one", **FAILED)
    (place / "node04" / "s.vae.R0.D0.json").unlink()
    states = {node: NodeState("one", "finished") for node in NODES[:9]}
    states["node04"] = NodeState("one", "lost", "its process ended.")
    write_manifest(place, FleetManifest("s", "3m", states | {"node10": NodeState("two", "failed", "No space.")}))
    status, text, _ = report(capsys, place)
    lines = {line.split()[0]: line for line in text[: text.index("Tested")].splitlines()}
    assert status == 1
    assert "SUSPECT" in lines["node02"]
    assert "vae, repetition 0: user 0 device_out_of_memory." in lines["node02"]
    assert "lost: its process ended.; 8 launches of it are kept" in lines["node04"]
    assert "failed: No space.; no record of it came" in lines["node10"]
    assert lines["node00"].split()[-1] == "shared"
    assert "shared: several nodes are of one host (one)" in text
    (place / "cotenant.fleet").write_bytes(b'{"suite": "\xff"}')
    status, _, errors = report(capsys, place)
    assert (status, "cotenant.fleet cannot be read" in errors) == (2, True), errors


def test_a_node_that_cannot_be_compared_is_not_accepted(tmp_path: Path, capsys: Capture) -> None:
    changes = {"node04": FAILED, "node05": {"run_id": 5}}  # As from a job array that gives its number to --uid.
    place = write_fleet(tmp_path / "six", NODES[:9], changes=changes)
    status, text, _ = report(capsys, place, "--json")
    assert status == 1
    assert {each["node"]: each["reason"] for each in json.loads(text)["nodes"] if each["verdict"] == "ABSENT"} == {
        "node04": "none of its launches has a rate",
        "node05": "none of its launches is of the repetition and the work in which most nodes are compared",
    }
    pair = write_fleet(tmp_path / "two", NODES[:2])
    put(pair, "node01", "vae", **FAILED)
    found = [(each["node"], each["verdict"]) for each in json.loads(report(capsys, pair, "--json")[1])["nodes"]]
    assert found == [("node01", "SUSPECT"), ("node01", "UNTESTED"), ("node00", "UNTESTED")]


def test_a_node_is_as_fast_as_its_slowest_tenant(tmp_path: Path, capsys: Capture) -> None:
    """One of three devices at 0.8 costs 7 % of their sum; the record that shows it is the device's own."""
    for node in NODES[:9]:
        for job in [*COMPUTE, "recom", "vae"]:
            for tenant in range(3):
                slow = (node, tenant) == ("node05", 2) and job in COMPUTE
                place = {"tenant": tenant, "jr_id": tenant, "vcd": str(tenant), "tenants": 3}
                put(tmp_path, node, job, rate=80.0 if slow else 100.0, **place)
    status, text, _ = report(capsys, tmp_path)
    (line,) = [line for line in text.splitlines() if "SUSPECT  " in line]
    assert status == 1
    assert line.split()[:4] == ["node05", "SUSPECT", "compute", "-20.0"]
    assert ".R0.D2.json" in line
    assert "3 users of Some Processor, 1 processor" in text


@pytest.mark.slow
def test_groups_are_compared_by_their_nodes(tmp_path: Path, capsys: Capture) -> None:
    slow = {(node, job): 0.1 for node in NODES[7:] for job in JOBS}
    place = write_fleet(tmp_path / "g", NODES, slow, spread=0.005)
    groups = ("--group", f"old={','.join(NODES[:7])}", "--group", "new=node*[789],node1?")
    text = report(capsys, place, *groups)[1]
    part = text[text.index("A: old, 7 nodes; B: new, 7 nodes") :]
    assert part.count("SLOWER") == len(JOBS)


def test_groups_are_of_nodes_that_there_are_and_in_no_document(capsys: Capture) -> None:
    check_refusals(capsys, "fleet report .", {"--group a=x --group b=y --json": "--format json holds no groups."})
    assert chosen(["a=node0[12]", "b=node1?,node09"], NODES) == {
        "a": ["node01", "node02"],
        "b": ["node09", "node10", "node11", "node12", "node13"],
    }
    refused = {
        ("old",): "names no nodes",
        ("a=x", "b=node01"): "no node is called x",
        ("a=node01",): "1 group",
        ("a=node01", "b=node0*"): "node01 is of both groups",
    }
    for groups, words in refused.items():
        with pytest.raises(CotenantError, match=words):
            chosen(groups, NODES)


def test_a_resource_is_named_by_patterns_and_by_few_witnesses() -> None:
    table = read_resources(Path(__file__).parents[2] / "profiles" / "resources.csv")
    named = {
        "convnet_fp16": "compute",
        "convnet_distributed_fp16": "links",
        "bert_base_squad_bf16": "compute",
        "gnn_bf16": "memory",
        "scaling.c2": "links",
        "mine": "",
    }
    assert {job: resource_of(job, table) for job in named} == named
    jobs = ["convnet", "convnet_fp16", "wlm", "wlmfp16", "dcgan", "vae", "reso", "mine"]
    assert witnesses(jobs, table, 2) == ["convnet", "wlm", "wlmfp16", "dcgan", "vae", "mine"]
    # Jobs of one name are as many as they are.
    assert witnesses(["convnet", "convnet", "convnet_fp16"], table, 2) == ["convnet", "convnet"]
