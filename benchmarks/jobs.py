"""The jobs that are compared with other code, at a size that one processor steps through within a second."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

PICTURES = 64


@dataclass(frozen=True)
class Job:
    """A task under tasks/, its arguments, and the numbers of its comparisons.

    `page` is a script of by_hand/ that does the same work, or with `model` the task's network is replaced by the
    network of public/`page`. Without a page the task is compared with a bare loop alone. A turn is `number` steps; the
    pairs of turns are spread over `starts` fresh processes. Of several `ranks` each has its own processor, and they
    step together.
    """

    task: str
    page: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    model: str = ""
    number: int = 1
    pairs: int = 24
    starts: int = 2
    ranks: int = 1
    reads_pictures: bool = False


_REGRESSION = "regression/polynome"
_WAVES = "time_sequence_prediction/lstm"
_AUTO_ENCODER = "variational_auto_encoder/auto_encoding_variational_bayes"
_WORDS = "natural_language_processing/word_language_model"
_CONVNET = "image_classification/convnets"
_DCGAN = "generative_adversarial_networks/dcgan"
_GRU = {"words": 10_000, "emsize": 200, "nhid": 200}
_IMAGES = {"batch_size": 4, "size": 64}
_BF16 = {"precision": "bf16"}
# Processors without bf16 instructions take ten times as long.
_SMALL_BF16 = {"batch_size": 4, "size": 32, "arch": "resnet18", **_BF16}
_SHORT: dict[str, int] = {"pairs": 400, "starts": 4}
_DECODER = {"context": 128, "layers": 4, "width": 256, "heads": 8, "kv_heads": 2, "inner": 1024, "words": 8_192}

JOBS = {
    "toy_reg": Job(_REGRESSION, "toy_reg", {"batch_size": 256}, number=100, **_SHORT),
    "toy_lstm": Job(_WAVES, "toy_lstm", {"length": 200}, pairs=40),
    "vae": Job(_AUTO_ENCODER, "vae", {"batch_size": 128}, number=4, **_SHORT),
    "loader": Job("image_loading/loader", "loader", {"batch_size": 16, "workers": 0}, pairs=60, reads_pictures=True),
    "reso": Job("super_resolution/subpixel_convolution", "reso", {"batch_size": 4}),
    "translator": Job(
        "natural_language_processing/rnn_translator",
        "",
        {"batch_size": 8, "hidden": 128, "words": 8000},
        pairs=60,
    ),
    "wlm": Job(_WORDS, "wlm", {"batch_size": 8, **_GRU}, pairs=60),
    "wlmfp16": Job(_WORDS, "wlm", {"batch_size": 8, **_GRU, "words": 4000, **_BF16}, pairs=40),
    "cart": Job("reinforcement/cart_pole", "cart", number=100, **_SHORT),
    "atari": Job("reinforcement/atari", "", {"batch_size": 4, "num_steps": 32}),
    "ssd": Job("object_detection/single_stage_detector", "", {"batch_size": 1}, pairs=12),
    "fast_style": Job("fast_neural_style/neural_style", "", {"batch_size": 2}),
    "dcgan": Job(_DCGAN, "dcgan", {"batch_size": 8}),
    "convnet": Job(_CONVNET, "convnet", _IMAGES),
    "convnet_fp16": Job(_CONVNET, "convnet", _SMALL_BF16, pairs=12),
    "recom": Job("recommendation/neural_collaborative_filtering", "recom", {"batch_size": 2048}, pairs=60),
    "convnet_distributed": Job(_CONVNET, "convnet", _IMAGES, ranks=2),
    "convnet_distributed_fp16": Job(_CONVNET, "convnet", _SMALL_BF16, pairs=12, ranks=2),
    "dcgan_all": Job(_DCGAN, "dcgan", {"batch_size": 8}, ranks=2),
    "scaling": Job("image_classification/scaling", "convnet", _IMAGES, ranks=2),
    "bert": Job(
        "question_answering/bert",
        "bert",
        {"batch_size": 4, "words": 8_000, "sequence": 128, "layers": 2, "width": 256, "heads": 4, "inner": 1024},
        "BertForSpans",
        pairs=100,
    ),
    "gpt": Job(
        "natural_language_processing/gpt",
        "gpt",
        {"batch_size": 4, "context": 128, "layers": 4, "width": 256, "heads": 4, "words": 8_192},
        "GPT",
        pairs=60,
    ),
    "llama": Job(
        "natural_language_processing/llama",
        "llama",
        {"batch_size": 2, **_DECODER},
        "Decoder",
        pairs=60,
    ),
    "vit": Job(
        "image_classification/vit",
        "vit",
        {"batch_size": 2, "size": 224, "layers": 4, "width": 384, "heads": 6},
        "ViT",
        pairs=60,
    ),
}
"""The reference suite's jobs, then jobs of other files with networks that are compared with public ones."""


def size(job: Job) -> str:
    """Return the size of a job in words."""
    words = [f"{name} {value}" for name, value in job.arguments.items()]
    return ", ".join(words + [f"{job.ranks} ranks"] * (job.ranks > 1)).replace("_", " ") or "1 environment"


@contextmanager
def pictures() -> Iterator[Path]:
    """Yield a folder with the first 64 JPEG files of the small fake ImageNet, in class folders."""
    from cotenant.datasets.sets.imagenet import DATASET

    with TemporaryDirectory() as folder:
        for file in itertools.islice(DATASET.sizes["small"].files(), PICTURES):
            path = Path(folder, file.path)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"".join(DATASET.content(file)))
        yield Path(folder, "train")
