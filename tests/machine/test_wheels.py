"""Which build of torch a host needs: invented hosts, with their kernel's files and the output of nvidia-smi."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch.cuda

from cotenant.machine import wheels
from cotenant.machine.wheels import INDEX, SIZES, DeviceHost, device_host, remedy, wheel_for
from machine.fakehost import write

HOSTS = {
    DeviceHost(): ("cpu", "there is no device"),
    DeviceHost((70, 70), "580.65.06", nodes=True): ("cu126", "CUDA 13.0 has no kernels for some of them"),
    DeviceHost((70, 90), "580.65.06"): ("cu126", "devices of sm_70, sm_90 and driver 580.65.06 run CUDA 12.6"),
    DeviceHost((70,), "470.82"): ("cu126", "driver 470.82 is too old for CUDA 12.6: update it to 525"),
    DeviceHost((90,), "580.65.06"): ("cu130", "devices of sm_90 and driver 580.65.06 run CUDA 13.0"),
    DeviceHost((90,), "579.99"): ("cu126", "run CUDA 12.6, and CUDA 13.0 needs driver 580"),
    DeviceHost((89,), "525.60.13"): ("cu126", "run CUDA 12.6"),
    DeviceHost((100,), "570.10"): ("cu130", "driver 570.10 is too old for CUDA 13.0: update it to 580"),
    DeviceHost((103,), "590.1"): ("cu130", "run CUDA 13.0"),
    DeviceHost((35,), "470.82"): ("cu130", "no build of torch holds kernels for all of sm_35"),
    DeviceHost((70, 100), "590.1"): ("cu130", "for all of sm_70, sm_100"),
    DeviceHost((), "", nodes=True): ("cu130", "devices of unknown capability and driver of unknown version"),
    DeviceHost((), "535.1", nodes=True): ("cu126", "devices of unknown capability and driver 535.1 run CUDA 12.6"),
    DeviceHost((110,), "590.1", architecture="aarch64"): ("cu130", "run CUDA 13.0"),
    DeviceHost(amd=True): (wheels.ROCM, "AMD's devices"),
    DeviceHost(intel=True): ("xpu", "Intel's devices"),
    DeviceHost((90,), "590.1", amd=True, intel=True): ("cu130", "run CUDA 13.0"),
}


def test_the_build_of_every_host() -> None:
    for host, (build, reason) in HOSTS.items():
        wheel = wheel_for(host)
        assert wheel.build == build, host
        assert reason in wheel.reason, host


def test_what_helps_where_torch_cannot_use_the_devices() -> None:
    v100 = DeviceHost((70,), "580.1")
    assert remedy(v100, "cu130").startswith(
        f"pip install --force-reinstall torch torchvision --index-url {INDEX}/cu126: "
    )
    assert remedy(DeviceHost(amd=True), "cpu").startswith("pip install")
    assert f"--index-url {INDEX}/xpu: " in remedy(DeviceHost(intel=True), "cpu")
    assert remedy(v100, "cu126").startswith("Check the driver (nvidia-smi, rocminfo, xpu-smi) and this user's rights: ")
    assert remedy(DeviceHost(), "cu130") == "Check the driver (nvidia-smi, rocminfo, xpu-smi)."


def test_kernels_are_those_of_the_pinned_torch() -> None:
    releases = torch.cuda.PYTORCH_RELEASES_CODE_CC
    for build in wheels._CUDA_BUILDS:
        assert {arch: set(codes) for arch, codes in build.kernels.items()} == releases[build.cuda]
    assert torch.version.cuda is None or f"cu{torch.version.cuda.replace('.', '')}" == wheels.PINNED


NVRM = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.211.01  Release Build  (dvs)  Fri Oct 3"


def test_the_set_up_is_told_in_four_lines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wheels, "device_host", lambda: DeviceHost((90,), "590.1"))
    wheels.main([])
    wheels.main(["--null-device"])
    wheels.main(["cu126"])
    monkeypatch.setattr(wheels, "device_host", DeviceHost)
    wheels.main(["--null-device"])
    pinned, of_devices = ("cu130", "pinned", SIZES["cu130"]), "devices of sm_90 and driver 590.1 run CUDA 13.0"
    assert capsys.readouterr().out.splitlines() == [
        *(*pinned, of_devices),
        *(*pinned, of_devices),
        *("cu126", f"{INDEX}/cu126", "", "TORCH_BUILD asks for it"),
        *(*pinned, "there is no device, and the null device of the tests needs CUDA's"),
    ]


def test_what_a_host_tells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"proc/driver/nvidia/version": NVRM, "dev/nvidiactl": ""})
    assert (device_host(tmp_path).driver, device_host(tmp_path).nodes) == ("570.211.01", False)
    write(tmp_path, {"dev/nvidia0": "", "dev/kfd": ""})
    assert (device_host(tmp_path).nodes, device_host(tmp_path).amd) == (True, True)
    for place, counts in (("0000:00:02.0", False), ("0000:03:00.0", True)):
        event = f"DRIVER=xe\nPCI_SLOT_NAME={place}\n"
        write(tmp_path, {"sys/class/drm/card0/device/vendor": "0x8086\n", "sys/class/drm/card0/device/uevent": event})
        assert device_host(tmp_path).intel is counts
    answer = SimpleNamespace(stdout="7.0, 535.183.01\n12.0, 535.183.01\n")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: answer)
    assert (device_host().capabilities, device_host().driver) == ((70, 120), "535.183.01")
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(stdout="No devices were found\n"))
    assert device_host().capabilities == ()
