"""Reading images: JPEG files to normalised tensors on the device. Nothing is trained; the input is the work.

python main.py --data workspace/data/ImageNet/train --batch-size 256 --workers 8
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, Literal

import torch

from cotenant.bench import Benchmark, MissingDataError, Run, UnsupportedError, flag, main
from cotenant.bench.images import (
    DECODERS,
    ClassFolders,
    Images,
    Normalise,
    class_folders,
    crops_by_nvjpeg,
    encoded,
    fastest,
    files_and_labels,
    times_ms,
)


class ImageLoading(Benchmark):
    """One step = one batch of images decoded, cropped, flipped, normalised and brought to the device."""

    item = "image"
    fixed: ClassVar[dict[str, Any]] = {"cached_batch": False}

    batch_size: int = 256
    size: int = flag(224, help="pixels of an image's side after cropping")
    decoder: Literal["auto", "torchvision", "pil", "nvjpeg"] = flag(
        "auto", help="decodes, crops and flips; auto is the faster one on the host, nvjpeg works on the device"
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
        if decoder == "nvjpeg":
            if run.device.type != "cuda":
                raise UnsupportedError(
                    f"nvJPEG decodes on a device of CUDA, and this run is on {run.device.type}.", "Use --decoder auto."
                )
            return self.decoded_on_device(run, found)
        images = Images(found.paths, partial(DECODERS[decoder], size=self.size), run.remedy, found.labels)
        return ((self.normalise(pixels), labels) for pixels, labels in run.loader(images))

    def decoded_on_device(self, run: Run, found: ClassFolders) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        files = Images(found.paths, encoded, run.remedy, found.labels)
        return (
            (self.normalise(crops_by_nvjpeg(encoded_b, self.size, run.device, run.remedy)), run.to_device(labels))
            for encoded_b, labels in run.loader(files, files_and_labels, on_host=True)
        )

    def step(self, run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> None:
        """Do nothing: the work was to load the batch."""


if __name__ == "__main__":
    main(ImageLoading)
