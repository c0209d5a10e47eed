"""Every model of profiles/modern.json has, at its defaults, as many parameters as its paper's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from cotenant.layers.decoder import Decoder, DecoderSize
from tasks.loading import main_of, of


def count(model: nn.Module) -> int:
    return sum(weight.numel() for weight in model.parameters())


def of_class(place: str, *names: str) -> list[Any]:
    """Return a task's defaults of these names."""
    benchmark = of(place)(cuda=False)
    return [getattr(benchmark, name) for name in names]


def decoder(place: str, **more: bool) -> Decoder:
    names = ("layers", "width", "heads", "kv_heads", "inner", "words", "context")
    return Decoder(DecoderSize(*of_class(place, *names), **more))


def gpt() -> nn.Module:
    place = "natural_language_processing/gpt"
    model: nn.Module = main_of(place).GPT(*of_class(place, "words", "context", "layers", "width", "heads"))
    return model


def dit() -> nn.Module:
    place = "image_generation/diffusion_transformer"
    model: nn.Module = main_of(place).DiT(*of_class(place, "layers", "width", "heads", "patch", "side"))
    return model


def dlrm() -> nn.Module:
    place = "recommendation/dlrm"
    model: nn.Module = main_of(place).DLRM(*of_class(place, "rows"))
    return model


def vit() -> nn.Module:
    place = "image_classification/vit"
    model: nn.Module = main_of(place).ViT(*of_class(place, "size", "patch", "layers", "width", "heads"))
    return model


def moe() -> nn.Module:
    place = "natural_language_processing/moe"
    layers, width, heads, inner, words, context = of_class(
        place, "layers", "width", "heads", "inner", "words", "context"
    )
    size = DecoderSize(layers, width, heads, heads, inner, words, context, tied=True)
    return Decoder(size, lambda size: main_of(place).Experts(size, *of_class(place, "experts", "active")))


def adapters() -> nn.Module:
    place = "natural_language_processing/lora"
    model: nn.Module = main_of(place).Adapted(decoder(place), *of_class(place, "rank"))
    return model


def ppo() -> nn.Module:
    place = "reinforcement/ppo"
    model: nn.Module = main_of(place).ActorCritic(*of_class(place, "units"))
    return model


def graphsage() -> nn.Module:
    place = "graph_learning/graphsage"
    model: nn.Module = main_of(place).GraphSAGE(*of_class(place, "hidden", "fan_out"))
    return model


def whisper() -> nn.Module:
    place = "speech_recognition/whisper"
    names = ("mels", "frames", "words", "tokens", "layers", "width", "heads")
    model: nn.Module = main_of(place).Whisper(*of_class(place, *names))
    return model


def whisper_small() -> nn.Module:
    model: nn.Module = main_of("speech_recognition/whisper").Whisper(80, 3000, 51_865, 448, 12, 768, 12)
    return model


MODELS: list[tuple[Callable[[], nn.Module], int]] = [
    (gpt, 124_475_904),  # Of which 36,096 are of the words that pad its table.
    (dit, 675_129_632 - 294_912),  # The paper's count has the fixed positions of 256 patches among them.
    (dlrm, 26 * 1_000_000 * 128 + 16_044_545),
    (lambda: decoder("natural_language_processing/llama", tied=True), 1_235_814_400),
    (lambda: decoder("natural_language_processing/lora"), 8_030_261_248),
    (adapters, 19_660_800),
    (moe, 1_226_474_496),
    (ppo, 9_155),
    (graphsage, 206_895),
    (whisper, 37_760_640 - 576_000),  # Fixed positions of the encoder are counted with it in public.
    (whisper_small, 241_734_912 - 1500 * 768),
    (vit, 86_567_656),
    (lambda: decoder("text_generation/decode"), 6_738_415_616),
    (lambda: decoder("text_generation/prefill"), 6_738_415_616),
]


@pytest.mark.parametrize(("make", "parameters"), MODELS)
def test_exact_parameter_counts(make: Callable[[], nn.Module], parameters: int) -> None:
    with torch.device("meta"):
        assert count(make()) == parameters


def test_the_fixed_positions_of_dit_are_no_parameters() -> None:
    with torch.device("meta"):
        assert dit().places_lw.shape == (256, 1152)
