"""Sweeps of directories at a start, where several hosts share a base, and the fate of tenants' files there."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cotenant.isolation.runs import RunName
from cotenant.launch import paths
from cotenant.launch.paths import SOCKET_PATH_BYTES, SOCKET_ROOM_BYTES, RunPaths, cleared, remove_tree
from tenants.fixtures import folder_of

NOBODY = 65534
DEAD = RunName(4_194_304, 99_999_999_999)
HOSTS = ("gpu-cluster-node-001", "gpu-cluster-node-002")


def of_run(base: Path, run: RunName) -> RunPaths:
    made = RunPaths.of_run(base, base / "data", base / "output", run)
    made.temporary.mkdir(parents=True)
    return made


def on_host(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: name)


def test_only_the_dead_run_of_this_host_is_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another host's, whose name begins the same, is left alone; one that cannot be removed gives a sentence."""
    on_host(monkeypatch, HOSTS[0])
    theirs = of_run(tmp_path, DEAD)
    on_host(monkeypatch, HOSTS[1])
    dead, living = of_run(tmp_path, DEAD), of_run(tmp_path, RunName())
    with monkeypatch.context() as patch:
        patch.setattr(paths, "remove_tree", lambda path: f"{path} stays.")
        assert living.sweep() == [f"{dead.temporary} stays."]
    assert living.sweep() == []
    assert [made.temporary.exists() for made in (dead, living, theirs)] == [False, True, True]


def test_another_boot_or_container_has_another_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = RunPaths.of_run(tmp_path, tmp_path, tmp_path, DEAD).temporary
    for name in ("read_text", "pid_namespace"):
        with monkeypatch.context() as patch:
            patch.setattr(paths, name, lambda *where: "another")
            assert RunPaths.of_run(tmp_path, tmp_path, tmp_path, DEAD).temporary != here


def test_sockets_lie_where_a_tenant_with_its_own_shm_sees_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for temporary, root in (("/dev/shm", "/tmp"), ("/dev/shm/x", "/tmp"), ("/tmp", "/tmp"), ("/var/tmp", "/var/tmp")):
        monkeypatch.setattr("tempfile.gettempdir", lambda temporary=temporary: temporary)
        assert RunPaths.of_run(tmp_path, tmp_path, tmp_path, DEAD).sockets.parent == Path(root)


def test_a_sockets_path_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_host(monkeypatch, "a" * 64)
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/a/long/path" * 9)
    sockets = RunPaths.of_run(tmp_path, tmp_path, tmp_path, DEAD).sockets
    assert sockets.parent == Path("/tmp")
    longest = len(os.fsencode(sockets / "dt4095/pymp-12345678/listener-12345678"))
    assert longest <= SOCKET_PATH_BYTES
    assert len(paths._prefix()) + SOCKET_ROOM_BYTES + len("/tmp") == longest


@contextmanager
def bound_by_permissions() -> Iterator[None]:
    """As a user who is not root."""
    if os.geteuid():
        yield
        return
    os.setegid(NOBODY)
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    with folder_of(NOBODY) as made:
        yield made


def tree(top: Path) -> Path:
    """Directories in directories, with files."""
    for name in ("open", "shut", "shut/in", "blind"):
        (top / name).mkdir(parents=True)
        (top / name / "file").write_text("x")
    return top


def test_closed_directories_are_opened(folder: Path) -> None:
    with bound_by_permissions():
        top = tree(folder / "top")
        (top / "shut/in").chmod(0)
        (top / "shut").chmod(0o500)
        (top / "blind").chmod(0o300)
        top.chmod(0o500)
        assert remove_tree(top) == ""
    assert list(folder.iterdir()) == []


def test_nothing_behind_a_link_is_touched(folder: Path) -> None:
    with bound_by_permissions():
        outside, top = tree(folder / "outside"), tree(folder / "top")
        (outside / "shut").chmod(0o500)
        (top / "shut/out").symlink_to(outside / "shut")
        (top / "shut").chmod(0o500)
        (folder / "link").symlink_to(outside)
        assert remove_tree(top) == remove_tree(folder / "link") == ""
        assert [path.name for path in folder.iterdir()] == ["outside"]
        assert (outside / "shut").stat().st_mode & 0o777 == 0o500
        assert (outside / "shut/in/file").read_text() == "x"
        assert remove_tree(outside) == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="what belongs to somebody else is made by root")
def test_what_belongs_to_somebody_else_stays_and_is_said(folder: Path) -> None:
    with bound_by_permissions():
        top = tree(folder / "top")
        (top / "shut").chmod(0o500)
    tree(top / "open/theirs")
    with bound_by_permissions():
        assert remove_tree(folder / "nothing") == ""
        said = remove_tree(top)
        (finding,) = cleared([folder / "nothing", top])
    assert said.startswith(f"What is left in {top} cannot be removed (")
    assert said.endswith(": Permission denied).")
    assert (finding.rule, finding.severity) == ("files_left", "warning")
    assert finding.sentence.startswith(said)
    assert [path.name for path in top.iterdir()] == ["open"]
    assert remove_tree(top) == ""
    assert cleared([top]) == ()


def test_what_is_nested_too_deep_is_a_sentence(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    place = os.open(top, os.O_RDONLY)
    for _ in range(sys.getrecursionlimit()):
        os.mkdir("d", dir_fd=place)
        inner = os.open("d", os.O_RDONLY, dir_fd=place)
        os.close(place)
        place = inner
    os.close(place)
    try:
        assert remove_tree(top) == f"What is left in {top} is nested too deep to be removed."
    finally:
        subprocess.run(["rm", "-rf", top], check=True)


MOUNTING = """
import subprocess, sys
from pathlib import Path
from cotenant.launch import paths
top, precious, name = Path(sys.argv[1]), Path(sys.argv[2]), b"w\\xffi th".decode(errors="surrogateescape")
for place in (top / name, top / name / "again", top):
    place.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "--bind", precious, place], check=True)
(precious / "again").mkdir(exist_ok=True)
subprocess.run(["mount", "--bind", precious, top / "again"], check=True)
if len(sys.argv) > 3:
    paths.MNT_DETACH = 0x80  # no flag of umount2: it refuses
print(paths.remove_tree(top), sorted(path.name for path in precious.iterdir()), top.exists())
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="root mounts")
def test_what_a_tenant_mounted_below_its_directory_stays(tmp_path: Path) -> None:
    """A bind of the same file system has its device number; in a name no UTF-8 can hold; on the directory itself."""
    top, precious = tmp_path / "top", tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")

    def mounted(*more: str) -> subprocess.CompletedProcess[str]:
        line = ["unshare", "--mount", "--propagation", "private", sys.executable, "-c", MOUNTING, top, precious, *more]
        printing = os.environ | {"PYTHONIOENCODING": "utf-8:backslashreplace"}
        return subprocess.run(line, env=printing, capture_output=True, text=True)

    refused = mounted("refused").stdout
    assert refused.startswith(f"What is left in {top} cannot be removed: {top}")
    assert refused.endswith(" is mounted there. ['again', 'file'] True\n")
    ended = mounted()
    assert (ended.stdout, ended.stderr) == (" ['again', 'file'] False\n", "")
