"""Checks whether torch works here, as a program of its own: broken modules may end the process that imports them.

`python -P selftest.py` prints one JSON object, the fields of `findings.facts.SelfTest`. It imports nothing of cotenant,
as the benchmarks' package imports torch.
"""

import gc
import json
import re
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

SIZE = 64
TOLERANCE = 1e-3


def main() -> None:
    """Print the results."""
    gc.disable()  # Collecting among torch's modules takes a fifth of the time.
    print(json.dumps(examined()))


def examined() -> dict[str, Any]:
    """Return the state of torch, torchvision, LAPACK and each device."""
    results: dict[str, Any] = {"vision": _version("torchvision")}
    try:
        import torch
    except Exception as error:
        return results | {"torch": _version("torch"), "torch_error": in_one_line(error)}
    results |= {
        "torch": str(torch.__version__),
        "built_for": built_for(torch),
        "vision_error": vision_error(torch, results["vision"]),
    }
    return results | {"lapack_error": _lapack_error(torch), "devices": _device_errors(torch)}


def in_one_line(error: BaseException) -> str:
    """Return an error in one line."""
    first = str(error).strip().partition("\n")[0].rstrip(".")
    return f"{type(error).__name__}: {first}" if first else type(error).__name__


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


def built_for(torch: Any) -> str:
    """Name the build as torch's package index does."""
    if torch.version.cuda:
        return f"cu{torch.version.cuda.replace('.', '')}"
    if hip := getattr(torch.version, "hip", None):
        return f"rocm{'.'.join(hip.split('.')[:2])}"
    return "xpu" if getattr(torch.version, "xpu", None) else "cpu"


def vision_error(torch: Any, installed: str) -> str:
    """Return why torchvision cannot be imported, "" if it can.

    A required package may be missing, and operators built for another torch are not registered. Its models are not
    imported: they import torch's compiler, which takes a second.
    """
    if not installed:
        return ""
    try:
        missing = [name for name in _required("torchvision") if not _version(name)]
        if missing:
            return f"it requires {', '.join(missing)}, which is not installed"
        return _operators_error(torch)
    except Exception as error:
        return in_one_line(error)


def _operators_error(torch: Any) -> str:
    spec, refused = find_spec("torchvision"), ""
    if spec is None or spec.origin is None:
        return "its files are gone"
    for library in sorted(Path(spec.origin).parent.glob("_C*.so")):
        try:
            torch.ops.load_library(str(library))
        except OSError as error:
            refused = f" ({in_one_line(error)})"
    return "" if hasattr(torch.ops.torchvision, "nms") else f"operator torchvision::nms does not exist{refused}"


def _required(package: str) -> list[str]:
    """Return the packages, except torch, that `package` requires unconditionally."""
    lines = [line for line in metadata.requires(package) or [] if ";" not in line]
    return [name[0] for line in lines if (name := re.match(r"[\w.-]+", line)) and name[0] != "torch"]


def _lapack_error(torch: Any) -> str:
    try:
        matrix = torch.eye(SIZE) + torch.rand(SIZE, SIZE, generator=torch.Generator().manual_seed(0))
        q, r = torch.linalg.qr(matrix)
        error = float(max((q @ r - matrix).abs().max(), (q.T @ q - torch.eye(SIZE)).abs().max()))
    except Exception as refused:
        return in_one_line(refused)
    return "" if error <= TOLERANCE else f"the product of its factors is off by {error:.2g}"


def _device_errors(torch: Any) -> list[str]:
    if not torch.accelerator.is_available():
        return []
    kind = torch.accelerator.current_accelerator().type
    return [_product_error(torch, f"{kind}:{index}") for index in range(torch.accelerator.device_count())]


def _product_error(torch: Any, device: str) -> str:
    """Compare a product of whole numbers, which every device must compute exactly, with the processor's."""
    try:
        generator = torch.Generator().manual_seed(0)
        left, right = torch.randint(-8, 8, (2, SIZE, SIZE), generator=generator).float()
        return "" if torch.equal((left.to(device) @ right.to(device)).cpu(), left @ right) else "its product is wrong"
    except Exception as error:
        return in_one_line(error)


if __name__ == "__main__":
    main()
