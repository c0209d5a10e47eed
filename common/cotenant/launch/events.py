"""Events that the runner waits for: descriptors that become readable, signals, and the ends of processes."""

from __future__ import annotations

import contextlib
import functools
import os
import selectors
import signal
from collections.abc import Callable
from types import FrameType
from typing import Any

from cotenant.files import readable
from cotenant.procfs import process_of

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Events:
    """Calls the function that was registered for a descriptor when it becomes readable."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def on_readable(self, source: Any, call: Callable[..., None], *values: Any) -> None:
        self._selector.register(source, selectors.EVENT_READ, functools.partial(call, *values))

    def forget(self, source: Any) -> None:
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(source)

    def turn(self, timeout_s: float) -> None:
        """Wait at most `timeout_s` for the next events, and call the function of each."""
        for key, _ in self._selector.select(max(0.0, timeout_s)):
            # An earlier call of this turn may have forgotten the descriptor, and its number may be reused by now.
            if self._selector.get_map().get(key.fd) == key:
                key.data()

    def close(self) -> None:
        self._selector.close()


class Interruption:
    """Ctrl-C, SIGTERM and SIGHUP as one flag, which the runner reads at points at which it is safe to stop.

    While entered, the first signal only sets `requested`. Under nohup SIGHUP has no effect.
    """

    def __init__(self) -> None:
        self.requested: str | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        for number in SIGNALS:
            if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:
                self._previous[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.requested = self.requested or signal.Signals(number).name


class Life:
    """A pidfd on a process that is not our child; readable when the process has ended."""

    def __init__(self, pid: int) -> None:
        """Open the pidfd. Raises OSError if there is no such process."""
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)

    @classmethod
    def of(cls, pid: int) -> Life | None:
        """Return this process; None if it has ended, or is in a namespace that we cannot see."""
        with contextlib.suppress(OSError):
            return cls(pid) if pid > 0 else None
        return None

    def fileno(self) -> int:
        return self._pidfd

    @property
    def ended(self) -> bool:
        return readable(self._pidfd)

    def status(self) -> int | None:
        """Return how the process ended, as subprocess does: the exit status, or a signal's number below zero.

        None while it lives, and once its parent has waited for it.
        """
        process = process_of(self.pid)
        try:
            # The process is still there, so the text was not read from another one with the same number.
            signal.pidfd_send_signal(self._pidfd, 0)
        except OSError:
            return None
        return None if process is None or process.state != "Z" else os.waitstatus_to_exitcode(process.exit_code)

    def close(self) -> None:
        os.close(self._pidfd)
