"""What is new in /dev/shm after a launch whose tenants share it."""

from __future__ import annotations

import os
from pathlib import Path

from cotenant.isolation.leftovers import new_shared_files, shared_files
from isolation.entering import MIB


def test_only_new_files_of_this_user_that_hold_memory_count(tmp_path: Path) -> None:
    (tmp_path / "before").write_bytes(bytes(MIB))
    before = shared_files(tmp_path).keys()
    (tmp_path / "before").write_bytes(bytes(2 * MIB))
    (tmp_path / "empty").touch()
    (tmp_path / "below").mkdir()
    (tmp_path / "below/new").write_bytes(b"x" * MIB)
    (tmp_path / "new").write_bytes(b"x" * 3 * MIB)
    (tmp_path / "link").symlink_to(tmp_path / "new")
    assert new_shared_files(before, tmp_path) == {"files": 2, "memory_bytes": 4 * MIB}
    if os.getuid() == 0:
        os.chown(tmp_path / "new", 65534, 65534)
        assert new_shared_files(before, tmp_path) == {"files": 1, "memory_bytes": MIB}


def test_without_a_dev_shm_there_is_nothing(tmp_path: Path) -> None:
    assert new_shared_files(frozenset(), tmp_path / "none") is None
