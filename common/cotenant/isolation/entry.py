"""Starts a tenant in its slice: a plain process, enter.py, goes in and becomes the benchmark."""

from __future__ import annotations

import errno
import functools
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from cotenant.errors import shortage
from cotenant.isolation import enter
from cotenant.isolation.backend import NotExecutableError, NotIsolatedError, SliceEntry
from cotenant.isolation.open_files import give_callers_limits
from cotenant.isolation.slice import Slice
from cotenant.machine.nvidia import mps_daemon

TRIAL_SHM_BYTES = 4096


def start_entry(
    entry: SliceEntry, channel: int, output: int, command: Sequence[str], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """Start enter.py, which enters a slice, speaks on descriptor `channel`, and becomes `command`.

    It leads a session of its own and dies with the calling thread. Raises NotIsolatedError, and NotExecutableError
    for a command that is too large.
    """
    line = [sys.executable, "-I", "-S", enter.__file__, *entry_words(entry, channel, os.getpid()), "--", *command]
    try:
        process = subprocess.Popen(
            line,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=[channel],
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # ValueError: a variable's name with `=`, a word with a NUL.
        if isinstance(error, OSError) and error.errno == errno.E2BIG:
            raise NotExecutableError(f"{command[0]} could not be executed: {error.strerror}") from error
        raise NotIsolatedError(f"no user can be started: {shortage(error) or error}") from error
    give_callers_limits(process.pid)
    return process


def entry_words(entry: SliceEntry, channel: int, runner: int) -> list[str]:
    """Return the arguments of enter.py before its command."""
    mode = "FREE" if entry.processors is None else "SET" if entry.set_affinity else "CHECK"
    processors = ",".join(map(str, entry.processors or ()))
    return [str(channel), str(runner), mode, processors, str(entry.shm_bytes), *map(str, entry.procs_files)]


def entry_of(slice_: Slice, procs_files: tuple[Path, ...] = (), set_affinity: bool = False) -> SliceEntry:
    """Return the entry of a slice: /dev/shm is the tenant's own if possible, as large as its memory."""
    shm_bytes = slice_.memory_bytes if own_shm_can_be_had() else 0
    return SliceEntry(procs_files, slice_.processors, set_affinity, shm_bytes)


@functools.cache
def own_shm_can_be_had() -> bool:
    """Return whether a tenant can have a /dev/shm of its own, found by trying: root can, but not in every container.

    It cannot beside a daemon of MPS: the daemon and its clients pass messages through one /dev/shm.
    """
    if mps_daemon(Path("/"), os.environ):
        return False
    ours, theirs = socket.socketpair()
    with ours:
        with theirs:
            trial = start_entry(
                SliceEntry(shm_bytes=TRIAL_SHM_BYTES), theirs.fileno(), subprocess.DEVNULL, ["/never"], {}
            )
        answer = ours.recv(4096)
    trial.wait()
    return answer == b"in\n"
