"""The other end of the rendezvous: a runner that follows a script, over a real socket."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cotenant.protocol.messages import Message, MessageBuffer, encode
from patience import HANG_S


class Runner:
    """Listens at once; when a benchmark has connected, a thread calls `script` with this runner."""

    def __init__(self, path: Path, script: Callable[[Runner], None]) -> None:
        self.heard: list[Message] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._listener.settimeout(HANG_S)
        self._lines = MessageBuffer()
        self._thread = threading.Thread(target=self._run, args=[script])
        self._thread.start()

    def _run(self, script: Callable[[Runner], None]) -> None:
        with self._listener:
            self._link, _ = self._listener.accept()
        self._link.settimeout(HANG_S)
        with self._link:
            script(self)

    def hear(self, kind: str) -> Message:
        """Return the next message of this kind; `heard` keeps every message."""
        seen = 0
        while True:
            for message in self.heard[seen:]:
                seen += 1
                if message.kind == kind:
                    return message
            data = self._link.recv(1 << 16)
            assert data, f"it has gone before {kind}: {self.kinds()}"
            self.heard += self._lines.feed(data)

    def go(self, number: int, repeat: int, delay_ns: int = 0, skip: int = 0, settle_ns: int = 0) -> int:
        t0_ns = time.perf_counter_ns() + delay_ns
        self.say("go", t0_ns=t0_ns, number=number, repeat=repeat, skip=skip, settle_ns=settle_ns)
        return t0_ns

    def say(self, kind: str, **fields: Any) -> None:
        self._link.sendall(encode(kind, **fields))

    def kinds(self) -> list[str]:
        return [message.kind for message in self.heard]

    def join(self) -> None:
        self._thread.join(HANG_S)
        assert not self._thread.is_alive()
