"""A kept share in words: its value, its interval and its number of rounds or launches."""

from __future__ import annotations

from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from cotenant.report import numbers
from cotenant.report.kept import around, kept_fields, kept_of, kept_values, n_text, percents, with_interval
from cotenant.stats.kept import Kept, Over

SURE, TWICE, SINGLE = Kept(0.9, (0.85, 0.95), 8), Kept(0.9, None, 2, "launches"), Kept(0.9, None, 1, "launches")


def test_a_share_shows_its_interval_or_why_there_is_none() -> None:
    assert [around(share) for share in (TWICE, SINGLE)] == [numbers.TOO_SMALL, numbers.ONCE]
    assert (with_interval(SURE), with_interval(TWICE)) == (f"0.900 ({around(SURE)})", "0.900")
    assert (percents(SURE), percents(TWICE)) == ("90 % (85 to 95 % within one launch)", "90 %")
    assert [n_text(share.n, share.over) for share in (SURE, TWICE)] == ["8 rounds", "2 launches"]
    assert n_text(1, "launches") == "1 launch"


def test_programs_read_both_ends_by_name() -> None:
    values = {"kept": 0.9, "kept_low": 0.85, "kept_high": 0.95, "kept_n": 8, "kept_over": "rounds"}
    assert kept_values(SURE, kept_fields("kept")) == values
    assert kept_values(TWICE, kept_fields("kept"))["kept_low"] is None
    assert kept_of(dict.fromkeys(kept_fields("kept")), kept_fields("kept")) is None


@given(st.floats(0.01, 2.0), st.tuples(st.floats(0.01, 1.0), st.floats(1.0, 2.0)) | st.none(), st.integers(1, 99))
def test_a_row_has_all_of_a_share(value: float, interval: tuple[float, float] | None, n: int) -> None:
    for over in get_args(Over):
        share = Kept(value, interval, n, over)
        assert kept_of(kept_values(share, kept_fields("x")), kept_fields("x")) == share
