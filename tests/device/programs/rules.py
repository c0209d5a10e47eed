"""Prints how the null device behaves under torch: refusals in a capture, memory read and free, and the devices."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

import torch


def refusal(work: Callable[[], Any]) -> str:
    """Return CUDA's message on why `work` cannot be captured, "" where it can."""
    errors: list[str] = []
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph(), stream=torch.cuda.Stream()):
            try:
                work()
            except RuntimeError as error:
                errors.append(str(error))
                raise
    except RuntimeError as error:
        errors.append(str(error))
    return errors[0].partition("\n")[0] if errors else ""


def fork(join: bool) -> None:
    other, here = torch.cuda.Stream(), torch.cuda.current_stream()
    other.wait_stream(here)
    with torch.cuda.stream(other):
        x.add(1)
    if join:
        here.wait_stream(other)


def event_outside() -> None:
    torch.cuda.current_stream().wait_event(outside)


def is_too_large(mib: int) -> bool:
    try:
        torch.empty(mib << 20, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        return True
    finally:
        torch.cuda.empty_cache()
    return False


x = torch.ones(4, device="cuda")
outside = torch.cuda.Event()
outside.record()
print(
    json.dumps(
        {
            "kernels": refusal(lambda: x.add(1).mul(2)),
            "waits": refusal(lambda: x.sum().item()),
            "synchronize": refusal(torch.cuda.synchronize),
            "joined": refusal(lambda: fork(join=True)),
            "unjoined": refusal(lambda: fork(join=False)),
            "event_outside": refusal(event_outside),
            "ones_read_as": x.tolist(),
            "largest_mib": bisect_left(range(1 << 20), True, key=is_too_large) - 1,
            "free": torch.cuda.mem_get_info()[0] >> 20,
            "devices": torch.cuda.device_count(),
            "named": torch.cuda.get_device_properties(0).name,
        }
    )
)
