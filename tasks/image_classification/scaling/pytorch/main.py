"""How a classifier's training scales over devices and nodes: random images that are resident, or files, as it is asked.

python main.py --network resnet101 --batch-size 128        (one device; run.sh --devices 4 starts four)
"""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any, Literal

import torch
from torch import nn

from cotenant.bench import Benchmark, Run, UnsupportedError, flag
from cotenant.bench.classifiers import CLASSES, classifier
from cotenant.bench.images import Images, Normalise, class_folders, crop_by_torchvision
from cotenant.bench.parallel import described
from cotenant.errors import CotenantError


class Scaling(Benchmark):
    """One step = one SGD update on `batch-size` images on each of the devices."""

    item = "image"
    same_shapes = True
    fast_channels_last = True

    batch_size: int = flag(128, "--batch-size", "-b", help="images in one batch, per device")
    repeat: int = 10
    number: int = 10
    devices: int = flag(0, "--devices", help="over how many devices of each node; 0 means all")
    nodes: int = flag(0, "--nodes", help="over how many nodes, which the runner's --nnodes has; 0 means all")
    network: str = flag("resnet101", "--network", help="a classifier of torchvision, by its name there")
    size: int = flag(224, help="pixels of an image's side")
    lr: float = flag(0.01, help="learning rate")
    parallel: Literal["ddp", "fsdp", "dp"] = flag(
        "ddp", help="replicas (DDP), shards of the weights (FSDP), or one process with DataParallel"
    )
    gradient_compression: Literal["none", "fp16", "bf16"] = flag(
        "none", help="what ddp and fsdp send gradients in, where it is not their own precision"
    )

    def __init__(self, **parameters: Any) -> None:
        started = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        parameters["devices"] = parameters.get("devices") or started
        super().__init__(**parameters)
        if self.parallel == "dp":
            self._deal_out()
        hosts = int(os.environ.get("WORLD_SIZE", "1")) // int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
        if self.nodes not in (0, hosts):
            raise CotenantError(f"--nodes {self.nodes}, and there are {hosts}.", "Start the runner with --nnodes.")
        if self.devices == started:
            return
        there = int(os.environ.get("DEVICE_TOTAL", self.devices))
        if self.devices > there:
            raise UnsupportedError(f"--devices {self.devices} is more than DEVICE_TOTAL, {there}.", "Ask for fewer.")
        raise CotenantError(
            f"--devices {self.devices} takes as many processes, not {started}.", "Start it with run.sh."
        )

    def _deal_out(self) -> None:
        """One process holds the replicas of all devices, and deals one large batch out to them."""
        if self.gradient_compression != "none":
            raise UnsupportedError("DataParallel sends no gradients to compress.", "Use --parallel ddp or fsdp.")
        there = torch.accelerator.device_count() if self.cuda else 0
        if self.devices > max(1, there):
            raise UnsupportedError(
                f"--parallel dp --devices {self.devices} needs as many accelerators, and there are {there}.",
                "Ask for fewer.",
            )
        self.replicas, self.devices = self.devices, 1
        self.batch_size *= self.replicas

    def build(self, run: Run) -> None:
        network = classifier(self.network, "--network", self.size)
        if self.parallel == "dp":
            self.model = run.replicate(network, self.replicas)
        else:
            self.model = run.place(network, self.parallel, self.gradient_compression)
        # One device has no other to share with, and is where the curve of each form begins.
        run.observed.setdefault("parallel", described(self.parallel, self.gradient_compression))
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = run.sgd(self.model.parameters(), lr=self.lr, momentum=0.9, weight_decay=1e-4)

    def batches(self, run: Run) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        if self.data is None:
            images = torch.randn(self.batch_size, 3, self.size, self.size)
            return run.resident(images, torch.randint(CLASSES, (self.batch_size,)))
        found = class_folders(run.files(), run.remedy)
        if len(found.classes) > CLASSES:
            raise CotenantError(f"{self.data} holds {len(found.classes)} classes, and the model knows {CLASSES}.")
        images_of = Images(found.paths, partial(crop_by_torchvision, size=self.size), run.remedy, found.labels)
        normalise = Normalise(run.device)
        return ((normalise(pixels), labels) for pixels, labels in run.loader(images_of))

    def step(self, run: Run, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        images, labels = batch
        loss = self.loss(self.model(images), labels)
        run.update(loss, self.optimizer)
        return loss


if __name__ == "__main__":
    Scaling.main()
