"""Holm's correction against its definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.stats.comparison import holm

chances = st.lists(st.floats(0, 1), max_size=12)


def test_the_textbook_example() -> None:
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([]) == []


@given(chances, st.floats(0.001, 0.2))
def test_it_rejects_what_the_step_down_procedure_rejects(p_values: list[float], alpha: float) -> None:
    rejected = set()
    for rank, (p, index) in enumerate(sorted((p, index) for index, p in enumerate(p_values))):
        if p * (len(p_values) - rank) > alpha:
            break
        rejected.add(index)
    assert {index for index, p in enumerate(holm(p_values)) if p <= alpha} == rejected


@given(chances)
def test_it_keeps_the_order_and_never_lowers(p_values: list[float]) -> None:
    adjusted = holm(p_values)
    assert all(p <= one <= 1 for p, one in zip(p_values, adjusted, strict=True))
    by_p = [one for _, one in sorted(zip(p_values, adjusted, strict=True))]
    assert by_p == sorted(by_p)


def test_what_is_no_chance_is_refused() -> None:
    with pytest.raises(ValueError, match="p values"):
        holm([0.5, 1.5])
