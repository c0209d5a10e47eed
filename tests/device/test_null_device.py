"""The null device itself: torch finds one, and its host side runs."""

from __future__ import annotations

from device.zygote import Zygote


def test_a_task_completes_on_the_null_device(zygote: Zygote) -> None:
    words = ("--cuda", "--precision", "bf16", "--batch-size", 8, "--repeat", 2, "--number", 2)
    ended = zygote.run("regression/polynome", *words)
    assert ended.status == 0, ended
    assert (ended.record["outcome"], ended.record["observed"]["dtype"]) == ("completed", "bf16")
    assert ended.record["gpu"] == "NVIDIA H100 80GB HBM3"
    assert ended.waits == [0] * len(ended.waits)
    assert ended.waits
