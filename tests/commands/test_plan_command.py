"""`plan` as a person or a program calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from commands.calling import Capture, call
from cotenant import cli
from cotenant.api import planning
from cotenant.procfs import parse_list
from machine import fleet
from patience import HANG_S
from tenants.suites import ROOT


def document(capsys: Capture, *words: str) -> dict[str, Any]:
    assert cli.main(["plan", "--json", "--isolation", "affinity", *words]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_this_host_as_a_person_sees_it(capsys: Capture) -> None:
    status, said, errors = call(capsys, "plan", "--users", 1, "--isolation", "none")
    assert (status, errors) == (0, "")
    lines = said.splitlines()
    assert lines[2].startswith(f"1 user with {len(os.sched_getaffinity(0))} processor")
    assert lines[3] == "isolation none; not held: processors, nodes, memory, swap, pids"
    assert any(line.split()[:2] == ["A", "0"] for line in lines)
    assert "\x1b" not in said


def test_json_needs_the_standard_library_only() -> None:
    line = [sys.executable, "-I", "-S", str(ROOT / "run.py"), "plan", "--json", "--users", "1", "--isolation", "none"]
    ended = subprocess.run(line, capture_output=True, text=True, timeout=HANG_S)
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert (found["schema"], found["backend"]) == ("cotenant-plan-2", "none")
    assert set(parse_list(found["tenants"][0]["processors"])) == os.sched_getaffinity(0)


def test_the_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    machine = fleet.mig(tmp_path)
    monkeypatch.setattr(planning, "discover", lambda: machine)
    found = document(capsys, "--users", "3", "--reserve", "2G")
    shares = {"processors": "5-9,21-25", "processor_total": 10, "core_total": 5, "nodes": "0"}
    shares |= {"memory_bytes": (250 << 30) // 3 // 4096 * 4096, "devices": ["0.2", "0.3"]}
    environment = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": "MIG-2,MIG-3"}
    assert found["tenants"][1] == {"tenant": 1, "part": 1, "sharers": 1, "environment": environment} | shares
    (box,) = found["boxes"]
    assert box["cores"][5] == {"processors": [5, 21], "tenants": [[1], [1]], "kind": ""}
    assert box["cores"][15]["tenants"] == [[], []]
    assert [device["label"] for device in box["devices"]] == [f"0.{part}" for part in range(7)]
    assert [device["tenants"] for device in box["devices"]] == [[0], [0], [1], [1], [2], [2], []]
    assert found["processors_unused"] == "15,31"
    assert found["reserve_bytes"] == 2 << 30
    total = 3 * found["tenants"][0]["memory_bytes"] + found["reserve_bytes"] + found["memory_unused_bytes"]
    assert total == found["memory_bytes"] == 252 << 30
    assert found["unenforced"] == ["nodes", "memory", "swap", "pids"]
    rules = [finding["rule"] for finding in found["findings"]]
    assert rules == ["processors_unused", "devices_idle", "partitions_unused"]


def test_the_flags_shape_the_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    machine = fleet.far_memory(tmp_path)
    monkeypatch.setattr(planning, "discover", lambda: machine)
    assert [tenant["nodes"] for tenant in document(capsys)["tenants"]] == ["0", "1"]
    assert [tenant["nodes"] for tenant in document(capsys, "--mems", "all")["tenants"]] == ["0-2", "0-2"]
    contiguous = document(capsys, "--plan", "contiguous", "--users", "3")
    assert [tenant["processors"] for tenant in contiguous["tenants"]] == ["0-1", "2-3", "4-5"]
    assert (contiguous["policy"], contiguous["mems"]) == ("contiguous", "local")
    shared = document(capsys, "--users", "4", "--slices", "2")
    assert [(tenant["part"], tenant["sharers"]) for tenant in shared["tenants"]] == [(0, 2)] * 2 + [(1, 2)] * 2
    bare = document(capsys)["boxes"][2]
    assert (bare["package"], bare["node"], bare["memory_bytes"], bare["cores"]) == (None, 2, 128 << 30, [])
