"""The actor on a node of a Ray cluster: it starts our runner there, and hands over the runner's files as they come.

It is sent to the node by value and needs the standard library alone: the node's Ray may know nothing of us.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

KEPT = (".json", ".journal", ".resolved", "summary.txt")
SET_ASIDE = ".unfinished"
LOOK_S = 1.0
MOST_BYTES = 64 << 20
"""Most bytes of files in one answer; the rest comes with the next."""
GRACE_S = 30.0
TAIL_BYTES = 4096
PR_SET_PDEATHSIG = 1
PORTS = range(20000, 32000, 2)
"""Above those of Ray's workers, below those that kernels give away by themselves."""


@dataclass(frozen=True)
class NodeOrder:
    """A node's order: run our program with `words`, in `base`, with these variables.

    `python` and `source` are those of whoever asks; where the node has no such file its own are taken. `files` lie in
    the base, and `{base}` in words is its path; records go to `output` there. `shown`: what the runner
    prints is news.
    """

    base: str
    words: tuple[str, ...]
    variables: dict[str, str]
    python: str
    source: str
    files: dict[str, bytes] = field(default_factory=dict)
    shown: bool = False


@dataclass(frozen=True)
class NodeNews:
    """News from a node: files that were written, names that were set aside, and how the runner has ended.

    `status` is None while it runs; `tail` is the end of its output, of one that has ended. `printed` is the output that
    is new on its standard output and its standard error, where that is shown.
    """

    files: dict[str, bytes]
    aside: tuple[str, ...]
    status: int | None
    tail: str = ""
    printed: tuple[bytes, bytes] = (b"", b"")


class Agent:
    """One node's runner, at most one at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._output = Path()
        self._logs: tuple[Path, ...] = ()
        self._shown = False
        self._read = [0, 0]
        self._seen: dict[str, tuple[int, int]] = {}
        self._aside: set[str] = set()
        self._more = False

    def start(self, order: NodeOrder) -> str:
        """Start the runner; return why it cannot be, "" where it runs."""
        base = Path(order.base)
        python = order.python if os.access(order.python, os.X_OK) else sys.executable
        environment = {
            name: value for name, value in os.environ.items() if name not in ("OMP_NUM_THREADS", "PYTHONPATH")
        }
        environment |= order.variables
        if Path(order.source).is_dir():
            environment["PYTHONPATH"] = order.source
        words = [word.replace("{base}", order.base) for word in order.words]
        self._output, self._logs = base / "output", (base / "runner.out", base / "runner.err")
        try:
            self._output.mkdir(parents=True, exist_ok=True)
            for name, content in order.files.items():
                (base / name).write_bytes(content)
            with self._logs[0].open("wb") as out, self._logs[1].open("wb") as err:
                self._process = subprocess.Popen(
                    [python, "-m", "cotenant", *words],
                    cwd=base,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    preexec_fn=_depart,
                )
        except OSError as error:
            return f"{error.filename or base}: {error.strerror}."
        self._shown, self._read = order.shown, [0, 0]
        return ""

    def free_port(self) -> int:
        """Return a port that is free here, as the one after it is."""
        for port in random.sample(PORTS, len(PORTS)):
            try:
                for each in (port, port + 1):
                    socket.create_server(("", each)).close()
            except OSError:
                continue
            return port
        raise OSError(f"No two ports between {PORTS[0]} and {PORTS[-1]} are free.")

    def news(self, wait_s: float) -> NodeNews:
        """Return the news, at once where there are any, else after so long."""
        deadline = time.monotonic() + wait_s
        if self._process is None:
            return NodeNews({}, (), None)
        while True:
            # First, so that nothing is written between the look at files and the end.
            status = self._process.poll()
            files, aside = self._changed()
            printed = self._printed()
            if files or aside or any(printed) or status is not None or time.monotonic() >= deadline:
                tail = "" if status is None else self._tail()
                return NodeNews(files, aside, status if not self._more else None, tail, printed)
            time.sleep(LOOK_S)

    def stop(self) -> None:
        """Interrupt the runner: its records stay, and another start goes on."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            try:
                self._process.wait(GRACE_S)
            except subprocess.TimeoutExpired:
                self._process.kill()

    def _printed(self) -> tuple[bytes, bytes]:
        """Return the output since the last look."""
        if not self._shown:
            return b"", b""
        out, err = (log.read_bytes()[at:] for log, at in zip(self._logs, self._read, strict=True))
        self._read = [self._read[0] + len(out), self._read[1] + len(err)]
        return out, err

    def _tail(self) -> str:
        """Return the end of the output: complaints are last."""
        return b"\n".join(log.read_bytes()[-TAIL_BYTES:] for log in self._logs).decode(errors="replace")

    def _changed(self) -> tuple[dict[str, bytes], tuple[str, ...]]:
        """Return the files that were written since the last look, and the records that were set aside."""
        files: dict[str, bytes] = {}
        total, self._more = 0, False
        names = sorted(entry.name for entry in os.scandir(self._output)) if self._output.is_dir() else []
        for name in names:
            if name.startswith(".") or not name.endswith(KEPT):
                continue
            try:
                state = (self._output / name).stat()
                mark = (state.st_mtime_ns, state.st_size)
                if self._seen.get(name) == mark:
                    continue
                if total > MOST_BYTES:
                    self._more = True
                    break
                files[name] = (self._output / name).read_bytes()
            except FileNotFoundError:
                continue  # the runner has set it aside since the names were read
            self._seen[name] = mark
            total += state.st_size
        aside = {name.removesuffix(SET_ASIDE) for name in names if name.endswith(SET_ASIDE)} - self._aside
        self._aside |= aside
        return files, tuple(sorted(aside))


def _depart() -> None:
    """Leave Ray's niceness, and have the kernel interrupt us when the agent's process dies.

    Ray gives its workers a niceness of 15, and all other work would go before the tenants. Who may not leave it keeps
    it, which the runner reports. A runner of a lost node would keep its machine.
    """
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
