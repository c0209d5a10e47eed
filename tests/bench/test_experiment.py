"""Scripts of the reference suite: their clock, and their Experiment, which writes our record."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cotenant.bench.stages import MultiStageChrono
from tenants.suites import ROOT, TENANTS

WORDS = ("--repeat", 9, "--number", 4, "--batch-size", 8)


def test_stages_keep_all_but_the_first_observations_and_nest() -> None:
    synchronised: list[None] = []
    chrono = MultiStageChrono(skip_obs=2, sync=lambda: synchronised.append(None), name="mine")
    for _ in range(5):
        with chrono.time("train") as stage, chrono.time("forward", skip_obs=0):
            pass
    assert (stage.count, chrono.chronos["forward"].count, len(synchronised)) == (3, 5, 20)
    assert stage.min <= stage.avg <= stage.max == max(stage.kept)
    told = chrono.to_dict({"batch_size": 8})
    assert (told["name"], told["batch_size"]) == ("mine", 8)
    assert sorted(told["train"]) == ["avg", "count", "max", "min", "sd", "unit"]
    with pytest.raises(ZeroDivisionError), chrono.time("train"):
        raise ZeroDivisionError
    assert len(stage.seconds) == 5, "a block that raises is no observation"


def test_a_script_of_theirs_alone_writes_our_record(tmp_path: Path) -> None:
    line = [sys.executable, TENANTS / "polynome.py", *map(str, WORDS), "--report", tmp_path / "x.json"]
    env = os.environ | {"PYTHONPATH": str(ROOT / "common")}
    said = subprocess.run(line, env=env, capture_output=True, text=True, check=True).stdout
    record = json.loads((tmp_path / "x.json").read_text())
    assert (record["outcome"], record["repeat"], record["skip"], record["batch_size"]) == ("completed", 9, 3, 8)
    assert record["train_item"]["avg"] == pytest.approx(8 * 4 / record["train"]["avg"])
    assert (record["train"]["count"], len(record["batch_loss"]), record["losses_checked"]) == (6, 36, 36)
    assert said.count("Batch Loss") == 9


def test_the_package_of_theirs_has_another_name_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "common")
    with pytest.raises(ImportError, match=r"from cotenant\.chrono import Experiment, MultiStageChrono"):
        importlib.import_module("common")
