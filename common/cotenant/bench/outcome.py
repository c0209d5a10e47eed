"""The outcome of a tenant that cannot finish, and a sentence with the remedy."""

from __future__ import annotations

import torch

from cotenant.bench.selftest import built_for
from cotenant.errors import EXIT_FAILED, EXIT_INTERRUPTED, CotenantError
from cotenant.machine.compiler import compiler_lacks
from cotenant.machine.wheels import device_host, remedy

_NO_HOST_MEMORY = ("can't allocate memory", "HOST_ALLOCATION_FAILED", "Failed to CUDA host alloc")
_NO_DEVICE_MEMORY = (
    "CUDA error: out of memory",
    "CUDA driver error: out of memory",  # torch, mapping a growing segment
    "HIP error: out of memory",
    "STATUS_ALLOC_FAILED",  # cuBLAS, cuSOLVER, cuDNN before its version 9
    "DEVICE_ALLOCATION_FAILED",  # cuDNN 9
    "nable to find an engine to execute this computation",  # torch, without workspace for any plan of cuDNN's
    "Failed to CUDA malloc",  # NCCL, as the next two
    "Failed to CUDA calloc",
    "'out of memory'",
)
_NO_IMAGE = ("no kernel image is available", "device kernel image is invalid", "invalid device function")
"""CUDA's and HIP's words if torch was built for other devices than the present one."""
_NO_KERNEL = ("could not create a primitive",)
"""oneDNN's words if a processor lacks instructions for a layer's precision, such as AVX-512 for an LSTM in bf16."""
_NO_COMPILER = ("Failed to find C compiler", "triton_launcher.c'", "cuda_utils.c'", "static_cuda_launcher.c'")
"""Triton's words if there is no compiler, and words of a compiler's command that has failed."""
_NOT_DETERMINISTIC = "does not have a deterministic implementation"
_WORKER = "Original Traceback"


class BenchmarkError(CotenantError):
    """An error that ends this tenant with `outcome`."""

    exit_status = EXIT_FAILED
    outcome = "failed"


class UnsupportedError(BenchmarkError):
    """This device cannot do the work that was asked for."""

    outcome = "unsupported"


class MissingDataError(BenchmarkError):
    """The input is not where the flags say it is."""

    outcome = "missing_data"


def outcome_of(error: BaseException, batch_size: int | None = None, under_runner: bool = False) -> tuple[str, str, int]:
    """Return (outcome, message, exit status) for the error that ended a benchmark, with its batch size if known."""
    text = str(error)
    if isinstance(error, CotenantError):
        outcome = error.outcome if isinstance(error, BenchmarkError) else "failed"
        return outcome, _own_words(text), error.exit_status
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", "Interrupted.", EXIT_INTERRUPTED
    if isinstance(error, ModuleNotFoundError) and error.name:
        package = error.name.partition(".")[0]
        return "missing_package", f"The package '{package}' is missing. pip install {package}", EXIT_FAILED
    lines = text.split("\n")
    full = [line for line in lines if any(sign in line for sign in _NO_DEVICE_MEMORY)]
    if full or isinstance(error, torch.OutOfMemoryError):
        return "device_out_of_memory", f"{(full or lines)[0]} {_half_batch(batch_size, under_runner)}", EXIT_FAILED
    if isinstance(error, MemoryError) or any(sign in text for sign in _NO_HOST_MEMORY):
        return "out_of_memory", f"The host gave it no more memory. {_half_batch(batch_size, under_runner)}", EXIT_FAILED
    if any(sign in text for sign in _NO_IMAGE):
        how = remedy(device_host(), built_for(torch))
        return "unsupported", f"This torch ({built_for(torch)}) holds no kernels for this device. {how}", EXIT_FAILED
    if any(sign in text for sign in _NO_COMPILER):
        lacking = compiler_lacks() or "C compiler that works"
        sentence = f"A step has a kernel of Triton's, which is compiled as it starts, and there is no {lacking} here."
        return "unsupported", f"{sentence} Debian: apt-get install gcc python3-dev.", EXIT_FAILED
    if _NOT_DETERMINISTIC in text:
        return "unsupported", f"{text.partition(',')[0]}. Leave --deterministic out.", EXIT_FAILED
    if any(sign in text for sign in _NO_KERNEL):
        return "unsupported", f"{text.partition('. ')[0]}. This processor lacks it: use --precision fp32.", EXIT_FAILED
    return "failed", f"{type(error).__name__}: {text}", EXIT_FAILED


def reason_of(error: Exception) -> str:
    """Return the first line of an error that the input caused; raise any other again, such as exhausted memory."""
    if outcome_of(error)[0] != "failed":
        raise error
    return str(error).partition("\n")[0].rstrip(".")


def _half_batch(batch_size: int | None, under_runner: bool) -> str:
    if batch_size is None or batch_size < 2:
        return "Give it less to hold, or more memory."
    # A runner passes the words after `--` to its tenants.
    return f"Try half the batch: {'-- ' if under_runner else ''}--batch-size {batch_size // 2}"


def _own_words(text: str) -> str:
    """Return the sentence of an error that a data-loader process wrapped into its traceback, or `text` itself."""
    if _WORKER not in text:
        return text
    return text.rstrip().rpartition("\n")[2].partition("Error: ")[2]
