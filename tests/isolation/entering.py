"""A tenant on its way into its slice, as the runner starts it, and small things that tests of processes need."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from cotenant.isolation.backend import SliceEntry
from cotenant.isolation.entry import start_entry
from cotenant.isolation.slice import Slice
from cotenant.procfs import start_ticks
from patience import HANG_S

MIB = 1 << 20
AFFINITY = (sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))")
"""A command that prints the processors on which it may run."""


def eventually(holds: Callable[[], object], what: str) -> None:
    """Wait until something holds; a machine under load may take its time."""
    deadline = time.monotonic() + HANG_S
    while not holds():
        assert time.monotonic() < deadline, f"never came: {what}"
        time.sleep(0.005)


def is_dead(pid: int) -> bool:
    return start_ticks(pid) is None


def slice_of(
    tenant: int, processors: Sequence[int], *, memory_bytes: int = 64 * MIB, nodes: Sequence[int] = (0,)
) -> Slice:
    return Slice(tenant, tuple(processors), tuple(nodes), memory_bytes, ())


@dataclass
class Entering:
    """One that was started: its process, the runner's end of the channel, and its output."""

    process: subprocess.Popen[bytes]
    channel: socket.socket
    output: TextIO

    @property
    def alive(self) -> bool:
        return not is_dead(self.process.pid)

    def says(self) -> str:
        """Return its next word; an empty one where it has become the benchmark, or is gone."""
        return self.channel.recv(4096).decode().strip()

    def release(self) -> None:
        self.channel.send(b"1")

    def result(self) -> tuple[int, str]:
        """Return its exit status and everything it printed."""
        eventually(lambda: not self.alive, "its end")
        return self.process.wait(), self.output.read()

    def go(self) -> None:
        """Enter and be released."""
        assert self.says() == "in"
        self.release()

    def run(self) -> tuple[int, str]:
        """Enter, be released, end."""
        self.go()
        return self.result()


@contextmanager
def started(entry: SliceEntry, *command: object, environment: dict[str, str] | None = None) -> Iterator[Entering]:
    """One on its way to `command`, found as a shell would; killed at the end if it still lives."""
    program, *words = map(str, command)
    ours, theirs = socket.socketpair()
    ours.settimeout(HANG_S)
    read, write = os.pipe()
    with ours, os.fdopen(read) as output:
        with theirs, os.fdopen(write) as printed:
            line = [shutil.which(program) or program, *words]
            process = start_entry(entry, theirs.fileno(), printed.fileno(), line, environment or dict(os.environ))
        try:
            yield Entering(process, ours, output)
        finally:
            process.kill()
            process.wait()


@contextmanager
def sleeper(environment: dict[str, str] | None = None) -> Iterator[subprocess.Popen[bytes]]:
    """A process that does nothing for long."""
    with subprocess.Popen(["sleep", "1000"], env=environment) as process:
        try:
            eventually(lambda: is_sleeping(process.pid), "a sleeper")
            yield process
        finally:
            process.kill()


def is_sleeping(pid: int) -> bool:
    """Whether it has become `sleep`: in the middle of its exec a process has no environment for a moment."""
    process = Path(f"/proc/{pid}")
    return process.joinpath("comm").read_text() == "sleep\n" and process.joinpath("environ").read_bytes() != b""


def in_python(
    program: str, *words: object, before: Sequence[str] = (), environment: Mapping[str, str] = os.environ
) -> subprocess.CompletedProcess[str]:
    """Run a program, which may import what the tests do, in a process of its own, started by the words `before`."""
    line = [*before, sys.executable, "-c", program, *map(str, words)]
    variables = {**environment, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.run(line, env=variables, capture_output=True, text=True, timeout=HANG_S)


def numbers(path: Path) -> list[int]:
    """Return the numbers in a file that a tenant writes; none before it is there."""
    return [int(word) for word in path.read_text().split()] if path.exists() else []
