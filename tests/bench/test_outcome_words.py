from __future__ import annotations

import pytest
import torch
from torch._utils import ExceptionWrapper

from cotenant.bench import MissingDataError, UnsupportedError
from cotenant.bench.outcome import outcome_of
from cotenant.errors import CotenantError

HALF = "Try half the batch: --batch-size 32"
ALLOCATOR = "[enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: 1 bytes"


@pytest.mark.parametrize(
    "error, expected",
    [
        (UnsupportedError("No fp16.", "Use bf16."), ("unsupported", "No fp16. Use bf16.", 1)),
        (MissingDataError("No set.", "Make it."), ("missing_data", "No set. Make it.", 1)),
        (CotenantError("Wrong flag."), ("failed", "Wrong flag.", 2)),
        (
            ModuleNotFoundError("No module named 'gymnasium.x'", name="gymnasium.x"),
            ("missing_package", "The package 'gymnasium' is missing. pip install gymnasium", 1),
        ),
        (KeyboardInterrupt(), ("interrupted", "Interrupted.", 130)),
        (
            torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB.\nlong advice"),
            ("device_out_of_memory", f"CUDA out of memory. Tried to allocate 2 GiB. {HALF}", 1),
        ),
        (
            RuntimeError("CUDA error: out of memory\nCompile with"),
            ("device_out_of_memory", f"CUDA error: out of memory {HALF}", 1),
        ),
        (
            RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate"),
            ("device_out_of_memory", f"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate {HALF}", 1),
        ),
        (RuntimeError(ALLOCATOR), ("out_of_memory", f"The host gave it no more memory. {HALF}", 1)),
        (
            RuntimeError(f"Caught RuntimeError in DataLoader worker process 0.\nOriginal Traceback\n{ALLOCATOR}"),
            ("out_of_memory", f"The host gave it no more memory. {HALF}", 1),
        ),
        (MemoryError(), ("out_of_memory", f"The host gave it no more memory. {HALF}", 1)),
        (
            RuntimeError("could not create a primitive descriptor for the LSTM. Run workload with"),
            (
                "unsupported",
                "could not create a primitive descriptor for the LSTM. This processor lacks it: use --precision fp32.",
                1,
            ),
        ),
        (ValueError("odd"), ("failed", "ValueError: odd", 1)),
    ],
)
def test_every_error_has_its_outcome(error: BaseException, expected: tuple[str, str, int]) -> None:
    assert outcome_of(error, 64) == expected


def test_under_a_runner_the_flag_goes_behind_its_own() -> None:
    assert outcome_of(MemoryError(), 64, under_runner=True)[1].endswith("Try half the batch: -- --batch-size 32")


@pytest.mark.parametrize("batch_size", [None, 1])
def test_where_no_batch_can_be_halved(batch_size: int | None) -> None:
    assert outcome_of(MemoryError(), batch_size)[1].endswith("Give it less to hold, or more memory.")


def test_errors_of_a_loader_process_are_as_plain_as_ours() -> None:
    try:
        raise MissingDataError("x.jpg cannot be decoded.", "Remove it.")
    except MissingDataError:
        carried = ExceptionWrapper(where="in DataLoader worker process 0")
    with pytest.raises(MissingDataError, match="Original Traceback") as caught:
        carried.reraise()
    assert outcome_of(caught.value, 4) == ("missing_data", "x.jpg cannot be decoded. Remove it.", 1)
