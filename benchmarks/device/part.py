"""One part: what it is given, and what happens when it passes, fails, is skipped or breaks."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from device.book import CHECKS, FAIL, PASS, SKIP, Book, Skip, Verdict
from device.wheels import CARRIED

BENCHMARKS = Path(__file__).resolve().parents[1]
ROOT = BENCHMARKS.parent
OURS = ("cotenant", "device", "sides", "jobs", "pairs")
"""Modules of this project: that one of them is missing is its own fault, not the machine's."""

PACKAGES = {"PIL": "pillow", "pynvml": "nvidia-ml-py", "ale_py": "ale-py"}
"""What modules are called where they are installed from, if not by their own names."""


@dataclass
class Given:
    """What a part works with: the book, the machine as it was found, a scratch folder, and its time."""

    part: str
    book: Book
    machine: dict[str, Any]
    scratch: Path
    quick: bool
    seconds: float
    families: tuple[str, ...] = ()
    began: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """The seconds that are left of this part's own."""
        return self.seconds - (time.monotonic() - self.began)

    @property
    def kind(self) -> str:
        """`cuda`, `hip`, or `cpu` where torch sees no device."""
        return str(self.machine.get("kind", "cpu"))

    @property
    def device(self) -> str:
        """As torch calls it: a ROCm device is `cuda` there, too."""
        return "cpu" if self.kind == "cpu" else "cuda"

    def row(self, table: str, **columns: Any) -> None:
        """Keep a line of a table of this part."""
        self.book.add(self.part, table, **columns)

    def check(self, name: str, passed: bool, sentence: str) -> None:
        """Keep whether something held."""
        self.row(CHECKS, check=name, verdict=PASS if passed else FAIL, sentence=sentence)

    def skip(self, name: str, sentence: str) -> None:
        """Keep that something could not be looked at."""
        self.row(CHECKS, check=name, verdict=SKIP, sentence=sentence)

    @contextlib.contextmanager
    def looking_at(self, name: str) -> Iterator[None]:
        """Let what breaks inside fail this check alone; `Skip` skips it."""
        try:
            yield
        except Skip as reason:
            self.skip(name, str(reason))
        except ModuleNotFoundError as error:
            if of_this_project(error):
                raise
            self.skip(name, lacking(error))
        except Exception as error:
            self.check(name, False, in_a_line(error))

    def need_torch(self) -> None:
        """Raise Skip where there is no torch, or one that is too old for our code."""
        version = str(self.machine["torch"])
        if version.startswith(("missing", "unknown")):
            raise Skip(f"It needs torch: {version}.")
        if self.machine.get("old_torch"):
            raise Skip(f"It needs torch 2.11 or newer, and this is {version}.")

    def need_device(self) -> None:
        """Raise Skip where torch sees no device."""
        self.need_torch()
        if self.kind == "cpu":
            raise Skip("It needs a device, and torch sees none.")

    def need_nvidia(self) -> None:
        """Raise Skip where there is no device of NVIDIA's."""
        self.need_device()
        if self.kind != "cuda":
            raise Skip("It needs a device of NVIDIA's.")

    def need_time(self, seconds: float) -> None:
        """Raise Skip where less than so much is left: better some cells than a part that is killed."""
        if self.left_s < seconds:
            raise Skip(f"No time was left for it ({max(0, self.left_s):.0f} s, and it takes some {seconds:.0f}).")


def of_this_project(error: ModuleNotFoundError) -> bool:
    return (error.name or "").partition(".")[0] in OURS


def lacking(error: ModuleNotFoundError) -> str:
    """Return the sentence about a package that this machine lacks."""
    package = (error.name or "?").partition(".")[0]
    carried = ", or carry `make gpu-wheels` here" if package in CARRIED else ""
    return f"The package {package} is missing: pip install {PACKAGES.get(package, package)}{carried}."


def in_a_line(error: BaseException) -> str:
    """Return an error as one line of a table."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:400]


def breakdown(error: BaseException) -> Verdict:
    """Return the verdict of a part that ended with an exception."""
    if isinstance(error, Skip):
        return Verdict(SKIP, str(error))
    if isinstance(error, ModuleNotFoundError) and not of_this_project(error):
        return Verdict(SKIP, lacking(error))
    return Verdict(FAIL, in_a_line(error))


def environment() -> dict[str, str]:
    """Return this process's environment with our library before everything else.

    Not with benchmarks/: its files have names that packages of others have, too.
    """
    path = [str(ROOT / "common"), os.environ.get("PYTHONPATH")]
    found = os.environ | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(filter(None, path)))}
    # Devices are counted as NVML and the kernel count them.
    return {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"} | found
