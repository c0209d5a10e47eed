"""Every task has, at its defaults, exactly as many parameters as the model of its paper, or as the published one."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from cotenant.bench import Run
from tasks.loading import SMALL, UNTRAINED, of

TEXT, IMAGES, SPEECH = "natural_language_processing", "image_classification", "speech_synthesis"
DIT, WHISPER = "image_generation/diffusion_transformer", "speech_recognition/whisper"
BERT, XL, NCF = "question_answering/bert", f"{TEXT}/transformer_xl", "recommendation/neural_collaborative_filtering"
SSD, RESO = "object_detection/single_stage_detector", "super_resolution/subpixel_convolution"
WORDS = f"{TEXT}/word_language_model"
WHISPER_SMALL = {"layers": 12, "width": 768, "heads": 12}
BERT_LARGE = {"layers": 24, "width": 1024, "heads": 16, "inner": 4096}
XL_LARGE = {"layers": 18, "width": 1024, "heads": 16, "inner": 4096, "target": 256, "memory": 256}
TRAINED: list[tuple[str, dict[str, Any], int]] = [
    ("fast_neural_style/neural_style", {}, 1_679_235),
    ("generative_adversarial_networks/dcgan", {}, 3_576_704 + 2_765_568),
    ("graph_learning/graphsage", {}, 206_895),
    (f"{IMAGES}/convnets", {}, 44_549_160),
    (f"{IMAGES}/convnets", {"arch": "resnet50"}, 25_557_032),
    (f"{IMAGES}/scaling", {}, 44_549_160),
    (f"{IMAGES}/vit", {}, 86_567_656),
    (DIT, {}, 675_129_632 - 294_912),  # The paper also counts the fixed positions of 256 patches.
    (f"{TEXT}/gpt", {}, 124_475_904),  # 36,096 of them belong to words that only pad its table.
    (f"{TEXT}/llama", {}, 1_235_814_400),
    (f"{TEXT}/lora", {}, 19_660_800),
    (f"{TEXT}/moe", {}, 1_226_474_496),
    (f"{TEXT}/rnn_translator", {}, 160_671_297),
    (XL, {}, 191_948_759),
    (XL, XL_LARGE, 519_963_095),
    (WORDS, {}, 48_865_918),
    (WORDS, {"precision": "bf16"}, 48_868_544),  # In bf16 its number of words is a multiple of 8.
    ("object_detection/mask_rcnn", {}, 44_347_573 - 222_400),  # The first layers of its backbone are frozen.
    (SSD, {}, 19_972_534),
    (SSD, {"backbone": "resnet50"}, 22_894_902),
    (BERT, {}, 108_893_186),
    (BERT, BERT_LARGE, 334_094_338),
    ("recommendation/dlrm", {}, 26 * 1_000_000 * 128 + 16_044_545),
    (NCF, {}, 31_832_577),
    ("regression/polynome", {}, 5),
    ("reinforcement/atari", {"batch_size": 1}, 866_439),
    ("reinforcement/cart_pole", {}, 898),
    ("reinforcement/ppo", {}, 9_155),
    (WHISPER, {}, 37_760_640 - 576_000),  # The published count includes the encoder's fixed positions.
    (WHISPER, WHISPER_SMALL, 241_734_912 - 1500 * 768),
    (f"{SPEECH}/tacotron2", {}, 28_193_153),
    (f"{SPEECH}/waveglow", {}, 268_294_760),
    (RESO, {"upscale_factor": 2}, 58_212),
    (RESO, {"upscale_factor": 3}, 59_657),
    (RESO, {"upscale_factor": 4}, 61_680),
    ("time_sequence_prediction/lstm", {}, 32_284),
    ("variational_auto_encoder/auto_encoding_variational_bayes", {}, 652_824),
]
FROZEN = {f"{TEXT}/lora": 8_030_261_248, **dict.fromkeys(UNTRAINED, 6_738_415_616)}
"""The number of weights that no update changes."""


def test_every_task_with_a_model_is_here() -> None:
    assert {place for place, *_ in TRAINED} == SMALL.keys()


@pytest.mark.parametrize(("place", "flags", "parameters"), [*TRAINED, *((place, {}, 0) for place in UNTRAINED)])
def test_exact_parameter_counts(place: str, flags: dict[str, Any], parameters: int) -> None:
    """Models are built on the meta device, where even large ones take no memory."""
    run, placed, frozen = Run(benchmark := of(place)(cuda=False, **flags)), list[nn.Module](), list[nn.Module]()
    run.device, freeze = torch.device("meta"), run.freeze
    run.place = lambda module, *form: placed.append(module) or module  # type: ignore[method-assign]
    run.freeze = lambda make: frozen.append(freeze(make)) or frozen[-1]  # type: ignore[method-assign]
    for name in ("adam", "adamw", "sgd"):  # Fused optimizers refuse weights on the meta device.
        setattr(run, name, lambda weights, **options: torch.optim.SGD(weights, lr=0.1))
    with torch.device("meta"):
        benchmark.build(run)
    assert sum(weight.numel() for one in placed for weight in one.parameters() if weight.requires_grad) == parameters
    assert sum(weight.numel() for one in frozen for weight in one.parameters()) == FROZEN.get(place, 0)
