"""The program that asks whether torch works, with torch as it is here and with invented faults."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from cotenant.bench.selftest import examined
from cotenant.findings.checks.jobs import OPERATORS_MISSING


def test_here_all_is_well() -> None:
    found = examined()
    assert found["torch"] == str(torch.__version__)
    assert {found[name] for name in ("vision_error", "lapack_error")} == {""}
    assert set(found["devices"]) <= {""}
    assert found["built_for"] == "cpu" or found["built_for"][:2] in ("cu", "ro")


def refuse(*given: Any, **named: Any) -> Any:
    raise RuntimeError("Calling torch.linalg.qr requires LAPACK.\nPlease rebuild.")


def test_a_build_without_lapack(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.linalg, "qr", refuse)
    assert examined()["lapack_error"] == "RuntimeError: Calling torch.linalg.qr requires LAPACK"


def test_a_wrong_decomposition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.linalg, "qr", lambda matrix: (torch.eye(len(matrix)), 2 * matrix))
    assert "is off by" in examined()["lapack_error"]


def test_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        found = examined()
    assert found["torch_error"].startswith("ModuleNotFoundError")
    assert "devices" not in found


def test_a_torchvision_that_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchvision", None)
    assert examined()["vision_error"].startswith("ModuleNotFoundError")


def test_the_error_of_a_torchvision_without_its_operators(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its Python half describes operators that its compiled half, built for another torch, could not register."""
    (tmp_path / "torchvision.py").write_text(
        "import torch\n@torch.library.register_fake('torchvision::none')\ndef _(x): ..."
    )
    monkeypatch.delitem(sys.modules, "torchvision", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    error = examined()["vision_error"]
    assert error == "RuntimeError: operator torchvision::none does not exist"
    assert OPERATORS_MISSING in error


def test_devices_by_one_product_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, device: tensor if device == "cuda:0" else tensor + 1)
    assert examined()["devices"] == ["", "its product is wrong"]
    monkeypatch.setattr(torch.Tensor, "to", refuse)
    assert examined()["devices"] == ["RuntimeError: Calling torch.linalg.qr requires LAPACK"] * 2


def test_the_build_is_named_as_the_package_index_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for cuda, hip, name in (("12.8", None, "cu128"), (None, "6.4.43482", "rocm6.4"), (None, None, "cpu")):
        monkeypatch.setattr(torch.version, "cuda", cuda)
        monkeypatch.setattr(torch.version, "hip", hip, raising=False)
        assert examined()["built_for"] == name
