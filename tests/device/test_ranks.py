"""The vendors' families as one model over two null devices: NCCL's ranks meet, and every step's gradients reach it."""

from __future__ import annotations

import json

import pytest

from device.jobs import WAITING, small
from device.test_tasks import fast
from device.zygote import PROGRAMS, RECORD, TASKS, Zygote
from tasks.test_distributed import FAMILIES, RANKS

TIMED = 2
"""Waits for the device that DDP adds to a step: it times the first ten steps, and then each hundredth."""
OF_ALL = (*FAMILIES, "image_classification/convnets")


@pytest.mark.parametrize("task", fast(OF_ALL, "recommendation/neural_collaborative_filtering"))
def test_a_family_trains_one_model_over_two_devices(zygote: Zygote, task: str) -> None:
    words = (TASKS / task / "pytorch/main.py", *small(task), "--precision", "bf16", "--report", RECORD)
    ended = zygote.start(PROGRAMS / "ranks.py", *words, NULL_DEVICE_COUNT=str(RANKS))
    assert (ended.status, ended.completed) == (0, True), ended
    observed = ended.record["observed"]
    assert (observed["world_size"], observed["parallel"], observed["dtype"]) == (RANKS, "ddp", "bf16")
    assert max(ended.waits) <= WAITING.get(task, {}).get("bf16", 0) + TIMED
    told = json.loads(ended.out.splitlines()[-1])
    steps, rest = divmod(told["reduced"], told["parameters"])
    assert rest == 0, "a step leaves gradients at home"
    assert steps >= len(ended.waits)
