"""NeuMF: its size, its samples, and MovieLens's ratings read from their file."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench.small import warmed
from cotenant.bench import MissingDataError, Run
from cotenant.bench.loop import BOOKED_OF_SHORT
from cotenant.datasets.sets import ml_20m
from tasks.loading import built, losses

PLACE = "recommendation/neural_collaborative_filtering"
HEADER = "userId,movieId,rating,timestamp\n"


@pytest.fixture
def few(main: Any, small_tables: None) -> Any:
    """Return the module, with small tables."""
    return main


@pytest.fixture(scope="module")
def ratings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ml-20m")
    (file,) = ml_20m.recipe(5_000, 3, 300, 200).files()
    (folder / "ratings.csv").write_bytes(b"".join(ml_20m.content(file)))
    return folder


def test_flags_set_dropout_and_adam_betas_as_the_vendors_do(few: Any) -> None:
    words = {"dropout": 0.5, "beta1": 0.25, "beta2": 0.5}
    theirs, _ = built(few.NeuralCollaborativeFiltering, batch_size=8, **words)
    ours, _ = built(few.NeuralCollaborativeFiltering, batch_size=8)
    dropped = [part.p for part in theirs.model.modules() if isinstance(part, torch.nn.Dropout)]
    assert (dropped, theirs.optimizer.defaults["betas"]) == ([0.5] * 3, (0.25, 0.5))
    assert not any(isinstance(part, torch.nn.Dropout) for part in ours.model.modules())
    assert ours.optimizer.defaults["betas"] == (0.9, 0.999)


def test_one_table_serves_both_parts(few: Any) -> None:
    """The score reads the product of the first factors beside the output of the layers on the rest."""
    net = few.NeuMF(3, (8, 4))
    user, item = net.user.weight[[5, 6]], net.item.weight[[7, 9]]
    h = torch.relu(net.mlp[0](torch.cat([user[:, 3:], item[:, 3:]], dim=1)))
    expected = net.score(torch.cat([user[:, :3] * item[:, :3], h], dim=1))[:, 0]
    torch.testing.assert_close(net(torch.tensor([5, 6]), torch.tensor([7, 9])), expected)


def test_the_seed_decides_the_losses(few: Any, ratings: Path) -> None:
    runs = (built(few.NeuralCollaborativeFiltering, seed=seed, batch_size=64, data=ratings) for seed in (5, 5, 6))
    first, again, other = (losses(*run, 4) for run in runs)
    assert first == again != other


def test_one_in_five_ratings_of_the_resident_batch_is_positive(main: Any) -> None:
    benchmark = main.NeuralCollaborativeFiltering(cuda=False, batch_size=20_000)
    user, item, label = next(iter(benchmark.batches(Run(benchmark))))
    assert (user.shape, item.shape, label.dtype) == ((20_000,), (20_000,), torch.float32)
    assert 0.18 < label.mean() < 0.22
    assert 0.4 < (item[label == 1] < 300).float().mean() < 0.6
    assert (item[label == 0] < 300).float().mean() < 0.03
    assert item.min() >= 0
    assert user.max() < 138_493


def test_every_wait_for_the_drawing_is_booked(few: Any, ratings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.bench.loop.SHORT_STEP_NS", 10**12)
    for data, every in ((ratings, 1), (None, BOOKED_OF_SHORT)):
        loop, run = warmed(few.NeuralCollaborativeFiltering(cuda=False, data=data, batch_size=8))
        assert (loop.books_every, loop.observe(40).items, run.findings) == (every, 40 * 8, [])


def test_negatives_are_drawn_where_the_ratings_lie(few: Any) -> None:
    """The meta device holds no numbers: the drawing works there only while the host reads none."""
    ratings_r = torch.zeros(9, dtype=torch.int32, device="meta")
    known = few.Known(*(part.to("meta") for part in few.Known.of(torch.tensor([1, 2]), torch.tensor([3, 4]))))
    assert {part.device.type for part in next(few.samples(ratings_r, ratings_r, known, 8))} == {"meta"}


def test_what_a_user_rated_is_no_negative(few: Any) -> None:
    """This holds in any order of the ratings and with repeated ones; all other items are equally likely."""
    free = {0: {0, 1, 199}, 7: {40, 41, 120}, 8: set(range(200)) - {0, 199}, 299: {5}}
    pairs = torch.tensor([(user, item) for user, left in free.items() for item in set(range(200)) - left] * 2)
    user_r, item_r = pairs[torch.randperm(len(pairs))].int().T
    known = few.Known.of(user_r, item_r)
    for user, left in [*free.items(), (5, set(range(200)))]:
        counts = known.others(torch.full((20_000,), user)).bincount(minlength=200)
        assert set(counts.nonzero().flatten().tolist()) == left
        likely = counts[counts > 0] * len(left) / 20_000
        assert 0.5 < likely.min() <= likely.max() < 1.6
    everything = few.Known.of(torch.zeros(200, dtype=torch.int32), torch.arange(200))
    assert known.others(torch.tensor([1, 1])).max() < 200 > everything.others(torch.tensor([0, 0])).max()
    user, item, label = next(few.samples(user_r, item_r, known, 5_000))
    for one in free:
        assert set(item[(user == one) & (label == 0)].tolist()) <= free[one]


@pytest.mark.parametrize("batch_size", [1, 2**15])
def test_samples_are_ratings_and_drawn_items_of_their_users(few: Any, batch_size: int) -> None:
    user_r, item_r = torch.tensor([3, 3, 8], dtype=torch.int32), torch.tensor([150, 151, 152], dtype=torch.int32)
    batches = list(itertools.islice(few.samples(user_r, item_r, few.Known.of(user_r, item_r), batch_size), 3))
    assert all(part.shape == (batch_size,) and part.is_contiguous() for batch in batches for part in batch)
    user, item, label = (torch.cat(parts) for parts in zip(*batches, strict=True))
    positive = label == 1
    pairs = set(zip(user[positive].tolist(), item[positive].tolist(), strict=True))
    assert pairs <= {(3, 150), (3, 151), (8, 152)}
    assert set(label.tolist()) <= {0.0, 1.0}
    if batch_size > 1:
        assert 0.15 < label.mean() < 0.25
        assert 0.6 < (user == 3).float().mean() < 0.73
        assert len(pairs) == 3
        counts = torch.bincount(item[~positive], minlength=200)[:150]
        assert counts.max() < 1.5 * counts.min()


def test_the_file_is_read_as_a_slow_reader_would(few: Any, ratings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = (ratings / "ratings.csv").read_text().splitlines()[1:]
    slow = np.array([[int(word) for word in line.split(",")[:2]] for line in lines])
    expected = [torch.from_numpy(np.unique(column, return_inverse=True)[1]) for column in slow.T]
    for piece_bytes in (2**25, 1000, 1):
        monkeypatch.setattr(few, "PIECE_BYTES", piece_bytes)
        found = few.read_ratings(ratings / "ratings.csv")
        assert [part.dtype for part in found] == [torch.int32] * 2
        assert all(map(torch.equal, (part.long() for part in found), expected))


@pytest.mark.parametrize("ending", ["", "\n", "\r\n"])
def test_ends_of_lines(few: Any, tmp_path: Path, ending: str) -> None:
    between = ending or "\n"
    text = HEADER + between.join(["1,131262,3.5,1112486027", "138493,7,0.5,789652009", "12,7,5.0,1"]) + ending
    (tmp_path / "ratings.csv").write_text(text, newline="")
    user, item = few.read_ratings(tmp_path / "ratings.csv")
    assert (user.tolist(), item.tolist()) == ([0, 2, 1], [1, 0, 0])


@pytest.mark.parametrize(
    "text",
    ["", HEADER, HEADER + "1,2,3.5\n", HEADER + "1,2,3.5,4,5\n", HEADER + "1::2::3::4\n", HEADER + "1,-2,3.5,4\n"]
    + [HEADER + f"1,{10**width},3.5,4\n" for width in (8, 12, 30)],
)
def test_what_is_no_list_of_ratings(few: Any, tmp_path: Path, text: str) -> None:
    (tmp_path / "ratings.csv").write_text(text)
    with pytest.raises(ValueError, match="is no list of ratings"):
        few.read_ratings(tmp_path / "ratings.csv")


def test_a_larger_set_is_refused(few: Any, tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text(HEADER + "".join(f"{user},1,3.5,4\n" for user in range(301)))
    with pytest.raises(MissingDataError, match="more than ML-20M's 300 users"):
        few.read_ratings(tmp_path / "ratings.csv")
