from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from cotenant.bench import MissingDataError
from cotenant.bench.observed import FlopCount
from tasks.loading import SMALL, built

PLACE = "natural_language_processing/transformer_xl"


def model_of(main: Any, layers: int = 2, target: int = 5, memory: int = 3) -> Any:
    """Return a small model without dropout, whose biases of attention are not near 0."""
    model = main.TransformerXL(50, layers, 8, 2, 16, target, memory, 0.1, 0.1).eval()
    torch.nn.init.normal_(model.content_bias)
    torch.nn.init.normal_(model.distance_bias)
    return model


@pytest.mark.parametrize(("optim", "name"), [("lamb", "LAMB"), ("adam", "Adam")])
def test_the_base_model_has_lamb_and_the_large_one_adam(main: Any, optim: str, name: str) -> None:
    benchmark, run = built(main.LongMemory, **SMALL[PLACE], optim=optim, lr=0.01)
    assert type(benchmark.optimizer).__name__ == name
    (batch,) = itertools.islice(benchmark.batches(run), 1)
    learned = [benchmark.step(run, batch).item() for _ in range(20)]
    assert learned[-1] < 0.97 * learned[0]


def test_operations_are_those_that_are_counted(main: Any) -> None:
    benchmark, run = built(main.LongMemory, **SMALL[PLACE])
    batch = next(benchmark.batches(run))
    with FlopCount() as count:
        benchmark.step(run, batch)
    assert count.total == benchmark.flops(batch)


def test_attention_is_the_published_formula(main: Any) -> None:
    target, memory, heads, width = 5, 3, 2, 4
    model = model_of(main)
    layer = model.layers[0]
    x, seen = torch.randn(2, target, 8), torch.randn(2, memory + target, 8)
    mask = model.mask_tk.repeat(2, 1)
    found = layer.attended(x, seen, model.distance_kw, mask, model.content_bias, model.distance_bias)
    # The row of a distance: the farthest comes first.
    by_distance = layer.distance(model.distance_kw).flip(0).view(-1, heads, width)
    keys, values = layer.key_value(seen).chunk(2, dim=2)
    for b, i, n in itertools.product(range(2), range(target), range(heads)):
        q = layer.query(x[b, i]).view(heads, width)[n]
        scores = [
            (q + model.content_bias[n]) @ keys[b, j].view(heads, width)[n]
            + (q + model.distance_bias[n]) @ by_distance[memory + i - j, n]
            for j in range(memory + i + 1)
        ]
        weights = (torch.stack(scores) / width**0.5).softmax(0)
        expected = weights @ values[b, : memory + i + 1].view(-1, heads, width)[:, n]
        torch.testing.assert_close(found[b, i].view(heads, width)[n], expected)


def test_distances_are_sines_and_cosines(main: Any) -> None:
    rows = model_of(main, target=5, memory=3).distance_kw
    assert rows.shape == (9, 8)
    # Distance 0 is the last row, and a row's wavelengths go from 2 pi up.
    torch.testing.assert_close(rows[-1], torch.tensor([0.0] * 4 + [1.0] * 4))
    sine, slower, cosine = rows[0, [0, 1, 4]]
    torch.testing.assert_close(torch.stack([sine, slower]), torch.tensor([8.0, 0.8]).sin())
    torch.testing.assert_close(cosine, torch.tensor(8.0).cos())


def test_a_word_is_predicted_from_earlier_words_and_memory(main: Any) -> None:
    model = model_of(main)
    words, memory = torch.randint(0, 50, (2, 5)), torch.randn(2, 2, 3, 8)
    before, _ = model.states(words, memory)
    words[:, 3] = (words[:, 3] + 1) % 50
    after, _ = model.states(words, memory)
    torch.testing.assert_close(before[:, :3], after[:, :3])
    assert not torch.allclose(before[:, 3:], after[:, 3:])
    other, _ = model.states(words, 2 * memory)
    assert (other != after).any(dim=2).all()


def test_the_memory_is_what_the_layers_have_read_last(main: Any) -> None:
    model = model_of(main, target=2, memory=3)
    memory = main.Memory(2, 1, 3, 8)
    for words in torch.tensor([[1, 2], [3, 4]]):
        _, states = model.states(words[None], memory.states_lbmw)
        memory.keep(states)
    assert not memory.states_lbmw.requires_grad
    torch.testing.assert_close(memory.states_lbmw[0, 0], model.embedding.weight[2:5] * 8**0.5)


def test_a_step_goes_on_from_the_step_before(main: Any) -> None:
    benchmark, run = built(main.LongMemory, **SMALL[PLACE])
    batch, states = next(benchmark.batches(run)), benchmark.memories.states_lbmw
    assert not states.any()
    benchmark.step(run, batch)
    assert benchmark.memories.states_lbmw is states
    assert states.flatten(1).any(dim=1).all()


def test_words_follow_zipfs_law_and_16_bit_pads_their_number(main: Any) -> None:
    benchmark, run = built(main.LongMemory, **SMALL[PLACE] | {"words": 203, "batch_size": 500})
    words = next(benchmark.batches(run))
    assert (words.shape, words.min(), benchmark.items(words)) == ((500, 7), 0, 3000)
    assert 190 < words.max() < 203
    assert 5 < words.float().median() < 25
    assert benchmark.model.embedding.num_embeddings == 203
    assert built(main.LongMemory, **SMALL[PLACE] | {"words": 203, "precision": "bf16"})[0].model_words == 208


def test_a_text_is_read_on_in_every_row(main: Any, tmp_path: Path) -> None:
    """The text has 25 words, which fill 2 rows of 12; its most frequent word has number 0."""
    (tmp_path / "wiki.train.tokens").write_text(" ".join(["<unk>"] * 2 + [f"w{number}" for number in range(22)]) + "\n")
    benchmark, run = built(main.LongMemory, **SMALL[PLACE] | {"data": tmp_path, "target": 4})
    first, second, again = itertools.islice(benchmark.batches(run), 3)
    assert (first.shape, benchmark.items(first)) == ((2, 5), 8)
    assert first.tolist() == [[0, 0, 1, 2, 3], [11, 12, 13, 14, 15]]
    assert torch.equal(second[:, 0], first[:, -1])
    assert torch.equal(again, first)
    assert benchmark.step(run, second).isfinite()
    benchmark.target = 12
    with pytest.raises(MissingDataError, match="25 words: too few for 2 sequences of 12"):
        benchmark.batches(run)
