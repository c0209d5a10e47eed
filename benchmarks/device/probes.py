"""What the harness stands on: each precision computes as it says, and a step of known length is seen as long."""

from __future__ import annotations

import copy
import itertools
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from device.book import FAIL, PASS, SKIP, Skip
from device.part import Given, in_a_line

ERRORS = {"fp32": (0.0, 5e-5), "tf32": (5e-5, 3e-3), "bf16": (5e-4, 5e-2), "fp16": (5e-5, 1e-2)}
"""Of each precision's relative error against fp64: the least (below it something more exact ran) and the most."""
MAY_BE_EXACT = ("tf32", "recurrence")
"""cuDNN's recurrent kernels need not use TF32 where it is allowed."""
STEP_MS, HOST_MS, STEPS = 20.0, 2.0, 10
RATE_WITHIN, RATE_WITHIN_ON_HOST = 0.01, 0.15
"""A processor shared with others sleeps longer than it was asked to."""
EVENT_WITHIN = 0.01
ISSUED_OF_DEVICE, ISSUED_OF_HOST = 0.9, 0.05
"""(end - issued) / wall: of steps that keep the device busy at least, and of those of the host alone at most."""


def run(given: Given) -> None:
    given.need_torch()
    for precision in ERRORS:
        for name, operation in OPERATIONS.items():
            with given.looking_at(f"{precision} {name}"):
                precision_error(given, precision, name, operation)
    with given.looking_at("step of known length"):
        known_length(given)


def product(torch: Any, size: int) -> Compute:
    a, b = torch.randn(size, size), torch.randn(size, size)
    return lambda **to: a.to(**to) @ b.to(**to)


def convolution(torch: Any, size: int) -> Compute:
    x, weight = torch.randn(4, size // 8, 24, 24), torch.randn(size // 8, size // 8, 3, 3)
    return lambda **to: torch.nn.functional.conv2d(x.to(**to), weight.to(**to))


def recurrence(torch: Any, size: int) -> Compute:
    layer, x = torch.nn.GRU(size // 4, size // 4), torch.randn(16, 8, size // 4)
    return lambda **to: copy.deepcopy(layer).to(**to)(x.to(**to))[0]


Compute = Callable[..., Any]
"""Does an operation where and as its arguments say, which are those of Tensor.to."""
OPERATIONS: dict[str, Callable[[Any, int], Compute]] = {
    "product": product,
    "convolution": convolution,
    "recurrence": recurrence,
}


def precision_error(given: Given, precision: str, name: str, make: Callable[[Any, int], Compute]) -> None:
    """Compare an operation, in the precision that tenants get, with fp64 on the host."""
    import torch

    from cotenant.bench.device import Device
    from cotenant.bench.outcome import UnsupportedError, outcome_of
    from cotenant.bench.precision import set_precision

    device = torch.device(given.device)
    torch.manual_seed(0)
    compute = make(torch, 256 if given.quick else 1024)
    with torch.no_grad():
        exact = compute(dtype=torch.float64)
        try:
            setting = set_precision(precision, Device(device))
            seen = setting.around(lambda run, batch: compute(device=device))(None, None)
        except (UnsupportedError, RuntimeError) as error:
            unsupported = outcome_of(error)[0] == "unsupported"
            sentence = str(error).partition("\n")[0] if unsupported else in_a_line(error)
            given.row("precision", precision=precision, operation=name, verdict=SKIP if unsupported else FAIL)
            if unsupported:
                raise Skip(sentence) from error
            raise
    error_of = relative(torch, seen, exact)
    least, most = ERRORS[precision]
    least = 0.0 if (precision, name) == MAY_BE_EXACT else least
    right, sentence = judge_error(error_of, least, most)
    given.row(
        "precision",
        precision=precision,
        operation=name,
        error=error_of,
        least=least,
        most=most,
        verdict=PASS if right else FAIL,
    )
    given.check(f"{precision} {name}", right, sentence)


def relative(torch: Any, seen: Any, exact: Any) -> float:
    """Return |seen - exact| / |exact| in the Frobenius norm; infinite where one is not finite."""
    error = ((seen.cpu().double() - exact).norm() / exact.norm()).item()
    return error if error == error else float("inf")


def judge_error(error: float, least: float, most: float) -> tuple[bool, str]:
    """Return whether an error is that of a precision, and the sentence."""
    if not error <= most:
        return False, f"Its relative error is {error:.2g}, above {most:g}."
    if error < least:
        return False, f"Its relative error is {error:.2g}, below {least:g}: something more exact ran."
    return True, f"Its relative error is {error:.2g}."


def known_length(given: Given) -> None:
    """Time a step of known length with the harness's own loop, and one of the host alone."""
    import torch

    step, length_ms = sleeper(given, torch)
    observations = [observed(given, torch, step) for _ in range(3)]
    # The clock of a device moves: what it did before and after stands for the time between.
    length_ms = (length_ms + sleeper(given, torch)[1]) / 2
    walls_ms = [(seen.end_ns - seen.start_ns) / 1e6 / STEPS for seen in observations]
    within = RATE_WITHIN if given.device != "cpu" else RATE_WITHIN_ON_HOST
    # Not an empty one: of so little the closing wait would be most.
    hosted = observed(given, torch, lambda run, batch: time.sleep(HOST_MS / 1000))
    issued = [late_share(seen) for seen in (*observations, hosted)]
    for seen, wall_ms, late in zip(observations, walls_ms, issued[:-1], strict=True):
        event_ms = None if seen.event_ns is None else seen.event_ns / 1e6 / STEPS
        given.row("step of known length", true_ms=length_ms, host_ms=wall_ms, event_ms=event_ms, waited_share=late)
    given.row(
        "step of known length",
        true_ms=None,
        host_ms=(hosted.end_ns - hosted.start_ns) / 1e6 / STEPS,
        event_ms=None if hosted.event_ns is None else hosted.event_ns / 1e6 / STEPS,
        waited_share=issued[-1],
    )
    given.check("rate of a step of known length", *judge_ratio(length_ms, median(walls_ms), within))
    if observations[0].event_ns is None:
        given.skip("events against the host's clock", "The device has no events.")
    else:
        events_ms = [seen.event_ns / 1e6 / STEPS for seen in observations]
        given.check("events against the host's clock", *judge_ratio(median(walls_ms), median(events_ms), EVENT_WITHIN))
    if given.device == "cpu":
        given.skip("who waits for whom", "A CPU ends as it issues.")
    elif None in issued:
        given.skip("who waits for whom", "Observations have no issued_ns yet.")
    else:
        given.check("who waits for whom", *judge_issued(median(issued[:-1]), issued[-1]))


def sleeper(given: Given, torch: Any) -> tuple[Callable[[Any, Any], None], float]:
    """Return a step that takes a known time, and that time in ms."""
    if given.device == "cpu":
        return lambda run, batch: time.sleep(STEP_MS / 1000), STEP_MS

    def slept_ms(cycles: int) -> float:
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        torch.cuda._sleep(cycles)
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end))

    # The first ones load the kernel and wake the clocks.
    waking = time.monotonic() + 0.5
    while time.monotonic() < waking:
        slept_ms(10_000_000)
    cycles = round(STEP_MS * 50_000_000 / slept_ms(50_000_000))
    length_ms = median(slept_ms(cycles) for _ in range(5))
    return lambda run, batch: torch.cuda._sleep(cycles), length_ms


def observed(given: Given, torch: Any, step: Callable[[Any, Any], None]) -> Any:
    """Return one observation of some steps by the loop that times tenants."""
    from cotenant.bench.chrono import Work, observe
    from cotenant.bench.device import Device

    device = Device(torch.device(given.device))
    work = Work(itertools.repeat(None), step, lambda batch: 1, None, device, resident=True)
    return observe(work, STEPS)


def late_share(seen: Any) -> float | None:
    """Return the share of an observation in which the host had issued all and waited, None where nobody noted that."""
    issued_ns = getattr(seen, "issued_ns", None)
    return None if issued_ns is None else (seen.end_ns - issued_ns) / (seen.end_ns - seen.start_ns)


def judge_ratio(true: float, seen: float, within: float) -> tuple[bool, str]:
    off = seen / true - 1
    return abs(off) <= within, f"{seen:.4g} ms of {true:.4g} ms, {off:+.2%} (at most {within:.0%} off)."


def judge_issued(device: float, host: float) -> tuple[bool, str]:
    right = device >= ISSUED_OF_DEVICE and host <= ISSUED_OF_HOST
    return right, f"The host waited {device:.0%} of steps that keep the device busy, and {host:.0%} of its own."
