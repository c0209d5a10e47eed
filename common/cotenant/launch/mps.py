"""NVIDIA's Multi-Process Service for one launch: a daemon of its own, outside all slices, that ends after its clients.

NVIDIA, Multi-Process Service, "nvidia-cuda-mps-control". Daemon, servers and clients need one /dev/shm: if tenants do
not use the machine's, they use the daemon's. The daemon has the run's marker, by which the reaper ends it after the
runner's death.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from cotenant.errors import CotenantError
from cotenant.files import Directory
from cotenant.isolation.backend import NotIsolatedError, SliceEntry
from cotenant.isolation.entry import start
from cotenant.isolation.processes import kill_marked, marked
from cotenant.launch.environment import mps_variables
from cotenant.launch.paths import remove_tree
from cotenant.launch.tenant import log_end
from cotenant.machine.accelerators import Accelerator, visible_variables
from cotenant.protocol.messages import DAEMON_VARIABLE, RUN_VARIABLE

CONTROL = "nvidia-cuda-mps-control"
SOCKET = "control"
"""The name under which clients find the daemon, in the directory of its pipes."""
START_LIMIT_S = 15.0
QUIT_LIMIT_S = 10.0
POLL_S = 0.01
LOG_BYTES = 512


def control_program() -> str:
    """Return the path of the daemon's program. Raises CotenantError if it is not on PATH."""
    if (program := shutil.which(CONTROL)) is None:
        raise CotenantError(
            f"--share mps needs {CONTROL}, which is not on PATH.",
            "It comes with NVIDIA's driver for servers; --share time needs nothing.",
        )
    return program


class MpsDaemon:
    """The daemon of one launch on `devices`; `shm_of` is the mount namespace whose /dev/shm its clients share."""

    def __init__(self, run: str, directory: Path, devices: Sequence[Accelerator], shm_bytes: int) -> None:
        """`directory` is for its pipes and belongs to the run. `shm_bytes`: the size of its own /dev/shm, 0 if it uses
        the machine's."""
        self._run = run
        self._directory = directory
        self._shm_bytes = shm_bytes
        self._variables = mps_variables(directory)
        self._devices = visible_variables(devices)
        self._namespace = -1

    @property
    def shm_of(self) -> Path | None:
        """The mount namespace of the daemon; None if all use the machine's /dev/shm."""
        return None if self._namespace < 0 else Path(f"/proc/{os.getpid()}/fd/{self._namespace}")

    def start(self) -> None:
        """Start the daemon and wait until clients can find it. Raises NotIsolatedError, OSError, CotenantError."""
        program = control_program()
        log = Path(self._variables["CUDA_MPS_LOG_DIRECTORY"])
        log.mkdir(mode=0o700, parents=True, exist_ok=True)
        ours, theirs = socket.socketpair()
        ours.settimeout(START_LIMIT_S)
        with ours, theirs, _start_log(log) as output:
            environment = self._environment | {DAEMON_VARIABLE: self._run}
            entry = SliceEntry(shm_bytes=self._shm_bytes)
            process = start(entry, theirs.fileno(), output.fileno(), [program, "-d"], environment)
            try:
                self._release(ours, process.pid)
                status = process.wait(START_LIMIT_S)
                if status:
                    raise NotIsolatedError(f"{CONTROL} -d ended with status {status}: {self._last_words()}")
                self._await_socket()
            except (OSError, subprocess.TimeoutExpired) as error:
                process.kill()
                process.wait()
                if isinstance(error, NotIsolatedError):
                    raise
                raise NotIsolatedError(f"{CONTROL} -d did not start: {error}") from error

    def stop(self) -> None:
        """End the daemon and all processes that it has started; its clients have ended. Raises NotIsolatedError."""
        with contextlib.suppress(OSError, subprocess.TimeoutExpired, CotenantError):
            subprocess.run(
                [control_program()],
                input=b"quit\n",
                env=self._environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=QUIT_LIMIT_S,
                check=False,
            )
            deadline = time.monotonic() + QUIT_LIMIT_S
            while marked(self._run, variable=DAEMON_VARIABLE) and time.monotonic() < deadline:
                time.sleep(POLL_S)
        kill_marked(self._run, variable=DAEMON_VARIABLE)
        if self._namespace >= 0:
            os.close(self._namespace)
            self._namespace = -1
        remove_tree(self._directory)

    @property
    def _environment(self) -> dict[str, str]:
        """The caller's environment without settings of MPS, with the daemon's own and the run's marker."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("CUDA_MPS_")}
        return inherited | self._devices | self._variables | {RUN_VARIABLE: self._run}

    def _release(self, channel: socket.socket, pid: int) -> None:
        """Let the process in the slice become the daemon, after we have opened the mount namespace that it has made."""
        word = channel.recv(4096).decode(errors="replace").strip()
        if word != "in":
            raise NotIsolatedError(f"{CONTROL} cannot be started: {word}")
        if self._shm_bytes:
            self._namespace = os.open(f"/proc/{pid}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)
        channel.send(b"1")

    def _await_socket(self) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while not (self._directory / SOCKET).exists():
            if time.monotonic() > deadline:
                raise NotIsolatedError(f"{CONTROL} -d has made no {self._directory / SOCKET}: {self._last_words()}")
            time.sleep(POLL_S)

    def _last_words(self) -> str:
        """Return the last line that the daemon has written."""
        with Directory(Path(self._variables["CUDA_MPS_LOG_DIRECTORY"])) as logs:
            names = sorted(name for name in logs.names() if name.endswith(".log"))
            lines = [line for name in names for line in log_end(logs, name, LOG_BYTES).splitlines() if line.strip()]
        return lines[-1].strip() if lines else "its log is empty"


def _start_log(directory: Path) -> BinaryIO:
    """Open a new log of the daemon's start, in place of any file that a tenant of an earlier launch has put there."""
    with Directory(directory) as logs:
        logs.remove("start.log")
        return logs.open("start.log", "xb")
