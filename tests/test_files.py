"""A directory held open: links in it are not followed, pipes not waited for, and its name may be reused."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from cotenant.files import Directory, Mode


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Directory]:
    (tmp_path / "place").mkdir()
    with Directory(tmp_path / "place") as directory:
        yield directory


def put(kind: str, path: Path) -> None:
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a link":
        path.symlink_to(path.parent.parent / "precious")
    elif kind == "a socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    else:
        path.mkdir()


@pytest.mark.parametrize("kind", ["a pipe", "a link", "a socket", "a directory"])
def test_a_name_that_is_no_regular_file_is_never_opened(kind: str, place: Directory, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("precious")
    put(kind, place.path / "name")
    for mode in get_args(Mode):
        with pytest.raises(OSError):  # its subclass depends on the kind
            place.open("name", mode)
    if kind == "a directory":
        with pytest.raises(OSError):
            place.write("name", b"ours")
    else:
        place.write("name", b"ours")
        assert (place.path / "name").read_bytes() == b"ours"
        put(kind, place.path / "other")
    said = place.set_aside("name" if kind == "a directory" else "other")
    assert said.startswith(f"{kind}, which is ")
    assert place.names().count(said.split()[-2]) == 1
    assert precious.read_text() == "precious"


def test_files_lie_where_the_directory_does(place: Directory, tmp_path: Path) -> None:
    assert not place.leads_elsewhere
    (tmp_path / "decoy").mkdir()
    place.path.rename(tmp_path / "moved")
    assert place.leads_elsewhere
    place.path.symlink_to(tmp_path / "decoy")
    assert place.leads_elsewhere
    place.write("whole", b"1")
    with place.open("added", "ab") as file:
        file.write(b"2")
    with place.folder("logs") as logs, logs.open("log", "xb") as file:
        file.write(b"3")
    assert not list((tmp_path / "decoy").iterdir())
    assert sorted(path.name for path in (tmp_path / "moved").iterdir()) == ["added", "logs", "whole"]
    assert place.place == tmp_path / "moved"
    with place.folder("logs") as again, again.open("log") as file:
        assert file.read() == b"3"


def test_a_link_in_the_place_of_a_folder_is_not_followed(place: Directory, tmp_path: Path) -> None:
    (place.path / "logs").symlink_to(tmp_path)
    with pytest.raises(NotADirectoryError):
        place.folder("logs")
