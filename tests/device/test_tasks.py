"""Every task on the null device, in every precision: it completes, computes as asked, and waits for nothing."""

from __future__ import annotations

from typing import Any

import pytest

from device.jobs import ARTEFACTS, LSTM_LAYERS, NOT_IN_HALF, SMALL, TEXT, WAITING
from device.zygote import Ended, Zygote

FEW = ("--repeat", 2, "--number", 2, "--skip", 0)
PRECISIONS = {
    "bf16": ("--precision", "bf16"),
    "fp32": (),
    "tf32": ("--precision", "tf32"),
    "fp16": ("--precision", "fp16"),
    "half": ("--half",),
}
FAST = ("bf16",)
"""The others are the long tier's."""


def run(zygote: Zygote, task: str, *words: Any, **environ: str) -> Ended:
    return zygote.run(task, "--cuda", *FEW, *SMALL[task].split(), *words, environ=environ)


@pytest.mark.parametrize("task", SMALL)
@pytest.mark.parametrize(
    "precision", [pytest.param(p, marks=() if p in FAST else pytest.mark.slow) for p in PRECISIONS]
)
def test_a_task_computes_as_asked_and_waits_for_nothing(zygote: Zygote, task: str, precision: str) -> None:
    ended = run(zygote, task, *PRECISIONS[precision])
    if precision == "half" and task in NOT_IN_HALF:
        assert ended.record.get("outcome", "unsupported") == "unsupported"
        assert NOT_IN_HALF[task] in ended.err
        return
    assert ended.record.get("outcome") == "completed", ended
    wanted = precision.replace("half", "fp16")
    observed = ended.record["observed"]
    assert (observed["dtype"], list(observed["products"])) == (wanted, [wanted])
    assert {one["rule"] for one in ended.record["findings"] if one["severity"] == "error"} <= ARTEFACTS
    assert max(ended.waits) <= WAITING.get(task, {}).get(wanted, 0), "the host waited for the device in a step"


def test_recurrent_layers_compute_in_bf16_with_gradients_in_fp32(zygote: Zygote) -> None:
    """autocast to bf16 would have cuDNN's in fp16. One launch trains, and no copy of a weight is kept for the next."""
    task, words = LSTM_LAYERS
    ended = zygote.run(task, "--cuda", *FEW, *words.split(), "--precision", "bf16")
    observed = ended.record["observed"]
    assert list(observed["products"]) == ["bf16"], ended
    assert "_cudnn_rnn" in observed["products"]["bf16"]
    assert observed["optimizers"][0]["weights"] == "fp32"
    assert "contiguous chunk of memory" not in ended.err
    graphed = run(zygote, f"{TEXT}/rnn_translator", "--precision", "bf16", "--graph")
    assert graphed.record.get("outcome") == "completed", graphed
