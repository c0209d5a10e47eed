"""Build the null device for the installed CUDA build of torch: two libraries, cached under a hash of all sources.

They have the names of NVIDIA's libraries, by which torch, Triton and nvidia-ml-py find them.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path

from device.null.elf import undefined_symbols

HERE = Path(__file__).parent
PACKAGES = Path(sysconfig.get_path("purelib"))
DRIVERS_HEADER = "nvidia/cu13/include/cuda.h"
ASKING = ("libtorch_cuda.so", "libtorch_cuda_linalg.so", "libc10_cuda.so", "libtorch_python.so")
OF_NVIDIA = re.compile(r"(__cuda|cuda|cu[A-Z]|cublas|cudnn|cufft|curand|cusparse|cusolver|nccl)(?!ile|pti)")
FLAGS = ("-O1", "-fPIC", "-Wall", "-Wextra", "-Wno-unused-parameter")
WITHOUT_NVCC = ("-D__CUDA_FP16_H__", "-D__CUDA_BF16_H__")
"""Macros that leave out CUDA's headers that need other headers, which come with nvcc alone."""


class NotBuiltError(Exception):
    """The null device cannot be built here; the message says why."""


def compiler() -> list[str]:
    """Return the command of a C compiler: the machine's, or that of the package ziglang."""
    for name in ("gcc", "cc", "clang"):
        if path := shutil.which(name):
            return [path]
    if importlib.util.find_spec("ziglang"):
        return [sys.executable, "-m", "ziglang", "cc"]
    raise NotBuiltError("There is no C compiler. The package ziglang has one, and ./test.sh installs it.")


def built(cache: Path | None = None, packages: Path = PACKAGES) -> Path:
    """Return the folder of both libraries; build them unless they are there. Raises NotBuiltError with the reason."""
    torch = packages / "torch" / "lib"
    if not ((torch / "libtorch_cuda.so").exists() and (packages / DRIVERS_HEADER).exists()):
        version = importlib.metadata.version("torch")
        raise NotBuiltError(
            f"The null device needs torch's build for CUDA 13, not {version}: TORCH_BUILD=cu130 ./test.sh."
        )
    cache = cache or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "cotenant-null-device"
    folder = cache / _digest()
    if not folder.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as work:
            made = Path(work, "made")
            made.mkdir()
            _build(made, [torch / name for name in ASKING])
            with contextlib.suppress(OSError):  # Another process may have built them meanwhile.
                made.rename(folder)
    return folder


def variables(folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which a process loads the libraries of this folder instead of NVIDIA's."""
    paths = {"LD_LIBRARY_PATH": str(folder), "LD_PRELOAD": str(folder / "libcuda.so.1")}
    separator = {"LD_LIBRARY_PATH": ":", "LD_PRELOAD": " "}
    joined = {name: separator[name].join(filter(None, (path, environ.get(name)))) for name, path in paths.items()}
    # cuDNN's attention calls functions that the null cuDNN lacks: torch's own kernels come first.
    return joined | {"TORCH_CUDNN_SDPA_DEPRIORITIZED": "1"}


def _digest() -> str:
    digest = hashlib.sha256(importlib.metadata.version("torch").encode())
    for source in sorted([*HERE.glob("*.c"), *HERE.glob("*.h"), *HERE.glob("*.py")]):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _build(work: Path, asking: list[Path]) -> None:
    device = sorted(set(HERE.glob("*.c")) - {HERE / "nvml.c"})
    wanted = set().union(*map(undefined_symbols, asking)) | _of_the_driver()
    rest = work / "rest.c"
    rest.write_text("#include <stdlib.h>\n" + "".join(_body(name) for name in sorted(wanted) if OF_NVIDIA.match(name)))
    _linked(work / "libcuda.so.1", [*device, rest])
    _linked(work / "libnvidia-ml.so.1", [HERE / "nvml.c"])
    rest.unlink()


def _linked(library: Path, sources: list[Path]) -> None:
    """Compile these sources and link them into a library with its file name as its soname."""
    folders = [*PACKAGES.glob("nvidia/*/include"), PACKAGES / "triton/backends/nvidia/include"]
    words = [*compiler(), *FLAGS, *WITHOUT_NVCC, *(f"-I{folder}" for folder in folders), "-shared"]
    done = subprocess.run(
        [*words, f"-Wl,-soname,{library.name}", "-o", str(library), *map(str, sources), "-ldl", "-lpthread"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{library.name} was not built: {done.stderr}")


def _of_the_driver() -> set[str]:
    """Return the names of all functions of cuda.h: Triton and torch.compile link with some of them at run time."""
    header = (PACKAGES / DRIVERS_HEADER).read_text()
    return set(re.findall(r"\bcu[A-Z]\w+(?=\()|\bcu[A-Z]\w+_v\d\b", header))


def _body(name: str) -> str:
    """Return C source of a weak function that succeeds, for a name that the .c files do not define.

    One that creates an object allocates a kilobyte for it.
    """
    weak = f"__attribute__((weak)) int {name}"
    if re.search(r"Create|CommInit|CommSplit", name):
        return f"{weak}(void **made) {{ if (made) *made = calloc(1, 1024); return 0; }}\n"
    return f"{weak}(void) {{ return 0; }}\n"
