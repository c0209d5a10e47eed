"""No step waits for the device where none has to; and how busy the device is while the host goes ahead."""

from __future__ import annotations

import time
import traceback
from typing import Any

from device.jobs import JOBS
from device.part import Given
from device.task import in_child, preload, prepared_here

MAY_WAIT = ("toy_reg", "atari", "cart")
"""They copy every batch from pageable memory, or play with what the device has chosen."""
SILENT = ("vae", "dcgan_bf16", "wlm", "wlm_fp16", "recom", "ssd", "toy_reg")
STEPS, PROFILED = 3, 10
HOST_BOUND = 0.05
JOB_S, BEYOND_S = 5.0, 4.0


def run(given: Given) -> None:
    given.need_device()
    preload()
    for name in SILENT:
        with given.looking_at(name):
            given.need_time(JOB_S)
            found = in_child(
                lambda name=name: watched(given, name), given.left_s + BEYOND_S, given.scratch / "task.log"
            )
            given.row("steps", job=name, **found)
            given.check(name, *judge(name, found))


def watched(given: Given, name: str) -> dict[str, Any]:
    """Return what a job's steps do to the device's queue."""
    work = prepared_here(JOBS[name].task, JOBS[name].words(given), cuda=True)
    return {"waits": waits(work), **ahead(work), "busy_share": busy_share(work)}


def waits(work: Any) -> str:
    """Return where a step waits for the device, or nothing where none does."""
    import torch

    batch = next(work.batches)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(STEPS):
            work.step(work.run, batch)
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise
        ours = [frame for frame in traceback.extract_tb(error.__traceback__) if "site-packages" not in frame.filename]
        return f"{ours[-1].filename.rpartition('/')[2]}:{ours[-1].lineno} {ours[-1].line}" if ours else str(error)
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return ""


def ahead(work: Any) -> dict[str, float]:
    """Return the time of a step, and the share of it in which the host had issued all and waited."""
    import torch

    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(PROFILED):
        work.step(work.run, next(work.batches))
    issued = time.perf_counter()
    torch.cuda.synchronize()
    end = time.perf_counter()
    return {"step_ms": (end - begin) * 1e3 / PROFILED, "waited_share": (end - issued) / (end - begin)}


def busy_share(work: Any) -> float | None:
    """Return the share of time in which the device did something, by torch's profiler; None where that saw nothing."""
    import torch
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(PROFILED):
            work.step(work.run, next(work.batches))
        torch.cuda.synchronize()
        wall_us = (time.perf_counter() - begin) * 1e6
    spans = [
        (event.time_range.start, event.time_range.end)
        for event in profiled.events() or ()
        if event.device_type == DeviceType.CUDA and not getattr(event, "is_user_annotation", False)
    ]
    return covered(spans) / wall_us if spans else None


def covered(spans: list[tuple[float, float]]) -> float:
    """Return the length of the union of spans."""
    total, until = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


def judge(name: str, found: dict[str, Any]) -> tuple[bool, str]:
    """Return whether a job's steps are silent, or may wait, and who the bottleneck is."""
    bound = "host-bound" if found["waited_share"] < HOST_BOUND else "the device is behind"
    busy = found["busy_share"]
    shown = f"{bound}, busy {busy:.0%}" if busy is not None else f"{bound}, the profiler saw nothing"
    if found["waits"] and name not in MAY_WAIT:
        return False, f"A step waits for the device at {found['waits']}."
    return True, f"{'It waits, as it may' if found['waits'] else 'No step waits'}; {shown}."
