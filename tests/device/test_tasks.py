"""Every task on the null device, in every precision, and on hosts without NVML or a compiler."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from device.jobs import ARTEFACTS, NOT_IN_HALF, PRECISIONS, SPEECH, TASKS, TEXT, WAITING
from device.zygote import UNFILLED, Zygote

GPT, BF16 = f"{TEXT}/gpt", PRECISIONS["bf16"]


def fast(names: Iterable[str], *few: str) -> list[Any]:
    """Return all names, marked as slow but for `few`."""
    return [name if name in few else pytest.param(name, marks=pytest.mark.slow) for name in names]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("precision", fast(PRECISIONS, "bf16"))
def test_a_task_computes_as_asked_and_waits_for_nothing(zygote: Zygote, task: str, precision: str) -> None:
    ended = zygote.small(task, *PRECISIONS[precision], **{UNFILLED: "1"})
    if precision == "half" and task in NOT_IN_HALF:
        assert ended.record.get("outcome", "unsupported") == "unsupported"
        assert NOT_IN_HALF[task] in ended.err
        return
    assert ended.completed, ended
    wanted = precision.replace("half", "fp16")
    observed = ended.record["observed"]
    assert (observed["dtype"], list(observed["products"])) == (wanted, [wanted])
    assert {one["rule"] for one in ended.record["findings"] if one["severity"] == "error"} <= ARTEFACTS
    assert max(ended.waits) <= WAITING.get(task, {}).get(wanted, 0), "the host waited for the device in a step"


def test_recurrent_layers_compute_in_bf16_with_fp32_weights(zygote: Zygote) -> None:
    """autocast to bf16 would run cuDNN's layers in fp16. Weights stay one block of memory."""
    ended = zygote.small("time_sequence_prediction/lstm", "--recurrence", "lstm", *BF16)
    observed = ended.record["observed"]
    assert list(observed["products"]) == ["bf16"], ended
    assert "_cudnn_rnn" in observed["products"]["bf16"]
    assert observed["optimizers"][0]["weights"] == "fp32"
    assert "contiguous chunk of memory" not in ended.err


@pytest.fixture
def without_nvml(zygote: Zygote) -> Iterator[Zygote]:
    """The process beside a driver's compute library alone: it has not loaded NVML, and its jobs do not find it."""
    library, aside = zygote.folder / "libnvidia-ml.so.1", zygote.folder / "aside"
    library.rename(aside)
    yield zygote
    aside.rename(library)


@pytest.mark.parametrize("task", fast(TASKS, GPT))
def test_without_nvml_tasks_of_any_shapes_run(without_nvml: Zygote, task: str) -> None:
    """A container may have the driver's compute library alone; expandable segments would need NVML."""
    ended = without_nvml.small(task, *BF16)
    assert ended.completed, ended
    assert "allocator" not in ended.record["observed"]


def test_without_a_compiler_the_sentence_names_it(zygote: Zygote, tmp_path: Path) -> None:
    """torch's own Triton kernel needs a compiler; the cache is empty, so that no kernel compiled earlier is used."""
    bare = {"PATH": str(tmp_path), "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    ended = zygote.small(f"{SPEECH}/tacotron2", *BF16, **bare)
    assert ended.record["outcome"] == "unsupported", ended
    assert "C compiler" in ended.record["message"]
    assert "apt-get install gcc" in ended.record["message"]
