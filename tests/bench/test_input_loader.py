from __future__ import annotations

import itertools
import os
import random
import tempfile
from collections import Counter, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import Dataset, TensorDataset

from bench.small import Small
from cotenant.bench import MissingDataError, Run
from cotenant.bench.loader import CHUNK, EndlessSampler, loader
from cotenant.bench.world import World

Pair = namedtuple("Pair", "x y")


class Numbers(Dataset[Any]):
    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((2,), float(index)), index


class Drawn(Numbers):
    """Draws from every random generator that a transform may use."""

    def __getitem__(self, index: int) -> Any:
        return torch.tensor([random.random(), np.random.random(), torch.rand(()).item()])


def labels(batches: Any, count: int) -> list[int]:
    return [label for _, batch in itertools.islice(batches, count) for label in batch.tolist()]


def dataset(kind: str, size: int) -> Dataset[Any]:
    return TensorDataset(torch.arange(size).float(), torch.arange(size)) if kind == "memory" else Numbers(size)


@given(
    st.sampled_from(["memory", "samples"]), st.integers(1, 9), st.integers(1, 20), st.integers(1, 6), st.integers(0, 99)
)
def test_every_sample_comes_once_per_shuffling(kind: str, size: int, batch_size: int, count: int, seed: int) -> None:
    batches = list(itertools.islice(loader(dataset(kind, size), batch_size, 0, seed), count))
    assert all(len(part) == batch_size for batch in batches for part in batch)
    assert all(torch.equal(x if kind == "memory" else x[:, 0], y.float()) for x, y in batches)
    drawn = [label for _, batch in batches for label in batch.tolist()]
    assert drawn == labels(loader(dataset("memory", size), batch_size, 0, seed), count)
    for start in range(0, len(drawn), size):
        shuffling = drawn[start : start + size]
        assert len(set(shuffling)) == len(shuffling)


def test_the_order_depends_on_the_seed_and_is_shuffled_anew() -> None:
    drawn = labels(loader(Numbers(100), 50, 0, 1), 4)
    assert drawn != labels(loader(Numbers(100), 50, 0, 2), 4)
    assert drawn[:100] != drawn[100:]
    assert Counter(drawn) == dict.fromkeys(range(100), 2)


def test_a_process_loads_the_same_batches_despite_a_long_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / ("x" * 80)
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    assert labels(loader(Numbers(7), 4, 1, 5), 6) == labels(loader(Numbers(7), 4, 0, 5), 6)
    assert len(tempfile.gettempdir()) < 40
    with tempfile.NamedTemporaryFile() as file:
        assert Path(file.name).resolve().parent == place


def test_the_generators_of_a_process_follow_the_seed() -> None:
    def drawn(seed: int) -> torch.Tensor:
        return torch.cat(list(itertools.islice(loader(Drawn(8), 4, 1, seed), 3)))

    first = drawn(1)
    assert torch.equal(first, drawn(1))
    assert not torch.equal(first, drawn(2))
    assert len(first[:, 1].unique()) == len(first)


def test_an_empty_set_is_missing_data() -> None:
    for empty in (Numbers(0), TensorDataset(torch.empty(0, 2))):
        with pytest.raises(MissingDataError, match="The data set is empty"):
            loader(empty, 4, 0, 0)


def test_indices_come_in_chunks_of_one_shuffling() -> None:
    size = 2 * CHUNK + 17
    indices = list(itertools.islice(EndlessSampler(size, 0), 2 * size))
    assert sorted(indices[:size]) == sorted(indices[size:]) == list(range(size))


def test_batches_without_accelerator_pass_untouched(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(Small())
    monkeypatch.setattr(Run, "to_device", lambda *_: pytest.fail("nothing is to be placed"))
    assert len(next(run.loader(Numbers(9)))[0]) == 4


def test_every_tensor_of_a_batch_is_placed() -> None:
    def collate(samples: list[Any]) -> Any:
        x, y = torch.utils.data.default_collate(samples)
        return Pair(x, {"y": [y], "name": "n"})

    batch = next(loader(Numbers(9), 4, 0, 0, place=lambda tensor: tensor + 100, collate=collate))
    assert isinstance(batch, Pair)
    assert batch.x.min() >= 100
    assert batch.y["y"][0].min() >= 100
    assert batch.y["name"] == "n"


def test_batches_come_in_the_memory_format_of_the_model() -> None:
    run = Run(Small(channels_last=True))
    image, label = next(run.loader(TensorDataset(torch.rand(9, 3, 5, 5), torch.arange(9))))
    assert image.is_contiguous(memory_format=torch.channels_last)
    assert label.shape == (4,)
    resident, vector = next(run.resident(torch.rand(4, 3, 5, 5), torch.rand(4, 3)))
    assert resident.is_contiguous(memory_format=torch.channels_last)
    assert vector.is_contiguous()


def test_a_run_seeds_every_generator() -> None:
    def drawn(seed: int) -> tuple[float, float, float]:
        Run(Small(seed=seed))
        return random.random(), float(np.random.random()), torch.rand(()).item()

    assert drawn(4) == drawn(4)
    assert all(one != other for one, other in zip(drawn(4), drawn(5), strict=True))
    assert drawn(2**40) == drawn(2**40)


def test_how_many_processes_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as the flag says, or one for each processor; ranks share them; data in memory needs none."""
    run = Run(Small(workers=3))
    next(run.loader(TensorDataset(torch.ones(9, 3))))
    assert (run.observed, run.findings) == ({"workers": 0, "loaded_ahead": 0}, [])
    monkeypatch.setattr("cotenant.bench.run.loader", lambda dataset, batch_size, workers, *_, **__: [workers])
    for requested, ranks, ran in ((8, 2, 8), (0, 2, 0), (8, 3, 6), (1, 2, 2)):
        run = Run(Small(workers=requested))
        run.world = World(0, 0, ranks, ranks)
        assert run.loader(Numbers(9)) == [ran // ranks]
        assert run.observed == {"workers": ran, "loaded_ahead": 2 * (ran // ranks)}
        assert [finding.rule for finding in run.findings] == (["workers_shared"] if ran != requested else [])
    for processors, workers in ((1, 0), (2, 2), (16, 16)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda pid, processors=processors: range(processors))
        assert Small().workers == workers
        assert Small(workers=5).workers == 5


@pytest.mark.parametrize("pinned", [False, True])
def test_data_in_memory_is_pinned_only_if_asked(pinned: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # Without an accelerator torch pins no memory: an added 100 stands for it.
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: tensor + 100)
    x, label = next(loader(TensorDataset(torch.arange(9), torch.arange(9)), 4, 0, 0, pin_memory=pinned))
    assert (int(x.min()) >= 100) == (int(label.min()) >= 100) == pinned
