"""Nothing but the step, the wait for its data and the closing synchronisation lies between the two clock reads."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from cotenant.bench import chrono
from cotenant.bench.chrono import Work, observe
from cotenant.bench.device import Device


class Journal(list[str]):
    """Writes down what happens, by a clock that advances by `costs` with each event."""

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
    """A loss of which nothing may be asked but its detached value, which cannot be asked anything."""

    __slots__ = ("journal",)

    def __init__(self, journal: Journal) -> None:
        self.journal = journal

    @property
    def data(self) -> object:
        self.journal.note("detach")
        return object()


class Event:
    def __init__(self, journal: Journal) -> None:
        journal.note("mark")
        self.journal = journal

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
        synchronize=lambda: journal.note("sync"), mark=lambda: Event(journal) if accelerator else None
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
    assert journal == ["sync", "mark", "clock", *batch, *batch, "mark", "sync", "clock", "elapsed"]


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


def test_no_events_without_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal()
    monkeypatch.setattr(chrono, "clock_ns", journal.clock)
    assert observe(work(journal, feed(journal, 1), accelerator=False), 1).event_ns is None
    assert "elapsed" not in journal


def test_a_step_without_a_loss() -> None:
    journal = Journal()
    assert observe(work(journal, feed(journal, 1), step=lambda run, batch: None), 1).losses == []


def test_one_of_every_few_batches_is_booked_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(next=7, step=100)
    monkeypatch.setattr(chrono, "clock_ns", journal.clock)
    seen = observe(work(journal, feed(journal, *[5] * 8), every=3), 8)
    bare, booked = ["next", "step"], ["clock", "next", "clock", "step", "detach", "items"]
    group = [*bare, *bare, *booked]
    assert journal[2:-2] == ["clock", *group, *group, *bare, *booked, "mark", "sync"]
    assert (seen.items, seen.data_wait_ns, len(seen.losses), seen.even) == (40, 8 * 7, 3, True)
    assert seen.end_ns - seen.start_ns == 8 * 107


def test_batches_that_do_not_count_equally_are_seen() -> None:
    journal = Journal()
    assert not observe(work(journal, feed(journal, 1, 2, 3, 4), every=2), 4).even
    assert not observe(work(journal, feed(journal, 1, 2)), 2).even


def test_the_kept_loss_has_no_graph() -> None:
    weight = torch.ones(2, requires_grad=True)
    one = work(Journal(), iter([1]), step=lambda run, batch: weight.sum(), device=Device(torch.device("cpu")))
    (kept,) = observe(one, 1).losses
    assert kept.grad_fn is None
    assert not kept.requires_grad
    assert kept == 2
