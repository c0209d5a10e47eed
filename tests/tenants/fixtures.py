"""Fixtures for conftest files: a place for suites on real v1 cgroups, or without any; nothing may be left."""

import itertools
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cotenant.launch.paths import SOCKET_PATH_BYTES, SOCKET_ROOM_BYTES, _prefix
from tenants.suites import Suites, has_v1

_NUMBERS = itertools.count()


@contextmanager
def folder_of(user: int) -> Iterator[Path]:
    """A folder that this user can reach, who has it where root runs the tests: pytest's lie in root's."""
    with tempfile.TemporaryDirectory(prefix="ct", dir="/tmp") as name:
        if not os.geteuid():
            os.chown(name, user, user)
        yield Path(name)


@contextmanager
def short_folder() -> Iterator[Path]:
    """A folder short enough for sockets: for a longer one the runner takes /tmp, which is not searched."""
    short = Path("/tmp", secrets.token_hex(3))
    short.mkdir(0o700)
    try:
        assert len(str(short)) + len(_prefix()) + SOCKET_ROOM_BYTES <= SOCKET_PATH_BYTES
        yield short
    finally:
        shutil.rmtree(short)


def suites_in(folder: Path, isolation: str) -> Iterator[Suites]:
    """Suites in a folder, from which nothing may be left; what is left is removed, also behind an exception."""
    with short_folder() as short:
        suites = Suites(folder, short, f"cotenant-test.{os.getpid()}.{next(_NUMBERS)}", isolation)
        try:
            yield suites
        finally:
            left = suites.leftovers()
            if left:
                suites.destroy()
    assert not left


@pytest.fixture
def v1(tmp_path: Path) -> Iterator[Suites]:
    """Suites on v1 cgroups below a base of their own."""
    if not has_v1():
        if os.environ.get("CI") == "true":
            pytest.fail("CI has no writable v1 cgroups: these tests are never skipped there")
        pytest.skip("needs writable v1 cgroups as root")
    yield from suites_in(tmp_path, "v1")


@pytest.fixture
def loose(tmp_path: Path) -> Iterator[Suites]:
    """Suites without cgroups."""
    yield from suites_in(tmp_path, "none")


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Suites]:
    """Suites without cgroups whose records serve all tests of a file."""
    yield from suites_in(tmp_path_factory.mktemp("shared"), "none")
