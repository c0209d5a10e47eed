"""The measured loop: the work between its two clock reads, its warm-up, its books, and the rate that it reports."""

from __future__ import annotations

import contextlib
import gc
import itertools
import multiprocessing
import sys
import time
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from torch.utils.data import Dataset

from bench.small import Small, loop_of, record_of, warmed
from cotenant.bench import Benchmark, MissingDataError, Run, chrono, flag, session
from cotenant.bench.arguments import parse
from cotenant.bench.chrono import Work, observe
from cotenant.bench.device import Device
from cotenant.bench.facts import arguments_of, without_effect
from cotenant.bench.loader import constant_input
from cotenant.bench.loop import BOOKED_OF_SHORT, WARM_UP_STEPS, Loop
from cotenant.bench.observed import compiled_graphs
from cotenant.errors import CotenantError
from cotenant.results.identity import unique_id
from tenants.suites import until


class Journal(list[str]):
    """Lists events; each of them advances its clock by the nanoseconds that `costs` has for it."""

    def __init__(self, **costs: int) -> None:
        self.costs = costs
        self.now_ns = 1000

    def note(self, event: str) -> None:
        self.append(event)
        self.now_ns += self.costs.get(event, 0)

    def clock(self) -> int:
        self.append("clock")
        return self.now_ns


class Loss:
    """A loss that offers nothing but its detached value, an object that cannot be read."""

    __slots__ = ("journal",)

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    @property
    def data(self) -> object:
        self.journal.note("detach")
        return object()


class Event:
    def __init__(self, journal: Journal, asleep: bool) -> None:
        journal.note("mark asleep" if asleep else "mark")
        self.journal = journal

    def synchronize(self) -> None:
        self.journal.note("wait")

    def elapsed_time(self, end: Event) -> float:
        self.journal.note("elapsed")
        return 0.0025


def work(journal: Journal, batches: Iterator[Any], accelerator: bool = True, **parts: Any) -> Work:
    def step(run: object, batch: object) -> Loss:
        journal.note("step")
        return Loss(journal)

    def items(batch: int) -> int:
        journal.note("items")
        return batch

    device = SimpleNamespace(
        synchronize=lambda: journal.note("sync"),
        mark=lambda asleep=False: Event(journal, asleep) if accelerator else None,
    )
    return Work(**{"batches": batches, "step": step, "items": items, "run": None, "device": device} | parts)


def feed(journal: Journal, *batches: Any) -> Iterator[Any]:
    for batch in batches:
        journal.note("next")
        yield batch


def test_the_order_of_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal()
    monkeypatch.setattr(chrono, "clock_ns", journal.clock)
    observe(work(journal, feed(journal, 1, 2)), 2)
    batch = ["clock", "next", "clock", "step", "detach", "items"]
    end = ["mark asleep", "clock", "wait", "sync", "clock", "elapsed"]
    assert journal == ["sync", "mark", "clock", *batch, *batch, *end]
    journal.clear()
    observe(work(journal, feed(journal, 1), resident=True), 1)
    short = ["next", "step", "detach", "items", "mark", "clock", "sync", "clock", "elapsed"]
    assert journal == ["sync", "mark", "clock", *short]
    journal.clear()
    lossless = work(journal, feed(journal, 1), accelerator=False, step=lambda run, batch: None)
    seen = observe(lossless, 1)
    assert (seen.event_ns, seen.issued_ns, seen.losses) == (None, None, [])
    assert journal == ["sync", "clock", "clock", "next", "clock", "items", "sync", "clock"]


def test_times_items_and_waits_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(next=7, step=100, sync=1000, items=3)
    monkeypatch.setattr(chrono, "clock_ns", journal.clock)
    seen = observe(work(journal, feed(journal, 5, 6, 7)), 3)
    assert seen.start_ns == 2000
    assert seen.end_ns - seen.start_ns == 3 * (7 + 100 + 3) + 1000
    assert seen.data_wait_ns == 3 * 7
    assert seen.items == 18
    assert len(seen.losses) == 3
    assert seen.event_ns == 2500
    assert seen.issued_ns == seen.end_ns - 1000


def test_one_of_every_few_batches_is_booked_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(next=7, step=100)
    monkeypatch.setattr(chrono, "clock_ns", journal.clock)
    seen = observe(work(journal, feed(journal, *[5] * 8), every=3), 8)
    bare, booked = ["next", "step"], ["clock", "next", "clock", "step", "detach", "items"]
    group = [*bare, *bare, *booked]
    end = ["mark asleep", "clock", "wait", "sync"]
    assert journal[2:-2] == ["clock", *group, *group, *bare, *booked, *end]
    assert (seen.items, seen.data_wait_ns, len(seen.losses), seen.even) == (40, 8 * 7, 3, True)
    assert seen.end_ns - seen.start_ns == 8 * 107
    assert not observe(work(journal, feed(journal, 1, 2, 3, 4), every=2), 4).even
    assert not observe(work(journal, feed(journal, 1, 2)), 2).even


def test_the_kept_loss_has_no_graph() -> None:
    weight = torch.ones(2, requires_grad=True)
    one = work(Journal(), iter([1]), step=lambda run, batch: weight.sum(), device=Device(torch.device("cpu")))
    (kept,) = observe(one, 1).losses
    assert kept.grad_fn is None
    assert not kept.requires_grad
    assert kept == 2


class Knot:
    """Garbage that only Python's cyclic collector frees."""

    def __init__(self) -> None:
        self.itself = self


class Littering(Small):
    """Makes garbage in every step; `states` says whether the collector was on, and whether it had not yet run."""

    def build(self, run: Run) -> None:
        super().build(run)
        self.states: list[tuple[bool, bool]] = []
        self.knots: list[weakref.ref[Knot]] = []

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        self.states.append((gc.isenabled(), all(knot() is not None for knot in self.knots[-2:])))
        self.knots.append(weakref.ref(Knot()))
        return super().step(run, batch)


def test_the_garbage_collector_is_off_within_observations() -> None:
    loop = loop_of(benchmark := Littering())
    assert len(loop.warm_up()) == len(benchmark.states) == WARM_UP_STEPS
    assert loop.auditor.dtype == "fp32"
    assert not any(module is vars(torch) for module in gc.get_objects()), "imported modules are collected"
    assert not any(knot() for knot in benchmark.knots)
    for _ in range(2):
        benchmark.states.clear()
        benchmark.knots.clear()
        before_ns = loop.observe(5).end_ns
        assert benchmark.states == [(False, True)] * 5
        assert not any(knot() for knot in benchmark.knots)
    benchmark.states.clear()
    answers = iter([False, False, True])
    assert loop.load_until(lambda: next(answers)) > before_ns
    assert [enabled for enabled, _ in benchmark.states] == [True, True]


def test_unmeasured_load_synchronises_as_often_as_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []
    loop, _ = warmed(Small())
    step = loop._work.step
    monkeypatch.setattr(Device, "synchronize", lambda self: events.append("sync"))
    monkeypatch.setattr(loop._work, "step", lambda run, batch: events.append("step") or step(run, batch))
    moments = iter([1, 2, 3])
    with monkeypatch.context() as clock:
        clock.setattr("cotenant.bench.loop.clock_ns", lambda: next(moments))
        loop.settle(3, 2)
    assert events == ["step", "step", "sync"] * 2
    loop.observe(3)
    events.clear()
    answers = iter([False] * 5 + [True])
    assert loop.load_until(lambda: next(answers)) > 0
    assert events == [*["step"] * 3, "sync", "step", "step", "sync"]
    assert loop.updates == 3


def test_compiling_ends_before_the_timed_steps_of_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two steps after the eager one compile, and so does one within the second observation."""
    monkeypatch.setattr(torch, "compile", lambda module, mode: module)
    loop = loop_of(Small(compile=True))
    work, step, calls = loop._work, loop._work.step, []
    compiling = {2: 1, 3: 2}

    def counted(run: Any, batch: Any) -> Any:
        calls.append(len(calls) + 1)
        return step(run, batch)

    monkeypatch.setattr(work, "step", counted)
    monkeypatch.setattr(
        "cotenant.bench.compiling.compiled_graphs",
        lambda: sum(graphs for call, graphs in compiling.items() if call <= len(calls)),
    )
    monkeypatch.setattr(loop.auditor, "_step", counted)
    assert len(loop.warm_up()) == WARM_UP_STEPS
    assert len(calls) == 1 + 3 + 2  # eager, until none compiles, timed
    run: Run = loop._run
    compiling[len(calls) + 5] = 7
    loop.observe(3)
    assert "recompiled" not in run.observed
    loop.observe(3)
    loop.observe(3)
    assert run.observed["recompiled"] == 7
    assert [finding.rule for finding in run.findings] == ["recompiled"]


def test_each_step_of_a_recorded_graph_keeps_its_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next step of a recorded model writes where the outputs of this one lie."""
    begun, place = list[int](), torch.zeros(())

    class Recorded(Small):
        def step(self, run: Run, batch: Any) -> torch.Tensor | None:
            super().step(run, batch)
            return place.add_(1)

    monkeypatch.setattr(torch, "compile", lambda module, mode: module)
    monkeypatch.setattr(torch.compiler, "cudagraph_mark_step_begin", lambda: begun.append(1))
    loop = loop_of(Recorded(compile="reduce-overhead"))
    loop.warm_up()
    begun.clear()
    losses = [float(loss) for loss in loop.observe(3).losses]
    assert (len(begun), losses[2] - losses[0]) == (3, 2)


@pytest.mark.slow
def test_graphs_that_torch_compiles_are_counted() -> None:
    before = compiled_graphs()
    compiled = torch.compile(lambda x: x + x.shape[0], backend="eager", dynamic=False)
    compiled(torch.zeros(2))
    compiled(torch.zeros(2))
    assert compiled_graphs() == before + 1
    compiled(torch.zeros(3))
    assert compiled_graphs() == before + 2


def test_kernels_that_triton_compiles_count_as_graphs_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of torch's own kernels are Triton's, which torch.compile does not report."""
    compilation: Any = SimpleNamespace(listener=None)
    monkeypatch.setitem(sys.modules, "triton.knobs", SimpleNamespace(compilation=compilation))
    before = compiled_graphs()
    compilation.listener(src="kernel", metadata={}, metadata_group={}, times=None, cache_hit=False)
    assert compiled_graphs() == before + 1


def test_a_long_warm_up_makes_no_further_step(monkeypatch: pytest.MonkeyPatch) -> None:
    now_ns = step_ns = 0

    class Long(Small):
        def step(self, run: Run, batch: Any) -> torch.Tensor | None:
            nonlocal now_ns
            now_ns += step_ns
            return super().step(run, batch)

    monkeypatch.setattr("cotenant.bench.loop.clock_ns", lambda: now_ns)
    for step_s, steps in ((0.1, 3), (20, 3), (30, 3), (30.1, 2), (60, 2), (60.1, 1), (500, 1)):
        step_ns = round(step_s * 1e9)
        loop = Loop(benchmark := Long(), run := Run(benchmark))
        assert loop.warm_up() == [step_ns] * steps
        assert (loop.books_every, loop.auditor.dtype) == (1, "fp32")
        sentences = [finding.sentence for finding in run.findings if finding.rule == "short_warm_up"]
        assert sentences == [f"Warm-up ended after {steps} of 3 steps and {steps * step_s:.0f} s."] * (steps < 3)


class Ending(Small):
    """Its input ends after two batches."""

    def batches(self, run: Run) -> Iterable[Any]:
        return [torch.ones(4, 3), torch.ones(5, 3)]


def test_input_that_ends_is_one_finding() -> None:
    loop = Loop(benchmark := Ending(), run := Run(benchmark))
    assert run.findings == []
    loop.warm_up()
    # The warm-up took three batches, of 4, 5 and 4 rows.
    assert loop.observe(4).items == 5 + 4 + 5 + 4
    loop.observe(4)
    assert [finding.rule for finding in run.findings] == ["input_restarted"]
    assert "without end" in run.findings[0].remedy


class Quick(Small):
    """Does nothing in a step; with `grow` one counts one item more after the warm-up."""

    grow: bool = False

    def build(self, run: Run) -> None:
        super().build(run)
        self.counted = 0

    def batches(self, run: Run) -> Iterable[Any]:
        return run.resident(torch.ones(4, 3))

    def items(self, batch: Any) -> float:
        self.counted += 1
        return 4 + (self.counted > 6 if self.grow else 0)

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        return torch.zeros(())


def test_short_steps_of_equal_batches_are_booked_only_sometimes(monkeypatch: pytest.MonkeyPatch) -> None:
    class Partial(Quick):
        """As torch's DataLoader without `drop_last`: the last batch of each epoch holds two rows."""

        items = Benchmark.items

        def batches(self, run: Run) -> Iterable[Any]:
            return itertools.cycle([torch.ones(4, 3)] * 4 + [torch.ones(2, 3)])

    for cls, short_ns, every, losses in (
        (Quick, 10**9, BOOKED_OF_SHORT, 3),
        (Partial, 10**9, 1, 25),
        (Quick, 0, 1, 25),
    ):
        monkeypatch.setattr("cotenant.bench.loop.SHORT_STEP_NS", short_ns)
        loop = loop_of(cls())
        loop.warm_up()
        assert loop.books_every == every
        seen = loop.observe(25)
        assert (seen.items, len(seen.losses)) == (90 if cls is Partial else 100, losses)


def test_every_batch_is_booked_once_batches_count_unequally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.bench.loop.SHORT_STEP_NS", 10**9)
    loop, run = warmed(Quick(grow=True))
    loop.observe(40)
    assert loop.books_every == 1
    assert [finding.rule for finding in run.findings] == ["items_estimated"]
    assert loop.observe(7).items == 35


class Given(Small):
    """Reads the given batches, and trains on none."""

    def __init__(self, batches: Callable[[], Iterable[Any]]) -> None:
        super().__init__()
        self._given = batches

    def batches(self, run: Run) -> Iterable[Any]:
        return self._given()

    def step(self, run: Run, batch: Any) -> None:
        return None


def test_items_are_the_rows_of_the_first_part() -> None:
    for batch, items in (
        (torch.ones(7, 3), 7),
        ((torch.ones(6, 3), torch.ones(2)), 6),
        ([torch.ones(5, 3)], 5),
        ({"x": torch.ones(4, 3), "y": torch.ones(1)}, 4),
        (([torch.ones(3), torch.ones(4)], ["a", "b"]), 2),
    ):
        benchmark = Given(lambda batch=batch: itertools.cycle([batch]))
        assert benchmark.items(batch) == items
        assert loop_of(benchmark).observe(3).items == 3 * items
    # When limited input ends and begins again, its batch may be larger.
    sizes = itertools.count(2)
    assert loop_of(Given(lambda: itertools.repeat(torch.ones(next(sizes), 3), 1))).observe(3).items == 2 + 3 + 4


def test_what_a_benchmark_cannot_give(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingDataError, match="holds no batch"):
        loop_of(Given(list))
    with pytest.raises(CotenantError, match=r"cannot be counted.*Define `items"):
        loop_of(Given(lambda: itertools.repeat(None)))
    monkeypatch.setattr(Small, "step", lambda *_: torch.ones(2, 3))
    with pytest.raises(CotenantError, match=r"a loss of shape \(2, 3\), not a scalar"):
        loop_of(Small()).warm_up()
    for counted, sentence in ((3.5, None), (torch.tensor(3), "plain number, known on the host")):
        monkeypatch.setattr(Small, "items", lambda benchmark, batch, counted=counted: counted)
        with pytest.raises(CotenantError, match=sentence) if sentence else contextlib.nullcontext():
            assert loop_of(Small()).observe(3).items == 3 * 3.5


class Counted(tuple):  # type: ignore[type-arg]
    """A batch that counts how often its parts are read."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)


@pytest.mark.parametrize("resident", [True, False])
def test_a_resident_batch_is_counted_once_and_not_waited_for(resident: bool) -> None:
    batch = Counted([torch.ones(6, 3)])

    loop = loop_of(Given(lambda: itertools.repeat(batch) if resident else itertools.cycle([batch])))
    looks = batch.looks
    seen = loop.observe(3)
    assert seen.items == 3 * 6
    assert (seen.data_wait_ns > 0) is not resident
    # The fourth time is behind the clock, where the sizes of one batch are read.
    assert batch.looks - looks == (0 if resident else 3 + 1)


def test_denormals_are_flushed_on_a_processor() -> None:
    faint = torch.tensor([1e-40])
    assert (faint * 0.5).item() > 0
    Run(Small())
    assert (faint * 0.5).item() == 0


NUMBERS = torch.arange(32.0)


def test_input_of_one_value() -> None:
    for batch in (
        NUMBERS,
        (NUMBERS, torch.zeros(16)),
        {"pixels": NUMBERS, "boxes": [torch.zeros(4, 4)]},
        (torch.arange(16), torch.arange(16), torch.zeros(16)),
        torch.arange(32),
        torch.zeros(15),
        torch.zeros(100, dtype=torch.bool),
        torch.zeros(100, dtype=torch.complex64),
        torch.full((20,), float("nan")),
        torch.zeros(4, 8).to_sparse(),
        None,
        ["text", 5],
        [],
    ):
        assert constant_input(batch) is None
    for dtype in (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.uint8):
        finding = constant_input((torch.zeros(8, 4, dtype=dtype), torch.arange(8)))
        assert (finding.rule, finding.severity) == ("constant_input", "error")
        assert finding.sentence == "The first batch holds nothing but 0, in all 32 elements of its largest tensor."
    finding = constant_input({"x": [torch.full((8, 4), 0.5)], "y": NUMBERS[:16]})
    assert (finding.severity, "nothing but 0.5," in finding.sentence) == ("warning", True)


def test_the_loop_looks_at_the_first_batch_once() -> None:
    class Zeros(Small):
        def batches(self, run: Run) -> Iterable[Any]:
            return run.resident(torch.zeros(self.batch_size * 2, 3))

    loop, run = warmed(Zeros(batch_size=8))
    loop.observe(3)
    assert [finding.rule for finding in run.findings] == ["constant_input"]


def credited(benchmark: Small, *numbers: int) -> tuple[int, int | None]:
    loop, _ = warmed(benchmark)
    for number in numbers:
        loop.observe(number)
    return loop.updates, loop.promised


class Counting(Small):
    """Makes `updates(step's number)` updates in each step, by default one."""

    updates: ClassVar[Callable[[int], int]] = staticmethod(lambda step: 1)

    def build(self, run: Run) -> None:
        super().build(run)
        self.steps = 0

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        self.steps += 1
        loss = self.model(batch).square().mean()
        for _ in range(self.updates(self.steps)):
            run.update(self.model(batch).square().mean(), self.optimizer)
        return loss


def test_every_update_is_counted_outside_of_the_warm_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert credited(Counting(), 5, 7) == (12, 12)
    assert credited(Counting(precision="bf16"), 4) == (4, 4)
    # Two updates a step; training that stops; and steps that update now and then, or never, which promise nothing.
    for updates, number, expected in (
        (lambda step: 2, 5, (10, 10)),
        (lambda step: int(step <= 3 or step % 10 < 3), 100, (30, 100)),
        (lambda step: int(step % 4 == 0), 8, (2, None)),
        (lambda step: step % 2, 8, (4, None)),
        (lambda step: 0, 8, (0, None)),
    ):
        monkeypatch.setattr(Counting, "updates", staticmethod(updates))
        assert credited(Counting(), number) == expected


ROWS, REPEAT, SKIP = 32, 20, 2


class Spinning(Benchmark):
    """One step = `step_us` microseconds of this thread's processor time."""

    item = "row"
    steps: ClassVar[list[tuple[int, int]]] = []

    batch_size: int = ROWS
    cuda: bool = False
    step_us: int = flag(4000, "--step-us", help="microseconds of a step")

    def build(self, run: Run) -> None:
        """Train nothing."""

    def batches(self, run: Run) -> Iterable[Any]:
        return run.resident(torch.randn(self.batch_size, 3))

    def step(self, run: Run, batch: Any) -> None:
        start_ns = time.monotonic_ns()
        until_ns = time.thread_time_ns() + 1000 * self.step_us
        while time.thread_time_ns() < until_ns:
            pass
        self.steps.append((start_ns, time.monotonic_ns()))


@pytest.mark.parametrize(
    ("step_us", "number", "short_ns"),
    [(4000, 5, 0), (200, 100, 1_000_000)],
    ids=["books on every batch", "books on one of ten"],
)
def test_the_rate_is_that_of_the_steps(
    step_us: int, number: int, short_ns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotenant.bench.loop.SHORT_STEP_NS", short_ns)
    monkeypatch.setattr(session, "borders", lambda *amount: [])
    monkeypatch.setattr(Loop, "audit", lambda loop: None)
    monkeypatch.setattr(Spinning, "steps", [])
    words = f"--step-us {step_us} --number {number} --repeat {REPEAT} --skip {SKIP}"
    record = record_of(Spinning, tmp_path, words)
    reported = record["statistics"]["median"]
    measured = Spinning.steps[-REPEAT * number :]
    groups = [measured[first : first + number] for first in range(SKIP * number, REPEAT * number, number)]
    rates = [row["items"] / (row["end_ns"] - row["start_ns"]) * 1e9 for row in record["observations"][SKIP:]]
    true = [ROWS * number / (last[1] - first[0]) * 1e9 for first, *_, last in groups]
    assert reported == pytest.approx(median(rates))
    # Each with its own steps: a busy host takes the processor between steps and the end of few observations.
    assert median(rate / one for rate, one in zip(rates, true, strict=True)) == pytest.approx(1, rel=0.01)
    # A rate above this would mean that steps took less time than their own processor time.
    assert reported <= 1.01 * ROWS * 1e6 / step_us


class Vectors(Dataset[Any]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.full((3,), float(index)).log1p()


class Loading(Small):
    """Reads in a loader process, and keeps the batches that it trained on in `seen`."""

    workers: int | None = 1

    def build(self, run: Run) -> None:
        super().build(run)
        self.seen: list[torch.Tensor] = []

    def batches(self, run: Run) -> Iterator[Any]:
        return run.loader(Vectors())

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        self.seen.append(batch)
        return super().step(run, batch)


@pytest.mark.parametrize("cached", [False, True])
def test_only_a_cached_batch_trains_every_step(cached: bool) -> None:
    loop = Loop(benchmark := Loading(cached_batch=cached), run := Run(benchmark))
    if cached:
        until(lambda: not multiprocessing.active_children(), "nobody reads on beside the clock")
    loop.warm_up()
    loop.observe(5)
    batches = {tuple(one.flatten().tolist()) for one in benchmark.seen}
    assert len(batches) == (1 if cached else len(benchmark.seen))
    assert len(benchmark.seen) > 5
    assert [(one.rule, one.severity) for one in run.findings] == [("cached_batch", "warning")] * cached


def test_cached_batch_has_no_effect_on_a_resident_batch() -> None:
    parsed = parse(Small, ["--cached-batch"])
    benchmark = Small(**parsed.values)
    Loop(benchmark, run := Run(benchmark))
    assert arguments_of(benchmark)["cached_batch"] is True
    assert without_effect(parsed, run) == ["--cached-batch"]
    assert run.findings == []


def test_it_is_other_work_and_without_it_work_is_what_it_was() -> None:
    before = {"batch_size": 4, "precision": "fp32"}
    ids = [unique_id("small", "v", before | more) for more in ({}, {"cached_batch": False}, {"cached_batch": True})]
    assert ids[0] == ids[1] != ids[2]
