"""Reading images: JPEG files to normalised tensors on the device. Nothing is trained; the input is the work.

python main.py --data workspace/data/ImageNet/train --batch-size 256 --workers 8
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Literal

import torch

from cotenant.bench import Benchmark, MissingDataError, Run, flag
from cotenant.bench.images import DECODERS, Images, Normalise, class_folders, fastest, times_ms


class ImageLoading(Benchmark):
    """One step = one batch of images decoded, cropped, flipped, normalised and brought to the device."""

    item = "image"
    fixed: ClassVar[dict[str, Any]] = {"cached_batch": False}

    batch_size: int = 256
    size: int = flag(224, help="pixels of an image's side after cropping")
    decoder: Literal["auto", "torchvision", "pil"] = flag(
        "auto", help="decodes, crops and flips; auto is the faster one on some of the images"
    )

    def build(self, run: Run) -> None:
        self.normalise = Normalise(run.device)

    def batches(self, run: Run) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        if self.data is None:
            raise MissingDataError("This benchmark measures reading files.", "Name a folder of images with --data.")
        found = class_folders(run.files(), run.remedy)
        decoder: str = self.decoder
        if decoder == "auto":
            run.observed["decoders_ms"] = times_ms(found.paths, self.size, run.remedy)
            decoder = fastest(run.observed["decoders_ms"])
        run.observed["decoder"] = decoder
        images = Images(found.paths, partial(DECODERS[decoder], size=self.size), run.remedy, found.labels)
        return ((self.normalise(pixels), labels) for pixels, labels in run.loader(images))

    def step(self, run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        """The batch has arrived: that was the work."""


if __name__ == "__main__":
    ImageLoading.main()
