"""The ceilings: each does as much work as it counts."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import torch

from cotenant.bench.loop import Loop
from cotenant.bench.observed import FlopCount
from tasks.loading import built, of


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_a_matrix_product_is_credited_with_its_operations(precision: str) -> None:
    benchmark, run = built(of("ceilings/product"), side=24, batch_size=2, precision=precision)
    batch = next(benchmark.batches(run))
    step = run.precision.around(benchmark.step)
    with FlopCount() as count:
        assert step(run, batch) is None
    assert count.total == benchmark.items(batch) == 2 * 2 * 24**3
    left, right = batch
    torch.testing.assert_close(benchmark.out, left @ right)
    loop = Loop(benchmark, run)
    loop.warm_up()
    assert loop.auditor.dtype == precision
    loop.load_until(lambda: True)


def test_a_triad_moves_three_arrays() -> None:
    benchmark, run = built(of("ceilings/triad"), elements=1000)
    batch = next(benchmark.batches(run))
    benchmark.step(run, batch)
    torch.testing.assert_close(benchmark.sums, batch[0] + 3 * batch[1])
    assert benchmark.items(batch) == 12_000


@pytest.mark.parametrize("cold", [False, True])
def test_a_file_is_read_block_by_block_and_again(cold: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMP_DIRECTORY", str(tmp_path))
    cls = of("ceilings/reading")
    benchmark, run = built(cls, size_mib=2, batch_size=1 << 19, cold=cold)
    benchmark.file.seek(0)
    whole = benchmark.file.read()
    assert len(whole) == 2 << 20
    found = []
    for block in itertools.islice(benchmark.batches(run), 6):
        assert benchmark.items(block) == 1 << 19
        found.append(bytes(block))
    assert b"".join(found[:4]) == whole
    assert found[4:] == found[:2]
    assert list(tmp_path.iterdir()) == []
    benchmark.file.close()


def test_a_block_larger_than_the_file_is_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEMP_DIRECTORY", str(tmp_path))
    benchmark, run = built(of("ceilings/reading"), size_mib=1, batch_size=3 << 20)
    assert [len(block) for block in itertools.islice(benchmark.batches(run), 3)] == [1 << 20] * 3
    benchmark.file.close()
