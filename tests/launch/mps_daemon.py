"""A daemon of MPS that a test starts and ends: NVIDIA's, or a program that stands in for it."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from tenants.suites import until

STAND_IN = str(Path(__file__).with_name("mps") / "nvidia-cuda-mps-control")


@contextlib.contextmanager
def running(pipes: Path, control: str | None = None) -> Iterator[dict[str, str]]:
    """Yield the variables by which clients find the daemon; `control` is its program, by default the stand-in."""
    pipes.mkdir(parents=True, exist_ok=True)
    variables = {"CUDA_MPS_PIPE_DIRECTORY": str(pipes), "CUDA_MPS_LOG_DIRECTORY": str(pipes)}
    program = control or STAND_IN
    subprocess.run([program, "-d"], env=os.environ | variables, check=True)
    until((pipes / "control").exists, "a daemon")
    try:
        yield variables
    finally:
        subprocess.run([program], input=b"quit\n", env=os.environ | variables, check=True)
        until(lambda: not (pipes / "control").exists(), "the daemon's end")
