"""Networks that make pictures: DCGAN's two and their updates; fast style's trained one, its frozen one, its losses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torchvision.models import vgg16

from cotenant.bench import Run
from tasks import loading
from tasks.loading import losses, main_of

TINY_DCGAN = {"batch_size": 4, "image_size": 32, "ngf": 8, "ndf": 8}


def dcgan() -> Any:
    return main_of("generative_adversarial_networks/dcgan")


def dcgan_of(**parameters: Any) -> tuple[Any, Run]:
    return loading.built(dcgan().DCGAN, **parameters)


def weights(network: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in network.parameters()]


def test_real_pictures_are_as_the_generators() -> None:
    benchmark, run = dcgan_of(batch_size=2)
    real = next(iter(benchmark.batches(run)))
    assert (real.shape, real.dtype) == ((2, 3, 64, 64), torch.float32)
    assert real.abs().max() <= 1
    assert 0.4 < real.std() < 0.55


@pytest.mark.parametrize("size", [32, 64, 128])
def test_both_networks_fit_every_size(size: int) -> None:
    benchmark, _ = dcgan_of(batch_size=2, image_size=size, ngf=4, ndf=4)
    images = benchmark.generator(torch.randn(2, 100, 1, 1))
    assert images.shape == (2, 3, size, size)
    assert [logits.shape for logits in benchmark.discriminator(images, images)] == [(2,), (2,)]


def test_a_step_is_the_textbooks() -> None:
    """Its weights equal those of the plain loop: sigmoid, BCE against labels, two backwards for the discriminator."""
    benchmark, run = dcgan_of(**TINY_DCGAN)
    textbook, _ = dcgan_of(**TINY_DCGAN)
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


def test_a_generator_update_leaves_the_discriminator_unchanged() -> None:
    benchmark, run = dcgan_of(**TINY_DCGAN)
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
    alone = losses(*dcgan_of(**TINY_DCGAN), 3)
    store = f"file://{tmp_path / 'store'}"
    torch.distributed.init_process_group("gloo", init_method=store, rank=0, world_size=1)
    try:
        benchmark = dcgan().DCGAN(cuda=False, **TINY_DCGAN)
        run = Run(benchmark)
        run.place = nn.parallel.DistributedDataParallel  # type: ignore[method-assign]
        benchmark.build(run)
        assert losses(benchmark, run, 3) == alone
    finally:
        torch.distributed.destroy_process_group()


# ---- fast neural style

TINY_STYLE = {"batch_size": 2, "image_size": 16}


def style() -> Any:
    return main_of("fast_neural_style/neural_style")


def style_of(**parameters: Any) -> tuple[Any, Run]:
    return loading.built(style().FastStyle, **parameters)


def test_pictures_keep_their_shape() -> None:
    benchmark, run = style_of(batch_size=2, image_size=32)
    pictures = next(iter(benchmark.batches(run)))
    assert (pictures.shape, pictures.dtype) == ((2, 3, 32, 32), torch.float32)
    assert (pictures.min(), pictures.max()) == (0, 1)
    assert benchmark.model(pictures).shape == pictures.shape


def test_the_loss_network_is_vgg16_to_relu4_3() -> None:
    network = style().LossNetwork()
    with torch.device("meta"):
        wanted = vgg16(weights=None).features[:23]
    found = [layer for layers in network.slices for layer in layers]
    assert [type(layer) for layer in found] == [type(layer) for layer in wanted]
    assert [parameter.shape for parameter in network.parameters()] == [p.shape for p in wanted.parameters()]
    assert not any(parameter.requires_grad for parameter in network.parameters())
    features = network(torch.rand(1, 3, 16, 16))
    assert [one.shape for one in features] == [(1, 64, 16, 16), (1, 128, 8, 8), (1, 256, 4, 4), (1, 512, 2, 2)]
    assert all(one.min() == 0 for one in features)
    assert all(0.3 < one.square().mean() < 3 for one in features)


def test_the_loss_network_is_the_same_for_everybody() -> None:
    torch.manual_seed(1)
    first = style().LossNetwork().state_dict()
    torch.manual_seed(2)
    second = style().LossNetwork().state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_inputs_are_normalised_inside() -> None:
    network = style().LossNetwork()
    mean, std = (torch.tensor(values).view(3, 1, 1) for values in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    pictures = torch.rand(2, 3, 8, 8)
    torch.testing.assert_close(network(pictures)[0], network.slices[0]((pictures - mean) / std))


def test_gram_matrices_and_their_gradient() -> None:
    features = torch.randn(2, 3, 4, 5, requires_grad=True)
    rows = features.flatten(2)
    weights = torch.randn(2, 3, 3)
    ours, plain = style().gram(features), rows @ rows.mT / 60
    torch.testing.assert_close(ours, plain)
    (ours_gradient,) = torch.autograd.grad((ours * weights).sum(), features)
    (gradient,) = torch.autograd.grad((plain * weights).sum(), features)
    torch.testing.assert_close(ours_gradient, gradient)


def test_gram_matrices_of_large_pictures_fit_fp16() -> None:
    features = torch.full((1, 2, 300, 300), 3.0, dtype=torch.float16, requires_grad=True)
    grams = style().gram(features)
    torch.testing.assert_close(grams, torch.full((1, 2, 2), 4.5))
    (gradient,) = torch.autograd.grad(grams.sum() * 1e6, features)
    torch.testing.assert_close(gradient, torch.full_like(gradient, 1e6 * 4 * 3 / 180_000))


def test_the_style_features_are_computed_only_once() -> None:
    benchmark, run = style_of(**TINY_STYLE)
    assert [target.shape for target in benchmark.style] == [(1, c, c) for c in (64, 128, 256, 512)]
    assert not any(target.requires_grad for target in benchmark.style)
    seen: list[int] = []
    benchmark.judge.register_forward_hook(lambda module, inputs, features: seen.append(len(features)))
    losses(benchmark, run, 1)
    assert seen == [4, 4]


def test_ranks_learn_one_style(monkeypatch: pytest.MonkeyPatch) -> None:
    first, run = style_of(**TINY_STYLE, seed=5)
    monkeypatch.setenv("RANK", "1")
    second, other_run = style_of(**TINY_STYLE, seed=5)
    assert (run.seed, other_run.seed) == (5, 6)
    assert all(map(torch.equal, first.style, second.style))
    assert not any(map(torch.equal, first.style, style_of(**TINY_STYLE, seed=6)[0].style))


def test_residual_blocks_begin_with_their_input() -> None:
    (block, *_) = (layer for layer in style().transformer_net() if type(layer).__name__ == "Residual")
    nn.init.zeros_(block.layers[-1].weight)
    x = torch.randn(1, 128, 4, 4)
    torch.testing.assert_close(block(x), x)
