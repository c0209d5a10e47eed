"""The processes of slices: together within every limit above them, and none with less than its part."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from cotenant.isolation.backend import PIDS_MAX
from cotenant.isolation.plan import plan
from cotenant.isolation.shares import KEPT_BACK, pids_share
from machine.invented import machine

LEVELS = st.lists(st.tuples(st.none() | st.integers(0, 100_000), st.integers(0, 50_000)), min_size=1, max_size=4)
"""Of each cgroup from ours upwards: its limit, and how many processes it has."""


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
    with tempfile.TemporaryDirectory() as root:
        each = share(Path(root), levels, slices)
    free = min((limit - current for limit, current in levels if limit is not None), default=None)
    assert 1 <= each <= PIDS_MAX
    if free is None:
        assert each == PIDS_MAX
    elif free >= 2 * slices:
        assert slices * each <= free * (1 - KEPT_BACK)
        assert each >= min(PIDS_MAX, free * (1 - KEPT_BACK) / slices - 2)


def test_a_quota_of_processors_leaves_processes_to_those_that_it_admits(tmp_path: Path) -> None:
    """Of 96 processors ten are given out: data loaders and threads need more than a part in 96 each."""
    slices = plan(machine(2, 24, 2, quota=10.0), 2).slices
    assert [share(tmp_path / str(one.tenant), [(2048, 0)], one.slices) for one in slices] == [921, 921]
