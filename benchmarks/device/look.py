"""What this machine is, written as JSON to the file that is named: a process of its own, as torch may crash or hang."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "torchvision", "scipy", "msgspec", "psutil", "pynvml", "gymnasium", "ale_py", "PIL", "rich")
OLDEST_TORCH = (2, 11)


def torch_facts() -> dict[str, Any]:
    """Return torch's version and its first device; `kind` is `cuda`, `hip` or `cpu`."""
    try:
        import torch
    except Exception as error:
        return {"torch": f"missing ({type(error).__name__}: {error})", "device": "no torch"}
    facts: dict[str, Any] = {"torch": str(torch.__version__), "kind": "cpu", "device": "CPU", "devices": 0}
    facts["built_for"] = "CUDA" if torch.version.cuda else "HIP" if torch.version.hip else "the CPU"
    facts["configuration"] = " ".join(torch.__config__.show().split())
    if old(facts["torch"]):
        facts["old_torch"] = True
    try:
        if torch.cuda.is_available():
            properties = torch.cuda.get_device_properties(0)
            facts |= {
                "kind": "hip" if torch.version.hip else "cuda",
                "device": properties.name,
                "devices": torch.cuda.device_count(),
                "capability": f"{properties.major}.{properties.minor}",
                "memory_bytes": properties.total_memory,
                "processors": properties.multi_processor_count,
            }
    except Exception as error:
        facts["device_error"] = f"{type(error).__name__}: {error}"[:400]
    return facts


def old(version: str) -> bool:
    numbers = version.split("+")[0].split(".")[:2]
    return tuple(int(number) for number in numbers if number.isdecimal()) < OLDEST_TORCH


def before() -> dict[str, list[str]]:
    """Return what lay about before the first part: `left` tells it from what the parts have left."""
    return {
        "groups": groups(),
        "shared_memory": shared_memory(),
        "daemons": daemons(),
        "device_users": device_users(),
    }


def shared_memory(place: Path = Path("/dev/shm")) -> list[str]:
    """Return the names of files in shared memory."""
    return sorted(path.name for path in place.iterdir()) if place.is_dir() else []


def groups(root: Path = Path("/sys/fs/cgroup")) -> list[str]:
    """Return the control groups that acceptance runs have made."""
    return sorted(str(path) for path in root.glob("**/cotenant-gpu-*") if path.is_dir())


def daemons(root: Path = Path("/proc")) -> list[str]:
    """Return the processes of MPS, as `1234 nvidia-cuda-mps`: the kernel keeps fifteen letters of a name."""
    found = []
    for place in root.iterdir():
        if place.name.isdecimal():
            with contextlib.suppress(OSError):
                name = (place / "comm").read_text().strip()
                found += [f"{place.name} {name}"] * name.startswith("nvidia-cuda-mps")
    return found


def device_users() -> list[str]:
    """Return our user's processes, and those that cannot be seen, that have a context on a device of NVIDIA's.

    None where nobody can be asked. Others may come and go.
    """
    try:
        import pynvml

        from cotenant.machine.nvidia import processes_on

        pynvml.nvmlInit()
        handles = [pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())]
        return [
            f"{user.pid} {user.name or 'of another namespace'}"
            for handle in handles
            for user in processes_on(pynvml, Path("/"), handle)
            if user.pid != os.getpid() and not _of_another_user(user.pid)
        ]
    except Exception:
        return []


def _of_another_user(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}").stat().st_uid != os.getuid()
    except OSError:
        return False


if __name__ == "__main__":
    found = {
        **torch_facts(),
        "missing": [name for name in PACKAGES if find_spec(name) is None],
        "before": before(),
        "host_processors": len(os.sched_getaffinity(0)),
    }
    Path(sys.argv[1]).write_text(json.dumps(found))
    sys.stdout.flush()
    # A device's library may hang while it is unloaded.
    os._exit(0)
