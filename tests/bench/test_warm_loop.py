from __future__ import annotations

import gc
import itertools
import weakref
from collections.abc import Iterable
from typing import Any

import pytest
import torch

from bench.small import Small
from cotenant.bench import MissingDataError, Run
from cotenant.bench.loop import BOOKED_OF_SHORT, WARM_UP_STEPS, Loop
from cotenant.errors import CotenantError


def loop_of(benchmark: Small) -> Loop:
    return Loop(benchmark, Run(benchmark))


class Knot:
    """Garbage that only the collector can find."""

    def __init__(self) -> None:
        self.itself = self


class Littering(Small):
    """Makes garbage in every step, and writes down whether the collector ran."""

    def build(self, run: Run) -> None:
        super().build(run)
        self.states: list[tuple[bool, bool]] = []
        self.knots: list[weakref.ref[Knot]] = []

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        self.states.append((gc.isenabled(), all(knot() is not None for knot in self.knots[-2:])))
        self.knots.append(weakref.ref(Knot()))
        return super().step(run, batch)


def test_the_collector_is_off_inside_and_collects_between() -> None:
    benchmark = Littering()
    loop = loop_of(benchmark)
    loop.warm_up()
    assert gc.get_freeze_count() > 1000
    assert not any(knot() for knot in benchmark.knots)
    for _ in range(2):
        benchmark.states.clear()
        benchmark.knots.clear()
        loop.observe(5)
        assert benchmark.states == [(False, True)] * 5
        assert not any(knot() for knot in benchmark.knots)


def test_the_collector_is_on_in_the_cool_down() -> None:
    benchmark = Littering()
    loop = loop_of(benchmark)
    loop.warm_up()
    answers = iter([False, False, True])
    benchmark.states.clear()
    before_ns = loop.observe(1).end_ns
    assert loop.load_until(lambda: next(answers)) > before_ns
    assert [enabled for enabled, _ in benchmark.states] == [False, True, True]


def test_warm_up_does_real_steps() -> None:
    benchmark = Littering()
    loop = loop_of(benchmark)
    assert len(loop.warm_up()) == len(benchmark.states) == WARM_UP_STEPS
    assert loop.observed_dtype == "fp32"


class Clock:
    """A clock that only moves when it is told to."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


class Long(Small):
    """Every step takes this long."""

    step_ns = 0

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        self._clock.now_ns += self.step_ns
        return super().step(run, batch)


@pytest.mark.parametrize(
    ("step_s", "steps"), [(0.1, 3), (20, 3), (30, 3), (30.1, 2), (60, 2), (60.1, 1), (500, 1)], ids=str
)
def test_a_long_warm_up_makes_no_further_step(step_s: float, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr("cotenant.bench.loop.clock_ns", clock)
    benchmark = Long(clock)
    benchmark.step_ns = round(step_s * 1e9)
    run = Run(benchmark)
    loop = Loop(benchmark, run)
    assert loop.warm_up() == [benchmark.step_ns] * steps
    assert loop.books_every == 1
    assert loop.observed_dtype == "fp32"
    found = [one.sentence for one in run.findings if one.rule == "short_warm_up"]
    assert found == [f"Warm-up ended after {steps} of 3 steps and {steps * step_s:.0f} s."] * (steps < 3)


class Ending(Small):
    """Its input ends after two batches."""

    def batches(self, run: Run) -> Iterable[Any]:
        return [torch.ones(4, 3), torch.ones(5, 3)]


def test_input_that_ends_is_one_finding() -> None:
    benchmark = Ending()
    run = Run(benchmark)
    loop = Loop(benchmark, run)
    assert run.findings == []
    loop.warm_up()
    # Three batches went to the warm-up: 4, 5, 4.
    assert loop.observe(4).items == 5 + 4 + 5 + 4
    loop.observe(4)
    assert [finding.rule for finding in run.findings] == ["input_restarted"]
    assert "without end" in run.findings[0].remedy


class Quick(Small):
    """A step of no time at all, on batches that grow after the warm-up where it is told to."""

    grow: bool = False

    def batches(self, run: Run) -> Iterable[Any]:
        for index in itertools.count():
            yield torch.ones(4 + (index > 30 if self.grow else 0), 3)

    def step(self, run: Run, batch: Any) -> torch.Tensor | None:
        return torch.zeros(())


def test_books_of_short_steps_are_kept_on_some_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.bench.loop.SHORT_STEP_NS", 10**9)
    benchmark = Quick()
    loop = loop_of(benchmark)
    loop.warm_up()
    assert loop.books_every == BOOKED_OF_SHORT
    seen = loop.observe(25)
    assert (seen.items, len(seen.losses)) == (100, 3)


def test_books_of_loaded_input_are_kept_on_every_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    class Loaded(Quick):
        def batches(self, run: Run) -> Iterable[Any]:
            return run.loader(torch.utils.data.TensorDataset(torch.ones(9, 3)))

    monkeypatch.setattr("cotenant.bench.loop.SHORT_STEP_NS", 10**9)
    loop = loop_of(Loaded())
    loop.warm_up()
    assert loop.books_every == 1


def test_books_are_kept_on_every_batch_once_they_count_unequally(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.bench.loop.SHORT_STEP_NS", 10**9)
    benchmark = Quick(grow=True)
    run = Run(benchmark)
    loop = Loop(benchmark, run)
    loop.warm_up()
    loop.observe(40)
    assert loop.books_every == 1
    assert [finding.rule for finding in run.findings] == ["items_estimated"]
    assert loop.observe(7).items == 35


def test_books_of_longer_steps_are_kept_on_every_batch() -> None:
    loop = loop_of(Quick())
    loop.warm_up()
    assert loop.books_every == 1


def test_no_input_is_missing_data() -> None:
    class Empty(Small):
        def batches(self, run: Run) -> Iterable[Any]:
            return []

    with pytest.raises(MissingDataError, match="holds no batch"):
        loop_of(Empty())


def test_a_loss_is_a_scalar() -> None:
    class Wide(Small):
        def step(self, run: Run, batch: Any) -> torch.Tensor:
            return torch.ones(2, 3)

    with pytest.raises(CotenantError, match=r"a loss of shape \(2, 3\), not a scalar"):
        loop_of(Wide()).warm_up()


@pytest.mark.parametrize(
    "batch, items",
    [
        (torch.ones(7, 3), 7),
        ((torch.ones(6, 3), torch.ones(2)), 6),
        ([torch.ones(5, 3)], 5),
        ({"x": torch.ones(4, 3), "y": torch.ones(1)}, 4),
        (([torch.ones(3), torch.ones(4)], ["a", "b"]), 2),
    ],
)
def test_items_are_the_rows_of_the_first_part(batch: Any, items: int) -> None:
    class Given(Small):
        def batches(self, run: Run) -> Iterable[Any]:
            while True:
                yield batch

        def step(self, run: Run, batch: Any) -> None:
            return None

    benchmark = Given()
    assert benchmark.items(batch) == items
    assert loop_of(benchmark).observe(3).items == 3 * items


class Counted(tuple):  # type: ignore[type-arg]
    """A batch that knows how often somebody looked into it."""

    looks = 0

    def __getitem__(self, index: Any) -> Any:
        self.looks += 1
        return super().__getitem__(index)


@pytest.mark.parametrize("resident", [True, False])
def test_a_resident_batch_is_counted_once_and_not_waited_for(resident: bool) -> None:
    batch = Counted([torch.ones(6, 3)])

    class Given(Small):
        def batches(self, run: Run) -> Iterable[Any]:
            return itertools.repeat(batch) if resident else itertools.cycle([batch])

        def step(self, run: Run, batch: Any) -> None:
            return None

    loop = loop_of(Given())
    looks = batch.looks
    seen = loop.observe(3)
    assert seen.items == 3 * 6
    assert (seen.data_wait_ns > 0) is not resident
    assert batch.looks - looks == (0 if resident else 3)


def test_a_limited_batch_is_counted_each_time() -> None:
    """After its last a larger one may come."""
    sizes = itertools.count(2)

    class Growing(Small):
        def batches(self, run: Run) -> Iterable[Any]:
            return itertools.repeat(torch.ones(next(sizes), 3), 1)

        def step(self, run: Run, batch: Any) -> None:
            return None

    assert loop_of(Growing()).observe(3).items == 2 + 3 + 4


def test_items_of_its_own() -> None:
    class Tokens(Small):
        def items(self, batch: Any) -> float:
            return batch.numel() / 2

    assert loop_of(Tokens()).observe(3).items == 3 * 6


@pytest.mark.parametrize(
    "counted, sentence",
    [(None, "cannot be counted.*Define `items"), (torch.tensor(3), "plain number, known on the host")],
)
def test_items_that_are_no_number(counted: Any, sentence: str) -> None:
    class Odd(Small):
        def batches(self, run: Run) -> Iterable[Any]:
            while True:
                yield None

        def items(self, batch: Any) -> float:
            return super().items(batch) if counted is None else counted

    with pytest.raises(CotenantError, match=sentence):
        loop_of(Odd())


def test_denormals_are_flushed_on_a_processor() -> None:
    faint = torch.tensor([1e-40])
    assert (faint * 0.5).item() > 0
    Run(Small())
    assert (faint * 0.5).item() == 0
