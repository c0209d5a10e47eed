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
from cotenant.datasets.sets.wmt16 import content, recipe
from tasks import loading
from tasks.loading import losses

pytestmark = pytest.mark.usefixtures("one_thread")

PLACE = "natural_language_processing/rnn_translator"
SMALL: dict[str, Any] = {"batch_size": 4, "hidden": 16, "words": 200, "dropout": 0.0, "lr": 0.01}
EN, DE, LISTED = "train.tok.clean.bpe.32000.en", "train.tok.clean.bpe.32000.de", "vocab.bpe.32000"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Write a tiny set with its own maker; return its folder."""
    for file in recipe(300, 10).files():
        (tmp_path / file.path).write_bytes(b"".join(content(file)))
    return tmp_path


def written(folder: Path, english: str, german: str, listed: str = "a\nb\nc\n") -> Path:
    (folder / EN).write_text(english)
    (folder / DE).write_text(german)
    (folder / LISTED).write_text(listed)
    return folder


def built(main: Any, **parameters: Any) -> tuple[Any, Run]:
    return loading.built(main.Translator, **SMALL | parameters)


def test_the_vocabulary_becomes_a_multiple_of_8(main: Any) -> None:
    benchmark, _ = built(main, words=37)
    assert benchmark.model.embedding.num_embeddings == benchmark.model.decoder.words.out_features == 40


def test_weights_begin_uniform(main: Any) -> None:
    model = main.GNMT(64, 32, 0.0)
    attention = model.decoder.attention
    assert attention.g.tolist() == [pytest.approx(32**-0.5)]
    assert not attention.query.bias.any()
    rest = [p for p in model.parameters() if p is not attention.g and p is not attention.query.bias]
    assert all(p.abs().max() <= 0.1 for p in rest)
    assert all(0.05 < p.std() < 0.065 for p in rest if p.numel() > 1000)


def test_pairs_of_files_are_counted_and_so_are_their_tokens(main: Any, files: Path) -> None:
    loop, run = warmed(main.Translator(cuda=False, data=files, **SMALL))
    assert (loop.observe(3).items, run.findings) == (12, [])
    assert 45 < run.metrics["tokens_per_item"] < 60


def test_tokens_of_both_sides_are_counted_without_padding(main: Any, files: Path) -> None:
    benchmark, run = built(main, data=files, count="tokens")
    assert (benchmark.item, built(main)[0].item) == ("token", "sentence pair")
    for batch in itertools.islice(benchmark.batches(run), 5):
        words = int((batch.source_sb != 0).sum() + (batch.target_tb[1:] != 0).sum())
        assert benchmark.items(batch) == words < batch.source_sb.numel() + batch.target_tb.numel()
    assert not run.metrics  # An item is a token already.


def test_a_cached_batch_has_its_own_number_of_tokens(main: Any, files: Path) -> None:
    benchmark, run = built(main, data=files, cached_batch=True, seed=3)
    (source, _, target, _), _ = itertools.islice(benchmark.batches(run), 2)
    tokens = int((source != 0).sum() + (target[1:] != 0).sum()) / source.size(1)
    assert run.metrics["tokens_per_item"] == pytest.approx(tokens)
    benchmark, run = built(main, data=files, seed=3)
    benchmark.batches(run)
    assert run.metrics["tokens_per_item"] != pytest.approx(tokens)


def test_the_same_seed_gives_the_same_losses(main: Any, files: Path) -> None:
    first, again, other = (losses(*built(main, seed=seed, data=files), 3) for seed in (0, 0, 1))
    assert first == again != other


def test_the_resident_batch_is_of_one_bucket(main: Any) -> None:
    benchmark, run = built(main, batch_size=64, words=32_320)
    batches = iter(benchmark.batches(run))
    source, length, target, _ = first = next(batches)
    assert next(batches) is first
    assert (source.size(1), target.size(1), benchmark.items(first)) == (64, 64, 64)
    assert (source != 0).sum(0).tolist() == length.tolist() == sorted(length.tolist(), reverse=True)
    assert 45 < run.metrics["tokens_per_item"] < 60
    assert 22 <= length.min() <= length.max() == len(source) <= 31
    assert target[0].unique().tolist() == [2]
    assert (target == 3).sum(0).unique().tolist() == (source == 3).sum(0).unique().tolist() == [1]
    assert 4 <= source[source > 3].min() <= source.max() < 32_320
    # Zipf's law: half of all words are among the few hundred most frequent ones.
    assert 50 < source[source > 3].float().median() < 700


def test_padding_changes_nothing(main: Any) -> None:
    model = main.GNMT(50, 16, 0.2).eval()
    source, target = torch.randint(4, 50, (9, 3)), torch.randint(4, 50, (8, 3))
    source[5:, 1], source[3:, 2], target[4:, 2] = 0, 0, 0
    together = model(source, torch.tensor([9, 5, 3]), target)
    for column, (s, t) in enumerate([(9, 8), (5, 8), (3, 4)]):
        one = slice(column, column + 1)
        alone = model(source[:s, one], torch.tensor([s]), target[:t, one])
        torch.testing.assert_close(together[:t, one], alone, atol=1e-5, rtol=1e-4)


def test_padding_does_not_count_in_the_loss(main: Any) -> None:
    benchmark, run = built(main)
    run.update = lambda loss, optimizer, clip_norm: None  # type: ignore[assignment]
    batch = next(iter(benchmark.batches(run)))
    longer = batch._replace(target_tb=torch.nn.functional.pad(batch.target_tb, (0, 0, 0, 5)))
    torch.testing.assert_close(benchmark.step(run, longer), benchmark.step(run, batch))


def test_a_word_is_predicted_from_those_before_it(main: Any) -> None:
    model = main.GNMT(50, 16, 0.2).eval()
    source, target = torch.randint(4, 50, (6, 2)), torch.randint(4, 50, (7, 2))
    before = model(source, torch.tensor([6, 6]), target)
    target[4] = 4 + (target[4] - 3) % 46
    after = model(source, torch.tensor([6, 6]), target)
    torch.testing.assert_close(before[:4], after[:4])
    assert not torch.allclose(before[4:], after[4:])


def test_attention_is_the_published_formula(main: Any) -> None:
    attention = main.GNMT(8, 6, 0.0).decoder.attention
    x, memory = torch.randn(3, 2, 6), torch.randn(4, 2, 6)
    padding = torch.tensor([[False, False], [False, False], [False, True], [False, True]])
    context = attention(x, memory, padding)
    v = attention.g * attention.v / attention.v.norm()
    for t, b in itertools.product(range(3), range(2)):
        sources = range(4 if b == 0 else 2)
        score = torch.stack([v @ (attention.query(x[t, b]) + attention.key(memory[s, b])).tanh() for s in sources])
        expected = sum(weight * memory[s, b] for s, weight in zip(sources, score.softmax(0), strict=True))
        torch.testing.assert_close(context[t, b], expected)


def test_batches_hold_pairs_of_the_files(main: Any, files: Path) -> None:
    listed = (files / LISTED).read_text().split()

    def numbers(name: str) -> list[list[int]]:
        known = {word: number for number, word in enumerate(listed, 4) if number < 200}
        return [[known.get(word, 1) for word in line.split()] for line in (files / name).read_text().splitlines()]

    pairs = {(tuple(en), tuple(de)) for en, de in zip(numbers(EN), numbers(DE), strict=True)}
    benchmark, run = built(main, data=files)
    seen = set()
    for source, length, target, _ in itertools.islice(benchmark.batches(run), 300):
        assert length.tolist() == (source != 0).sum(0).tolist() == sorted(length.tolist(), reverse=True)
        ends = (source != 0).sum(0) - 1, (target != 0).sum(0) - 1
        assert len({(int(torch.maximum(s, t - 1)) - 1) // 10 for s, t in zip(*ends, strict=True)}) == 1
        assert target[0].tolist() == [2] * 4
        for b, (s, t) in enumerate(zip(*ends, strict=True)):
            assert (int(source[s, b]), int(target[t, b])) == (3, 3)
            seen.add((tuple(source[:s, b].tolist()), tuple(target[1:t, b].tolist())))
    assert seen == pairs


def test_buckets_take_turns_by_their_share(main: Any) -> None:
    bucket = np.repeat([0, 1, 2], [10, 60, 30])
    drawn = list(itertools.islice(main.bucketed(bucket, 5, np.random.default_rng(0)), 40))
    turns = [set(bucket[chosen]) for chosen in drawn]
    assert [turns[:10].count({one}) for one in range(3)] == [1, 6, 3]
    assert [turns.count({one}) for one in range(3)] == [4, 24, 12]
    assert np.array_equal(np.sort(np.concatenate(drawn[:20])), np.arange(100))
    assert not np.array_equal(np.sort(np.concatenate(drawn[:10])), np.arange(0, 100, 2))


def test_a_set_smaller_than_a_batch_fills_it(main: Any, tmp_path: Path) -> None:
    benchmark, run = built(main, data=written(tmp_path, "a b\n", "c\n"))
    source, length, target, _ = next(iter(benchmark.batches(run)))
    assert (source.T.tolist(), length.tolist()) == ([[4, 5, 3]] * 4, [3] * 4)
    assert target.T.tolist() == [[2, 6, 3]] * 4


def test_what_is_not_trained_on(main: Any, tmp_path: Path) -> None:
    english = ["", "a", "a " * 51, "a " * 50, "never seen", "b"]
    german = ["a", "", "a", "a " * 50, "b c", "a " * 51]
    folder = written(tmp_path, *("".join(f"{line}\n" for line in lines) for lines in (english, german)))
    benchmark, run = built(main, data=folder)
    seen = {
        tuple(source[:, b].tolist()) for source, *_ in itertools.islice(benchmark.batches(run), 9) for b in range(4)
    }
    assert seen == {(*[4] * 50, 3), (1, 1, 3)}


@pytest.mark.parametrize(
    "english, german, sentence",
    [("", "", "no sentence pair"), ("a\n", "a\nb\n", "1 English and 2 German"), ("\n", "a\n", "no sentence pair")],
)
def test_files_without_pairs(main: Any, tmp_path: Path, english: str, german: str, sentence: str) -> None:
    benchmark, run = built(main, data=written(tmp_path, english, german))
    with pytest.raises(MissingDataError, match=f"{sentence}.*Make it again"):
        benchmark.batches(run)


@pytest.mark.parametrize("real", [False, True])
def test_ranks_train_on_pairs_of_their_own(main: Any, files: Path, real: bool) -> None:
    firsts = []
    for rank in (0, 1):
        benchmark, run = built(main, data=files if real else None)
        run.world, run.seed = replace(run.world, rank=rank, size=2), run.seed + rank
        firsts.append(next(iter(benchmark.batches(run)))[0])
    assert not torch.equal(*firsts)
