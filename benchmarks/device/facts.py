"""What this machine is: software, processors, cgroups, and NVML's answers in a file of their own."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from device import nvml
from device.book import Skip, replace
from device.part import Given

PACKAGES = (
    "torch", "torchvision", "triton", "numpy", "scipy", "msgspec", "psutil", "nvidia-ml-py", "gymnasium", "ale-py",
    "farama-notifications", "rich", "polars", "nvidia-cudnn-cu12", "nvidia-cudnn-cu13", "nvidia-nccl-cu13",
)  # fmt: skip
PROGRAMS = ("nvidia-smi", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server", "rocm-smi", "systemd-run", "gcc")
FILES = (
    "/proc/driver/nvidia/version",
    "/sys/fs/cgroup/cgroup.controllers",
    "/sys/fs/cgroup/cgroup.subtree_control",
    "/proc/self/cgroup",
    "/sys/module/amdgpu/version",
)


def run(given: Given) -> None:
    with given.looking_at("software"):
        software(given)
    with given.looking_at("host"):
        host(given)
    with given.looking_at("torch and its device"):
        torch_and_device(given)
    with given.looking_at("devices as Cotenant sees them"):
        isolation(given)
    with given.looking_at("NVML's answers"):
        given.need_nvidia()
        nvml_answers(given)


def software(given: Given) -> None:
    for name in PACKAGES:
        try:
            found = version(name)
        except PackageNotFoundError:
            found = "missing"
        given.row("software", name=name, version=found)
    for name in PROGRAMS:
        given.row("software", name=name, version=shutil.which(name) or "missing")
    switches = ("CUDA_", "NVIDIA_", "NCCL_", "PYTORCH_", "TORCH_", "HSA_", "HIP_", "ROCR_", "OMP_", "MKL_")
    for name in sorted(name for name in os.environ if name.startswith(switches)):
        given.row("switches in the environment", name=name, value=os.environ[name])
    given.check("software", True, f"{len(PACKAGES)} packages and {len(PROGRAMS)} programs were looked for.")


def host(given: Given) -> None:
    known = {
        "kernel": platform.release(),
        "architecture": platform.machine(),
        "processors": len(os.sched_getaffinity(0)),
        "memory, bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "user id": os.getuid(),
        "free in /dev/shm, bytes": shutil.disk_usage("/dev/shm").free if Path("/dev/shm").is_dir() else 0,
        "free in the scratch folder, bytes": shutil.disk_usage(given.scratch).free,
    }
    for name, value in known.items():
        given.row("host", what=name, value=str(value))
    for name in FILES:
        if Path(name).exists():
            given.row("host", what=name, value=Path(name).read_text().strip()[:1000])
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - cgroup" in line]
    given.row("host", what="mounts of cgroups", value="; ".join(line.split(" ", 4)[4] for line in mounts))
    given.check(
        "host", True, f"{known['processors']} processors, kernel {known['kernel']}, {len(mounts)} cgroup mounts."
    )


def torch_and_device(given: Given) -> None:
    version = str(given.machine["torch"])
    if version == "unknown" or (version.startswith("missing") and "No module named 'torch'" not in version):
        # Installed and broken is no reason to pass.
        reason = "ended its process or took too long" if version == "unknown" else f"failed: {version}"
        given.check("torch and its device", False, f"Importing torch {reason}.")
        return
    given.need_torch()
    given.row("torch", what="version", value=version)
    given.row("torch", what="built for", value=given.machine["built_for"])
    given.row("torch", what="configuration", value=given.machine["configuration"][:1500])
    if given.kind == "cpu":
        reason = given.machine.get("device_error", "torch.cuda.is_available() is false.")
        if Path("/proc/driver/nvidia/version").exists() or Path("/dev/kfd").exists():
            wheel = f"a wheel for {given.machine['built_for']}"
            sentence = f"The host has a driver, and torch ({wheel}) no device: {reason}"
            given.check("torch and its device", False, sentence)
            return
        raise Skip(f"torch sees no device: {reason}")
    import torch

    given.row("torch", what="kernels for", value=" ".join(torch.cuda.get_arch_list()))
    given.row("torch", what="cuDNN or MIOpen", value=str(torch.backends.cudnn.version()))
    for index in range(torch.cuda.device_count()):
        given.row("torch", what=f"device {index}", value=str(torch.cuda.get_device_properties(index)))
    a = torch.randn(256, 256, device="cuda")
    difference = ((a @ a).cpu() - a.cpu() @ a.cpu()).abs().max().item()
    given.check(
        "torch and its device", difference < 0.1, f"A product on the device differs by {difference:.2g} at most."
    )


def isolation(given: Given) -> None:
    from cotenant.machine.limits import cgroup_mounts
    from cotenant.machine.topology import discover

    given.row("host", what="cgroup mounts as read by Cotenant", value=str(cgroup_mounts())[:1000])
    devices = discover().accelerators
    for device in devices:
        given.row("accelerators as read by Cotenant", **{name: getattr(device, name) for name in device.__slots__})
    expected = given.machine.get("devices", 0)
    # Partitions of one device count each.
    same = (len(devices) > 0) == (expected > 0)
    given.check("devices as Cotenant sees them", same, f"It finds {len(devices)} accelerators, and torch {expected}.")


def nvml_answers(given: Given) -> None:
    import pynvml

    if (program := shutil.which("nvidia-smi")) is not None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            told = subprocess.run([program, "-q"], capture_output=True, text=True, timeout=10, check=False)
            print(told.stdout, flush=True)
    pynvml.nvmlInit()
    try:
        found = nvml.answers(pynvml)
    finally:
        pynvml.nvmlShutdown()
    found["bindings"] = getattr(pynvml, "__file__", None)
    replace(given.book.folder / "nvml.json", json.dumps(found, indent=1, default=str))
    for device in found["devices"]:
        for name, value in device.items():
            if "us" in value:
                shown = value.get("answer", value.get("error", value.get("lacking")))
                given.row(
                    "NVML", call=name, answer=json.dumps(shown)[:200], first_us=value["us"][0], then_us=value["us"][1]
                )
    lacking = nvml.lacking(found)
    given.check(
        "NVML's answers",
        bool(found["devices"]) and not lacking,
        f"The bindings lack {', '.join(lacking)}." if lacking else f"{len(found['devices'])} devices, in nvml.json.",
    )
