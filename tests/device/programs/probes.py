"""Prints the result of one probe of a device: probes.py precision, clock, meters SECONDS, or loop TASK FLAG..."""

from __future__ import annotations

import copy
import itertools
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

import torch

from cotenant.bench import Run
from cotenant.bench.arguments import parse
from cotenant.bench.chrono import Work, observe
from cotenant.bench.device import Device
from cotenant.bench.outcome import UnsupportedError
from cotenant.bench.precision import set_precision
from cotenant.machine.nvidia import device_states
from cotenant.machine.topology import discover
from cotenant.meters.sources import amd_source, nvidia_source

DEVICE = Device(torch.device("cuda"))
SIZE, LOOKS = 1024, 30
STEPS, STEP_MS, HOST_MS = 10, 20.0, 2.0
PAIRS, TURN_NS = 60, 40e6
Compute = Callable[..., Any]
"""A function that does an operation on the device and in the type that it is given, as arguments of Tensor.to."""


def operations() -> dict[str, Compute]:
    a, b = torch.randn(SIZE, SIZE), torch.randn(SIZE, SIZE)
    x, weight = torch.randn(4, SIZE // 8, 24, 24), torch.randn(SIZE // 8, SIZE // 8, 3, 3)
    layer, tokens = torch.nn.GRU(SIZE // 4, SIZE // 4), torch.randn(16, 8, SIZE // 4)
    return {
        "product": lambda **to: a.to(**to) @ b.to(**to),
        "convolution": lambda **to: torch.nn.functional.conv2d(x.to(**to), weight.to(**to)),
        "recurrence": lambda **to: copy.deepcopy(layer).to(**to)(tokens.to(**to))[0],
    }


def error_of(name: str, compute: Compute) -> float | str:
    """Return an operation's relative error against fp64 on the host, or the sentence that refuses the precision."""
    exact = compute(dtype=torch.float64)
    try:
        around = set_precision(name, DEVICE).around
    except UnsupportedError as error:
        return str(error)
    seen = around(lambda run, batch: compute(device=DEVICE.torch_device))(None, None).cpu().double()
    return float((seen - exact).norm() / exact.norm())


def precision() -> Any:
    """Return {precision: {operation: error}}, computed on the device as tenants compute."""
    torch.manual_seed(0)
    computes = operations()
    with torch.no_grad():
        return {
            name: {operation: error_of(name, compute) for operation, compute in computes.items()}
            for name in ("fp32", "tf32", "bf16", "fp16")
        }


def slept_ms(cycles: int) -> float:
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    torch.cuda._sleep(cycles)
    end.record()
    end.synchronize()
    return float(begin.elapsed_time(end))


def observed(step: Compute) -> dict[str, float]:
    seen = observe(Work(itertools.repeat(None), step, lambda batch: 1, None, DEVICE, resident=True), STEPS)
    wall_ns = seen.end_ns - seen.start_ns
    return {
        "host_ms": wall_ns / 1e6 / STEPS,
        "event_ms": (seen.event_ns or 0) / 1e6 / STEPS,
        "waited": (seen.end_ns - (seen.issued_ns or 0)) / wall_ns,
    }


def clock() -> Any:
    """Return the measured loop's times of `busy` steps of a known length, and of `idle` steps, of the host alone.

    Times are milliseconds per step, by the host's clock and by events; `waited` is the share of an observation in which
    the host had issued all its work and waited.
    """
    # The first kernels are loaded, and raise the device's clock.
    waking = time.monotonic() + 0.5
    while time.monotonic() < waking:
        slept_ms(10_000_000)
    cycles = round(STEP_MS * 50_000_000 / slept_ms(50_000_000))
    lengths = [slept_ms(cycles) for _ in range(5)]
    busy = [observed(lambda run, batch: torch.cuda._sleep(cycles)) for _ in range(3)]
    # The device's clock moves: the true length is the median of kernels before and after the steps.
    lengths += [slept_ms(cycles) for _ in range(5)]
    middle = {name: median(seen[name] for seen in busy) for name in busy[0]}
    # The step is not empty, or the wait that closes an observation would be most of it.
    idle = observed(lambda run, batch: time.sleep(HOST_MS / 1000))
    return {"true_ms": median(lengths), "busy": middle, "idle": idle}


def load_until(moment_s: float, a: torch.Tensor, out: torch.Tensor) -> None:
    """Keep the device busy with products, and the host almost idle."""
    while time.monotonic() < moment_s:
        for _ in range(5):
            torch.matmul(a, a, out=out)
        torch.cuda.synchronize()


def look_ms(source: Any) -> float:
    begin = time.perf_counter()
    source.read()
    return (time.perf_counter() - begin) * 1e3


def joules(samples: Sequence[tuple[float, float, float]]) -> dict[str, float]:
    """Return the joules between the first and the last sample, by the counter and by integrated power.

    A sample has a time in seconds, the power in watts and the counter in joules.
    """
    added = sum((b[0] - a[0]) * (a[1] + b[1]) / 2 for a, b in itertools.pairwise(samples))
    return {"counted_j": samples[-1][2] - samples[0][2], "added_j": added}


def meters(seconds: str) -> Any:
    """Return the runner's readings and doctor's states of the devices under load, and the time of one look in ms."""
    devices = discover().accelerators
    pci = [device.pci for device in devices]
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(a)
    samples = []
    with nvidia_source(pci) if devices[0].vendor == "nvidia" else amd_source(devices) as source:
        load_until(time.monotonic() + float(seconds) / 5, a, out)  # Power is a mean over the last second.
        end = time.monotonic() + float(seconds)
        while (now := time.monotonic()) < end:
            reading = next(iter(source.read().values()))
            samples.append((now, reading.power_w, reading.energy_j))
            load_until(min(end, now + 0.1), a, out)
        return {
            "readings": {uuid: asdict(reading) for uuid, reading in source.read().items()},
            "states": [asdict(state) for state in device_states(pci, Path("/"))],
            "look_ms": median(look_ms(source) for _ in range(LOOKS)),
            "energy": joules(samples),
        }


def loop(task: str, *words: str) -> Any:
    """Return the measured loop's rate over a bare one's: the median of interleaved pairs, and its 95 % interval."""
    sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
    from pairs import interleaved, median_of
    from sides import bare, benchmark_of, prepared
    from sides import observed as measured

    cls = benchmark_of(task)
    benchmark = cls(**parse(cls, [*words, "--cuda"]).values)
    work, _ = prepared(benchmark, Run(benchmark))
    once = bare(work, 10)
    once()
    number = max(1, round(TURN_NS / (once() / 10)))
    ours, theirs = interleaved(measured(work, number), bare(work, number), PAIRS)
    return asdict(median_of([bare_ns / ours_ns for ours_ns, bare_ns in zip(ours, theirs, strict=True)]))


PROBES = {"precision": precision, "clock": clock, "meters": meters, "loop": loop}

if __name__ == "__main__":
    print(json.dumps(PROBES[sys.argv[1]](*sys.argv[2:])))
