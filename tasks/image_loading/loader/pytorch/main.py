"""Reading images: JPEG files to normalised tensors on the device. Nothing is trained; the input is the work.

python main.py --data workspace/data/ImageNet/train --batch-size 256 --workers 8
"""

from collections.abc import Iterator

import torch
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image
from torchvision.transforms import v2

from cotenant.bench import Benchmark, MissingDataError, Run

MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class ImageLoading(Benchmark):
    """One step = one batch of images decoded, cropped, flipped, normalised and brought to the device."""

    item = "image"

    batch_size: int = 256
    size: int = 224

    def build(self, run: Run) -> None:
        self.augment = v2.Compose(
            [
                v2.RandomResizedCrop(self.size, antialias=True),
                v2.RandomHorizontalFlip(),
                v2.ToDtype(torch.float32, scale=True),
                v2.Normalize(MEAN, STD),
            ]
        )

    def batches(self, run: Run) -> Iterator[list[torch.Tensor]]:
        if self.data is None:
            raise MissingDataError("This benchmark measures reading files.", "Name a folder of images with --data.")
        try:
            images = ImageFolder(run.files(), transform=self.augment, loader=decode)
        except FileNotFoundError as error:
            raise MissingDataError(f"{self.data}: {error}", "Make the images with ./download_datasets.sh.") from error
        return run.loader(images)

    def step(self, run: Run, batch: list[torch.Tensor]) -> None:
        """The batch has arrived: that was the work."""


def decode(path: str) -> torch.Tensor:
    """Return one image as (3, height, width) bytes."""
    return decode_image(path, ImageReadMode.RGB)


if __name__ == "__main__":
    ImageLoading.main()
