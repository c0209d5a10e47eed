"""DCGAN: its two networks, its two updates, its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from cotenant.bench import Run
from tasks import loading
from tasks.loading import losses, main_of

FOLDER = Path(__file__).parents[2] / "tasks/generative_adversarial_networks/dcgan/pytorch"
TINY = {"batch_size": 4, "image_size": 32, "ngf": 8, "ndf": 8}


def dcgan() -> Any:
    return main_of("generative_adversarial_networks/dcgan")


def built(**parameters: Any) -> tuple[Any, Run]:
    return loading.built(dcgan().DCGAN, **parameters)


def weights(network: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in network.parameters()]


def test_exact_parameter_counts() -> None:
    benchmark, run = built(batch_size=2)
    assert sum(parameter.numel() for parameter in benchmark.generator.parameters()) == 3_576_704
    assert sum(parameter.numel() for parameter in benchmark.discriminator.parameters()) == 2_765_568
    assert benchmark.generator(torch.randn(2, 100, 1, 1)).shape == (2, 3, 64, 64)
    real = next(iter(benchmark.batches(run)))
    assert (real.shape, real.dtype) == ((2, 3, 64, 64), torch.float32)
    assert real.abs().max() <= 1
    assert 0.4 < real.std() < 0.55


@pytest.mark.parametrize("size", [32, 64, 128])
def test_both_networks_fit_every_size(size: int) -> None:
    benchmark, _ = built(batch_size=2, image_size=size, ngf=4, ndf=4)
    images = benchmark.generator(torch.randn(2, 100, 1, 1))
    assert images.shape == (2, 3, size, size)
    assert [logits.shape for logits in benchmark.discriminator(images, images)] == [(2,), (2,)]


def test_a_step_is_the_textbooks() -> None:
    """Its weights are those of the plain loop: sigmoid, BCE against labels, two backwards for the discriminator."""
    benchmark, run = built(**TINY)
    textbook, _ = built(**TINY)
    real = next(iter(benchmark.batches(run)))
    torch.manual_seed(1)
    benchmark.step(run, real)

    torch.manual_seed(1)
    generator, discriminator = textbook.generator, textbook.discriminator
    fake = generator(torch.randn(4, 100, 1, 1))
    for images, label in ((real, torch.ones(4)), (fake.detach(), torch.zeros(4))):
        nn.functional.binary_cross_entropy(discriminator(images)[0].sigmoid(), label).backward()
    torch.optim.Adam(discriminator.parameters(), 2e-4, (0.5, 0.999)).step()
    nn.functional.binary_cross_entropy(discriminator(fake)[0].sigmoid(), torch.ones(4)).backward()
    torch.optim.Adam(generator.parameters(), 2e-4, (0.5, 0.999)).step()

    for name in ("generator", "discriminator"):
        for ours, theirs in zip(weights(getattr(benchmark, name)), weights(getattr(textbook, name)), strict=True):
            torch.testing.assert_close(ours, theirs, atol=2e-5, rtol=0)


def test_the_generators_update_makes_gradients_for_the_discriminator_and_moves_it_not() -> None:
    benchmark, run = built(**TINY)
    update, seen = run.update, []

    def watched(loss: torch.Tensor, optimizer: Any) -> None:
        before = weights(benchmark.generator), weights(benchmark.discriminator)
        gradients = [parameter.grad for parameter in benchmark.discriminator.parameters()]
        kept = [None if gradient is None else gradient.clone() for gradient in gradients]
        update(loss, optimizer)
        changed = [
            not all(map(torch.equal, old, weights(network)))
            for old, network in zip(before, (benchmark.generator, benchmark.discriminator), strict=True)
        ]
        added = all(
            parameter.grad is not None and (old is None or not torch.equal(old, parameter.grad))
            for old, parameter in zip(kept, benchmark.discriminator.parameters(), strict=True)
        )
        seen.append((*changed, added))

    run.update = watched
    benchmark.step(run, next(iter(benchmark.batches(run))))
    assert seen == [(False, True, True), (True, False, True)]


def test_ranks_step_like_a_lone_process(tmp_path: Path) -> None:
    alone = losses(*built(**TINY), 3)
    store = f"file://{tmp_path / 'store'}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        benchmark = dcgan().DCGAN(cuda=False, **TINY)
        run = Run(benchmark)
        run.place = nn.parallel.DistributedDataParallel  # type: ignore[method-assign]
        benchmark.build(run)
        assert losses(benchmark, run, 3) == alone
    finally:
        torch.distributed.destroy_process_group()


def test_fake_reads_no_file(tmp_path: Path) -> None:
    benchmark, run = built(**TINY, dataset="fake", data=tmp_path / "nowhere")
    assert next(iter(benchmark.batches(run))).shape == (4, 3, 32, 32)
