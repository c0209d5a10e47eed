"""Devices through torch.accelerator: CPU, CUDA, ROCm, XPU behind the same few calls."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cotenant.bench.outcome import UnsupportedError
from cotenant.bench.selftest import built_for
from cotenant.finding import Finding
from cotenant.machine.accelerators import HIDE_ALL
from cotenant.machine.nvidia import identified
from cotenant.machine.topology import accelerators
from cotenant.machine.wheels import device_host, has_nvidia_nodes, remedy
from cotenant.protocol.messages import DEVICE_MEMORY_VARIABLE

_MPS_ENABLED = 133
"""CU_DEVICE_ATTRIBUTE_MPS_ENABLED of cuda.h."""
_SWITCHES = re.compile(
    r"(NVIDIA_TF32_OVERRIDE|TORCH_ALLOW_TF32_CUBLAS_OVERRIDE|CUDA_LAUNCH_BLOCKING|CUDA_DEVICE_MAX_CONNECTIONS|"
    r"CUDA_MODULE_LOADING|PYTORCH_(CUDA_|HIP_)?ALLOC_CONF|(CUDA_MPS|NCCL|HSA|CUBLAS|CUDNN|MIOPEN)_\w+)$"
)
_ALLOCATOR = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")
_DROPPED = {
    "NVIDIA_TF32_OVERRIDE": "it would change the precision of every product behind torch's back",
    "CUDA_LAUNCH_BLOCKING": "it would have every kernel waited for",
}


@dataclass(frozen=True, slots=True)
class Device:
    """The device on which a tenant's models and batches live."""

    torch_device: torch.device

    @property
    def is_accelerator(self) -> bool:
        return self.torch_device.type != "cpu"

    @property
    def is_nvidia(self) -> bool:
        return self.torch_device.type == "cuda" and not torch.version.hip

    @property
    def module(self) -> Any:
        """torch's module of this kind of device."""
        return torch.get_device_module(self.torch_device)

    @property
    def name(self) -> str:
        """The accelerator's model, or `CPU`."""
        return self.module.get_device_name(self.torch_device) if self.is_accelerator else "CPU"

    @property
    def alike(self) -> int:
        """The number of devices of this kind that this process may see, this one included."""
        return torch.accelerator.device_count() if self.is_accelerator else 1

    def synchronize(self) -> None:
        """Wait until all work on the device is done; on a CPU nothing is ever pending."""
        if self.is_accelerator:
            torch.accelerator.synchronize(self.torch_device)

    def mark(self, asleep: bool = False) -> Any:
        """Return an event recorded on the current stream, None on a CPU. `asleep`: waiting blocks instead of spinning.

        Blocking costs some 50 us. Only CUDA's and HIP's events offer it, not torch.Event.
        """
        if not self.is_accelerator:
            return None
        event: Any = (
            torch.cuda.Event(enable_timing=True, blocking=asleep)
            if self.torch_device.type == "cuda"
            else torch.Event(self.torch_device, enable_timing=True)
        )
        event.record()
        return event

    @property
    def cache_bytes(self) -> int:
        """The size of the device's last-level cache, without AMD's Infinity Cache; 0 if torch does not report it."""
        if not self.is_accelerator:
            return 0
        properties = self.module.get_device_properties(self.torch_device)
        # The name of CUDA and HIP, then XPU's.
        return int(getattr(properties, "L2_cache_size", 0) or getattr(properties, "last_level_cache_size", 0))

    def let_segments_grow(self) -> bool:
        """Let the allocator extend its segments, so that many shapes do not fragment them; return whether it will.

        The caller's settings stay, and so do the settings of devices other than NVIDIA's. Without NVML, as in a
        container with only the computing part of the driver, such a segment causes a segmentation fault (torch 2.14).
        """
        if not self.is_nvidia or any(map(os.environ.get, _ALLOCATOR)):
            return False
        try:
            ctypes.CDLL("libnvidia-ml.so.1")
        except OSError:
            return False
        torch._C._accelerator_setAllocatorSettings("expandable_segments:True")
        return True

    @property
    def under_mps(self) -> bool | None:
        """True if NVIDIA's MPS serves this process on its device; None if the driver does not tell."""
        if not self.is_nvidia:
            return None
        try:
            driver, value = ctypes.CDLL("libcuda.so.1"), ctypes.c_int()
            status = driver.cuDeviceGetAttribute(ctypes.byref(value), _MPS_ENABLED, self.torch_device.index)
        except (OSError, AttributeError):
            return None
        return bool(value.value) if status == 0 else None

    def forget_memory(self) -> None:
        """Give back unused memory of the allocator, and reset the peaks."""
        if self.is_accelerator:
            self.module.empty_cache()
            self.module.reset_peak_memory_stats(self.torch_device)

    def peak_memory_bytes(self) -> dict[str, int]:
        """Return the peak of allocated and of reserved device memory; empty on a CPU."""
        if not self.is_accelerator:
            return {}
        return {
            "allocated_bytes": self.module.max_memory_allocated(self.torch_device),
            "reserved_bytes": self.module.max_memory_reserved(self.torch_device),
            "allocation_retries": self.module.memory_stats(self.torch_device).get("num_alloc_retries", 0),
        }


def settle_processor() -> None:
    """Set the arithmetic of a processor, before its first product.

    Gradients that fade into denormals, as on a memorised resident batch, slow a processor by a fifth. MKL otherwise
    chooses the order of a product's sums by the addresses of its operands, so that one seed gives several losses on
    some processors.
    """
    torch.set_flush_denormal(True)
    os.environ.setdefault("MKL_CBWR", "AUTO")


def choose_device(cuda: bool, local_rank: int = 0, local_size: int = 1) -> Device:
    """Return the accelerator asked for; the CPU if none is asked for or none is there.

    Raises UnsupportedError, in every one of the `local_size` ranks, if there are fewer accelerators than ranks, and if
    torch sees none of the accelerators present: the CPU's numbers would be taken for theirs.
    """
    if cuda and torch.accelerator.is_available():
        ranks, count = max(local_size, local_rank + 1), torch.accelerator.device_count()
        if ranks > count:
            raise UnsupportedError(
                f"{ranks} ranks need a device each, and {count} can be used here.",
                f"Start no more ranks than devices: the runner with --users {count}, or torch.distributed.run "
                f"with --nproc_per_node={count}.",
            )
        device = torch.device(torch.accelerator.current_accelerator().type, local_rank)  # type: ignore[union-attr]
        torch.accelerator.set_device_index(local_rank)
        return Device(device)
    if cuda and (unseen := unseen_devices(os.environ)):
        raise UnsupportedError(
            f"torch {torch.__version__} ({built_for(torch)}) sees no device, and {unseen}.",
            f"{remedy(device_host(), built_for(torch))} To measure the processor, use --no-cuda.",
        )
    return Device(torch.device("cpu"))


def make_deterministic() -> None:
    """Let every kernel of this process give the same bits for the same input, or raise; call before its first product.

    cuBLAS is deterministic only with a workspace of fixed size (its documentation, "Results reproducibility").
    """
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.deterministic = True
    # Otherwise torch would fill memory that is written before it is read.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined] # a property of the module


def unseen_devices(environ: Mapping[str, str], root: Path = Path("/"), nvml: Any = None) -> str:
    """Return in words the devices that torch should see; "" if there are none for this process.

    A runner's USE_CUDA=1 tells that its slice has devices, USE_CUDA=0 that it has none. `nvml` replaces pynvml.
    """
    if environ.get("USE_CUDA") == "0":
        return ""
    if devices := accelerators(root, environ, nvml):
        return f"there are {len(devices)} here ({', '.join(sorted({device.name for device in devices}))})"
    if environ.get("USE_CUDA") == "1":
        return "USE_CUDA=1 asks for one"
    # With a driver and a library of different versions NVML does not answer, but the device files exist.
    hidden = environ.get("CUDA_VISIBLE_DEVICES") in HIDE_ALL
    return "the driver of the devices that are here does not answer" if has_nvidia_nodes(root) and not hidden else ""


def inherited_switches(environ: Mapping[str, str]) -> dict[str, str]:
    """Return the inherited variables that libraries of devices read, sorted by name."""
    return {name: environ[name] for name in sorted(environ) if _SWITCHES.match(name)}


def drop_switches(environ: MutableMapping[str, str]) -> list[Finding]:
    """Remove settings that would falsify every rate, before anything reads them; return a finding for each."""
    return [
        Finding(
            "switch_dropped",
            "warning",
            f"{name}={environ.pop(name)} was inherited and is left out: {why}.",
            f"Unset {name}; --precision tf32 asks for TF32.",
        )
        for name, why in _DROPPED.items()
        if name in environ
    ]


def _name_on_amd(uuid: str) -> str:
    """Return AMD's name of a device: HIP's 16 bytes are the letters of its 16 hexadecimal digits; "" for others."""
    try:
        letters = bytes.fromhex(uuid.replace("-", "")).decode("ascii")
    except ValueError:
        return ""
    return f"GPU-{letters.lower()}" if re.fullmatch("[0-9A-Fa-f]{16}", letters) else ""


def take_part(device: Device, environ: Mapping[str, str]) -> dict[str, Any]:
    """Limit torch's allocator as the runner asks, and return this process's view of its device.

    `memory_fraction` is the allocator's limit; it is cooperative, as a program could lift it, and does not cover memory
    beside torch's. `multiprocessors` is the number this process may use, `device_multiprocessors` the number of the
    whole device or MIG instance, named by `uuid`; None if unknown.
    """
    free_bytes, total_bytes = device.module.mem_get_info(device.torch_device)
    fraction = None
    if limit := environ.get(DEVICE_MEMORY_VARIABLE):
        fraction = min(1.0, int(limit) / total_bytes)
        device.module.set_per_process_memory_fraction(fraction, device.torch_device)
    properties = device.module.get_device_properties(device.torch_device)
    version = getattr(properties, "major", 0), getattr(properties, "minor", 0)
    uuid, whole = str(getattr(properties, "uuid", "")), None
    if torch.version.hip and (named := _name_on_amd(uuid)):
        uuid = named
    elif uuid:
        uuid, whole = identified(uuid, version)
    return {
        "uuid": uuid,
        "memory_free_bytes": free_bytes,
        "memory_total_bytes": total_bytes,
        "memory_fraction": fraction,
        "multiprocessors": getattr(properties, "multi_processor_count", None),
        "device_multiprocessors": whole,
    }
