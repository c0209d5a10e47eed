"""The build of torch that a host needs, by its devices and their driver.

scripts/environment.sh runs this file before anything is installed: it takes the standard library alone.
"""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

INDEX = "https://download.pytorch.org/whl"
"""The PyTorch project's public index; each build of torch has a folder of its own below it."""
ROCM = "rocm7.2"
"""The build for AMD's devices. Neither it nor any other folder of the index could be tried when this was written."""
XPU = "xpu"
"""The build for Intel's devices."""
PINNED = "cu130"
"""The build that requirements.txt installs on Linux; it also runs without any device."""
CPU = "cpu"
SIZES = {PINNED: "2.6 GB to fetch and 6 GB on disk", CPU: "0.4 GB to fetch and 1.6 GB on disk"}
"""The size of all packages of requirements.txt with a build of torch, if measured."""
_INTEL_DRIVERS = ("xe", "i915")
_BUILT_IN = "00:02.0"  # the PCI place of Intel processors' own graphics


@dataclass(frozen=True, slots=True)
class DeviceHost:
    """The facts that decide: NVIDIA's compute capabilities as 10 * major + minor, their driver, other makers' devices.

    `driver` is "" if unknown; `nodes` tells that there are NVIDIA devices, even if nothing answers.
    """

    capabilities: tuple[int, ...] = ()
    driver: str = ""
    nodes: bool = False
    amd: bool = False
    intel: bool = False
    architecture: str = "x86_64"


@dataclass(frozen=True, slots=True)
class Wheel:
    """A build by its name in the index, `cu126`, and a sentence that gives the reason."""

    build: str
    reason: str

    @property
    def command(self) -> str:
        """Return the command that installs its newest release."""
        return f"pip install --force-reinstall torch torchvision --index-url {INDEX}/{self.build}"


@dataclass(frozen=True, slots=True)
class _CudaBuild:
    name: str
    cuda: str
    least_driver: int
    """The oldest driver, by CUDA's minor-version compatibility (table 3 of the CUDA toolkit's release notes)."""
    kernels: dict[str, tuple[int, ...]]
    """Capabilities by architecture (PYTORCH_RELEASES_CODE_CC of torch.cuda, 2.14)."""

    def runs_on(self, host: DeviceHost) -> bool:
        kernels = self.kernels.get(host.architecture, ())
        # A kernel runs on later devices of its own major capability.
        return all(
            any(kernel // 10 == device // 10 and kernel <= device for kernel in kernels) for device in host.capabilities
        )

    def driven_by(self, host: DeviceHost) -> bool:
        major = re.match(r"\d+", host.driver)
        return major is None or int(major[0]) >= self.least_driver


_CUDA_BUILDS = (
    _CudaBuild(PINNED, "13.0", 580, {"x86_64": (75, 80, 86, 90, 100, 120), "aarch64": (80, 90, 100, 110, 120)}),
    _CudaBuild("cu126", "12.6", 525, {"x86_64": (50, 60, 70, 75, 80, 86, 90), "aarch64": (80, 90)}),
)


def wheel_for(host: DeviceHost) -> Wheel:
    """Return the newest build that every device and the driver of this host can run."""
    if not (host.capabilities or host.nodes):
        if host.amd:
            return Wheel(ROCM, "AMD's devices need the build for ROCm")
        if host.intel:
            return Wheel(XPU, "Intel's devices need the build for XPU")
        return Wheel(CPU, "there is no device")
    kernels = [build for build in _CUDA_BUILDS if build.runs_on(host)]
    models = ", ".join(f"sm_{capability}" for capability in sorted(set(host.capabilities)))
    if not kernels:
        return Wheel(PINNED, f"no build of torch holds kernels for all of {models}")
    devices = f"devices of {models}" if models else "devices of unknown capability"
    for build in kernels:
        if build.driven_by(host):
            whose = f"{devices} and driver {host.driver or 'of unknown version'}"
            return Wheel(build.name, f"{whose} run CUDA {build.cuda}" + _newer(host, build))
    build = kernels[-1]
    return Wheel(
        build.name, f"driver {host.driver} is too old for CUDA {build.cuda}: update it to {build.least_driver}"
    )


def _newer(host: DeviceHost, chosen: _CudaBuild) -> str:
    """Return the reason that keeps a host from the newest build."""
    newest = _CUDA_BUILDS[0]
    if chosen is newest:
        return ""
    if not newest.runs_on(host):
        return f", and CUDA {newest.cuda} has no kernels for some of them"
    return f", and CUDA {newest.cuda} needs driver {newest.least_driver}"


def remedy(host: DeviceHost, installed: str) -> str:
    """Return the remedy if torch, built as `installed` (`cpu`, `cu130`), cannot use this host's devices."""
    wheel = wheel_for(host)
    if wheel.build == CPU:
        return "Check the driver (nvidia-smi, rocminfo, xpu-smi)."
    if wheel.build == installed:
        return f"Check the driver (nvidia-smi, rocminfo, xpu-smi) and this user's rights: {wheel.reason}."
    return f"{wheel.command}: {wheel.reason}."


def device_host(root: Path = Path("/")) -> DeviceHost:
    """Return the devices and the driver of the host below `root`; without nvidia-smi by the kernel's files."""
    release = re.search(r"Kernel Module.*?\s(\d+\.[\d.]+)\s", _read(root / "proc/driver/nvidia/version"))
    answers = re.findall(r"^(\d+)\.(\d+), *([\d.]+)$", _nvidia_smi() if root == Path("/") else "", re.MULTILINE)
    return DeviceHost(
        capabilities=tuple(10 * int(major) + int(minor) for major, minor, _ in answers),
        driver=answers[0][2] if answers else release[1] if release else "",
        nodes=has_nvidia_nodes(root),
        amd=(root / "dev/kfd").exists(),
        intel=any(map(intel_place, (root / "sys/class/drm").glob("card*"))),
        architecture=platform.machine(),
    )


def has_nvidia_nodes(root: Path) -> bool:
    """Return whether an NVIDIA device has a device file. The driver's own files exist without one, too."""
    return any(re.fullmatch(r"nvidia\d+", path.name) for path in (root / "dev").glob("nvidia*"))


def intel_place(card: Path) -> tuple[str, str] | None:
    """Return the PCI id and the driver of a discrete Intel device; None for any other card of /sys/class/drm."""
    if _read(card / "device/vendor").strip() != "0x8086":
        return None
    event = dict(re.findall(r"^(\w+)=(.*)$", _read(card / "device/uevent"), re.MULTILINE))
    pci, driver = event.get("PCI_SLOT_NAME", "").lower(), event.get("DRIVER", "")
    bus = pci.partition(":")[2]
    # A guest may see a compute card on bus 00, so a display controller without a display counts there too.
    compute = _read(card / "device/class").startswith("0x0380") and bus != _BUILT_IN
    discrete = driver in _INTEL_DRIVERS and bool(bus) and not bus.startswith("00:")
    return (pci, driver) if compute or discrete else None


def _nvidia_smi() -> str:
    question = ["nvidia-smi", "--query-gpu=compute_cap,driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(question, capture_output=True, text=True, timeout=20, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def main(words: Sequence[str]) -> None:
    """Print the build, its index (or `pinned`), its size ("" if unknown) and the reason, in four lines.

    A word names the build: `--pinned` the pinned one, `--null-device` one with CUDA even if there is no device.
    """
    word = words[0] if words else ""
    wheel = wheel_for(device_host()) if word in ("", "--null-device") else Wheel(word, "TORCH_BUILD asks for it")
    if word == "--null-device" and wheel.build == CPU:
        wheel = Wheel(PINNED, f"{wheel.reason}, and the null device of the tests needs CUDA's")
    elif word == "--pinned":
        wheel = Wheel(PINNED, "it is the pinned one")
    index = "pinned" if wheel.build == PINNED else f"{INDEX}/{wheel.build}"
    print(wheel.build, index, SIZES.get(wheel.build, ""), wheel.reason, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])
