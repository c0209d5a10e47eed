#!/usr/bin/env python3
"""The benchmark of sums.py with bad manners: `--at PLACE --do DEED...`, for tenant `--who` alone where that is given.

Places, in their order: start (before hello), hello, ready, go, observed (after observation 1), done, record.
"""

import contextlib
import ctypes
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import sums
from garbage import GARBAGE

from cotenant.protocol.client import Rendezvous

MOST_BYTES = 2 << 30


class Rogue(Rendezvous):
    """Does its deed after the word whose place it is."""

    deed: ClassVar[Callable[["Rogue", str], None]]
    lie: ClassVar[dict[str, Any]] = {}
    deaf: ClassVar[bool] = False
    invention: ClassVar[str] = ""
    held: ClassVar[list[dict[str, Any]]] = []

    def ready(self, number: int, repeat: int, skip: int, warm_up_ns: list[int]) -> None:
        self.deed("hello")
        super().ready(number, self.lie.get("repeat", repeat), skip, self.lie.get("warm_up_ns", warm_up_ns))
        self.deed("ready")

    def await_go(self) -> tuple[int, int, int]:
        word = super().await_go()
        self.deed("go")
        return word

    def observation(self, **fields: Any) -> None:
        if self.invention in INVENTIONS:
            fields |= INVENTIONS[self.invention](fields)
        elif self.invention == "at-the-end":
            self.held.append(fields)
            return
        super().observation(**fields)
        if fields["index"] == 1:
            self.flush()
            self.deed("observed")

    def enough(self) -> bool:
        return not self.deaf and super().enough()

    def done(self) -> None:
        for fields in self.held:
            super().observation(**fields)
        super().done()
        self.deed("done")

    def record(self, record: dict[str, Any]) -> dict[str, Any]:
        super().record(record | self.lie.get("record", {}))
        self.deed("record")
        return record


INVENTIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "items": lambda fields: {"items": 10 * fields["items"]},
    "rate": lambda fields: {"items": 2.3e9 * (fields["end_ns"] - fields["start_ns"])},
    "nanosecond": lambda fields: {"start_ns": fields["end_ns"] - 1},
    "negative-wait": lambda fields: {"data_wait_ns": -(10**15)},
    "long-wait": lambda fields: {"data_wait_ns": fields["end_ns"] - fields["start_ns"] + 1},
}
"""The fields that replace those of an observation."""


def do(words: list[str], runner: Rogue | None) -> None:
    """Do one deed: a word and its arguments."""
    deed, *rest = words
    if deed == "exit":
        print("last words of the log", flush=True)
        os._exit(int(rest[0]))
    elif deed == "die":
        os.kill(os.getpid(), signal.SIGKILL if not rest else int(rest[0]))
    elif deed == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(3600)
    elif deed == "hog":
        held = []
        while True:
            held.append(bytearray(os.urandom(1 << 20) * 16))
    elif deed == "hog-later":
        threading.Thread(target=hog_later, args=[float(rest[0])], daemon=True).start()
    elif deed == "worker-hog":
        # A worker is killed for memory; its parent waits for ever.
        if os.fork() == 0:
            do(["hog"], None)
        time.sleep(3600)
    elif deed == "worker-hog-and-go-on":
        if (worker := os.fork()) == 0:
            do(["hog"], None)
        os.waitpid(worker, 0)
    elif deed == "fill-shm":
        Path("/dev/shm", rest[0]).write_bytes(bytes(int(rest[1])))
        print([path.name for path in Path("/dev/shm").iterdir()], flush=True)
    elif deed == "shut":
        shut = Path(os.environ["TEMP_DIRECTORY"], "shut")
        (shut / "in").mkdir(parents=True)
        shut.chmod(0o500)
    elif deed == "fifo-for-a-log":
        Path(os.environ["COTENANT_LOG"]).unlink()
        os.mkfifo(os.environ["COTENANT_LOG"])
        os._exit(3)
    elif deed == "remove-directories":
        for name in ("COTENANT_LOG", "COTENANT_SOCKET"):
            shutil.rmtree(Path(os.environ[name]).parent)
        os._exit(3)
    elif deed == "fill-disk":
        with (
            contextlib.suppress(OSError),
            Path(os.environ["OUTPUT_DIRECTORY"], "filler").open("wb", buffering=0) as file,
        ):
            while True:
                file.write(bytes(1 << 20))
    elif deed == "put":
        for kind, name in zip(rest[::2], rest[1::2], strict=True):
            put(kind, Path(os.environ["OUTPUT_DIRECTORY"], name))
    elif deed == "raise-limits":
        open_cgroups()
        for path in own_cgroups():
            for name, text in (
                ("memory.memsw.limit_in_bytes", "-1"),
                ("memory.limit_in_bytes", "-1"),
                ("pids.max", "max"),
            ):
                if (path / name).exists():
                    (path / name).write_text(text)
    elif deed == "leave":
        leave_cgroups()
    elif deed == "leave-a-thread":
        (cpuset,) = (path for path in own_cgroups() if (path / "cpuset.cpus").exists())
        threading.Thread(target=time.sleep, args=[3600], daemon=True).start()
        open_cgroups()
        (cpuset.parents[2] / "tasks").write_text(str(max(int(path.name) for path in Path("/proc/self/task").iterdir())))
    elif deed == "leave-a-daemon":
        # Without our marker, session, or parent.
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                leave_cgroups()
                os.execve("/bin/sleep", ["sleep", "1003"], {})
            os._exit(0)
        os.wait()
        time.sleep(0.2)
    elif deed == "wait":
        while not Path(rest[0]).exists():
            time.sleep(0.01)
    elif deed == "children":
        leave_children()
    elif deed == "say":
        runner._socket.sendall(GARBAGE[rest[0]])
    elif deed == "say-for-ever":
        while True:
            runner._socket.sendall(GARBAGE[rest[0]] * 4096)
    elif deed == "endless-line":
        while True:
            runner._socket.sendall(b"x" * 65536)
    elif deed == "connections":
        held = [socket.socket(socket.AF_UNIX) for _ in range(int(rest[0]))]
        for one in held:
            one.connect(os.environ["COTENANT_SOCKET"])
        await_refusal(runner)
    elif deed == "twice":
        second = Rendezvous.from_environment()
        try:
            second.await_go()
        except ConnectionError as error:
            print(error, flush=True)
    elif deed == "stand-between":
        stand_between(Path(os.environ["COTENANT_SOCKET"]).with_name(rest[0]))
    elif deed == "hang-up":
        runner.close()
        time.sleep(3600)
    elif deed in ("fail", "fail-and-hang"):
        runner.failed(rest[0], " ".join(rest[1:]))
        if deed == "fail":
            os._exit(1)
        time.sleep(3600)
    else:
        raise SystemExit(f"rogue.py: there is no deed '{deed}'")


def hog_later(after_s: float) -> None:
    """Take memory without end; where no slice ends that, our own limit does."""
    time.sleep(after_s)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    with contextlib.suppress(MemoryError):
        do(["hog"], None)
    os._exit(1)


def put(kind: str, place: Path) -> None:
    """Put something in the place of a file or directory, which is moved away; a link leads to one below the base."""
    if place.exists():
        place.rename(place.with_name(f"{place.name}.was"))
    elsewhere = Path(os.environ["BASE"], kind)
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "directory":
        place.mkdir()
    elif kind == "text":
        place.write_text("no journal\n")
    else:
        elsewhere.mkdir(exist_ok=True) if kind == "link-to-directory" else elsewhere.write_text("precious")
        place.symlink_to(elsewhere)


def own_cgroups() -> list[Path]:
    """The slice's directories in the v1 hierarchies."""
    rows = [line.split(":") for line in Path("/proc/self/cgroup").read_text().split()]
    return [Path(f"/sys/fs/cgroup/{name}{path}") for _, name, path in rows if path.endswith(("/t0", "/t1"))]


def open_cgroups() -> None:
    """Undo, as root can, that cgroups are read-only here (MS_REMOUNT and MS_BIND)."""
    for top in {path.parents[2] for path in own_cgroups()}:
        ctypes.CDLL(None).mount(None, bytes(top), None, ctypes.c_ulong(0x1020), None)


def leave_cgroups() -> None:
    open_cgroups()
    for path in own_cgroups():
        (path.parents[2] / "cgroup.procs").write_text("0")


def await_refusal(runner: Rogue | None) -> None:
    """Wait until the runner hangs up: a word said now might be read before the nonsense, and the launch go on."""
    with contextlib.suppress(ConnectionError):
        runner._socket.recv(1)


def stand_between(theirs: Path) -> None:
    """Take the place of a neighbour's socket, and pass on the messages."""
    moved = theirs.rename(theirs.with_name("moved"))
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(theirs))
    listener.listen()
    if os.fork() == 0:
        ends = listener.accept()[0], socket.socket(socket.AF_UNIX)
        ends[1].connect(str(moved))
        while True:
            for end in select.select(ends, [], [])[0]:
                if not (data := end.recv(65536)):
                    os._exit(0)
                ends[end is ends[0]].sendall(data)


def leave_children() -> None:
    """A child in our group, a daemon that left session and parent, and one that left session and the run's marker."""
    subprocess.Popen(["sleep", "1000"])
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvp("sleep", ["sleep", "1001"])
        os._exit(0)
    os.wait()
    if os.environ["COTENANT_LEAVE_UNMARKED"] == "yes":
        subprocess.Popen(["sleep", "1002"], env={"PATH": os.environ["PATH"]}, start_new_session=True)


def main() -> int:
    parser = sums.flags()
    parser.add_argument("--at", default="never")
    parser.add_argument("--do", nargs="+", default=[])
    parser.add_argument("--who")
    parser.add_argument("--others-late", type=float, default=0.0)
    parser.add_argument("--as-tenant", type=int)
    parser.add_argument("--repeat-of-mine", type=int)
    parser.add_argument("--warm-up-ns", type=int, help="what it says of its warm-up, whatever that took")
    parser.add_argument("--nan", action="store_true")
    parser.add_argument("--malformed", action="store_true")
    parser.add_argument("--deaf", action="store_true", help="as a program that knows no `enough`")
    parser.add_argument("--invent", default="", help="what of its observations is invented, or `at-the-end`")
    parser.add_argument("--pid-file", type=Path)
    given = parser.parse_args()
    chosen = given.who in (None, os.environ["JOB_ID"])

    def deed(runner: Rogue | None, place: str) -> None:
        if given.pid_file is not None:
            with given.pid_file.open("a") as file:
                file.write(f"{place} {os.getpid()}\n")
        if chosen and place == given.at:
            do(given.do, runner)

    Rogue.deed = deed
    Rogue.invention = given.invent if chosen else ""
    Rogue.deaf = chosen and given.deaf
    if chosen and given.repeat_of_mine:
        Rogue.lie = {"repeat": given.repeat_of_mine}
    if chosen and given.warm_up_ns:
        Rogue.lie = {"warm_up_ns": [given.warm_up_ns]}
    if chosen and given.nan:
        Rogue.lie = {"record": {"losses_checked": 9, "losses_non_finite": 2, "batch_loss": [1.0, float("nan")]}}
    if chosen and given.malformed:
        Rogue.lie = {"record": {"arguments": 5, "batch_loss": "none", "losses_non_finite": "many"}}
    if not chosen:
        time.sleep(given.others_late)
    deed(None, "start")
    tenant = given.as_tenant if chosen and given.as_tenant is not None else int(os.environ["COTENANT_TENANT"])
    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    sums.measure(Rogue(os.environ["COTENANT_SOCKET"], tenant, rank, world), given)
    return 0


if __name__ == "__main__":
    sys.exit(main())
