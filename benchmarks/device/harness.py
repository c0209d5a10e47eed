"""What the measured loop costs real steps here: its rate over that of a bare loop around the same work."""

from __future__ import annotations

from time import perf_counter_ns
from typing import Any

from device.jobs import JOBS
from device.part import Given
from device.task import in_child, preload, prepared_here

MEASURED = ("toy_reg", "vae", "recom")
SMALL = ("vae",)
LEAST, LEAST_IN_SMALL = 0.995, 0.9
TURN_MS = 40.0
MOST_PAIRS = 100
START_S = 4.0


def run(given: Given) -> None:
    given.need_torch()
    preload(vision=False)
    names = SMALL if given.quick else MEASURED
    for place, name in enumerate(names):
        with given.looking_at(name):
            given.need_time(START_S if not given.quick else 1.0)
            seconds = given.left_s / (len(names) - place) - START_S
            pairs = max(6, min(MOST_PAIRS, int(seconds * 1e3 / (2 * TURN_MS)))) if not given.quick else 6
            # A turn whose steps take longer than expected must not outlast the part.
            limit_s = given.left_s
            found = in_child(
                lambda name=name, pairs=pairs: ratio(given, name, pairs), limit_s, given.scratch / "task.log"
            )
            given.row("harness", job=name, **found)
            given.check(name, *judge(found, LEAST_IN_SMALL if given.quick else LEAST))


def ratio(given: Given, name: str, pairs: int) -> dict[str, Any]:
    """Return the rate of the measured loop over a bare one's, with its interval, of interleaved pairs."""
    from pairs import interleaved, median_of
    from sides import observed

    job = JOBS[name]
    work = prepared_here(job.task, job.words(given), given.device != "cpu")
    once = bare(work, 10)
    once()
    number = max(1, round(TURN_MS * 1e6 / (once() / 10) * (0.25 if given.quick else 1)))
    ours_ns, bare_ns = interleaved(observed(work, number), bare(work, number), pairs)
    found = median_of([theirs / ours for ours, theirs in zip(ours_ns, bare_ns, strict=True)])
    return {
        "rate_over_bare": found.value,
        "low": found.low,
        "high": found.high,
        "pairs": found.n,
        "step_us": sorted(bare_ns)[len(bare_ns) // 2] / number / 1e3,
        "steps_of_a_turn": number,
    }


def bare(work: Any, number: int) -> Any:
    """Return a turn of the same steps between two clock reads, closed by waiting for the device."""

    def turn() -> int:
        step, batches, given, device = work.step, work.batches, work.run, work.device
        device.synchronize()
        start_ns = perf_counter_ns()
        for _ in range(number):
            step(given, next(batches))
        device.synchronize()
        return perf_counter_ns() - start_ns

    return turn


def judge(found: dict[str, Any], least: float) -> tuple[bool, str]:
    """Return whether the harness keeps its promise; it breaks it where the whole interval lies below."""
    shown = f"{found['rate_over_bare']:.4f} [{found['low']:.4f}, {found['high']:.4f}] of a bare loop's rate"
    return found["high"] >= least, f"{shown} (at least {least:g})."
