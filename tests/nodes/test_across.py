"""How long a node waits for node 0, which may have launches of fewer nodes first."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from cotenant.launch.across import waiting_s
from cotenant.launch.limits import Limits


@pytest.mark.parametrize(
    ("parts", "wait_s"),
    [
        ([True], 60),
        ([True, True], 60),
        ([True, None, None, True], 60 + 2 * 100),
        ([None, True, None, True], 60 + 100),
    ],
)
def test_a_node_waits_out_the_launches_that_it_has_no_part_in(parts: list[bool | None], wait_s: float) -> None:
    starts = [SimpleNamespace(key=f"j{at}", follows=follows, timeout_s=None) for at, follows in enumerate(parts)]
    limits = Limits(timeout_s=100, ready_limit_s=60)
    assert waiting_s(cast(Any, starts), cast(Any, starts[-1]), limits) == wait_s
    assert limits.of_node(True, wait_s).timeout_s == 100 + wait_s
    assert limits.of_node(False, wait_s).ready_limit_s > 60
