"""A tenant that joins the rendezvous and misbehaves from GO to STOP: `adversary.py DEED --repeat R --number N`.

Each deed goes on until the process is killed. `LIMIT_BYTES` and `LIMIT_PROCESSES` bound the memory and the number of
processes of a deed that no slice bounds.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from cotenant.machine.limits import V2, cgroup_mounts
from cotenant.procfs import read_int
from cotenant.protocol.client import Rendezvous, wait_until

LIMIT_BYTES = 4 << 30
LIMIT_PROCESSES = 2000
CHUNK = 16 << 20


def idle() -> NoReturn:
    """Do nothing: the neighbour is alone in its slice."""
    while True:
        time.sleep(3600)


def memory_hog() -> NoReturn:
    """Take memory in a child process until the kernel kills it, then start the next child."""
    while True:
        if os.fork() == 0:
            held = []
            while len(held) * CHUNK < LIMIT_BYTES:
                held.append(bytearray(os.urandom(4096) * (CHUNK // 4096)))
            os._exit(0)
        os.wait()


def fork_bomb() -> NoReturn:
    """Fork in every process until a fork is refused, spin for half a second, wait for the children, and start over."""
    first, children, tokens = os.getpid(), 0, None if processes_are_limited() else Tokens(LIMIT_PROCESSES)
    while True:
        while (child := forked(tokens)) is not None:
            children = children + 1 if child else 0
        spin_until = time.monotonic() + 0.5
        while time.monotonic() < spin_until:
            pass
        for _ in range(children):
            os.wait()
            if tokens is not None:
                tokens.give()
        if os.getpid() != first:
            os._exit(0)
        children = 0


class Tokens:
    """A pipe with `count` tokens for a process and all its descendants."""

    def __init__(self, count: int) -> None:
        self._out, self._in = os.pipe()
        os.set_blocking(self._out, False)
        os.write(self._in, bytes(count))

    def take(self) -> None:
        """Raises BlockingIOError where none is left."""
        os.read(self._out, 1)

    def give(self) -> None:
        os.write(self._in, b"0")


def forked(tokens: Tokens | None) -> int | None:
    """Fork; return the child's id (0 in the child), or None if no token is left or the kernel refuses."""
    try:
        if tokens is not None:
            tokens.take()
    except BlockingIOError:
        return None
    try:
        return os.fork()
    except OSError:
        if tokens is not None:
            tokens.give()
        return None


def processes_are_limited() -> bool:
    """Return whether this process is in a slice of Cotenant that limits the number of processes."""
    mounts = cgroup_mounts()
    places = [place for place in (mounts.own.get("pids"), mounts.own.get(V2)) if place is not None]
    return any("/cotenant" in str(place) and read_int(place / "pids.max") is not None for place in places)


def busy() -> NoReturn:
    """One endless loop, which breaks no bound: its cost is that of the parts that two processors share anyway."""
    while True:
        pass


def spinner() -> NoReturn:
    """One endless loop per processor of the machine."""
    for _ in range((os.cpu_count() or 1) - 1):
        if os.fork() == 0:
            break
    busy()


def sigterm_ignorer() -> NoReturn:
    """Spin, and do not end when asked to."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    spinner()


def daemon() -> NoReturn:
    """Spin in a process that has left its session and its parent, and does not carry our environment."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execve(sys.executable, [sys.executable, "-c", "while True: pass"], {})
        os._exit(0)
    os.wait()
    idle()


def shm_filler() -> NoReturn:
    """Fill /dev/shm in one process after another: the kernel charges these pages to the slice."""
    while True:
        path = Path(f"/dev/shm/cotenant-bench-{os.getpid()}")
        if os.fork() == 0:
            with path.open("wb") as file:
                for _ in range(LIMIT_BYTES // CHUNK):
                    file.write(bytes(CHUNK))
                    file.flush()
            os._exit(0)
        os.wait()
        path.unlink(missing_ok=True)


def page_cache_flooder() -> NoReturn:
    """Write a file and read it, again and again, which loads the page cache and the disk."""
    path = Path(os.environ["TEMP_DIRECTORY"], "flood")
    while True:
        with path.open("wb") as file:
            for _ in range(64):
                file.write(bytes(CHUNK))
        with path.open("rb") as file:
            while file.read(CHUNK):
                pass


DEEDS: dict[str, Callable[[], NoReturn]] = {
    "nobody": idle,
    "one busy loop": busy,
    "memory hog": memory_hog,
    "fork bomb": fork_bomb,
    "spinner on all processors": spinner,
    "SIGTERM ignorer": sigterm_ignorer,
    "double-forking daemon": daemon,
    "/dev/shm filler": shm_filler,
    "page-cache flooder": page_cache_flooder,
}


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("deed", choices=DEEDS)
    parser.add_argument("--repeat", type=int, required=True)
    parser.add_argument("--number", type=int, required=True)
    given, _ = parser.parse_known_args()
    runner = Rendezvous.from_environment()
    assert runner is not None
    runner.ready(given.number, given.repeat, min(5, given.repeat // 3), [1])
    t0_ns, _, repeat = runner.await_go()
    wait_until(t0_ns)
    if (child := os.fork()) == 0:
        DEEDS[given.deed]()
    for index in range(repeat):
        now_ns = time.perf_counter_ns()
        runner.observation(index=index, start_ns=now_ns, end_ns=now_ns + 1, items=1, data_wait_ns=0)
    runner.done()
    while not runner.stopped():
        time.sleep(0.05)
    runner.record({"arguments": {}, "item": "deed", "load_end_ns": time.perf_counter_ns()})
    with contextlib.suppress(ProcessLookupError):
        os.kill(child, signal.SIGKILL)
    return 0


if __name__ == "__main__":
    sys.exit(main())
