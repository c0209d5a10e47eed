"""Rows of the batches that feed training, whatever else is loaded in between."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from cotenant.exec.optimizer import Optimizers, RowCounter, batch_length, count_rows
from cotenant.exec.settings import Settings

TRAINING, VALIDATION = object(), object()


def tensor(*shape: int) -> Any:
    return SimpleNamespace(shape=shape)


@pytest.mark.parametrize(
    ("batch", "rows"),
    [
        (tensor(8, 3), 8),
        ([tensor(8, 3), tensor(4)], 8),
        ({"text": ["a"], "ids": tensor(5, 7)}, 5),
        ((("x",), {"y": [tensor(), tensor(6)]}), 6),
        (tensor(), 0),
        (["a", "b"], 0),
        (None, 0),
    ],
)
def test_rows_are_the_length_of_the_first_tensor(batch: Any, rows: int) -> None:
    assert batch_length(batch) == rows


def test_the_batches_of_one_step_add_up() -> None:
    rows = RowCounter()
    for batches, counted in (
        ([(TRAINING, 4)] * 3, 12),
        ([*[(VALIDATION, 100)] * 5, (TRAINING, 4)], 4),
        ([], 0),
        ([(TRAINING, 4)], 4),
        ([(VALIDATION, 7)], 7),
    ):
        for loader, size in batches:
            rows.take(loader, tensor(size))
        assert rows.since_last_step() == counted


def test_loaders_are_counted_as_they_hand_over() -> None:
    class Iterator:
        _dataset = TRAINING

        def __next__(self) -> Any:
            return [tensor(3)]

    rows = RowCounter()
    count_rows(SimpleNamespace(_BaseDataLoaderIter=Iterator), rows)
    assert [batch.shape for batch in next(Iterator())] == [(3,)]
    assert rows.since_last_step() == 3


class Skips(float):
    """Whether a device has skipped a step, as its tensor says it."""

    def detach(self) -> float:
        return float(self)


@pytest.mark.parametrize(("of_batches", "skipped"), [(True, 12.0), (False, 2.0)], ids=["rows", "steps"])
def test_a_skipped_step_takes_back_its_credited_items(
    of_batches: bool, skipped: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.register_at_fork", lambda **calls: None)
    monkeypatch.setattr("atexit.register", lambda call: None)
    credited: list[float] = []
    rows = RowCounter() if of_batches else None
    optimizers = Optimizers(None, Settings(items=2.0), rows)
    monkeypatch.setattr(optimizers, "_steps", SimpleNamespace(step=credited.append))
    for found_inf in (0.0, 1.0, 0.0):
        if rows is not None:
            rows.take(TRAINING, tensor(6))
        optimizers._step(SimpleNamespace(found_inf=Skips(found_inf)))
    assert optimizers._border() == skipped == credited[1]
    assert optimizers._border() == 0.0
