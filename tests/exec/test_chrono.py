"""The clock of the reference suite's scripts: its stages, its report, and `train` as the step of a tenant."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from cotenant.chrono import MultiStageChrono
from tenants.suites import ROOT, TENANTS


def test_stages_keep_all_but_the_first_blocks_and_nest() -> None:
    synchronised: list[None] = []
    chrono = MultiStageChrono(skip_obs=2, sync=lambda: synchronised.append(None), name="mine")
    for _ in range(5):
        with chrono.time("train"), chrono.time("forward"):
            pass
    with pytest.raises(ZeroDivisionError), chrono.time("train"):
        raise ZeroDivisionError
    told = chrono.to_dict({"batch_size": 8})
    assert (told["name"], told["batch_size"], len(synchronised)) == ("mine", 8, 21)
    assert (told["train"]["count"], told["forward"]["count"]) == (3, 3), "a block that raises is no observation"
    assert sorted(told["train"]) == ["avg", "count", "max", "min", "sd", "unit"]
    assert told["train"]["min"] <= told["train"]["avg"] <= told["train"]["max"]
    assert not chrono.over


def test_the_report_has_rates_from_mean_and_least_times(capsys: pytest.CaptureFixture[str]) -> None:
    chrono = MultiStageChrono(skip_obs=2)
    for _ in range(9):
        with chrono.time("train", items=32):
            pass
    chrono.report()
    check_report(json.loads(capsys.readouterr().out))


@pytest.mark.slow
def test_a_script_alone_prints_the_originals_report() -> None:
    line = [sys.executable, TENANTS / "polynome.py", "--repeat", "9", "--number", "4", "--batch-size", "8"]
    env = os.environ | {"PYTHONPATH": str(ROOT / "common")}
    check_report(json.loads(subprocess.run(line, env=env, capture_output=True, text=True, check=True).stdout))


def check_report(told: dict[str, Any]) -> None:
    """Assert that a report has seven observations of 32 items each."""
    train, rates = told["train"], told["train_item"]
    assert (train["count"], rates["unit"]) == (7, "items/sec")
    assert rates["avg"] == pytest.approx(32 / train["avg"])
    assert rates["range"] == pytest.approx(32 / train["min"] - 32 / train["max"])


def test_the_package_of_theirs_has_another_name_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(ROOT / "common")
    monkeypatch.delitem(sys.modules, "common", raising=False)
    with pytest.raises(ImportError, match=r"from cotenant\.chrono import MultiStageChrono"):
        importlib.import_module("common")
