"""Shared layers of Transformers, each against its formula written out, and decoding with a cache against without."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch.nn import functional

from cotenant.bench.observed import FlopCount
from cotenant.errors import CotenantError
from cotenant.layers import output
from cotenant.layers.attention import Attention
from cotenant.layers.data import scattered, zipf
from cotenant.layers.decoder import Decoder, DecoderSize
from cotenant.layers.layers import FeedForward, PreNormLayer, SwiGLU, decayed, initialised
from cotenant.layers.patches import patches
from cotenant.layers.rotary import Rotary, rotated

SMALL = DecoderSize(layers=2, width=32, heads=4, kv_heads=2, inner=48, words=50, context=12)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def attended(part: Attention, x_blw: torch.Tensor) -> torch.Tensor:
    """Return attention by its formula, computed head by head: softmax(q k / sqrt(d)) v."""
    q, k, v = part.qkv(x_blw).split(part.sizes, dim=-1)
    length, shared, out = x_blw.size(1), part.heads // part.kv_heads, []
    for head in range(part.heads):
        mine = slice(head * part.head, (head + 1) * part.head)
        theirs = slice(head // shared * part.head, (head // shared + 1) * part.head)
        scores = q[..., mine] @ k[..., theirs].transpose(1, 2) / math.sqrt(part.head)
        if part.causal:
            scores = scores.masked_fill(torch.ones(length, length).triu(1).bool(), -torch.inf)
        out.append(scores.softmax(-1) @ v[..., theirs])
    result: torch.Tensor = part.out(torch.cat(out, dim=-1))
    return result


@pytest.mark.parametrize("kv_heads", [None, 2, 1])
@pytest.mark.parametrize("causal", [False, True])
def test_attention_is_its_formula(kv_heads: int | None, causal: bool) -> None:
    part, x_blw = Attention(32, 4, kv_heads, causal=causal), torch.randn(3, 7, 32)
    torch.testing.assert_close(part(x_blw), attended(part, x_blw), rtol=1e-4, atol=1e-5)
    assert part.qkv.weight.shape == (32 + 2 * 8 * (kv_heads or 4), 32)


def test_groups_in_fp32_on_a_device_have_keys_for_each_head(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def kernel(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, enable_gqa: bool, **_: Any) -> torch.Tensor:
        seen.append((k.size(1), v.size(1), enable_gqa))
        return q

    monkeypatch.setattr(functional, "scaled_dot_product_attention", kernel)
    for device, dtype in (("meta", torch.float32), ("meta", torch.bfloat16), ("cpu", torch.float32)):
        Attention(32, 4, 2).to(device, dtype)(torch.empty(1, 3, 32, device=device, dtype=dtype))
    assert seen == [(4, 4, False), (2, 2, True), (2, 2, True)]


def test_an_attention_mask_takes_the_place_of_causal() -> None:
    part, x_blw = Attention(32, 4, causal=True, dropout=0.5), torch.randn(2, 7, 32)
    assert not torch.equal(part(x_blw), part(x_blw))
    part.eval()
    everything = torch.ones(7, 7, dtype=torch.bool)
    torch.testing.assert_close(part(x_blw, mask=everything.tril()), part(x_blw))
    part.causal = False
    torch.testing.assert_close(part(x_blw, mask=everything), part(x_blw))


@pytest.mark.parametrize(("width", "heads", "kv_heads"), [(30, 4, 4), (32, 4, 3)])
def test_heads_that_do_not_share_the_width_are_a_sentence(width: int, heads: int, kv_heads: int) -> None:
    with pytest.raises(CotenantError, match=f"A width of {width} cannot be shared by {heads} heads, with {kv_heads}"):
        Attention(width, heads, kv_heads)


def test_rotated_products_depend_on_the_distance_alone() -> None:
    rotary = Rotary(8, 100, theta=10_000.0)
    q, k = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)

    def product(at_q: int, at_k: int) -> float:
        turned = [rotated(x, rotary(1, torch.tensor([at]))) for x, at in ((q, at_q), (k, at_k))]
        return float((turned[0] * turned[1]).sum())

    assert product(5, 2) == pytest.approx(product(93, 90), rel=1e-4)
    assert product(5, 2) != pytest.approx(product(5, 3), rel=1e-2)
    # Position 0 turns nothing, every position keeps the length, and the table has a row for each position.
    torch.testing.assert_close(rotated(q, rotary(1)), q)
    torch.testing.assert_close(rotated(q, rotary(1, torch.tensor([7]))).norm(), q.norm())
    assert rotary(3)[0].shape == (3, 4)


def test_feed_forward_layers_are_their_formulas() -> None:
    x_blw = torch.randn(2, 3, 8)
    gated = SwiGLU(8, 12)
    gate, up = gated.gate_up.weight[:12], gated.gate_up.weight[12:]
    expected = ((x_blw @ gate.T) * torch.sigmoid(x_blw @ gate.T) * (x_blw @ up.T)) @ gated.out.weight.T
    torch.testing.assert_close(gated(x_blw), expected)
    for approximate in ("none", "tanh"):
        plain = FeedForward(8, 12, approximate)
        inner = torch.nn.functional.gelu(plain.into(x_blw), approximate=approximate)
        torch.testing.assert_close(plain(x_blw), plain.out(inner))


def test_a_layer_adds_what_its_parts_make() -> None:
    layer, x_blw = PreNormLayer(32, 4, causal=True), torch.randn(2, 5, 32)
    middle = x_blw + attended(layer.attention, layer.attention_norm(x_blw))
    expected = middle + layer.feed_forward(layer.feed_forward_norm(middle))
    torch.testing.assert_close(layer(x_blw), expected, rtol=1e-4, atol=1e-5)
    assert sum(weight.numel() for weight in layer.parameters()) == 12 * 32 * 32 + 13 * 32


@pytest.mark.parametrize("tied", [False, True])
def test_a_decoder_does_not_see_later_tokens(tied: bool) -> None:
    values: dict[str, Any] = {name: getattr(SMALL, name) for name in DecoderSize.__slots__}
    model = initialised(Decoder(DecoderSize(**values | {"tied": tied})))
    tokens = torch.randint(50, (2, 12))
    logits = model(tokens)
    changed = tokens.clone()
    changed[:, 7] = (changed[:, 7] + 1) % 50
    other = model(changed)
    torch.testing.assert_close(other[:, :7], logits[:, :7])
    assert not torch.allclose(other[:, 7:], logits[:, 7:])
    layer = 32 * (32 + 2 * 16) + 32 * 32 + 3 * 32 * 48 + 2 * 32
    assert sum(weight.numel() for weight in model.parameters()) == (1 if tied else 2) * 50 * 32 + 2 * layer + 32
    assert float(model.embedding.weight.detach().std()) == pytest.approx(0.02, rel=0.1)


@torch.no_grad()
def test_word_by_word_over_a_cache_is_all_at_once() -> None:
    model, tokens = Decoder(SMALL), torch.randint(50, (3, 12))
    whole = model.states(tokens)
    caches = model.caches(3)
    pieces = [model.states(tokens[:, :5], caches)]
    pieces += [model.states(tokens[:, at : at + 1], caches, torch.tensor([at])) for at in range(5, 12)]
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole, rtol=1e-4, atol=1e-5)
    # Later positions that a cache holds, for instance of another text, change nothing.
    again = model.states(tokens[:, 6:7], caches, torch.tensor([6]))
    torch.testing.assert_close(again, whole[:, 6:7], rtol=1e-4, atol=1e-5)


def test_patches_under_a_linear_layer_are_a_convolution() -> None:
    convolution, images = torch.nn.Conv2d(3, 5, 4, stride=4), torch.randn(2, 3, 8, 12)
    expected = convolution(images).flatten(2).transpose(1, 2)
    found = patches(images, 4) @ convolution.weight.flatten(1).T + convolution.bias
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_words_are_as_frequent_as_in_text() -> None:
    words = zipf(1000, 100, 200)
    counts = torch.bincount(words.flatten(), minlength=1000)
    assert (words.shape, len(counts), int(counts.argmax())) == ((100, 200), 1000, 0)
    # The chance of the word of rank r is log((r + 2) / (r + 1)) / log(words + 1).
    assert float(counts[0] / counts[9]) == pytest.approx(math.log(2) / math.log(11 / 10), rel=0.2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_output_in_parts_is_cross_entropy_of_a_linear_layer(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "ROWS", 4)
    target_n, results = torch.randint(0, 30, (11,)), []
    sources = torch.randn(11, 8), torch.randn(30, 8), torch.randn(30)
    for plain in (True, False):
        x_nw, weight_vw, bias_v = leaves = [source.clone().requires_grad_() for source in sources]
        with torch.autocast("cpu", dtype, enabled=dtype != torch.float32), FlopCount() as count:
            if plain:
                loss = functional.cross_entropy(functional.linear(x_nw, weight_vw, bias_v), target_n)
            else:
                loss = output.cross_entropy_of(x_nw, weight_vw, bias_v, target_n)
        with count:
            (3.0 * loss).backward()
        results.append((loss, *(leaf.grad for leaf in leaves), count.total))
    *expected, operations = results[0]
    assert results[1][-1] == operations == 3 * 2 * 11 * 30 * 8
    tolerance = 1e-5 if dtype == torch.float32 else 0.02
    torch.testing.assert_close(results[1][:-1], tuple(expected), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("rows", [1, 2, 6, 300, 1_000_000, 1_000_002, 1_000_003, 2_000_006])
def test_scattered_ranks_cover_all_rows_and_stand_far_apart(rows: int) -> None:
    row_n = scattered(torch.arange(rows), rows)
    assert torch.equal(row_n.bincount(minlength=rows), torch.ones(rows, dtype=torch.int64))
    first = min(rows, 20)
    row_f = row_n[:first].sort().values
    assert torch.cat((row_f, row_f[:1] + rows)).diff().min() >= rows // (4 * first)


def test_matrices_decay_and_biases_and_norms_do_not() -> None:
    layer = PreNormLayer(8, 2)
    layer.attention.out.weight.requires_grad_(False)
    matrices, others = decayed(layer, 0.1)
    assert ([weight.dim() for weight in matrices["params"]], matrices["weight_decay"]) == ([2] * 3, 0.1)
    assert ([weight.dim() for weight in others["params"]], others["weight_decay"]) == ([1] * 8, 0.0)
