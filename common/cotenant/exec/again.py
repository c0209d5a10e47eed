"""Restarts a program that ends early, so that to the runner it is one program, which runs until STOP."""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cotenant.exec.settings import Settings, address
from cotenant.protocol.client import CHUNK_BYTES, Rendezvous
from cotenant.protocol.messages import SOCKET_VARIABLE, Message, MessageBuffer, encode

SOCKET = "again"
"""The socket in the tenant's own directory to which a program connects instead of the runner."""


class Runner(Rendezvous):
    """The connection to the runner."""

    def fileno(self) -> int:
        return self._socket.fileno()

    def hear(self) -> list[Message]:
        """Return the messages received. Raises RunnerGoneError."""
        self._receive()
        heard, self._inbox = self._inbox, []
        return heard

    def say(self, kind: str, **fields: Any) -> None:
        self._say(kind, **fields)


class Again:
    """Passes messages on between the runner and the process that counts, a new one with each start of the program.

    A further process says hello, begins and warms up as the first did, which is not passed on; it gets the GO of the
    first, and makes the observations that are left.
    """

    def __init__(
        self,
        settings: Settings,
        start: Callable[[Mapping[str, str]], subprocess.Popen[bytes]],
        is_asked: Callable[[], bool],
    ) -> None:
        """`start` starts the program with added variables; `is_asked` returns whether the program is to end."""
        self._settings, self._start, self._is_asked = settings, start, is_asked
        self._path = Path(settings.directory) / SOCKET
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._waiting, self._leaving = selectors.DefaultSelector(), contextlib.ExitStack()
        self._runner: Runner | None = None
        self._program: socket.socket | None = None
        self._lines = MessageBuffer()
        self._said: set[str] = set()
        """Kinds of messages passed on to the runner."""
        self._go: dict[str, Any] | None = None
        self._is_ready = self._is_enough = False
        self._starts = self._made = self._before = 0
        """The number of starts, the observations of all, and those of earlier starts among them."""

    def run(self) -> int:
        """Run the program to its end, as often as needed; return the last exit status, negative for a signal.

        A program that counts nothing is run once. Raises RunnerGoneError.
        """
        self._listener.bind(str(self._path))
        self._listener.listen()
        self._waiting.register(self._listener, selectors.EVENT_READ)
        with self._waiting, self._listener, self._leaving:
            while True:
                status = self._run_once()
                if status or self._is_asked() or not self._said or self._said & {"done", "failed"}:
                    return status
                self._settings.forget()

    def _run_once(self) -> int:
        self._starts, self._before, self._is_ready = self._starts + 1, self._made, False
        child = self._start({SOCKET_VARIABLE: str(self._path)})
        ended = os.pidfd_open(child.pid)
        self._waiting.register(ended, selectors.EVENT_READ)
        while True:
            ready = [key.fileobj for key, _ in self._waiting.select()]
            if self._runner is not None and self._runner in ready:
                self._hear(self._runner)
            if self._listener in ready:
                self._accept()
            if self._program in ready:
                self._read()
            if ended in ready:
                self._waiting.unregister(ended)
                os.close(ended)
                while self._program is not None:
                    self._read()
                return child.wait()

    def _accept(self) -> None:
        program = self._listener.accept()[0]
        if self._program is not None:
            program.close()  # Only one process of the program counts.
            return
        program.setblocking(False)
        self._program, self._lines = program, MessageBuffer()
        self._waiting.register(program, selectors.EVENT_READ)

    def _read(self) -> None:
        """Take the program's messages, also after its end while a child of it holds the connection."""
        assert self._program is not None
        try:
            data = self._program.recv(CHUNK_BYTES)
        except OSError:
            data = b""
        if not data:
            self._waiting.unregister(self._program)
            self._program.close()
            self._program = None
        for message in self._lines.feed(data):
            self._take(message.kind, message.fields)

    def _take(self, kind: str, fields: dict[str, Any]) -> None:
        """Pass a message on to the runner; of later starts observations, and kinds that no earlier start sent."""
        if self._runner is None:
            self._runner = Runner(*address())
            self._leaving.callback(self._runner.close)
            self._waiting.register(self._runner, selectors.EVENT_READ)
        self._is_ready = self._is_ready or kind == "ready"
        if kind == "observation":
            fields = {**fields, "index": self._before + fields["index"]}
            self._made += 1
        elif kind == "record":
            observed = {**fields["record"].get("observed", {}), "starts": self._starts}
            fields = {"record": {**fields["record"], "observed": observed}}
        elif kind == "hello" or kind in self._said:
            self._said.add(kind)
            if kind in ("turn", "turned"):
                # The runner gives one turn, and an earlier start has had it: this one does not wait.
                self._tell(kind, {})
            self._give_go()
            return
        self._said.add(kind)
        self._runner.say(kind, **fields)

    def _hear(self, runner: Runner) -> None:
        """Pass the runner's messages on; keep GO and `enough` also for later starts."""
        for message in runner.hear():
            if message.kind == "go":
                self._go = message.fields
                self._give_go()
            else:
                self._is_enough = self._is_enough or message.kind == "enough"
                self._tell(message.kind, message.fields)

    def _give_go(self) -> None:
        """Give the program GO with the observations that are left, once it is ready."""
        if self._go is None or not self._is_ready:
            return
        self._tell("go", self._go | {"repeat": max(1, self._go["repeat"] - self._made)})
        if self._is_enough:
            self._tell("enough", {})

    def _tell(self, kind: str, fields: Mapping[str, Any]) -> None:
        if self._program is not None:
            with contextlib.suppress(OSError):  # It has ended: the next start gets the message.
                self._program.sendall(encode(kind, **fields))
