"""Neighbours of known pressure: others see them take as much as they count, and half as much at half the level."""

from __future__ import annotations

import os
import resource
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from bench.small import warmed
from cotenant.bench import pressure
from cotenant.bench.arguments import parse
from cotenant.bench.device import Device
from cotenant.bench.pressure import DevicePressure
from cotenant.machine.cpu import Cache
from tasks.loading import TASKS, built, main_of, of

PRESSURES: dict[str, tuple[str, dict[str, Any]]] = {
    "cpu": ("processor second", {}),
    "llc": ("access", {"size_kib": 512}),
    "dram": ("GB", {"elements": 1 << 21}),
    "disk": ("MB", {"size_mib": 2, "block_kib": 256}),
}
OF_DEVICES: dict[str, tuple[str, dict[str, Any]]] = {
    "sm": ("TFLOP", {"side": 64, "precision": "fp32"}),
    "hbm": ("GB", {"size_mib": 40}),
}


@pytest.fixture(autouse=True)
def _on_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, one_thread: None) -> None:
    monkeypatch.setenv("TEMP_DIRECTORY", str(tmp_path))


def processor_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def bytes_from_storage() -> float:
    (line,) = [line for line in Path("/proc/self/io").read_text().splitlines() if line.startswith("read_bytes")]
    return int(line.split()[1]) / 1e6


@pytest.mark.parametrize(
    ("name", "measure", "times"), [("cpu", processor_seconds, 200), ("disk", bytes_from_storage, 5)]
)
def test_an_amount_is_what_the_kernel_counts(name: str, measure: Callable[[], float], times: int) -> None:
    benchmark, _ = built(of(f"pressure/{name}"), **PRESSURES[name][1])
    before = measure()
    amount = sum(benchmark.work() for _ in range(times))
    assert amount > 0
    assert amount == pytest.approx(measure() - before, rel=0.1)


@pytest.mark.parametrize("name", ["cpu", "dram"])
def test_threads_sleep_as_soon_as_their_work_is_done(name: str) -> None:
    """OpenMP's would stay awake for milliseconds of each rest. It reads the variable as torch loads it."""
    told: list[str] = []

    def find_spec(module: str, *rest: Any) -> None:
        if module == "torch":
            told.append(os.environ["GOMP_SPINCOUNT"])
            raise ModuleNotFoundError(module)

    with pytest.MonkeyPatch.context() as patched:
        patched.delenv("GOMP_SPINCOUNT", raising=False)
        for module in [one for one in sys.modules if one.partition(".")[0] in ("torch", "cotenant")]:
            patched.delitem(sys.modules, module)
        patched.setattr(sys, "meta_path", [SimpleNamespace(find_spec=find_spec), *sys.meta_path])
        with pytest.raises(ModuleNotFoundError):
            runpy.run_path(str(TASKS / "pressure" / name / "pytorch/main.py"))
    assert told == ["2000"]


def test_a_triad_counts_the_bytes_that_it_reads_and_writes() -> None:
    benchmark, _ = built(of("pressure/dram"), elements=(1 << 20) + 5)
    amount = benchmark.work() + benchmark.work()
    sums, addends, factors = (torch.cat(arrays) for arrays in zip(*benchmark.pieces, strict=True))
    assert torch.allclose(sums, addends + 3 * factors, atol=1e-5)
    assert amount == pytest.approx((sums.nbytes + addends.nbytes + factors.nbytes) / 1e9)


def test_the_arrays_of_a_triad_are_larger_than_all_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    caches = [Cache(3, 1 << 20, (0, 1)), Cache(3, 3 << 20, (2, 3)), Cache(2, None, (4,))]
    monkeypatch.setattr(main_of("pressure/dram"), "last_level_caches", lambda processors: caches if processors else [])
    for least_mib, mib in ((1, 4 * 4), (24, 24)):
        monkeypatch.setattr(main_of("pressure/dram"), "LEAST_BYTES", least_mib << 20)
        benchmark, _ = built(of("pressure/dram"))
        assert sum(array.nbytes for piece in benchmark.pieces for array in piece) == pytest.approx(mib << 20, abs=12)


def test_walkers_cover_the_table_and_each_step_is_counted() -> None:
    benchmark, _ = built(of("pressure/llc"), size_kib=512)
    table, at = benchmark.table.numpy().copy(), benchmark.places.numpy().copy()
    walkers = len(at)
    seen = {*at}
    for _ in range(200):
        assert benchmark.work() == walkers
        at = table[at]
        seen |= {*at}
    np.testing.assert_array_equal(benchmark.places.numpy(), at)
    assert len({*at}) == walkers
    assert len(table) * 8 == 512 << 10
    assert len(seen) > 0.99 * len(table)


@pytest.mark.parametrize(
    "name", [name if name == "cpu" else pytest.param(name, marks=pytest.mark.slow) for name in PRESSURES]
)
def test_observations_count_achieved_work_without_findings(name: str) -> None:
    unit, parameters = PRESSURES[name]
    cls = of(f"pressure/{name}")
    assert (cls.item, parse(cls, []).values["level"]) == (unit, 100)
    loop, run = warmed(cls(cuda=False, level=50, **({"period_ms": 5} | parameters)))
    made = [loop.observe(3) for _ in range(4)]
    loop.audit()
    loop.load_until(lambda: True)
    assert all(observation.items > 0 for observation in made)
    assert [finding.rule for finding in run.findings if finding.severity != "info"] == []
    assert loop.audited()["audit"]["differences"] == []


def test_who_was_held_still_in_a_piece_of_work_goes_on_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece seems to take a second, for which a neighbour at level 50 would otherwise rest for two."""
    benchmark, _ = built(of("pressure/cpu"), level=50, period_ms=20)
    now = [0]
    monkeypatch.setattr(pressure, "clock_ns", lambda: now[0])

    def work(lasting_ns: int) -> float:
        now[0] += lasting_ns
        return 1.0

    monkeypatch.setattr(benchmark, "work", lambda: work(1_000_000_000))
    assert benchmark.worked() == 1
    monkeypatch.setattr(benchmark, "work", lambda: work(1_000_000))
    assert [benchmark.worked() for _ in range(4)] == [1, 10, 10, 10]


class Queue(Device):
    """Stands in for a device, on the processor; `deeds` lists the marks in its queue, and which were waited for."""

    deeds: ClassVar[list[str]] = []

    def mark(self, asleep: bool = False) -> Any:
        if not asleep:  # The measured loop asks so, and nothing is pending on a processor.
            return None
        number = sum(deed.startswith("mark") for deed in self.deeds)
        self.deeds.append(f"mark {number}")
        return SimpleNamespace(synchronize=lambda: self.deeds.append(f"wait {number}"))


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give neighbours on devices an invented device; return its deeds."""
    monkeypatch.setattr(DevicePressure, "refuse_processors", lambda self: None)
    monkeypatch.setattr("cotenant.bench.run.choose_device", lambda *asked: Queue(torch.device("cpu")))
    monkeypatch.setattr(Queue, "deeds", deeds := [])
    return deeds


DID: dict[str, Callable[[Any], bool]] = {
    "sm": lambda made: torch.allclose(made.out, made.left @ made.right, atol=1e-4),
    "hbm": lambda made: all(torch.equal(*piece) and piece[0].any() for piece in made.pieces),
}
"""Whether a neighbour has done four pieces of work of the smallest size."""
COUNTED = {
    "sm": 4 * 2 * 64**3 / 1e12,
    "hbm": 2 * 40 * 2**20 / 1e9,
}
"""Items of those four: hbm copies both its pieces twice; bytes are read and written."""


@pytest.mark.parametrize("name", OF_DEVICES)
def test_an_amount_is_what_a_device_was_given(name: str, queue: list[str]) -> None:
    unit, parameters = OF_DEVICES[name]
    benchmark, _ = built(of(f"pressure/{name}"), **parameters)
    for tensor in (value for value in vars(benchmark).values() if isinstance(value, torch.Tensor)):
        tensor.copy_(torch.randint(1, 5, tensor.shape))
    if name == "hbm":
        benchmark.at = 0
        for source, _ in benchmark.pieces:
            source.random_(1, 5)
    assert sum(benchmark.enqueue() for _ in range(4)) == pytest.approx(COUNTED[name])
    assert DID[name](benchmark)
    assert type(benchmark).item == unit


@pytest.mark.parametrize(
    ("words", "precision"),
    [([], "fp16"), (["--opt-level", "O0"], "fp32"), (["--half"], "half"), (["--precision", "bf16", "--half"], "bf16")],
)
def test_products_have_the_precision_asked_for_in_any_spelling(words: list[str], precision: str) -> None:
    cls = of("pressure/sm")
    assert cls(**parse(cls, words).values).asked_precision == precision


def test_no_cache_holds_what_presses_a_devices_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Infinity Cache lies behind the one that torch tells of AMD's; torch.xpu has a name of its own for Intel's."""
    usual = main_of("pressure/hbm").usual_bytes
    for cache_mib, is_nvidia, least_mib in ((50, True, 256), (126, True, 504), (4, False, 1024), (408, False, 1632)):
        device = SimpleNamespace(cache_bytes=cache_mib << 20, is_nvidia=is_nvidia)
        assert usual(SimpleNamespace(chosen=device)) == least_mib << 20
    properties = SimpleNamespace(last_level_cache_size=408 << 20)
    module = SimpleNamespace(get_device_properties=lambda device: properties)
    monkeypatch.setattr(torch, "get_device_module", lambda device: module)
    assert Device(torch.device("xpu", 0)).cache_bytes == 408 << 20


def test_a_device_gets_a_new_piece_before_the_last_is_awaited(queue: list[str]) -> None:
    benchmark, run = built(of("pressure/sm"), level=100, period_ms=5, **OF_DEVICES["sm"][1])
    assert benchmark.times >= 1
    benchmark.step(run, 0)
    pieces = len(queue) // 2
    first_waits = [deed for number in range(1, pieces) for deed in (f"mark {number}", f"wait {number - 1}")]
    assert queue == ["mark 0", *first_waits, f"wait {pieces - 1}"]
    assert benchmark.items(0) == pytest.approx(pieces * benchmark.times * COUNTED["sm"] / 4)
    assert benchmark.owed_ns <= 0, "waiting for the last piece is work"
