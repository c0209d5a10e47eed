from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from cotenant.bench import Run
from tasks.loading import SMALL, built

PLACE = "question_answering/bert"
BASE, LARGE = (12, 768, 12, 3072), (24, 1024, 16, 4096)


@pytest.mark.parametrize(("sizes", "tflop"), [(BASE, 0.212), (LARGE, 0.740)])
def test_operations_are_those_of_its_size(main: Any, sizes: Any, tflop: float) -> None:
    benchmark = main.Bert(**dict(zip(("layers", "width", "heads", "inner"), sizes, strict=True)))
    assert benchmark.flops((torch.empty(1, 384, device="meta"),)) == pytest.approx(tflop * 1e12, rel=2e-3)


def test_a_batch_holds_questions_and_whole_contexts(main: Any) -> None:
    benchmark = main.Bert(cuda=False, batch_size=200)
    words, kinds, answers = next(benchmark.batches(Run(benchmark)))
    assert words.shape == kinds.shape == (200, 384)
    assert (words[:, 0] == 101).all()
    assert ((words == 102).sum(dim=1) == 2).all()
    assert (words[:, -1] == 102).all()
    # The first separator ends the question, whose words have kind 0; no word is padding.
    context = (words == 102).int().argmax(dim=1) + 1
    assert torch.equal(kinds, (torch.arange(384) >= context[:, None]).long())
    assert words.min() == 101
    assert (words >= 104).sum() == words.numel() - 3 * 200
    assert words.max() < 30_522
    assert 11 < (context - 2).float().mean() < 13
    start, end = answers.T
    assert (start >= context).all()
    assert (start <= end).all()
    assert (end < 383).all()
    assert 3 < (end - start + 1).float().mean() < 5
    # Zipf's law: half of all words are among the few hundred most frequent ones.
    assert 104 + 50 < words[words >= 104].float().median() < 104 + 700


def test_a_layer_is_the_published_one(main: Any) -> None:
    model = main.BertForSpans(50, 1, 16, 4, 32, 0.1).eval()
    ours, theirs = model.layers[0], nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True).eval()
    pairs = {
        "self_attn.in_proj": "attention.qkv.",
        "self_attn.out_proj": "attention.out.",
        "norm1": "attention_norm.",
        "linear1": "feed_forward.into.",
        "linear2": "feed_forward.out.",
        "norm2": "feed_forward_norm.",
    }
    state = ours.state_dict()
    for parameter in state.values():
        nn.init.normal_(parameter)
    theirs.load_state_dict(
        {
            name + ("_" if name.endswith("in_proj") else ".") + kind: state[own + kind]
            for name, own in pairs.items()
            for kind in ("weight", "bias")
        }
    )
    x = torch.randn(3, 7, 16)
    torch.testing.assert_close(ours(x), theirs(x), atol=1e-4, rtol=1e-4)


def test_a_position_is_the_sum_of_word_place_and_kind(main: Any) -> None:
    embedding = main.BertForSpans(50, 1, 16, 2, 32, 0.1).eval().embedding
    found = embedding(torch.tensor([[7, 9]]), torch.tensor([[0, 1]]))[0, 1]
    sum_w = embedding.word.weight[9] + embedding.position.weight[1] + embedding.kind.weight[1]
    torch.testing.assert_close(found, nn.functional.layer_norm(sum_w, [16], eps=1e-12))


def test_matrices_decay_and_what_is_added_does_not(main: Any) -> None:
    benchmark, _ = built(main.Bert, **SMALL[PLACE])
    decayed, kept = benchmark.optimizer.param_groups
    assert (decayed["weight_decay"], kept["weight_decay"]) == (0.01, 0.0)
    named = dict(benchmark.model.named_parameters())
    plain = {name for name, one in named.items() if any(one is other for other in kept["params"])}
    assert plain == {name for name in named if name.endswith("bias") or "norm" in name}
    assert len(decayed["params"]) + len(plain) == len(named)
