from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.procfs import fields, format_list, mounted_systems, parse_list


def test_parse() -> None:
    lists = {"0-3,8,10-11\n": (0, 1, 2, 3, 8, 10, 11), "": (), "\n": (), "5": (5,), "7,1-2, 2": (1, 2, 7)}
    for text, ids in lists.items():
        assert parse_list(text) == ids
    for text in ("a", "-1", "1-", "1-2-3", "²"):
        with pytest.raises(ValueError, match="invalid literal"):
            parse_list(text)


def test_format_list() -> None:
    assert format_list((11, 0, 1, 2, 3, 8, 10, 3)) == "0-3,8,10-11"
    assert format_list(()) == ""


@given(st.sets(st.integers(0, 300)))
def test_round_trip(ids: set[int]) -> None:
    assert parse_list(format_list(ids)) == tuple(sorted(ids))


def test_a_form_feed_in_a_name_begins_no_line(tmp_path: Path) -> None:
    assert fields("Name:\tx\fUid:\n\nUid:\t7\t7", ":") == {"Name": "x\fUid:", "Uid": "7\t7"}
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/mountinfo").write_text("29 1 0:26 / /tmp/a\fb rw - tmpfs tmpfs rw\n")
    assert [mount.point for mount in mounted_systems(tmp_path)] == [tmp_path / "tmp/a\fb"]
