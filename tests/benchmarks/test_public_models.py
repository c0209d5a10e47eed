"""Our networks against public ones with the same weights; skipped without their packages (CONTRIBUTING.md)."""

from __future__ import annotations

from typing import Any, Literal

import pytest
import torch
from torch.utils._pytree import tree_leaves

from benchmarks import public_ssd
from benchmarks.conftest import Load
from cotenant.layers.decoder import Decoder, DecoderSize
from tasks.loading import main_of


def needs_transformers() -> None:
    pytest.importorskip("transformers", reason="transformers is not installed: CONTRIBUTING.md", exc_type=Exception)


def assert_equal(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    """Assert that they differ by at most 1e-4 of the largest value."""
    assert (ours - theirs).abs().max() <= 1e-4 * theirs.abs().max()


def random_weights(model: Any) -> Any:
    """Make weights so large that every part of the network affects its outputs; return the network for evaluation."""
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return model.eval()


def assert_alike(ours: Any, theirs: Any, *inputs: torch.Tensor) -> None:
    """Give our network the weights and the mode of theirs; assert that all outputs are equal."""
    ours.train(theirs.training).load_state_dict(theirs.ours())
    with torch.inference_mode():
        for our_output, their_output in zip(*(tree_leaves(one(*inputs)) for one in (ours, theirs)), strict=True):
            assert_equal(our_output, their_output)


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(1000, 2, 64, 4, 256), (30_522, 2, 768, 12, 3072)])
def test_bert_is_that_of_transformers(load: Load, sizes: Any) -> None:
    needs_transformers()
    theirs = random_weights(load("public/bert").Model(*sizes, 0.1))
    ours = main_of("question_answering/bert").BertForSpans(*sizes, 0.1)
    assert_alike(ours, theirs, torch.randint(0, 1000, (2, 384)), torch.randint(0, 2, (2, 384)))


@pytest.mark.slow
def test_gpt_is_transformers_gpt2(load: Load) -> None:
    needs_transformers()
    sizes = {"words": 90, "context": 20, "layers": 3, "width": 48, "heads": 4}
    theirs = random_weights(load("public/gpt").Model(**sizes))
    assert_alike(main_of("natural_language_processing/gpt").GPT(**sizes), theirs, torch.randint(90, (2, 20)))


@pytest.mark.slow
@pytest.mark.parametrize(("tied", "kv_heads"), [(True, 2), (False, 4)])
def test_the_decoder_is_transformers_llama_also_word_by_word(load: Load, tied: bool, kv_heads: int) -> None:
    needs_transformers()
    size = DecoderSize(3, 48, 4, kv_heads, 80, words=90, context=20, theta=500_000.0, tied=tied)
    theirs, ours = random_weights(load("public/llama").Model(size)), Decoder(size)
    tokens, caches = torch.randint(90, (2, 20)), ours.caches(2)
    assert_alike(ours, theirs, tokens)
    with torch.inference_mode():
        expected = theirs(tokens)
        ours(tokens[:, :9], caches)
        for at in range(9, 20):
            assert_equal(ours(tokens[:, at : at + 1], caches, torch.tensor([at]))[:, 0], expected[:, at])


@pytest.mark.slow
def test_whisper_is_that_of_transformers() -> None:
    needs_transformers()
    from benchmarks.public_whisper import Model

    sizes = {"mels": 8, "frames": 40, "words": 90, "tokens": 12, "layers": 2, "width": 48, "heads": 4}
    theirs = Model(**sizes)
    places = theirs.network.model.encoder.embed_positions.weight.clone()
    random_weights(theirs)
    ours = main_of("speech_recognition/whisper").model.Whisper(**sizes)
    torch.testing.assert_close(ours.places_sw, places)
    theirs.network.model.encoder.embed_positions.weight.data.copy_(places)  # Positions are fixed, not random.
    assert_alike(ours, theirs, torch.randn(2, 8, 40), torch.randint(90, (2, 12)))


@pytest.mark.slow
def test_vit_is_torchvisions(load: Load) -> None:
    sizes = {"size": 32, "patch": 8, "layers": 3, "width": 48, "heads": 4}
    theirs = random_weights(load("public/vit").Model(**sizes))
    assert_alike(main_of("image_classification/vit").ViT(**sizes), theirs, torch.randn(2, 3, 32, 32))


@pytest.mark.slow
@pytest.mark.parametrize("backbone", ["resnet34", "resnet50"])
def test_ssd_is_of_torchvisions_parts(backbone: Literal["resnet34", "resnet50"]) -> None:
    theirs = public_ssd.Model(11, backbone)
    ours = main_of("object_detection/single_stage_detector").SSD300(11, backbone)
    # In training mode: without statistics of batches the states of so many layers fade.
    assert_alike(ours, theirs, torch.randn(2, 3, 300, 300))
