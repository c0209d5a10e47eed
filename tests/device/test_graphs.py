"""--graph on the null device: which steps can be recorded, and that an audit fits beside a recorded one."""

from __future__ import annotations

import pytest

from device.jobs import MOE, SMALL, TEXT, UNRECORDED
from device.test_tasks import FEW, PRECISIONS, run
from device.zygote import Ended, Zygote

FAST = ("image_generation/diffusion_transformer", f"{TEXT}/transformer_xl", f"{TEXT}/word_language_model")
MIB = 1 << 20
CONTEXT_MIB = 520
ROOMY = ("--batch-size", 64, "--context", 256, "--layers", 4, "--heads", 4, "--width", 256, "--words", 8192)
"""A step of gpt that takes several hundred MiB, of which segments of 20 MiB are a small part."""


@pytest.mark.parametrize(
    "task", [task if task in FAST else pytest.param(task, marks=pytest.mark.slow) for task in SMALL]
)
def test_a_step_is_recorded_or_refused_with_its_sentence(zygote: Zygote, task: str) -> None:
    assert_recorded(run(zygote, task, "--precision", "bf16", "--graph"), UNRECORDED.get(task))


@pytest.mark.slow
@pytest.mark.parametrize("precision", [name for name in PRECISIONS if name != "bf16"])
@pytest.mark.parametrize("task", [task for task in SMALL if task not in UNRECORDED])
def test_in_other_precisions(zygote: Zygote, task: str, precision: str) -> None:
    ended = run(zygote, task, *PRECISIONS[precision], "--graph")
    waits = task == MOE or (task.endswith("dlrm") and precision in ("fp16", "half"))
    assert_recorded(ended, "" if waits else None)


def assert_recorded(ended: Ended, refused: str | None) -> None:
    """Assert that a step was recorded, or refused with this sentence."""
    if refused is None:
        assert ended.record.get("outcome") == "completed", ended
        assert ended.record["observed"]["graph"] is True
        assert ended.record["observed"]["audit"]["differences"] == []
    else:
        assert ended.status == 1
        assert ended.record.get("outcome", "unsupported") == "unsupported", ended
        assert refused in (ended.record.get("message") or ended.err)


def test_a_recorded_step_and_its_audit_fit_a_device_of_one_and_a_half_times_the_eager_peak(zygote: Zygote) -> None:
    """The graph keeps a whole step's memory; an audit beside it would take as much again."""
    words = ("--cuda", *FEW, *ROOMY, "--precision", "bf16")
    eager = zygote.run(f"{TEXT}/gpt", *words)
    peak_mib = eager.record["meters"]["device_memory"]["reserved_bytes"] // MIB
    assert peak_mib > 500, eager
    little = {"NULL_DEVICE_MIB": str(round(1.5 * peak_mib) + CONTEXT_MIB)}
    graphed = zygote.run(f"{TEXT}/gpt", *words, "--graph", environ=little)
    assert_recorded(graphed, None)
    assert graphed.record["observed"]["audit"]["steps"] == 1
