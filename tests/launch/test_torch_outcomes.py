"""Real benchmarks that ask for too much, or for what this device cannot do: the outcome, and what to do about it."""

from typing import Any

import pytest

from cotenant.machine.topology import discover
from tenants.suites import Suites

POLYNOME, CONVNETS = "./regression/polynome/pytorch/run.sh", "./image_classification/convnets/pytorch/run.sh"


def job(cmd: str, *words: str) -> dict[str, Any]:
    args = {"--repeat": 6, "--number": 1, "--no-cuda": ""} | dict(zip(words[::2], words[1::2], strict=True))
    return {"name": "job", "cmd": cmd, "cgroup": "student", "args": args}


def test_fp16_on_a_processor_is_unsupported_and_bf16_is_offered(loose: Suites) -> None:
    assert loose.run([job(POLYNOME, "--half", "")], "--users", 1).returncode == 1
    (record,) = loose.records()
    assert record["outcome"] == "unsupported"
    assert record["message"].endswith("so it is not measured. Use --precision bf16.")


def test_memory_that_the_kernel_refuses_is_answered_with_half_the_batch(loose: Suites) -> None:
    assert loose.run([job(POLYNOME, "--batch-size", str(1 << 46))], "--users", 1).returncode == 1
    (record,) = loose.records()
    assert record["outcome"] == "out_of_memory"
    assert record["message"].endswith(f"Try half the batch: -- --batch-size {1 << 45}")


@pytest.mark.v1
@pytest.mark.slow
def test_a_batch_too_large_for_its_slice_is_answered_with_half_of_it(v1: Suites) -> None:
    """The default batch, which stands on no command line."""
    words = ("--arch", "resnet18", "--size", "320")
    reserve = discover().memory_bytes - (1200 << 20)
    assert v1.run([job(CONVNETS, *words)], "--users", 1, "--reserve", reserve, limit_s=300).returncode == 1
    (record,) = v1.records()
    assert record["outcome"] == "out_of_memory"
    assert record["message"].endswith("Try half the batch: -- --batch-size 32")
