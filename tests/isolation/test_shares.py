"""The processes of slices: together within every limit above them, and none with less than its part."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.isolation import slices
from cotenant.isolation.slices import KEPT_BACK, PIDS_LEAST, PIDS_MAX, pids_share
from isolation.entering import in_python

LEVELS = st.lists(st.tuples(st.none() | st.integers(0, 100_000), st.integers(0, 50_000)), min_size=1, max_size=4)
"""For each cgroup from ours upwards: its limit, and the number of its processes."""


COUNTS = """
import os, resource, threading
from cotenant.isolation.slices import user_room
resource.setrlimit(resource.RLIMIT_NPROC, (4000, 4000))
assert user_room() is None
os.setuid(60000 + os.getpid() % 5000)
room, done = user_room(), threading.Event()
assert 3000 < room < 4000
for _ in range(3):
    threading.Thread(target=done.wait).start()
print(room - user_room())
done.set()
"""


@pytest.fixture(autouse=True, scope="module")
def no_limit_of_the_user() -> Iterator[None]:
    """The user who runs these tests may have such a limit."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(slices, "user_room", lambda: None)
        yield


def share(root: Path, levels: list[tuple[int | None, int]], slices: int) -> int:
    parent = root
    parent.mkdir(exist_ok=True)
    for limit, current in reversed(levels):
        parent = parent / "level"
        parent.mkdir()
        (parent / "pids.max").write_text(f"{'max' if limit is None else limit}\n")
        (parent / "pids.current").write_text(f"{current}\n")
    return pids_share(parent, slices)


@given(LEVELS, st.integers(1, 64))
def test_equal_parts_of_what_is_free(levels: list[tuple[int | None, int]], slices: int) -> None:
    free = min((limit - current for limit, current in levels if limit is not None), default=None)
    with tempfile.TemporaryDirectory() as root:
        if free is not None and int(free * (1 - KEPT_BACK)) // slices < PIDS_LEAST:
            with pytest.raises(ValueError, match="leaves"):
                share(Path(root), levels, slices)
            return
        each = share(Path(root), levels, slices)
    assert PIDS_LEAST <= each <= PIDS_MAX
    if free is None:
        assert each == PIDS_MAX
    elif free >= 2 * slices:
        assert slices * each <= free * (1 - KEPT_BACK)
        assert each >= min(PIDS_MAX, free * (1 - KEPT_BACK) / slices - 2)


def test_a_limit_on_the_users_processes_is_shared_out_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is on all that the user runs: a fork bomb in one slice would have taken the processes that the others need."""
    monkeypatch.setattr(slices, "user_room", lambda: 1000)
    assert share(tmp_path / "free", [(None, 0)], 4) == 225
    assert share(tmp_path / "tighter", [(500, 100)], 4) == 90
    monkeypatch.setattr(slices, "user_room", lambda: -7)
    with pytest.raises(
        ValueError, match="leaves 0 processes and threads to each of 4 slices, and torch needs 4: raise"
    ):
        share(tmp_path / "over", [(None, 0)], 4)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_the_limit_counts_threads_and_not_for_root() -> None:
    ended = in_python(COUNTS)
    assert (ended.stdout, ended.stderr) == ("3\n", "")
