from __future__ import annotations

from cotenant.finding import error, info, survived, warning


def test_what_a_launch_ran_in_spite_of_spoils_no_number() -> None:
    before = error("/data has 0.01 GiB free.", "Free some.", "disk_full")
    after = warning("/data has 0.01 GiB free.", "Free some.", "disk_full")
    assert survived([before, after, info("Odd.")]) == (after, after, info("Odd."))
