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
from pathlib import Path

OUT, ERR = LOGS = ("runner.out", "runner.err")
SET_ASIDE = (".unfinished", ".superseded")
KEPT = (*LOGS, ".json", ".journal", ".resolved", "summary.txt", *SET_ASIDE)
LOOK_S, GRACE_S = 1.0, 30.0
PR_SET_PDEATHSIG = 1
PORTS = range(20000, 32000)
"""Above the ports of Ray's workers, below those that kernels assign."""
News = tuple[dict[str, bytes], int | None]
"""Records, journals and logs written since the last answer, by name, and the runner's status, None while it runs."""


class NodeRunner:
    """One node's runner, at most one at a time; `folder` has its logs, and its records in `output`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = Path()
        self._seen: dict[str, tuple[int, int]] = {}

    def start(self, folder: str, words: tuple[str, ...], variables: dict[str, str], files: dict[str, bytes]) -> str:
        """Write the files into the folder and start our program there; return why that cannot be done, or ""."""
        self._folder = Path(folder)
        environment = {name: os.environ[name] for name in os.environ if name not in ("OMP_NUM_THREADS", "PYTHONPATH")}
        try:
            (self._folder / "output").mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                (self._folder / name).write_bytes(content)
            with (self._folder / OUT).open("wb") as out, (self._folder / ERR).open("wb") as err:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "cotenant", *words],
                    cwd=folder,
                    env=environment | variables,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=err,
                    start_new_session=True,
                    preexec_fn=_depart,
                )
        except OSError as error:
            return f"{error.filename or folder}: {error.strerror}."
        return ""

    def free_port(self) -> int:
        for port in random.sample(PORTS, len(PORTS)):
            with contextlib.suppress(OSError):
                socket.create_server(("", port)).close()
                return port
        raise OSError(f"No port between {PORTS[0]} and {PORTS[-1]} is free.")

    def news(self, wait_s: float) -> News:
        """Return the news, at once if there are any, else after `wait_s`."""
        deadline = time.monotonic() + wait_s
        while self._process is not None:
            status = self._process.poll()  # Before the look at files: an ended runner writes no more.
            files = self._written()
            if files or status is not None or time.monotonic() >= deadline:
                return files, status
            time.sleep(LOOK_S)
        return {}, None

    def stop(self) -> None:
        """Interrupt the runner, whose records stay. Raises TimeoutExpired if it does not end within GRACE_S."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(GRACE_S)

    def _written(self) -> dict[str, bytes]:
        files: dict[str, bytes] = {}
        for path in sorted([*self._folder.glob("runner.*"), *(self._folder / "output").glob("[!.]*")]):
            with contextlib.suppress(FileNotFoundError):  # The runner has set it aside meanwhile.
                mark = (path.stat().st_mtime_ns, path.stat().st_size)
                if path.name.endswith(KEPT) and self._seen.get(path.name) != mark:
                    files[path.name], self._seen[path.name] = path.read_bytes(), mark
        return files


def _depart() -> None:
    """Leave Ray's niceness of 15, if that is allowed, and have the kernel end the runner when the actor dies."""
    with contextlib.suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, 0)
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
