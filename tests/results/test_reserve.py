"""Room for the records of a launch: taken before, given back when the disk has none left."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from cotenant.errors import CotenantError
from cotenant.results import store
from cotenant.results.record import Record
from cotenant.results.store import RESERVE_BYTES, Reserve, cannot_write, write_record
from results.made import NOON, a_record

Patch = pytest.MonkeyPatch


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Reserve]:
    with closing(Reserve(tmp_path)) as held:
        yield held


def tenants(directory: Path) -> list[str]:
    return sorted(path.name.split(".D")[1][0] for path in directory.iterdir())


RECORDS = [a_record(place={"tenant": tenant, "vcd": str(tenant)}) for tenant in range(3)]


def test_the_room_is_really_taken_by_a_file_without_a_name(tmp_path: Path, held: Reserve) -> None:
    descriptor = held._held.fileno()
    assert os.fstat(descriptor).st_blocks * 512 >= RESERVE_BYTES
    held.write(RECORDS, NOON)
    assert tenants(tmp_path) == ["0", "1", "2"]
    assert os.fstat(descriptor).st_blocks * 512 >= RESERVE_BYTES
    held.give_back()
    assert os.fstat(descriptor).st_blocks == 0


def test_a_full_disk_takes_no_record_and_is_said(tmp_path: Path, held: Reserve, monkeypatch: Patch) -> None:
    descriptor = held._held.fileno()

    def write(directory: Path, record: Record, time: datetime) -> Path:
        if os.fstat(descriptor).st_blocks:
            raise cannot_write(directory, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
        return write_record(directory, record, time)

    monkeypatch.setattr(store, "write_record", write)
    with pytest.raises(CotenantError, match=r"No space left on device\. Free some space there\."):
        held.write(RECORDS, NOON)
    assert tenants(tmp_path) == ["0", "1", "2"]


def test_a_record_that_cannot_be_kept_takes_no_other_with_it(tmp_path: Path, held: Reserve, monkeypatch: Patch) -> None:
    def write(directory: Path, record: Record, time: datetime) -> Path:
        if record.tenant == 1:
            raise cannot_write(directory, OSError(errno.EFBIG, os.strerror(errno.EFBIG)))
        return write_record(directory, record, time)

    monkeypatch.setattr(store, "write_record", write)
    with pytest.raises(CotenantError, match="File too large"):
        held.write(RECORDS, NOON)
    assert tenants(tmp_path) == ["0", "2"]


def test_a_disk_without_so_much_room_has_what_it_has(tmp_path: Path, monkeypatch: Patch) -> None:
    def refused(*asked: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", refused)
    with closing(Reserve(tmp_path)) as held:
        held.write(RECORDS, NOON)
    assert tenants(tmp_path) == ["0", "1", "2"]


def test_a_place_where_no_file_can_be_made_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CotenantError, match="Nothing can be written to"):
        Reserve(tmp_path / "absent")
