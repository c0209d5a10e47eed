from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bench.small import warmed
from cotenant.bench import MissingDataError, Run
from cotenant.datasets.dataset import File
from cotenant.datasets.sets.wikitext import VOCABULARY, content
from tasks import loading
from tasks.loading import losses, skip_without_lstm

pytestmark = pytest.mark.usefixtures("one_thread")

MODELS = ["GRU", "LSTM", "RNN_TANH", "RNN_RELU", "Transformer"]
PLACE = "natural_language_processing/word_language_model"
SMALL: dict[str, Any] = {"batch_size": 3, "words": 100, "emsize": 12, "nhid": 12, "dropout": 0.0, "bptt": 7, "lr": 2.0}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write a small text with its own maker; return its folder."""
    file = File("wiki.train.tokens", "train", 1200, (1200, VOCABULARY))
    (tmp_path / file.path).write_bytes(b"".join(content(file)))
    return tmp_path


def built(main: Any, **parameters: Any) -> tuple[Any, Run]:
    return loading.built(main.WordLanguageModel, **SMALL | parameters)


@pytest.mark.parametrize("precision", ["fp32", pytest.param("bf16", marks=pytest.mark.slow)])
@pytest.mark.parametrize("model", MODELS)
def test_items_and_dtype_are_what_ran(main: Any, files: Path, model: str, precision: str) -> None:
    if model == "LSTM":
        skip_without_lstm(precision)
    loop, run = warmed(main.WordLanguageModel(cuda=False, model=model, precision=precision, data=files, **SMALL))
    seen = loop.observe(3)
    assert (seen.items, loop.auditor.dtype, run.findings) == (9, precision, [])
    assert all(loss.isfinite() for loss in seen.losses)
    assert run.metrics == {"tokens_per_item": 7.0}


@pytest.mark.parametrize("precision", ["fp32", pytest.param("bf16", marks=pytest.mark.slow)])
@pytest.mark.parametrize("model", MODELS)
def test_the_loss_falls_on_a_fixed_batch(main: Any, model: str, precision: str) -> None:
    if model == "LSTM":
        skip_without_lstm(precision)
    seen = losses(*built(main, model=model, precision=precision), 30)
    assert abs(seen[0] - np.log(100)) < 1
    assert seen[-1] < 0.8 * seen[0]


def test_the_same_seed_gives_the_same_losses(main: Any, files: Path) -> None:
    first, again, other = (losses(*built(main, dropout=0.5, data=files, seed=seed), 3) for seed in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize("model", ["GRU", "LSTM", "RNN_TANH"])
def test_the_state_goes_on_without_its_history(main: Any, files: Path, model: str) -> None:
    benchmark, run = built(main, model=model, data=files)
    run.update = lambda loss, optimizer, clip_norm: loss.backward()  # type: ignore[assignment]
    batches = iter(benchmark.batches(run))
    first, second = next(batches), next(batches)
    assert torch.equal(first[-1], second[0])
    benchmark.step(run, first)
    parts = benchmark.state if isinstance(benchmark.state, tuple) else (benchmark.state,)
    assert not any(part.requires_grad for part in parts)
    assert all(part.abs().sum() > 0 for part in parts)
    together, _ = benchmark.network(torch.cat([first[:-1], second[:-1]]), None)
    apart, _ = benchmark.network(second[:-1], benchmark.state)
    torch.testing.assert_close(together[7:], apart)


def test_a_transformer_looks_back_only(main: Any) -> None:
    benchmark, _ = built(main, model="Transformer")
    text = torch.randint(0, 100, (7, 2))
    before, _ = benchmark.network(text, None)
    text[4] = (text[4] + 1) % 100
    after, _ = benchmark.network(text, None)
    torch.testing.assert_close(before[:4], after[:4])
    assert not torch.allclose(before[4:], after[4:])


def test_the_resident_batch_follows_zipfs_law(main: Any) -> None:
    benchmark, run = built(main, batch_size=64, words=33_278, bptt=35)
    batches = iter(benchmark.batches(run))
    text = next(batches)
    assert next(batches) is text
    assert (text.shape, benchmark.items(text)) == ((36, 64), 64)
    assert 0 <= text.min() <= text.max() < 33_278
    assert 100 < text.float().median() < 300
    assert 0.04 < (text == 0).float().mean() < 0.1


def test_batches_are_the_text_in_columns(main: Any, tmp_path: Path) -> None:
    lines = ["", "= b =", "", "a b c a b a", "<unk> c d d a b a b", "b a"]
    (tmp_path / "wiki.train.tokens").write_text("".join(f" {line} \n" for line in lines))
    words = [word for line in lines for word in [*line.split(), "<eos>"]]
    # <unk> comes first, whatever its count, then the others by count, and by their first place in the text.
    rank = {word: rank for rank, word in enumerate(["<unk>", "<eos>", "b", "a", "=", "c", "d"])}
    numbers = torch.tensor([rank[word] for word in words])
    assert len(numbers) == 25
    benchmark, run = built(main, data=tmp_path, batch_size=2, bptt=3)
    batches = list(itertools.islice(benchmark.batches(run), 6))
    columns = numbers[:24].view(2, 12).T
    for batch, start in zip(batches, [0, 3, 6, 0, 3, 6], strict=True):
        assert torch.equal(batch, columns[start : start + 4])
    assert batches[0].untyped_storage().data_ptr() == batches[5].untyped_storage().data_ptr()


@pytest.mark.parametrize("text, sentence", [("", "is empty"), ("a b\n", "has 3 words: too few")])
def test_without_enough_text(main: Any, tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "wiki.train.tokens").write_text(text)
    benchmark, run = built(main, data=tmp_path)
    with pytest.raises(MissingDataError, match=sentence):
        benchmark.batches(run)


def test_ranks_read_the_text_from_places_of_their_own(main: Any, files: Path) -> None:
    batches = []
    for rank in (0, 1):
        run = Run(benchmark := main.WordLanguageModel(cuda=False, data=files, **SMALL))
        run.world = replace(run.world, rank=rank, size=2)
        batches.append(list(itertools.islice(benchmark.batches(run), 5000)))
    assert not torch.equal(batches[0][0], batches[1][0])
    # Each rank reads the whole text once before it begins again.
    assert len({tuple(one.flatten().tolist()) for one in batches[0]}) == len(
        {tuple(one.flatten().tolist()) for one in batches[0] + batches[1]}
    )
