"""The command lines of tasks for a device of 80 GB and, in small, for two slow processors."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from device.part import ROOT, Given

TASKS = ROOT / "tasks"
LARGE_BYTES = 38 * 2**30
"""From a device of 40 GB on the batches fit."""
BATCH = "--batch-size"


@dataclass(frozen=True)
class Job:
    """A task's folder below tasks/, its flags on a device, those in small, and a precision where it is not fp32."""

    task: str
    flags: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    precision: str = "fp32"

    @property
    def main(self) -> str:
        return str(TASKS / self.task / "pytorch" / "main.py")

    def words(self, given: Given) -> list[str]:
        """Return the flags of this job, its precision among them; a small device gets a quarter of the batch."""
        words = list(self.small if given.quick else self.flags)
        if given.machine.get("memory_bytes", LARGE_BYTES) < LARGE_BYTES and not given.quick:
            words = [str(max(1, int(word) // 4)) if flag == BATCH else word for flag, word in pairwise(["", *words])]
        return [*words, *([] if self.precision == "fp32" else ["--precision", self.precision])]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_CONVNET = "image_classification/convnets"
_DCGAN = "generative_adversarial_networks/dcgan"
_WORDS = "natural_language_processing/word_language_model"
_IMAGES, _SMALL_IMAGES = (
    _words("--batch-size 64 --arch resnet101"),
    _words("--batch-size 2 --arch squeezenet1_1 --size 64"),
)

JOBS = {
    "toy_reg": Job("regression/polynome", _words("--batch-size 256"), _words("--batch-size 256")),
    "toy_lstm": Job(
        "time_sequence_prediction/lstm", _words("--dtype float32 --length 50"), _words("--dtype float32 --length 50")
    ),
    "vae": Job("variational_auto_encoder/auto_encoding_variational_bayes", _words("--batch-size 128")),
    "reso": Job("super_resolution/subpixel_convolution", _words("--batch-size 32"), _words("--batch-size 1")),
    "translator": Job(
        "natural_language_processing/rnn_translator",
        _words("--batch-size 32"),
        _words("--batch-size 2 --hidden 64 --words 1000"),
    ),
    "wlm": Job(
        _WORDS, _words("--batch-size 32 --emsize 656 --nhid 656 --model GRU"), _words("--batch-size 2 --words 500")
    ),
    "cart": Job("reinforcement/cart_pole", _words("--no-cuda"), _words("--no-cuda")),
    "atari": Job(
        "reinforcement/atari", _words("--num-processes 16 --num-steps 32"), _words("--num-processes 2 --num-steps 8")
    ),
    "ssd": Job("object_detection/single_stage_detector", _words("--batch-size 64"), _words("--batch-size 1")),
    "fast_style": Job("fast_neural_style/neural_style", _words("--batch-size 32"), _words("--batch-size 1")),
    "dcgan": Job(_DCGAN, _words("--batch-size 64"), _words("--batch-size 2 --imageSize 32")),
    "convnet": Job(_CONVNET, _IMAGES, _SMALL_IMAGES),
    "recom": Job(
        "recommendation/neural_collaborative_filtering", _words("--batch-size 65536"), _words("--batch-size 256")
    ),
    "product": Job("ceilings/product"),
    "triad": Job("ceilings/triad"),
    "gpt": Job("natural_language_processing/gpt", _words("--batch-size 16")),
    # What time may leave out.
    "wlm_fp16": Job(_WORDS, _words("--batch-size 64 --emsize 656 --nhid 656 --model GRU"), precision="fp16"),
    "dcgan_bf16": Job(_DCGAN, _words("--batch-size 128"), _words("--batch-size 2 --imageSize 32"), "bf16"),
    "convnet_half": Job(_CONVNET, (*_IMAGES, "--half")),
    "scaling": Job("image_classification/scaling", _words("--batch-size 64"), _words("--batch-size 2 --size 32")),
    "loader": Job("image_loading/loader", _words("--batch-size 256"), _words("--batch-size 8 --size 32")),
}
"""All tasks; those in small that have no flags for it are for devices only, or small as they are."""
SMALL = ("toy_reg", "vae")
"""What `--quick` measures: two that need no torchvision, whose import takes as long as both."""
