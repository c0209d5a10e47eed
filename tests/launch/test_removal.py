"""What tenants have made of their directories goes with them, or it is said what stays."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cotenant.launch.paths import cleared, remove_tree

NOBODY = 65534


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
    """A folder of that user. Not pytest's, which lies in root's."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        if not os.geteuid():
            os.chown(name, NOBODY, NOBODY)
        yield Path(name)


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
