"""A process that has imported torch over the null device without using the device, and forks each job from itself."""

from __future__ import annotations

import ctypes
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from device.jobs import small
from device.null.build import variables

ROOT = Path(__file__).parents[2]
TASKS = ROOT / "tasks"
PROGRAMS = Path(__file__).with_name("programs")
LIMIT_S = 600
TAIL = 4000
RECORD = "record.json"
"""Path of a job's record in its working folder, which each job has to itself."""
COUNTS = "counts.json"
FILES = ("out", "err", RECORD, COUNTS)
LARGE = 4096
UNFILLED = "NULL_DEVICE_UNFILLED"
"""Variable that makes large networks start in seconds and take as much of a device as otherwise.

Weights of LARGE numbers and more are not drawn at random.
"""


@dataclass(frozen=True, slots=True, repr=False)
class Ended:
    """A job's exit status, its output and its record.

    `waits`: in each measured step, how often the host waited for the device. `peak_bytes`: its peak of device memory.
    """

    status: int
    out: str
    err: str
    record: dict[str, Any]
    waits: list[int]
    peak_bytes: int

    @property
    def completed(self) -> bool:
        return self.record.get("outcome") == "completed"

    @property
    def refusal(self) -> str:
        """Sentence of a job that did not complete: its record's, or where it left none the last line of its errors."""
        return self.record.get("message") or self.err.strip().splitlines()[-1].partition(": ")[2]

    def __repr__(self) -> str:
        return f"status {self.status}: {self.record.get('message')}\n{self.err[-TAIL:]}"


class Zygote:
    """The tests' end of the process. Jobs run one after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        environment = os.environ | variables(folder, os.environ)
        paths = [str(ROOT / "common"), str(ROOT / "tests"), environment.get("PYTHONPATH", "")]
        environment |= {"PYTHONPATH": os.pathsep.join(filter(None, paths)), "OMP_NUM_THREADS": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "device.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def small(self, task: str, *words: object, **variables: str) -> Ended:
        """Run a few steps of the small form of a task; return how it ended."""
        return self.run(task, *small(task), *words, **variables)

    def run(self, task: str, *words: object, **variables: str) -> Ended:
        """Run a task, named as its folder below tasks/, with these arguments and variables; return how it ended."""
        return self.start(TASKS / task / "pytorch" / "main.py", *words, "--report", RECORD, **variables)

    def asked(self, program: str, *words: object, **variables: str) -> Any:
        """Return the JSON value that a file of programs/ prints."""
        ended = self.start(PROGRAMS / f"{program}.py", *words, **variables)
        assert ended.status == 0, ended
        return json.loads(ended.out)

    def start(self, program: Path, *words: object, **variables: str) -> Ended:
        """Run a program that may leave a record as RECORD with these arguments and variables; return how it ended."""
        with tempfile.TemporaryDirectory() as folder:
            line = [str(word) for word in (program, *words)]
            self._process.stdin.write(json.dumps({"line": line, "environ": variables, "folder": folder}) + "\n")
            self._process.stdin.flush()
            status = int(self._process.stdout.readline())
            texts = {path.name: path.read_text() for path in Path(folder).iterdir() if path.name in FILES}
            counts = json.loads(texts.get(COUNTS, '{"waits": [], "peak_bytes": 0}'))
            return Ended(status, texts["out"], texts["err"], json.loads(texts.get(RECORD, "{}")), **counts)

    def close(self) -> None:
        self._process.communicate("")


def serve() -> None:
    """Fork a child for each request on the standard input, and answer with its exit status."""
    # Imported once for all jobs.
    import torch._dynamo  # noqa: F401
    import torchvision.transforms.v2  # noqa: F401

    import cotenant.bench
    import cotenant.findings
    import cotenant.layers.language
    import cotenant.results.build  # noqa: F401

    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            _job(request)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _job(request: Mapping[str, Any]) -> None:
    """Become the program of a request; SIGALRM ends it after LIMIT_S."""
    signal.alarm(LIMIT_S)
    os.chdir(request["folder"])
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT), number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.environ.update(request["environ"])
    sys.argv = request["line"]
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    if UNFILLED in request["environ"]:
        _do_less()
    waits = _watched_steps()
    status = 1
    try:
        runpy.run_path(sys.argv[0], run_name="__main__")
        status = 0
    except SystemExit as end:
        status = int(end.code or 0)
    except BaseException:
        traceback.print_exc()
    counts = {"waits": waits, "peak_bytes": _counter("null_device_peak_bytes").value}
    Path(COUNTS).write_text(json.dumps(counts))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _counter(name: str) -> ctypes.c_ulonglong:
    return ctypes.c_ulonglong.in_dll(ctypes.CDLL(None), name)


def _do_less() -> None:
    import torch

    for name in ("normal_", "uniform_"):
        fill = getattr(torch.Tensor, name)
        # Small tensors are still drawn: a program may choose by a random number.
        unfilled = lambda self, *a, fill=fill, **b: fill(self, *a, **b) if self.numel() < LARGE else self  # noqa: E731
        setattr(torch.Tensor, name, unfilled)


def _watched_steps() -> list[int]:
    """Return a list that gets, for every step after the warm-up, how often the host waited for the device in it."""
    from cotenant.bench.loop import Loop

    counter = _counter("null_device_waits")
    waits: list[int] = []
    warm_up = Loop.warm_up

    def watched(loop: Loop) -> list[int]:
        times_ns = warm_up(loop)
        step = loop._work.step

        def counting(run: Any, batch: Any) -> Any:
            before = counter.value
            loss = step(run, batch)
            waits.append(counter.value - before)
            return loss

        loop._work.step = counting
        return times_ns

    Loop.warm_up = watched  # type: ignore[method-assign]
    return waits


if __name__ == "__main__":
    serve()
