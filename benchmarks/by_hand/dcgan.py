"""DCGAN, written as a plain script, for one process or several ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import distributed, nn
from torch.nn.parallel import DistributedDataParallel


def initialise(layer: nn.Module) -> None:
    if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(layer.weight, 0.0, 0.02)
    elif isinstance(layer, nn.BatchNorm2d):
        nn.init.normal_(layer.weight, 1.0, 0.02)


def generator() -> nn.Sequential:
    layers = [nn.ConvTranspose2d(100, 512, 4, bias=False), nn.BatchNorm2d(512), nn.ReLU(True)]
    for width in (256, 128, 64):
        layers += [nn.ConvTranspose2d(2 * width, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(True)]
    return nn.Sequential(*layers, nn.ConvTranspose2d(64, 3, 4, 2, 1, bias=False), nn.Tanh()).apply(initialise)


def discriminator() -> nn.Sequential:
    layers = [nn.Conv2d(3, 64, 4, 2, 1, bias=False), nn.LeakyReLU(0.2, True)]
    for width in (128, 256, 512):
        layers += [nn.Conv2d(width // 2, width, 4, 2, 1, bias=False), nn.BatchNorm2d(width), nn.LeakyReLU(0.2, True)]
    return nn.Sequential(*layers, nn.Conv2d(512, 1, 4, bias=False), nn.Flatten(0)).apply(initialise)


def script(batch_size: int) -> Iterator[Any]:
    """Yield both models, then the discriminator's loss of each step."""
    net_g, net_d, criterion = generator(), discriminator(), nn.BCEWithLogitsLoss()
    models = nn.ModuleList([net_g, net_d])
    if distributed.is_initialized():
        net_g, net_d = DistributedDataParallel(net_g), DistributedDataParallel(net_d)
    optimizer_g, optimizer_d = (
        torch.optim.Adam(net.parameters(), lr=2e-4, betas=(0.5, 0.999), fused=True) for net in (net_g, net_d)
    )
    images = (torch.randn(batch_size, 3, 64, 64) * 0.5).clamp(-1, 1)
    real, fake = torch.ones(batch_size), torch.zeros(batch_size)
    yield models
    while True:
        optimizer_d.zero_grad()
        loss_real = criterion(net_d(images), real)
        loss_real.backward()
        fakes = net_g(torch.randn(batch_size, 100, 1, 1))
        loss_fake = criterion(net_d(fakes.detach()), fake)
        loss_fake.backward()
        optimizer_d.step()

        optimizer_g.zero_grad()
        loss_g = criterion(net_d(fakes), real)
        loss_g.backward()
        optimizer_g.step()
        yield loss_real + loss_fake
