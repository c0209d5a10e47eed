"""The program that checks whether torch works, with the installed torch and with invented faults."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cotenant.bench import selftest
from cotenant.bench.selftest import examined, vision_error
from cotenant.findings.checks.jobs import OPERATORS_MISSING


def test_here_all_is_well() -> None:
    found = examined()
    assert found["torch"] == str(torch.__version__)
    assert {found[name] for name in ("vision_error", "lapack_error")} == {""}
    assert set(found["devices"]) <= {""}
    assert found["built_for"] in ("cpu", "xpu") or found["built_for"][:2] in ("cu", "ro")


def refuse(*given: Any, **named: Any) -> Any:
    raise RuntimeError("Calling torch.linalg.qr requires LAPACK.\nPlease rebuild.")


def test_a_build_without_lapack_or_with_a_wrong_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.linalg, "qr", refuse)
    assert examined()["lapack_error"] == "RuntimeError: Calling torch.linalg.qr requires LAPACK"
    monkeypatch.setattr(torch.linalg, "qr", lambda matrix: (torch.eye(len(matrix)), 2 * matrix))
    assert "is off by" in examined()["lapack_error"]


def test_no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", None)
        found = examined()
    assert found["torch_error"].startswith("ModuleNotFoundError")
    assert "devices" not in found


def test_a_torchvision_whose_operators_cannot_be_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its compiled library was built for another torch, or is missing: both leave it without operators."""
    folder = tmp_path / "torchvision"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    monkeypatch.setattr(selftest, "find_spec", lambda name: ModuleSpec(name, None, origin=str(folder / "__init__.py")))

    def refuse(library: str) -> None:
        raise OSError(f"{Path(library).name}: undefined symbol")

    pair = SimpleNamespace(ops=SimpleNamespace(load_library=refuse, torchvision=SimpleNamespace()))
    missing = "operator torchvision::nms does not exist"
    assert OPERATORS_MISSING in missing
    assert vision_error(pair, "0.29.2") == missing
    (folder / "_C_stable.so").touch()
    assert vision_error(pair, "0.29.2") == f"{missing} (OSError: _C_stable.so: undefined symbol)"
    assert vision_error(pair, "") == ""
    monkeypatch.setattr(selftest, "find_spec", lambda name: None)
    assert vision_error(pair, "0.29.2") == "its files are gone"


def test_what_torchvision_requires_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["torch (>=9)", "numpy", "no-such_package (!=8.3.*,>=5.3.0)", "gdown ; extra == 'gdown'"]
    monkeypatch.setattr(selftest.metadata, "requires", lambda package: lines)
    assert vision_error(torch, "0.29.2") == "it requires no-such_package, which is not installed"


@pytest.mark.parametrize("kind", ["cuda", "xpu"])
def test_devices_by_one_product_each(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device(kind))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    monkeypatch.setattr(torch.Tensor, "to", lambda tensor, device: tensor if device == f"{kind}:0" else tensor + 1)
    assert examined()["devices"] == ["", "its product is wrong"]
    monkeypatch.setattr(torch.Tensor, "to", refuse)
    assert examined()["devices"] == ["RuntimeError: Calling torch.linalg.qr requires LAPACK"] * 2


def test_the_build_is_named_as_the_package_index_does(monkeypatch: pytest.MonkeyPatch) -> None:
    for cuda, hip, xpu, name in (
        ("12.8", None, None, "cu128"),
        (None, "6.4.43482", None, "rocm6.4"),
        (None, None, "20250302", "xpu"),
        (None, None, None, "cpu"),
    ):
        monkeypatch.setattr(torch.version, "cuda", cuda)
        monkeypatch.setattr(torch.version, "hip", hip, raising=False)
        monkeypatch.setattr(torch.version, "xpu", xpu, raising=False)
        assert examined()["built_for"] == name
