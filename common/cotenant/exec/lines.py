"""Counts a program's steps by the lines of its output."""

from __future__ import annotations

import fcntl
import os
import re
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator

from cotenant.exec.settings import Settings, address
from cotenant.exec.steps import Steps
from cotenant.protocol.client import Rendezvous, wait_until

CHUNK_BYTES = 1 << 16


class Held(Rendezvous):
    """A rendezvous on behalf of a process group, which is stopped until GO, and then `released`.

    A process of the program that has its own group, such as a rank of torchrun, is not stopped.
    """

    group = 0
    released = False

    def await_go(self) -> tuple[int, int, int]:
        os.killpg(self.group, signal.SIGSTOP)
        try:
            go = super().await_go()
            wait_until(go[0])
            return go
        finally:
            os.killpg(self.group, signal.SIGCONT)
            self.released = True


class Counter:
    """Returns the number of items that each line of a program stands for.

    A group of the pattern is a running total, as in `^step (\\d+)`; without one each matching line is one step.
    """

    def __init__(self, count_line: str, ready_line: str = "", items: float = 1.0) -> None:
        self._pattern, self._items = re.compile(count_line.encode()), items
        self._ready = self._awaited = re.compile(ready_line.encode()) if ready_line else None
        self._total: float | None = None

    def begin(self) -> None:
        """Start counting with a program: its lines count after the ready line, and its total begins at zero."""
        self._awaited, self._total = self._ready, None

    def items(self, line: bytes) -> float | None:
        """Return the items since the last counted line; None for other lines, and before the ready line."""
        if self._awaited is not None:
            if self._awaited.search(line):
                self._awaited = None
            return None
        found = self._pattern.search(line)
        if found is None:
            return None
        if not found.groups() or found[1] is None:
            return self._items
        try:
            total = float(found[1])
        except ValueError:
            return None
        before, self._total = self._total, total
        # A total that falls, as with each epoch, has begun again at zero.
        return self._items * (total if before is None or total < before else total - before)


class Lines:
    """Starts a program, passes its output on, and reports each counted line as a step."""

    def __init__(
        self, settings: Settings, start: Callable[[int], subprocess.Popen[bytes]], is_asked: Callable[[], bool]
    ) -> None:
        self._settings, self._start, self._is_asked = settings, start, is_asked
        self._counter = Counter(settings.count_line, settings.ready_line, settings.items)
        self._runner: Held | None = None
        self._steps: Steps | None = None

    def follow(self) -> int:
        """Follow each start of the program to its output's end; return its last exit status, negative for a signal."""
        while True:
            status = self._follow_once()
            if self._steps is None or status:
                return status
            self._steps.ended()
            if self._steps.over or self._is_asked():
                return status

    def _follow_once(self) -> int:
        self._counter.begin()
        reading, writing = os.pipe()
        child = self._start(writing)
        os.close(writing)
        if self._runner is not None:
            self._runner.group = child.pid
        stale = 0
        for size, lines in _lines(reading):
            for line in lines:
                items = self._counter.items(line)
                if items is not None and not stale and self._is_go(items, child.pid):
                    # Lines printed so far, including unread ones in the pipe, are work from before GO.
                    unread = fcntl.ioctl(reading, termios.FIONREAD, bytes(4))
                    stale = size + int.from_bytes(unread, sys.byteorder)
            stale = max(0, stale - size)
        os.close(reading)
        return child.wait()

    def _is_go(self, items: float, group: int) -> bool:
        """Count a line's items; return whether GO came meanwhile."""
        if self._steps is None or self._runner is None:
            self._runner = Held(*address())
            self._runner.group = group
            self._steps = Steps(
                self._runner,
                self._settings,
                self._settings.item or "line",
                lambda: {"observed": {"counted_by": "lines"}, "torch": self._settings.noted_interpreter()},
                word="line",
            )
        released = self._runner.released
        self._steps.step(items)
        return self._runner.released and not released


def _lines(descriptor: int) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the size of each read and the lines that it completes, each ended by a newline or a carriage return; copy
    everything to our own output."""
    pending = b""
    while chunk := os.read(descriptor, CHUNK_BYTES):
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        *whole, pending = re.split(rb"[\r\n]", pending + chunk)
        yield len(chunk), [line for line in whole if line]
    if pending:
        yield 0, [pending]
