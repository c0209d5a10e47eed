"""A program that ends early is started again, and each start says which one it is, here to a runner that is made up."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
import threading
import time
from pathlib import Path

import pytest

from cotenant.checkout import SOURCE_ROOT
from cotenant.exec.settings import FINISHED, Settings
from cotenant.exec.supervise import Supervisor
from cotenant.protocol.messages import (
    SOCKET_VARIABLE,
    TENANT_VARIABLE,
    WARM_UP_VARIABLE,
    Message,
    MessageBuffer,
    encode,
)

REPEAT = 25
STEPS = """
import sys, cotenant
with cotenant.measure() as measured:
    for _ in range(31): measured.step()
sys.exit({})
"""
"""The step that enters, ten of the warm-up, and ten observations of two steps."""


def received(link: socket.socket) -> bytes:
    """Return the next bytes; those of a program that has left without reading all follow the kernel's word of that."""
    try:
        return link.recv(1 << 16)
    except ConnectionResetError:
        return link.recv(1 << 16)


class FakeRunner(threading.Thread):
    """Hears one start after the other, until one says nothing: gives a turn, GO for what is left of REPEAT observations
    of two steps, and STOP once it is done."""

    def __init__(self, path: Path) -> None:
        super().__init__(daemon=True)
        self.starts: list[list[Message]] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()

    def run(self) -> None:
        with self._listener:
            while not self.starts or self.starts[-1]:
                with self._listener.accept()[0] as link:
                    lines, heard = MessageBuffer(), list[Message]()
                    self.starts.append(heard)
                    while data := received(link):
                        for message in lines.feed(data):
                            heard.append(message)
                            self._answer(message, link)
        self.starts.pop()

    def _answer(self, message: Message, link: socket.socket) -> None:
        if message.kind == "ready":
            made = len(self.observations)
            link.sendall(encode("go", t0_ns=time.perf_counter_ns(), number=2, repeat=REPEAT, skip=0, made=made))
        elif message.kind in ("turn", "turned"):
            link.sendall(encode(message.kind))
        elif message.kind == "done":
            with contextlib.suppress(BrokenPipeError):  # It has left after its last step.
                link.sendall(encode("stop"))

    @property
    def observations(self) -> list[int]:
        return [one.fields["index"] for heard in self.starts for one in heard if one.kind == "observation"]

    @property
    def kinds(self) -> list[list[str]]:
        """The messages of each start, those that are equal in a row once."""
        return [[*dict.fromkeys(message.kind for message in heard)] for heard in self.starts]


def run(folder: Path, monkeypatch: pytest.MonkeyPatch, program: str) -> tuple[int, FakeRunner]:
    runner = FakeRunner(folder / "runner")
    runner.start()
    monkeypatch.setattr(signal, "signal", lambda *handler: None)
    given = {SOCKET_VARIABLE: folder / "runner", TENANT_VARIABLE: 0, "PYTHONPATH": SOURCE_ROOT, "TMPDIR": folder}
    for name, value in given.items():
        monkeypatch.setenv(name, str(value))
    settings = Settings(directory=str(folder), again=True)
    status = Supervisor([sys.executable, "-c", program], settings).run()
    with socket.socket(socket.AF_UNIX) as nobody:
        nobody.connect(str(folder / "runner"))
    runner.join()
    return status, runner


@pytest.mark.parametrize("turn", [[], ["turn", "turned"]], ids=["beside others", "by turns, as in a duet"])
def test_starts_go_on_with_the_count_until_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: list[str]
) -> None:
    """A further start warms up without a turn of its own."""
    if turn:
        monkeypatch.setenv(WARM_UP_VARIABLE, "alone")
    status, runner = run(tmp_path, monkeypatch, STEPS.format(0))
    assert status == 0
    first, then, end = ["hello", "begin"], ["ready", "observation"], ["done", "record"]
    assert runner.kinds == [[*first, *turn, *then], [*first, *then], [*first, *then, *end]]
    assert runner.observations == [*range(REPEAT)]
    assert [heard[0].fields["start"] for heard in runner.starts] == [1, 2, 3]
    assert runner.starts[-1][-1].fields["record"]["observed"] == {"counted_by": "measure", "starts": 3}


def test_one_that_fails_is_started_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status, runner = run(tmp_path, monkeypatch, STEPS.format(3))
    assert (status, len(runner.observations), len(runner.starts)) == (3, 10, 1)


def test_only_a_program_that_counted_steps_starts_again(tmp_path: Path) -> None:
    settings = Settings(directory=str(tmp_path), again=True)
    assert not settings.starts_again()
    assert settings.claim()
    assert settings.starts_again()
    assert (settings.start, settings.claimed()) == (2, False)
    # Once steps were counted, a start without any is followed by another.
    assert settings.starts_again()
    settings.finish()
    assert not settings.starts_again()
    assert [path.name for path in tmp_path.iterdir()] == [FINISHED]
