"""One suite at a time: who is kept out, with which sentence, and when the lock is free."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.isolation import lock
from cotenant.isolation.lock import LOCK_VARIABLE, SuiteLock, lock_holder, lock_path
from isolation.entering import in_python

SOURCE = str(Path(lock.__file__).parents[2])
HOLDER = """
import sys, time
from pathlib import Path
from cotenant.isolation.lock import SuiteLock
SuiteLock(Path(sys.argv[1])).acquire() or print("held", flush=True) or time.sleep(1000)
"""
OTHER_USER = """
import os, sys
from pathlib import Path
from cotenant.errors import CotenantError
from cotenant.isolation.lock import SuiteLock
if os.geteuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
path = Path(sys.argv[1])
assert os.access(path, os.R_OK) and not os.access(path, os.W_OK)
for path in (path.with_name("free"), path):
    try:
        SuiteLock(path).acquire()
        print("taken")
    except CotenantError as error:
        print(error)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "lock"


def take_and_release(path: Path) -> None:
    lock_ = SuiteLock(path)
    lock_.acquire()
    lock_.release()


@contextmanager
def holder(path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock."""
    line = [sys.executable, "-c", HOLDER, str(path), "its suite"]
    environment = os.environ | {"PYTHONPATH": SOURCE}
    with subprocess.Popen(line, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


def test_a_refused_suite_is_told_which_process_holds_the_lock(path: Path) -> None:
    before = datetime.now() - timedelta(seconds=2)
    with holder(path) as process:
        descriptors = len(list(Path("/proc/self/fd").iterdir()))
        with pytest.raises(CotenantError) as caught:
            SuiteLock(path).acquire()
        assert len(list(Path("/proc/self/fd").iterdir())) == descriptors
        words = re.fullmatch(
            r"Another suite is running on this machine: pid (\d+), '(.*)', started (.*)\.", caught.value.sentence, re.S
        )
        assert words is not None
        assert int(words[1]) == process.pid
        assert words[2].startswith(f"{sys.executable} -c")
        assert len(words[2]) <= 80
        assert before <= datetime.fromisoformat(words[3]) <= datetime.now() + timedelta(seconds=2)
        assert caught.value.remedy
        process.send_signal(signal.SIGKILL)
        process.wait()
        take_and_release(path)


def test_a_holder_that_has_just_gone_is_a_number(dead_run: object) -> None:
    pid = int(str(dead_run).partition("-")[0])
    assert lock.described_holder(pid) == f"pid {pid}"


def test_release_frees_the_lock_even_while_a_child_lives(path: Path) -> None:
    first, second = SuiteLock(path), SuiteLock(path)
    first.acquire()
    with pytest.raises(CotenantError, match=f"pid {os.getpid()}, "):
        second.acquire()
    with subprocess.Popen(["sleep", "1000"], close_fds=False) as child:
        first.release()
        first.release()
        second.acquire()
        child.kill()
    second.release()


def test_a_place_that_cannot_be_opened(path: Path, tmp_path: Path) -> None:
    """A link is not followed, nothing is made behind a dangling one, and a pipe does not make us wait."""
    (tmp_path / "file").touch()
    path.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "to_file").symlink_to(tmp_path / "file")
    links = dict.fromkeys((path, tmp_path / "to_file"), "Too many levels of symbolic links")
    others = {tmp_path / "none/lock": "No such file or directory", tmp_path / "file/lock": "Not a directory"}
    for place, reason in (links | others).items():
        with pytest.raises(CotenantError, match=f"^The lock {place} cannot be taken: {reason}.* {LOCK_VARIABLE}"):
            SuiteLock(place).acquire()
    assert not (tmp_path / "elsewhere").exists()
    os.mkfifo(tmp_path / "pipe")
    take_and_release(tmp_path / "pipe")


def test_a_new_lock_file_is_readable_by_all_whatever_the_umask(path: Path) -> None:
    before = os.umask(0o077)
    try:
        take_and_release(path)
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o644
    path.chmod(0o600)
    take_and_release(path)
    assert path.stat().st_mode & 0o777 == 0o600


def test_two_who_make_it_at_once_share_one_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opens = os.open

    def late(where: Path, flags: int, *mode: int) -> int:
        if flags & os.O_CREAT and not path.exists():
            os.close(opens(path, os.O_WRONLY | os.O_CREAT))
        return opens(where, flags, *mode)

    monkeypatch.setattr(os, "open", late)
    take_and_release(path)


def test_another_users_file_serves(path: Path, tmp_path: Path) -> None:
    """Readable, not writable: it is locked all the same, and its holder is seen."""
    for file in (path, tmp_path / "free"):
        file.touch()
        file.chmod(0o444 if os.geteuid() else 0o644)
    for directory in (tmp_path, *tmp_path.parents[:3]):  # with xdist one more lies between
        directory.chmod(0o755)
    with SuiteLock(path):
        said = in_python(OTHER_USER, path)
    assert (said.stderr, said.returncode) == ("", 0)
    of = "" if os.geteuid() else " of root"
    assert said.stdout.startswith(f"taken\nAnother suite is running on this machine: pid {os.getpid()}{of}, '")


def test_only_who_holds_this_file_is_named(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path.touch()
    inode = path.stat().st_ino
    others = [
        f"1: -> FLOCK  ADVISORY  WRITE 4000003 00:01:{inode} 0 EOF",
        f"2: POSIX  ADVISORY  WRITE 4000004 00:01:{inode} 0 EOF",
        f"3: FLOCK  ADVISORY  WRITE 4000005 00:01:{inode}1 0 EOF",
        f"4: FLOCK  ADVISORY  WRITE 0 00:01:{inode} 0 EOF",
    ]
    holder = f"5: FLOCK  ADVISORY  WRITE 4000002 00:01:{inode} 0 EOF"
    with SuiteLock(path):
        for rows, pid in (([*others, holder], 4000002), (others, 0)):
            monkeypatch.setattr(Path, "read_text", lambda path, rows=rows: "\n".join(rows))
            assert lock_holder(path) == pid


def test_the_path_is_the_same_for_every_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A place that only root may write to serves nobody, not even root."""
    private, public = tmp_path / "private", tmp_path / "public"
    for place, mode in ((private, 0o755), (public, 0o1777)):
        place.mkdir()
        place.chmod(mode)
    monkeypatch.delenv(LOCK_VARIABLE, raising=False)
    monkeypatch.setattr(lock, "PLACES", (tmp_path / "none", private, public))
    assert lock_path() == public / "cotenant.lock"
    monkeypatch.setattr(lock, "PLACES", (tmp_path / "none", private))
    assert lock_path() == private / "cotenant.lock"
    monkeypatch.setenv(LOCK_VARIABLE, "/else/where")
    assert lock_path() == Path("/else/where")
