"""The process at the other end of a connection: that it ends is seen at once, and how, although it is not our child."""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import signal
import socket
import struct
from pathlib import Path

_CREDENTIALS = struct.Struct("3i")
# Of /proc/PID/stat behind the name in brackets: the state, and the status as waitpid(2) gives it (proc_pid_stat(5)).
_STATE, _EXIT_CODE = 0, 49
# struct pidfd_info of <linux/pidfd.h>: mask, cgroup, eleven numbers of processes and users, the status at last.
_INFO = struct.Struct("=QQ11Ii")
_PIDFD_GET_INFO = 3 << 30 | _INFO.size << 16 | 0xFF << 8 | 11
_PIDFD_INFO_EXIT = 1 << 3


class Life:
    """A pidfd on a process that somebody else waits for; readable when the process has ended."""

    def __init__(self, pid: int) -> None:
        """Raises OSError where there is no such process."""
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)

    @classmethod
    def at_the_other_end(cls, connection: socket.socket) -> Life | None:
        """Return the process that connected; None where it is gone, or lives where we cannot see it."""
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid = int(_CREDENTIALS.unpack(told)[0])
        with contextlib.suppress(OSError):
            return cls(pid) if pid > 0 else None
        return None

    def fileno(self) -> int:
        return self._pidfd

    @property
    def ended(self) -> bool:
        return bool(select.select([self._pidfd], [], [], 0)[0])

    def status(self) -> int | None:
        """Return how it ended, as subprocess would: the exit status, or a signal's number below zero.

        None while it lives; before Linux 6.15 also as soon as its parent has waited for it.
        """
        status = self._of_the_unreaped()
        return self._of_the_reaped() if status is None else status

    def _of_the_unreaped(self) -> int | None:
        try:
            fields = Path(f"/proc/{self.pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
            # Still there: so what was read was not of another process of the same number.
            signal.pidfd_send_signal(self._pidfd, 0)
        except OSError:
            return None
        return os.waitstatus_to_exitcode(int(fields[_EXIT_CODE])) if fields[_STATE] == "Z" else None

    def _of_the_reaped(self) -> int | None:
        info = bytearray(_INFO.pack(_PIDFD_INFO_EXIT, *[0] * 13))
        try:
            fcntl.ioctl(self._pidfd, _PIDFD_GET_INFO, info)
        except OSError:
            return None
        mask, *_, status = _INFO.unpack(info)
        return os.waitstatus_to_exitcode(status) if mask & _PIDFD_INFO_EXIT else None

    def close(self) -> None:
        os.close(self._pidfd)
