"""Reading images: JPEG files to normalised tensors on the device. Nothing is trained; the input is the work.

python main.py --data workspace/data/ImageNet/train --batch-size 256 --workers 8
"""

from collections.abc import Iterator

import torch
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import v2

from cotenant.bench import Benchmark, MissingDataError, Run, flag

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class ImageLoading(Benchmark):
    """One step = one batch of images decoded, cropped, flipped, normalised and brought to the device."""

    item = "image"

    batch_size: int = 256
    size: int = flag(224, help="pixels of an image's side after cropping")

    def build(self, run: Run) -> None:
        self.augment = v2.Compose(
            [
                v2.RandomResizedCrop(self.size, antialias=True),
                v2.RandomHorizontalFlip(),
                # Bytes as long as possible, then [0, 255] to normalised floats in one pass.
                v2.ToDtype(torch.float32),
                v2.Normalize([255 * mean for mean in MEAN], [255 * std for std in STD], inplace=True),
            ]
        )

    def batches(self, run: Run) -> Iterator[list[torch.Tensor]]:
        if self.data is None:
            raise MissingDataError("This benchmark measures reading files.", "Name a folder of images with --data.")
        try:
            images = ImageFolder(run.files(), transform=self.augment, loader=decode)
        except OSError as error:
            raise MissingDataError(f"{self.data}: {error}.", "Make the images with ./download_datasets.sh.") from error
        return run.loader(images)

    def step(self, run: Run, batch: list[torch.Tensor]) -> None:
        """The batch has arrived: that was the work."""


def decode(path: str) -> torch.Tensor:
    """Return one image as (3, height, width) bytes."""
    try:
        return decode_image(path, ImageReadMode.RGB)
    except RuntimeError as error:
        raise MissingDataError(f"{path} cannot be decoded: {error}.", "Remove it, or make the images again.") from error


if __name__ == "__main__":
    ImageLoading.main()
