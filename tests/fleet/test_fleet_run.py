"""A fleet run over a cluster of this process: actors as on nodes, with a program in the place of our runner."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from commands.calling import Capture, call, check_refusals
from cotenant.fleet import cluster as clusters
from cotenant.fleet import node
from cotenant.fleet.cluster import _named, _reason
from cotenant.fleet.node import NodeRunner
from fleet.local import LocalCluster, use_program
from tenants.suites import until

PROGRAM = """
import json, os, pathlib, sys
words = sys.argv[1:]
out = pathlib.Path(words[words.index("--outdir") + 1])
(out / "s.vae.R3.D0.json.unfinished").write_text("{}")
(out / "s.vae.R4.D0.json").write_text(json.dumps({"words": words, "base": os.environ["BASE"]}))
(out / "cotenant.journal").write_text("line")
(out / "other.bin").write_text("not for us")
print("the last line")
print("a note\\nwhy it ends", file=sys.stderr)
sys.exit(2 if os.environ["BASE"].endswith("n2") else 0)
"""
NAMES = ("n1", "n2", "n3", "n4")
JOBS = '[{"name": "a", "cmd": "/bin/true"}]'


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    use_program(monkeypatch, tmp_path, PROGRAM)
    monkeypatch.setenv("BASE", str(tmp_path / "base"))
    (tmp_path / "mine.json").write_text(JOBS)
    return tmp_path


def run(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture, cluster: LocalCluster, place: Path, *words: object
) -> tuple[int, str, list[str]]:
    monkeypatch.setattr(clusters, "RayCluster", lambda address: cluster)
    given = ["--jobs", place / "mine.json", "--outdir", place / "out", *words]
    status, out, errors = call(capsys, "fleet", "run", *given)
    return status, out, errors.splitlines()


def test_records_of_all_nodes_arrive_and_failed_nodes_are_named(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    for name in ("n1", "n3"):
        (place / "out" / name).mkdir(parents=True)
        (place / "out" / name / "s.vae.R3.D0.json").write_text("of a launch that n1 has set aside since")
    cluster = LocalCluster(NAMES, lost="n3", silent=("n5",))
    status, out, lines = run(monkeypatch, capsys, cluster, place, "--isolation", "none", "--", "--repeat", "5")
    assert (status, out) == (1, "")
    where = f"its logs and 1 record are in {place}/out"
    assert lines[0] == f"mine on n1, n2, n3, n4; records: {place}/out"
    assert sorted(lines[1:-1]) == [
        f"n1 is done: {where}/n1",
        f"n2 ended with status 2 (why it ends): {where}/n2",
        f"n3 is lost (its node died): {where}/n3",
        f"n4 is done: {where}/n4",
        "n5 does not answer, or has no free CPU.",
    ]
    assert lines[-1].endswith(f"report {place}/out --table hosts")
    files = ["cotenant.journal", "runner.err", "runner.out", "s.vae.R3.D0.json.unfinished", "s.vae.R4.D0.json"]
    for name in ("n1", "n2", "n4"):
        assert sorted(path.name for path in (place / "out" / name).iterdir()) == files
        seen = json.loads((place / "out" / name / "s.vae.R4.D0.json").read_bytes())
        flags = ["--isolation", "none", "--jobs", "mine.json", "--outdir", "output", "--", "--repeat", "5"]
        assert seen["words"] == ["run", "--jobs", f"{place}/mine.json", *flags]
        assert seen["base"] == str(place / "base" / "fleet" / name)
    assert (place / "out" / "n1" / "runner.out").read_text() == "the last line\n"
    assert cluster.orders["n1"].files == {"mine.json": JOBS.encode()}


def test_a_shipped_suite_is_not_sent_and_success_is_status_0(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    cluster = LocalCluster(("n1",))
    status, _, lines = run(monkeypatch, capsys, cluster, place, "--jobs", "cpu", "--name", "vae")
    assert (status, lines[0][:9]) == (0, "cpu on n1")
    assert cluster.orders["n1"].files == {}
    assert "cpu.json" in cluster.orders["n1"].words
    (place / "base" / "fleet" / "n1").rename(place / "elsewhere")
    (place / "base" / "fleet" / "n1").write_text("a file")
    status, _, lines = run(monkeypatch, capsys, LocalCluster(("n1",)), place)
    assert status == 1
    assert lines[1].startswith("n1 cannot start a run: ")
    assert lines[1].endswith("Not a directory.")


def test_a_runner_says_why_nothing_runs_and_ends_what_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = NodeRunner()
    # Ray's workers are nice, and a nice runner would have nice tenants.
    depart = node._depart
    monkeypatch.setattr(node, "_depart", lambda: (os.nice(5), depart()))
    assert runner.start("/proc/none", (), {}, {}) == "/proc/none: No such file or directory."
    (tmp_path / "cotenant").mkdir()
    (tmp_path / "cotenant" / "__init__.py").touch()
    program = "import os, time\nprint('up', os.nice(0), flush=True)\ntime.sleep(60)"
    (tmp_path / "cotenant" / "__main__.py").write_text(program)
    assert runner.start(str(tmp_path / "b"), (), {"PYTHONPATH": str(tmp_path)}, {}) == ""
    said = (tmp_path / "b" / "runner.out").read_text
    until(lambda: said().endswith("\n"), "it is up", 20)
    assert runner.news(0.0)[1] is None
    left = 0 if os.geteuid() == 0 else os.nice(0) + 5
    assert said() == f"up {left}\n"
    runner.stop()
    assert runner.news(0.0)[1] not in (None, 0)


def test_a_record_that_vanishes_while_read_is_skipped(tmp_path: Path) -> None:
    runner = NodeRunner()
    runner._folder = tmp_path
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / "gone.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "output" / "kept.json").write_bytes(b"{}")
    assert runner._written() == {"kept.json": b"{}"}


def test_nodes_have_names_of_their_own() -> None:
    nodes = [
        ("n1", "vm", "10.0.0.1", "n1"),
        ("10.0.0.2", "gpu7", "10.0.0.2", "gpu7"),
        (None, "vm", "10.0.0.3", "vm"),
        ("n1", "x/y", "10.0.0.4", "n1-id3"),
        ("a/b", "z1", "10.0.0.6", "a_b"),
        ("a_b", "z2", "10.0.0.7", "a_b-id5"),
    ]
    fields = ("NodeName", "NodeManagerHostname", "NodeManagerAddress")
    given = [dict(zip(fields, of[:3], strict=True)) | {"NodeID": f"id{at}"} for at, of in enumerate(nodes)]
    assert list(_named(given)) == [of[3] for of in nodes]
    assert _reason(RuntimeError("Long words\n  The node died: power.\nmore")) == "The node died: power."


def test_refusals_are_sentences(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    refused = {
        "run --jobs cpu": "The package 'ray' is missing. pip install ray, in the environment",
        "run --jobs none": "is neither a file nor a profile",
        "run --jobs cpu --repeat 5": "There is no flag '--repeat'.",
        "run --jobs cpu --isolatoin v2": "There is no flag '--isolatoin'. Did you mean '--isolation'?",
        "run --jobs cpu --tier 3m": "The flag '--tier' was removed. --budget gives each launch its seconds",
        "rnu": "A fleet has no 'rnu'. It is ",
        "report DIR": "A fleet has no 'report'. `report DIR` shows hosts side by side",
    }
    check_refusals(capsys, "fleet", refused)
