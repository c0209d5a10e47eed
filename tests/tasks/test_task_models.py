from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from bench.small import record_of, warmed
from cotenant.bench import Benchmark, MissingDataError, Run, UnsupportedError
from cotenant.bench.images import class_folders
from cotenant.datasets.sets.mnist import idx_header
from cotenant.errors import CotenantError
from tasks import loading
from tasks.loading import PLACES, SMALL, benchmark_of, decodes, draw_pictures, main_of, of


def built(name: str, **parameters: Any) -> tuple[Benchmark, Run]:
    return loading.built(benchmark_of(name), **parameters)


def model_of(benchmark: Any) -> nn.Module:
    model: nn.Module = benchmark.policy if hasattr(benchmark, "policy") else benchmark.model
    return model


def test_the_layers_of_toy_lstm_are_its_cells() -> None:
    (cells, run), (layers, _) = built("toy_lstm", length=30), built("toy_lstm", length=30, recurrence="lstm")
    ours, theirs = model_of(cells).state_dict(), model_of(layers).state_dict()
    of_cells = {name: f"cell{int(name[-1]) + 1}.{name[5:-3]}" for name in theirs if name.startswith("lstm.")}
    assert len(of_cells) == 8
    model_of(layers).load_state_dict({name: ours[of_cells.get(name, name)] for name in theirs})
    batch = next(iter(cells.batches(run)))
    predicted = [model_of(one)(batch[:, :-1]) for one in (cells, layers)]
    torch.testing.assert_close(*predicted, rtol=1e-5, atol=1e-6)


@decodes
def test_files_decoded_on_a_device_are_a_form_of_the_loader(tmp_path: Path) -> None:
    """A processor is refused; called directly there, the decoder yields batches of the loader's form."""
    benchmark, run = built("loader", data=draw_pictures(tmp_path), batch_size=4, size=16, workers=0, decoder="nvjpeg")
    with pytest.raises(UnsupportedError, match=r"this run is on cpu\. Use --decoder auto\."):
        benchmark.batches(run)
    pixels, labels = next(benchmark.decoded_on_device(run, class_folders(tmp_path, "")))  # type: ignore[attr-defined]
    assert (pixels.shape, pixels.dtype, labels.shape) == ((4, 3, 16, 16), torch.float32, (4,))


def test_toy_reg_learns_a_polynomial_of_four_powers() -> None:
    benchmark, run = built("toy_reg", batch_size=32)
    batches = iter(benchmark.batches(run))
    (x, y), (other, _) = next(batches), next(batches)
    assert (x.shape, y.shape) == ((32, 4), (32, 1))
    torch.testing.assert_close(x, torch.stack([x[:, 0] ** power for power in (1, 2, 3, 4)], dim=1))
    assert not torch.equal(x, other)


def test_ranks_of_toy_reg_learn_one_polynomial(monkeypatch: pytest.MonkeyPatch) -> None:
    first, run = built("toy_reg", seed=5)
    monkeypatch.setenv("RANK", "1")
    second, other_run = built("toy_reg", seed=5)
    for name in ("coefficients", "intercept"):
        assert torch.equal(getattr(first, name), getattr(second, name))
    (x, _), (other_x, _) = (next(iter(one.batches(its))) for one, its in ((first, run), (second, other_run)))
    assert not torch.equal(x, other_x)
    assert not torch.equal(built("toy_reg", seed=6)[0].coefficients, first.coefficients)  # type: ignore[attr-defined]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_toy_lstm_sees_97_waves_of_period_20(dtype: str) -> None:
    benchmark, run = built("toy_lstm", dtype=dtype)
    waves = next(iter(benchmark.batches(run)))
    assert (waves.shape, waves.dtype) == ((97, 1000), getattr(torch, dtype))
    torch.testing.assert_close(waves[:, 20:], waves[:, :-20], atol=1e-4, rtol=0)
    assert not torch.allclose(waves[:, 10:], waves[:, :-10], atol=0.1)
    assert len(waves[:, 0].unique()) == 97
    assert waves.max() <= 1
    seen: list[torch.Size] = []
    benchmark.model = lambda x: seen.append(x.shape) or torch.zeros_like(x).requires_grad_()  # type: ignore[attr-defined]
    benchmark.step(run, waves)
    assert seen == [(97, 999)]


@pytest.mark.slow
def test_the_dtype_of_toy_lstm_is_recorded_as_its_precision(tmp_path: Path) -> None:
    rows = [
        ("float32", "fp32", "fp32", []),
        ("float64", "fp64", "fp64", []),
        ("float64 --precision fp32", "fp32", "fp32", ["--dtype"]),
        ("float16 --precision bf16", "bf16", "bf16", ["--dtype"]),
    ]
    for words, asked, ran, listed in rows:
        line = f"--no-cuda --waves 8 --length 20 --repeat 3 --number 1 --dtype {words}"
        record = record_of(benchmark_of("toy_lstm"), tmp_path, line)
        found = (record["precision"], record["observed"]["dtype"], record["ignored"])
        assert found == (asked, ran, listed)
        assert "precision" not in [finding["rule"] for finding in record["findings"]]
    lstm = benchmark_of("toy_lstm")
    assert lstm(dtype="float16").asked_precision == lstm(dtype="float16", half=True).asked_precision == "half"
    with pytest.raises(UnsupportedError, match="fp16 training on a CPU"):
        Run(lstm(dtype="float16", cuda=False))
    with pytest.raises(CotenantError, match="--dtype float64 means fp64, and there is half"):
        lstm(dtype="float64", half=True)


def test_vae_reads_mnists_own_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = np.arange(10 * 28 * 28, dtype=np.uint32).reshape(10, 28, 28).astype(np.uint8)
    pixels[:, 0, 0] = np.arange(10)
    Path(tmp_path, "train-images-idx3-ubyte").write_bytes(idx_header(pixels.shape) + pixels.tobytes())
    benchmark, run = built("vae", data=tmp_path, batch_size=10)
    batches = iter(benchmark.batches(run))
    gathered: list[Any] = []
    gather = torch.Tensor.index_select
    monkeypatch.setattr(torch.Tensor, "index_select", lambda *a: gathered.append(a) or gather(*a))
    for count, batch in enumerate(itertools.islice(batches, 3), 1):
        assert (batch.shape, batch.dtype) == ((10, 784), torch.float32)
        order = (batch[:, 0] * 255).round().long()
        assert sorted(order.tolist()) == list(range(10))
        torch.testing.assert_close(batch, torch.from_numpy(pixels).view(10, 784)[order] / 255)
        assert len(gathered) == count
    assert benchmark.step(run, batch).isfinite()  # type: ignore[union-attr]


def test_vae_codes_vary_and_reconstruct_784_pixels() -> None:
    vae = main_of(PLACES["vae"]).VAE(400, 20)
    x = torch.rand(3, 784)
    (first, mean, log_variance), (second, *_) = vae(x), vae(x)
    assert (first.shape, mean.shape, log_variance.shape) == ((3, 784), (3, 20), (3, 20))
    assert not torch.equal(first, second)


def test_cart_updates_exactly_where_episodes_end() -> None:
    benchmark, run = built("cart")
    environment, ended = benchmark.environment, []  # type: ignore[attr-defined]
    move = environment.step

    def step(action: int) -> Any:
        assert type(action) is int
        result = move(action)
        ended.append(result[2] or result[3])
        return result

    environment.step = step
    updates: list[bool] = []
    for _ in range(300):
        before = [parameter.detach().clone() for parameter in model_of(benchmark).parameters()]
        loss = benchmark.step(run, None)
        changed = not all(map(torch.equal, before, model_of(benchmark).parameters()))
        assert changed is (loss is not None)
        updates.append(changed)
    assert updates == ended
    assert sum(updates) >= 5


def test_cart_is_one_process() -> None:
    benchmark = benchmark_of("cart")(cuda=False)
    run = Run(benchmark)
    run.world = replace(run.world, size=2)
    with pytest.raises(UnsupportedError, match=r"of 2 ranks end at different steps, .* Start it as one process\."):
        benchmark.build(run)


@pytest.mark.slow
def test_cart_learns() -> None:
    benchmark, run = built("cart", seed=0)
    lengths, length = [], 0
    for _ in range(9000):
        length += 1
        if benchmark.step(run, None) is not None:
            lengths.append(length)
            length = 0
    quarter = len(lengths) // 4
    assert sum(lengths[-quarter:]) > 2 * sum(lengths[:quarter])


def test_cart_discounts_the_rewards_of_an_episode() -> None:
    benchmark, run = built("cart", gamma=0.5)
    kept: list[torch.Tensor] = []
    run.update = lambda loss, optimizer: kept.append(loss)
    benchmark.rewards = [1.0, 1.0, 1.0]  # type: ignore[attr-defined]
    benchmark.log_probabilities = [torch.tensor(value) for value in (-1.0, -2.0, -4.0)]  # type: ignore[attr-defined]
    returns = torch.tensor([1.75, 1.5, 1.0])
    weights = (returns - returns.mean()) / returns.std(unbiased=False)
    expected = -(torch.tensor([-1.0, -2.0, -4.0]) * weights).sum()
    torch.testing.assert_close(benchmark.learn(run), expected)  # type: ignore[attr-defined]
    assert benchmark.rewards == benchmark.log_probabilities == []  # type: ignore[attr-defined]


@decodes
@pytest.mark.parametrize("workers", [0, 1])
def test_loader_reads_decodes_and_normalises(workers: int, tmp_path: Path) -> None:
    benchmark = benchmark_of("loader")(
        cuda=False, data=draw_pictures(tmp_path / "train"), batch_size=6, workers=workers, size=32
    )
    loop, run = warmed(benchmark)
    seen = loop.observe(3)
    assert seen.items == 18
    assert 0.5 * (seen.end_ns - seen.start_ns) < seen.data_wait_ns < seen.end_ns - seen.start_ns
    assert (loop.auditor.dtype, run.findings) == (None, [])
    images, labels = next(iter(benchmark.batches(run)))
    assert (images.shape, images.dtype) == ((6, 3, 32, 32), torch.float32)
    assert set(labels.tolist()) <= {0, 1}
    assert -2.2 < images.min() < -1
    assert 1 < images.max() < 2.7
    assert not hasattr(benchmark, "model")


@decodes
@pytest.mark.parametrize("decoder", ["auto", "pil"])
def test_the_decoder_that_ran_is_recorded(decoder: str, tmp_path: Path) -> None:
    benchmark, run = built("loader", data=draw_pictures(tmp_path / "train"), size=16, batch_size=2, decoder=decoder)
    images, _ = next(iter(benchmark.batches(run)))
    assert images.shape == (2, 3, 16, 16)
    assert run.observed["workers"] == benchmark.workers
    if decoder == "auto":
        assert run.observed["decoder"] in run.observed["decoders_ms"]
    else:
        assert (run.observed["decoder"], "decoders_ms" in run.observed) == (decoder, False)


def test_loader_needs_data() -> None:
    benchmark, run = built("loader")
    with pytest.raises(MissingDataError, match="Name a folder of images with --data"):
        benchmark.batches(run)


def test_no_layer_of_experts_holds_the_graph_of_a_step() -> None:
    place = "natural_language_processing/moe"
    benchmark, run = loading.built(of(place), **SMALL[place])
    loss = benchmark.step(run, next(iter(benchmark.batches(run))))
    assert loss.requires_grad
    balances = [layer.balance for layer in benchmark.routed]
    assert not any(balance.requires_grad for balance in balances)
    assert all(balance > 0 for balance in balances)
    # The routers still learn from the balance.
    assert all(layer.router.weight.grad.abs().sum() > 0 for layer in benchmark.routed)
