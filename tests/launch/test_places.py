"""Whose directories a start sweeps, where several hosts share a base."""

import os
import socket
from pathlib import Path

import pytest

from cotenant.isolation.runs import RunName
from cotenant.launch import paths
from cotenant.launch.paths import SOCKET_ROOM_BYTES, RunPaths

DEAD = RunName(4_194_304, 99_999_999_999)
HOSTS = ("gpu-cluster-node-001", "gpu-cluster-node-002")


def of_run(base: Path, run: RunName) -> RunPaths:
    made = RunPaths.of_run(base, base / "data", base / "output", run)
    made.temporary.mkdir(parents=True)
    return made


def on_host(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(socket, "gethostname", lambda: name)


def test_a_dead_run_of_this_host_is_swept_and_a_living_one_stays(tmp_path: Path) -> None:
    dead, living = of_run(tmp_path, DEAD), of_run(tmp_path, RunName())
    living.sweep()
    assert living.temporary.exists()
    assert not dead.temporary.exists()


def test_what_a_sweep_cannot_remove_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dead, living = of_run(tmp_path, DEAD), of_run(tmp_path, RunName())
    monkeypatch.setattr(paths, "remove_tree", lambda path: f"{path} stays.")
    assert living.sweep() == [f"{dead.temporary} stays."]


def test_another_host_whose_name_begins_the_same_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_host(monkeypatch, HOSTS[0])
    theirs = of_run(tmp_path, DEAD)
    on_host(monkeypatch, HOSTS[1])
    ours = of_run(tmp_path, RunName())
    ours.sweep()
    assert theirs.temporary.exists()


@pytest.mark.parametrize("hidden", ["boot_id", "ns/pid"])
def test_another_boot_or_container_of_the_same_name_is_another_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hidden: str
) -> None:
    """Also where the kernel tells nothing of one of them."""
    here = of_run(tmp_path, DEAD).temporary
    for name in ("read_text", "readlink"):
        real = getattr(Path, name)

        def refuse(path: Path, real: object = real) -> object:
            if str(path).endswith(hidden):
                raise OSError
            return real(path)  # type: ignore[operator]

        monkeypatch.setattr(Path, name, refuse)
    assert of_run(tmp_path, DEAD).temporary != here


def test_a_sockets_path_is_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_host(monkeypatch, "a" * 64)
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/a/long/path" * 9)
    sockets = RunPaths.of_run(tmp_path, tmp_path, tmp_path, DEAD).sockets
    assert sockets.parent == Path("/tmp")
    assert len(os.fsencode(sockets / "t1023")) < 100
    assert len(paths._prefix()) + SOCKET_ROOM_BYTES + len("/tmp") == len(os.fsencode(sockets / "t1023"))
