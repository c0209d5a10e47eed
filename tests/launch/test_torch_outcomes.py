"""Real benchmarks that ask for too much, or for what this device cannot do: the outcome, and what to do about it."""

from typing import Any

import pytest

from cotenant.machine.topology import discover
from tenants.suites import Suites

POLYNOME, CONVNETS = "./regression/polynome/pytorch/run.sh", "./image_classification/convnets/pytorch/run.sh"


def job(cmd: str, *words: str, name: str = "job") -> dict[str, Any]:
    args = {"--repeat": 6, "--number": 1, "--no-cuda": ""} | dict(zip(words[::2], words[1::2], strict=True))
    return {"name": name, "cmd": cmd, "cgroup": "student", "args": args}


def test_what_this_device_cannot_do_and_memory_that_the_kernel_refuses(loose: Suites) -> None:
    """fp16 on a processor is unsupported, and bf16 is offered; too large a batch is answered with half of it."""
    jobs = [job(POLYNOME, "--half", "", name="fp16"), job(POLYNOME, "--batch-size", str(1 << 46), name="large")]
    assert loose.run(jobs, "--users", 1).returncode == 1
    (fp16,), (large,) = (loose.by_job()[name] for name in ("fp16", "large"))
    assert fp16["outcome"] == "unsupported"
    assert fp16["message"].endswith("so it is not measured. Use --precision bf16.")
    assert large["outcome"] == "out_of_memory"
    assert large["message"].endswith(f"Try half the batch: -- --batch-size {1 << 45}")


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
