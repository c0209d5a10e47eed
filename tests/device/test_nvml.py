"""Odd answers of NVML, through the real bindings: nothing raises, and a fact that NVML withholds is unknown."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from device.host import DRIVER, ROOT, Host
from device.zygote import Zygote

pytest.importorskip("pynvml")
LONG = "NVIDIA " + "RTX PRO 6000 Blackwell Max-Q Workstation Edition " * 2
HOSTS: dict[str, dict[str, str]] = {
    "in order": {},
    "not supported": {"NULL_NVML_DENY": "*"},
    "no permission": {"NULL_NVML_DENY": "*", "NULL_NVML_DENY_CODE": "4"},
    "version mismatch": {"NULL_NVML_INIT": "18"},
    "driver not loaded": {"NULL_NVML_INIT": "9"},
    "no devices": {"NULL_DEVICE_COUNT": "0"},
    "a lost board": {"NULL_DEVICE_COUNT": "4", "NULL_NVML_LOST": "2"},
    "lost while asked": {"NULL_NVML_DENY": "*", "NULL_NVML_DENY_CODE": "15"},
    "seven instances": {"NULL_NVML_MIG": "7", "NULL_DEVICE_COUNT": "2"},
    "a long name": {"NULL_DEVICE_NAME": LONG},
    "invisible processes": {"NULL_NVML_PIDS": "4194301,4194302,4194303"},
    "exclusive": {"NULL_NVML_MODE": "3"},
    "power limit and heat": {"NULL_NVML_REASONS": "0x64"},
    "without names": {"NULL_NVML_DENY": "nvmlDeviceGetName,nvmlDeviceGetUUID,nvmlDeviceGetMemoryInfo"},
}


SILENT = {
    "version mismatch": "its driver answers 'RM has detected an NVML/RM version mismatch'",
    "driver not loaded": "its driver answers 'Driver Not Loaded'",
    "no devices": "its driver shows this process no device",
}


@pytest.fixture(scope="module")
def found(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """Devices, states and readings that Cotenant finds on each of HOSTS, by the host's name."""
    root = tmp_path_factory.mktemp("root")
    version = root / "proc/driver/nvidia/version"
    version.parent.mkdir(parents=True)
    version.write_text(DRIVER)
    return dict(zip(HOSTS, zygote.asked("nvml", root, json.dumps(list(HOSTS.values()))), strict=True))


def test_a_board_in_order(found: dict[str, dict[str, Any]]) -> None:
    (device,), (state,), (reading,), silence = found["in order"].values()
    assert silence == ""
    assert (device["name"], device["pci"], device["driver"]) == ("NVIDIA H100 80GB HBM3", "0000:10:00.0", "580.95.05")
    assert device["memory_bytes"] == 81008 << 20, "what the driver keeps is not there for anybody"
    assert state == {
        "index": 0,
        "processes": [],
        **dict.fromkeys(("mps", "mig", "mig_pending", "repair_pending"), False),
        **dict.fromkeys(("persistent", "ecc"), True),
        "uncorrected_errors": 0,
        "compute_mode": "default",
        "power_limit_w": 700.0,
        "power_default_w": 700.0,
        "slowed_by": [],
    }
    assert (reading["clock_mhz"], reading["power_w"], reading["temperature_c"]) == (1755, 400.0, 55)
    assert reading["slowed_by"] == ["power limit"]
    assert reading["energy_j"] > 0


@pytest.mark.parametrize("host", ["not supported", "no permission", "lost while asked"])
def test_what_is_denied_is_unknown(found: dict[str, dict[str, Any]], host: str) -> None:
    (device,), (state,), (reading,), _ = found[host].values()
    assert (device["name"], device["memory_bytes"]) == ("NVIDIA H100 80GB HBM3", 0)
    known = {"index", "processes", "mps", "mig", "mig_pending", "repair_pending", "slowed_by"}
    assert {name for name, value in state.items() if value is not None} == known
    assert {name for name, value in reading.items() if value not in (None, [])} == {"index"}


@pytest.mark.parametrize("host", SILENT)
def test_no_device_is_found_and_why_is_told(found: dict[str, dict[str, Any]], host: str) -> None:
    assert found[host] == {"devices": [], "states": [], "readings": [], "silence": SILENT[host]}


@pytest.mark.slow
def test_a_bare_run_uses_processors_if_no_device_answers(null: Host) -> None:
    line = [*null.before, sys.executable, str(ROOT / "run.py"), "--dry", "--name", "toy_reg"]
    variables = null.environment | {"NULL_NVML_INIT": "18"}
    printed = subprocess.run(line, env=variables, capture_output=True, text=True, check=True).stdout
    assert [line for line in printed.splitlines() if line.startswith("cpu on ")] != []
    assert f"no device answers ({SILENT['version mismatch']})" in printed
    assert "without --jobs the suite is profiles/cpu.json. Run nvidia-smi:" in printed


def test_a_lost_board_is_left_out_of_the_numbering(found: dict[str, dict[str, Any]]) -> None:
    devices = found["a lost board"]["devices"]
    assert [(device["index"], device["pci"]) for device in devices] == [
        (0, "0000:10:00.0"), (1, "0000:11:00.0"), (2, "0000:13:00.0"),
    ]  # fmt: skip
    assert len(found["a lost board"]["readings"]) == 3


def test_instances_stand_in_the_place_of_their_device(found: dict[str, dict[str, Any]]) -> None:
    devices, states, readings, _ = found["seven instances"].values()
    assert len({device["uuid"] for device in devices}) == len(devices) == 14
    assert {device["memory_bytes"] for device in devices} == {9728 << 20}
    assert [state["mig"] for state in states] == [True, True]
    # The driver gives no load of a device that is cut into instances.
    assert [reading["load_percent"] for reading in readings] == [None, None]


def test_names_processes_modes_and_limits(found: dict[str, dict[str, Any]]) -> None:
    assert LONG.startswith(found["a long name"]["devices"][0]["name"])
    processes = found["invisible processes"]["states"][0]["processes"]
    assert [(one["name"], one["memory_bytes"]) for one in processes] == [("", None)] * 3
    assert found["exclusive"]["states"][0]["compute_mode"] == "exclusive"
    assert set(found["power limit and heat"]["readings"][0]["slowed_by"]) == {"power limit", "heat"}
    nameless = found["without names"]["devices"][0]
    assert (nameless["name"], nameless["uuid"], nameless["memory_bytes"]) == ("NVIDIA device", "", 0)
