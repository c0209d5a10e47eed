"""The same network as a public implementation's: with its weights copied, outputs are equal to 1e-4 of their size.

transformers is no dependency of ours: `pip install transformers` into the environment lets its tests run.
"""

from __future__ import annotations

import os
from typing import Any

import pytest
import torch
import torchvision
from torch import nn

from cotenant.blocks.decoder import Decoder, Size
from tasks.loading import main_of

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]
EQUAL = 1e-4


@pytest.fixture
def transformers(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(os.environ, "HF_HUB_OFFLINE", "1")  # Weights are random: nothing is fetched.
    return pytest.importorskip("transformers", reason="needs transformers, which no benchmark of ours does")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@torch.no_grad()
def assert_equal(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    assert ours.shape == theirs.shape
    assert float(theirs.std()) > 0.01
    assert float((ours - theirs).abs().max() / theirs.abs().max()) < EQUAL


def shaken(model: nn.Module) -> None:
    """Give every weight another value: the biases of 0 and norms of 1 that models begin with would hide errors."""
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn_like(weight) * 0.05)


@torch.no_grad()
def copy(ours: nn.Module, theirs: list[torch.Tensor]) -> None:
    """Give our weights, in their order, these values."""
    weights = list(ours.parameters())
    assert [weight.shape for weight in weights] == [value.shape for value in theirs]
    for weight, value in zip(weights, theirs, strict=True):
        weight.copy_(value)


def linear(*parts: Any) -> list[torch.Tensor]:
    """Return weight and bias, where there is one, of linear layers side by side."""
    weights = [torch.cat([part.weight for part in parts])]
    return weights if parts[0].bias is None else [*weights, torch.cat([part.bias for part in parts])]


def both(part: Any) -> list[torch.Tensor]:
    """Return the weight and the bias of a norm."""
    return [part.weight, part.bias]


def turned(part: Any) -> list[torch.Tensor]:
    """Return the same of GPT-2's layers, whose weights stand (in, out)."""
    return [part.weight.T, part.bias]


@torch.no_grad()
def test_gpt_is_gpt2(transformers: Any) -> None:
    config = transformers.GPT2Config(n_layer=3, n_embd=48, n_head=4, n_positions=20, vocab_size=90)
    theirs = transformers.GPT2LMHeadModel(config).eval()
    shaken(theirs)
    ours = main_of("natural_language_processing/gpt").GPT(words=90, context=20, layers=3, width=48, heads=4).eval()
    body = theirs.transformer
    weights = [body.wte.weight, body.wpe.weight]
    for layer in body.h:
        weights += [*both(layer.ln_1), *turned(layer.attn.c_attn), *turned(layer.attn.c_proj)]
        weights += [*both(layer.ln_2), *turned(layer.mlp.c_fc), *turned(layer.mlp.c_proj)]
    copy(ours, [*weights, *both(body.ln_f)])
    tokens = torch.randint(90, (2, 20))
    assert_equal(ours(tokens), theirs(tokens).logits)


@pytest.mark.parametrize(("tied", "kv_heads"), [(True, 2), (False, 4)])
@torch.no_grad()
def test_the_decoder_is_llamas(tied: bool, kv_heads: int, transformers: Any) -> None:
    size = Size(3, 48, 4, kv_heads, 80, words=90, context=20, theta=500_000.0, tied=tied)
    config = transformers.LlamaConfig(
        vocab_size=90,
        hidden_size=48,
        intermediate_size=80,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=kv_heads,
        max_position_embeddings=20,
        rms_norm_eps=size.eps,
        rope_theta=size.theta,
        rope_parameters={"rope_type": "default", "rope_theta": size.theta},
        tie_word_embeddings=tied,
    )
    theirs = transformers.LlamaForCausalLM(config).eval()
    shaken(theirs)
    ours, body = Decoder(size).eval(), theirs.model
    weights = [body.embed_tokens.weight]
    for layer in body.layers:
        attention, gated = layer.self_attn, layer.mlp
        weights += [layer.input_layernorm.weight, *linear(attention.q_proj, attention.k_proj, attention.v_proj)]
        weights += [*linear(attention.o_proj), layer.post_attention_layernorm.weight]
        weights += [*linear(gated.gate_proj, gated.up_proj), *linear(gated.down_proj)]
    copy(ours, [*weights, body.norm.weight, *([] if tied else [theirs.lm_head.weight])])
    tokens = torch.randint(90, (2, 20))
    logits = theirs(tokens).logits
    assert_equal(ours(tokens), logits)
    # Word by word, over the cache, too.
    caches = ours.caches(2)
    ours(tokens[:, :9], caches)
    for at in range(9, 20):
        assert_equal(ours(tokens[:, at : at + 1], caches, torch.tensor([at]))[:, 0], logits[:, at])


@torch.no_grad()
def test_vit_is_torchvisions() -> None:
    sizes = {"image_size": 32, "patch_size": 8, "num_layers": 3, "num_heads": 4, "hidden_dim": 48, "mlp_dim": 192}
    theirs = torchvision.models.VisionTransformer(**sizes).eval()
    shaken(theirs)
    ours = main_of("image_classification/vit").ViT(size=32, patch=8, layers=3, width=48, heads=4).eval()
    weights = [theirs.class_token, theirs.encoder.pos_embedding]
    weights += [theirs.conv_proj.weight.flatten(1), theirs.conv_proj.bias]
    for layer in theirs.encoder.layers:
        attention = layer.self_attention
        weights += [*both(layer.ln_1), attention.in_proj_weight, attention.in_proj_bias, *linear(attention.out_proj)]
        weights += [*both(layer.ln_2), *linear(layer.mlp[0]), *linear(layer.mlp[3])]
    copy(ours, [*weights, *both(theirs.encoder.ln), *linear(theirs.heads.head)])
    images = torch.randn(2, 3, 32, 32)
    assert_equal(ours(images), theirs(images))
