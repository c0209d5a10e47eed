"""How shims (enter.py) are started: one fork server (forkserver.py) per run forks them."""

from __future__ import annotations

import contextlib
import marshal
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cotenant.isolation import enter
from cotenant.isolation.backend import Entry, NotIsolatedError

# Imported, not run as a script: a script is compiled at every start, for two milliseconds.
START = "import sys; sys.path.insert(0, sys.argv.pop(1)); import forkserver; sys.exit(forkserver.main(sys.argv[1:]))"

PYTHON = getattr(sys, "_base_executable", "") or sys.executable
"""Not a virtual environment's: to find out that it is one takes two milliseconds, and a shim needs none of it."""

ANSWER_BYTES = 4096
ANSWER_LIMIT_S = 60.0


@dataclass(slots=True)
class Shim:
    """A shim, later the benchmark that it becomes: a child of ours that leads a session of its own."""

    pid: int
    _status: int | None = None

    def wait(self) -> int:
        """Return its exit status, or the number of the signal that ended it below zero."""
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self._status


@dataclass(frozen=True, slots=True)
class _Served:
    """A server that was started: its process, our end of its socket, and the file of what it complains."""

    process: subprocess.Popen[bytes]
    socket: socket.socket
    errors: int


class ForkServer:
    """Starts with the first shim, and again where it was killed; ends with us, or when it is closed."""

    def __init__(self) -> None:
        self._served: _Served | None = None

    @property
    def pids(self) -> set[int]:
        """Return the child of ours that it is, if it was started."""
        return {self._served.process.pid} if self._served else set()

    def start(
        self, entry: Entry, channel: int, output: int, command: Sequence[str], environment: Mapping[str, str]
    ) -> Shim:
        """Start a shim that enters a slice, speaks on descriptor `channel`, and becomes `command`.

        Raises NotIsolatedError where none can be had.
        """
        # As bytes: the server may think of another encoding.
        line = [os.fsencode(word) for word in command]
        variables = {os.fsencode(name): os.fsencode(value) for name, value in environment.items()}
        with os.fdopen(os.memfd_create("order"), "wb") as order:
            order.write(marshal.dumps((shim_words(entry, os.getpid()), line, variables)))
            order.flush()
            answer = self._ask([order.fileno(), channel, output])
        if not answer.isdecimal():
            raise NotIsolatedError(f"no tenant can be started: {answer}")
        return Shim(int(answer))

    def close(self) -> None:
        """End it, if it was started: it owns nothing, and whom it has forked lives on."""
        if self._served is None:
            return
        self._served.socket.close()
        self._served.process.kill()
        self._served.process.wait()
        os.close(self._served.errors)
        self._served = None

    def _ask(self, descriptors: list[int]) -> str:
        if self._served is not None and self._served.process.poll() is not None:
            self.close()
        try:
            self._served = self._served or _serve()
            socket.send_fds(self._served.socket, [b"1"], descriptors)
            if answer := self._served.socket.recv(ANSWER_BYTES).decode():
                return answer
            reason = "the process that starts them has ended"
        except OSError as error:
            reason = str(error)
        said = b"" if self._served is None else os.pread(self._served.errors, ANSWER_BYTES, 0)
        self.close()
        return " ".join([reason, *(f"({line})" for line in said.decode(errors="replace").splitlines()[-1:])])


def _serve() -> _Served:
    """Start a server. Raises OSError."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, contextlib.ExitStack() as undo:
        undo.callback(ours.close)
        errors = os.memfd_create("errors")
        undo.callback(os.close, errors)
        process = subprocess.Popen(
            server_command(theirs.fileno(), os.getpid()),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        undo.pop_all()
    ours.settimeout(ANSWER_LIMIT_S)
    return _Served(process, ours, errors)


def server_command(channel: int, runner: int) -> list[str]:
    """Return the command line of a fork server that takes orders on descriptor `channel`."""
    return [PYTHON, "-I", "-S", "-c", START, str(Path(enter.__file__).parent), str(channel), str(runner)]


def shim_words(entry: Entry, runner: int) -> list[str]:
    """Return the arguments of a shim behind its channel."""
    mode = "FREE" if entry.processors is None else "SET" if entry.set_affinity else "CHECK"
    processors = ",".join(map(str, entry.processors or ()))
    return [str(runner), mode, processors, *map(str, entry.procs_files)]
