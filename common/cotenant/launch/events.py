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
        """Wait for the next events, at most so long, and call for each."""
        for key, _ in self._selector.select(max(0.0, timeout_s)):
            # An earlier call of this turn may have forgotten it, and its number may belong to another by now.
            if self._selector.get_map().get(key.fd) == key:
                key.data()

    def close(self) -> None:
        self._selector.close()


class Interruption:
    """Ctrl-C, SIGTERM and SIGHUP as one flag that is looked at where it is safe to stop.

    While entered, the first signal sets `requested`, and nothing else happens. Under nohup SIGHUP has no effect.
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
        """Raises OSError where there is no such process."""
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)

    @classmethod
    def of(cls, pid: int) -> Life | None:
        """Return this process; None where it is gone, or lives where we cannot see it."""
        with contextlib.suppress(OSError):
            return cls(pid) if pid > 0 else None
        return None

    def fileno(self) -> int:
        return self._pidfd

    @property
    def ended(self) -> bool:
        return readable(self._pidfd)

    def status(self) -> int | None:
        """Return how it ended, as subprocess would: the exit status, or a signal's number below zero.

        None while it lives, and as soon as its parent has waited for it.
        """
        process = process_of(self.pid)
        try:
            # Still there: so the text read was not of another process of the same number.
            signal.pidfd_send_signal(self._pidfd, 0)
        except OSError:
            return None
        return None if process is None or process.state != "Z" else os.waitstatus_to_exitcode(process.exit_code)

    def close(self) -> None:
        os.close(self._pidfd)
