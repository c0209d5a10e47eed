"""Super-resolution: the network, its pairs of pictures, its files."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from cotenant.bench import MissingDataError, Run
from cotenant.datasets.sets import bsds500
from tasks import loading
from tasks.loading import losses, main_of

TINY = {"batch_size": 3, "crop": 16}


def reso() -> Any:
    return main_of("super_resolution/subpixel_convolution")


def built(**parameters: Any) -> tuple[Any, Run]:
    return loading.built(reso().SuperResolution, **parameters)


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Write four files with the maker of the set; return their folder."""
    folder = tmp_path / "BSDS500" / "data" / "images" / "train"
    folder.mkdir(parents=True)
    for file in itertools.islice(bsds500.DATASET.sizes["small"].files(), 4):
        (tmp_path / "BSDS500" / file.path).write_bytes(b"".join(bsds500.content(file)))
    return folder


@pytest.mark.parametrize("factor", [2, 3, 4])
def test_pictures_become_larger_by_the_factor(factor: int) -> None:
    benchmark, _ = built(upscale_factor=factor)
    assert benchmark.model(torch.rand(2, 1, 5, 7)).shape == (2, 1, 5 * factor, 7 * factor)


def test_kernels_are_orthogonal() -> None:
    benchmark, _ = built()
    for layer in benchmark.model:
        if isinstance(layer, nn.Conv2d):
            rows = layer.weight.flatten(1)
            product = rows @ rows.T if rows.size(0) <= rows.size(1) else rows.T @ rows
            torch.testing.assert_close(product, torch.eye(len(product)), atol=1e-5, rtol=0)


@pytest.mark.parametrize("factor, small, side", [(2, 128, 256), (3, 85, 255)])
def test_pairs_have_the_shapes_of_the_paper(factor: int, small: int, side: int) -> None:
    benchmark, run = built(batch_size=2, upscale_factor=factor)
    reduced, target = next(iter(benchmark.batches(run)))
    assert (reduced.shape, target.shape) == ((2, 1, small, small), (2, 1, side, side))
    assert 0 <= reduced.min() < reduced.max() <= 1
    assert (target.min(), target.max()) == (0, 1)
    assert 0.4 < target.mean() < 0.47


@pytest.mark.slow
def test_its_units_live_at_the_references_rate() -> None:
    benchmark, run = built(**TINY)
    assert benchmark.lr == 0.1
    seen = losses(benchmark, run, 150)
    assert all(map(np.isfinite, seen))
    assert seen[-1] < max(seen) / 100
    reduced, _ = next(iter(benchmark.batches(run)))
    assert benchmark.model[:6](reduced).abs().mean() > 0.5


def test_fp16_stays_finite_at_the_references_rate() -> None:
    assert torch.tensor(losses(*loading.in_fp16(reso().SuperResolution, "fp16", **TINY), 12)).isfinite().all()


def test_a_crop_is_the_luminance_of_its_picture(pictures: Path) -> None:
    path = sorted(pictures.iterdir())[0]
    luminance = np.asarray(Image.open(path).convert("YCbCr"))[..., 0].astype(int)
    first, second = (reso().luminance(str(path), 32) for _ in range(2))
    assert (first.shape, first.dtype) == ((1, 32, 32), torch.uint8)
    assert not torch.equal(first, second)
    assert any(same(luminance[y : y + 32, x : x + 32], first[0].numpy()) for y, x in np.ndindex(449, 449))


def same(window: np.ndarray, crop: np.ndarray) -> bool:
    return window.shape == crop.shape and abs(window[0, 0] - int(crop[0, 0])) <= 2 and np.abs(window - crop).max() <= 2


def test_inputs_are_bicubic_reductions(pictures: Path) -> None:
    benchmark, run = built(data=pictures, batch_size=2, crop=64)
    reduced, target = next(iter(benchmark.batches(run)))
    for small, large in zip(reduced, target, strict=True):
        picture = Image.fromarray((large[0] * 255).round().to(torch.uint8).numpy())
        wanted = np.asarray(picture.resize((32, 32), Image.Resampling.BICUBIC)) / 255
        assert np.abs(small[0].numpy() - wanted).max() < 0.01


def test_pictures_that_are_too_small_are_named(pictures: Path) -> None:
    benchmark, run = built(data=pictures, crop=400)
    with pytest.raises(MissingDataError, match=r"\.jpg is (481 x 321|321 x 481)\..*--crop smaller than 400"):
        next(iter(benchmark.batches(run)))
