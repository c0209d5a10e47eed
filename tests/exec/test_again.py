"""A program that ends early is started again: a runner that is made up hears one program."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from cotenant.checkout import SOURCE_ROOT
from cotenant.exec.again import Again
from cotenant.exec.settings import EXEC_VARIABLE, Settings
from cotenant.protocol.messages import (
    SOCKET_VARIABLE,
    TENANT_VARIABLE,
    WARM_UP_VARIABLE,
    Message,
    MessageBuffer,
    encode,
)

REPEAT = 25
LOOP = """
import sys, cotenant
with cotenant.measure() as measured:
    for _ in range(31): measured.step()
sys.exit({})
"""


class FakeRunner(threading.Thread):
    """Gives a turn, GO for REPEAT observations of two steps, and STOP to who is done; keeps all that it hears."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.heard: list[Message] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()

    def run(self) -> None:
        with self._listener, self._listener.accept()[0] as link:
            lines = MessageBuffer()
            while data := link.recv(1 << 16):
                for message in lines.feed(data):
                    self._answer(message, link)

    def _answer(self, message: Message, link: socket.socket) -> None:
        self.heard.append(message)
        if message.kind == "ready":
            link.sendall(encode("go", t0_ns=time.perf_counter_ns(), number=2, repeat=REPEAT, skip=0))
        elif message.kind in ("turn", "turned"):
            link.sendall(encode(message.kind))
        elif message.kind == "done":
            link.sendall(encode("stop"))

    @property
    def kinds(self) -> list[str]:
        return [message.kind for message in self.heard]


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> tuple[int, FakeRunner]:
    runner = FakeRunner(folder / "runner")
    runner.start()
    monkeypatch.setenv(SOCKET_VARIABLE, str(folder / "runner"))
    monkeypatch.setenv(TENANT_VARIABLE, "0")
    settings = Settings(directory=str(folder), again=True)
    given = {EXEC_VARIABLE: settings.encoded(), "PYTHONPATH": str(SOURCE_ROOT), "TMPDIR": str(folder)}

    def start(added: Mapping[str, str]) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", program], env=os.environ | given | added)

    status = Again(settings, start, lambda: False).run()
    # Of a program that counts nothing nobody has come.
    with socket.socket(socket.AF_UNIX) as nobody, contextlib.suppress(OSError):
        nobody.connect(str(folder / "runner"))
    runner.join()
    return status, runner


@pytest.mark.parametrize("turn", [[], ["turn", "turned"]], ids=["beside others", "by turns, as in a duet"])
def test_starts_are_one_program_to_the_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: list[str]) -> None:
    """A further start warms up without a turn of its own."""
    if turn:
        monkeypatch.setenv(WARM_UP_VARIABLE, "alone")
    # The step that enters, ten of the warm-up, and ten observations in each start.
    status, runner = run(tmp_path, monkeypatch, LOOP.format(0))
    assert status == 0
    assert runner.kinds == ["hello", "begin", *turn, "ready", *["observation"] * REPEAT, "done", "record"]
    assert [one.fields["index"] for one in runner.heard if one.kind == "observation"] == [*range(REPEAT)]
    assert runner.heard[-1].fields["record"]["observed"] == {"counted_by": "measure", "starts": 3}


@pytest.mark.parametrize(("program", "status"), [(LOOP.format(3), 3), ("print()", 0)], ids=["fails", "counts nothing"])
def test_what_fails_or_counts_nothing_is_started_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, status: int
) -> None:
    ended, runner = run(tmp_path, monkeypatch, program)
    assert ended == status
    assert runner.kinds.count("observation") == (10 if status else 0)
