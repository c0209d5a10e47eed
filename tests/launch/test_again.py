"""A program that is started again rejoins its launch: nobody takes its place, and it does not hold up the runner."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cotenant.launch import limits
from cotenant.launch.outcome import LaunchResult
from cotenant.suite.foreign import Foreign
from launch.turning import Turning, conducted, kinds_kept, outcomes
from patience import HANG_S
from tenants.fakes import launched, specs
from tenants.garbage import GARBAGE
from tenants.suites import until

RUN = "cotenant-test-again"
AGAIN = Foreign((), again=True)
REPEAT = 9
STARTS = """
import subprocess, sys
start = status = 0
while not status:
    start += 1
    status = subprocess.run([sys.executable, "-c", sys.argv[1], str(start)]).returncode
sys.exit(status - 7)
"""
"""Starts a program until it does not end well, which status 7 does not say either."""
PROGRAM = """
import os, signal, socket, subprocess, sys, time
from pathlib import Path
from cotenant.protocol.client import Rendezvous
from cotenant.protocol.meter import Meter
start, place = int(sys.argv[1]), Path(os.environ["COTENANT_SOCKET"]).parent
address = os.environ["COTENANT_SOCKET"], int(os.environ["COTENANT_TENANT"])
{begin}
runner = Rendezvous(*address, start=start)
{joined}
meter = Meter(runner, {{"item": "row"}})
meter.ready(1, {repeat}, 0, [20_000_000])
for index in meter.observations():
    start_ns = time.perf_counter_ns()
    time.sleep({step_s})
    meter.observed(start_ns, time.perf_counter_ns(), 1)
    if (index + 1) % {most} == 0:
        runner.flush()
        {end}
        os._exit(0)
{done}
while not meter.stopped():
    time.sleep(0.01)
meter.record(time.perf_counter_ns(), {{"observed": {{"starts": start}}}})
sys.exit(7)
"""
"""Ends well after so many observations, and with status 7 after all."""
HELLO = b'{"kind":"hello","tenant":0,"rank":0,"world":1,"pid":1,"start":2}\n'


def program(
    *,
    begin: str = "",
    joined: str = "",
    end: str = "",
    done: str = "",
    step_s: float = 0.02,
    repeat: int = REPEAT,
    most: int = 4,
) -> str:
    """Return the program's text, with further deeds at some points."""
    deeds = {"begin": begin, "joined": joined, "end": end, "done": done}
    return PROGRAM.format(**deeds, step_s=step_s, repeat=repeat, most=most)


def beside(
    folder: Path, text: str, neighbour: str = "", attack: Callable[[], object] = bool, cell: str = "", **more: Any
) -> LaunchResult:
    """Launch user 0, whose program is started again, beside a neighbour that is not; `attack` runs meanwhile."""
    line = [sys.executable, "-c", STARTS]
    first, second = specs(folder, *line, text)
    marks = {"COTENANT_RUN": RUN}
    first = replace(first, environment=first.environment | marks, foreign=AGAIN, cell=cell)
    second = replace(second, environment=second.environment | marks, command=[*line, neighbour or program(most=99)])
    thread = threading.Thread(target=attack)
    thread.start()
    result = launched([first, second], **more)
    thread.join()
    return result


def is_whole(result: LaunchResult, starts: int = 3) -> None:
    """Assert that user 0 was measured as one program of so many starts."""
    tenant = result.tenants[0]
    assert tenant.outcome == "completed", tenant.message
    rank = tenant.ranks[0]
    assert len(rank.observations) == REPEAT
    assert rank.record is not None
    assert rank.record["observed"] == {"starts": starts}


def answer(path: Path, words: bytes) -> bytes:
    """Return the answer to these words on a socket; b"" if it is closed."""
    with socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(path))
        with contextlib.suppress(ConnectionError):
            stranger.sendall(words)
            return stranger.recv(100)
    return b""


def test_its_starts_are_one_program_to_the_runner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a start takes, as another program's processes end soon after one of them has left; the first ends
    before it is ready."""
    monkeypatch.setattr("cotenant.launch.limits.GRACE_S", 0.0)
    joined = "if start == 1:\n    Meter(runner, {'item': 'row'})\n    os._exit(0)"
    result = beside(tmp_path, program(joined=joined))
    is_whole(result, starts=4)
    assert outcomes(result) == ["completed", "completed"]


def test_a_later_start_hears_again_that_it_is_enough(tmp_path: Path) -> None:
    """In a mix it is, once each user has made its least amount: these are given more."""
    waits = "while start == 2 and not (place / 'over').exists(): time.sleep(0.01)"
    slow = program(step_s=0.1, most=99, done="(place / 'over').touch()")
    result = beside(tmp_path, program(begin=waits, most=REPEAT), neighbour=slow, cell="again")
    assert outcomes(result) == ["completed", "completed"]
    assert len(result.tenants[0].ranks[0].observations) == REPEAT + 1 < result.gos[0].given.repeat


SECOND = """from cotenant.protocol.client import Rendezvous
import signal
import sys
signal.alarm(30)  # One that is not refused waits for GO.
Rendezvous(sys.argv[1], 0, start=int(sys.argv[2])).await_go()
"""


def test_a_second_process_is_refused_while_the_first_lives(tmp_path: Path) -> None:
    """Whichever start it claims to be."""
    runs = f"subprocess.run([sys.executable, '-c', {SECOND!r}, address[0], str(number)], capture_output=True)"
    end = f"if start == 2: (place / 'second').write_bytes(b''.join({runs}.stderr for number in (1, 2, 3)))"
    is_whole(beside(tmp_path, program(end=end)))
    assert (tmp_path / "second").read_text().count("refused this process: a second hello as rank 0") == 3


def test_a_child_holding_an_earlier_connection_blocks_no_start(tmp_path: Path) -> None:
    is_whole(beside(tmp_path, program(end="if os.fork() == 0: time.sleep(30)")))


GAP = """if start == 2:
    (place / "gap").touch()
    while not (place / "over").exists(): time.sleep(0.01)
    time.sleep(0.3)
"""
"""Waits between two starts."""
FORGER = "import socket, sys; s = socket.socket(1); s.connect(sys.argv[1]); s.sendall(sys.argv[2].encode()); s.recv(9)"


def test_nobody_takes_its_place_between_two_starts(tmp_path: Path) -> None:
    """A stranger is closed without a word; one that carries the run's marker does not stand for the user's own."""

    def attack() -> None:
        until((tmp_path / "gap").exists, "the first start has ended")
        with pytest.raises(FileNotFoundError):
            answer(tmp_path / "t1", HELLO)
        forgers = []
        for words in (b"", HELLO, HELLO * 2, GARBAGE["not-json"], b"x" * 9000):
            assert answer(tmp_path / "t0", words) == b""
            line = [sys.executable, "-S", "-c", FORGER, str(tmp_path / "t0"), words.decode()]
            marked = {"COTENANT_RUN": RUN, "COTENANT_TENANT": "0"}
            forgers.append(subprocess.Popen(line, env=marked, stderr=subprocess.DEVNULL))
        time.sleep(0.3)
        (tmp_path / "over").touch()
        for forger in forgers:
            forger.wait(HANG_S)

    is_whole(beside(tmp_path, program(begin=GAP), attack=attack))


INTRUDES = f"""
while not (place / "gap").exists(): time.sleep(0.01)
intruder = socket.socket(socket.AF_UNIX)
intruder.connect(str(place / "t0"))
intruder.sendall({HELLO!r})
(place / "over").touch()
time.sleep(30)
"""


def test_a_neighbour_connecting_between_starts_loses_its_place(tmp_path: Path) -> None:
    result = beside(tmp_path, program(begin=GAP), neighbour=program(end=f"exec({INTRUDES!r})"))
    is_whole(result)
    assert "has connected to the socket of user 0" in result.tenants[1].message


@pytest.mark.parametrize("name", ["not-json", pytest.param("record", marks=pytest.mark.slow)])
def test_a_later_start_that_sends_garbage_fails_like_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(limits, "GRACE_S", 0.2)
    joined = f"if start == 2:\n    runner._send({GARBAGE[name]!r})\n    time.sleep(30)"
    result = beside(tmp_path, program(joined=joined))
    assert outcomes(result) == ["failed", "completed"]
    assert "It does not speak the protocol" in result.tenants[0].message


HELD_S = 2.5
HELD = "if start == 2:\n    (place / 'held').write_text(str(os.getpid()))\n    os.kill(os.getpid(), signal.SIGSTOP)\n"
CONNECTED = f"silent = socket.socket(socket.AF_UNIX)\nsilent.connect(address[0])\n{HELD}"


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"begin": CONNECTED}, id="before its hello"),
        pytest.param({"joined": HELD}, id="after it", marks=pytest.mark.slow),
    ],
)
def test_a_start_that_is_held_still_does_not_hold_up_the_runner(tmp_path: Path, parts: dict[str, str]) -> None:
    """It reads its neighbour's messages ten times a second meanwhile, and does its upkeep once a second."""
    turns_s: list[float] = []

    def thaw() -> None:
        until((tmp_path / "held").exists, "the second start is held")
        time.sleep(HELD_S)
        os.kill(int((tmp_path / "held").read_text()), signal.SIGCONT)

    result = beside(tmp_path, program(**parts), attack=thaw, upkeep=lambda: turns_s.append(time.monotonic()))
    is_whole(result)
    assert result.tenants[1].outcome == "completed"
    assert max(after - before for before, after in pairwise(turns_s)) < HELD_S


@pytest.mark.slow
@pytest.mark.usefixtures("short")
def test_programs_that_are_started_again_take_turns(turning: Turning) -> None:
    """They are frozen in the midst of a start, and a later start hears that it is enough."""
    text = program(step_s=0.005, repeat=1 << 20, most=60)
    result = turning.launch(sys.executable, "-c", STARTS, text, foreign=AGAIN)
    assert outcomes(result) == ["completed", "completed"]
    for tenant in result.tenants:
        assert {*kinds_kept(tenant, conducted(result))} == {"all", "only"}
        assert (tenant.ranks[0].record or {})["observed"]["starts"] > 2
