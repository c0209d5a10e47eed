from __future__ import annotations

import pytest

from cotenant.finding import Finding, Severity, survived


@pytest.mark.parametrize(("said", "kept"), [("error", "warning"), ("warning", "warning"), ("info", "info")])
def test_what_a_launch_ran_in_spite_of_spoils_no_number(said: Severity, kept: Severity) -> None:
    told = Finding("disk_full", said, "/data has 0.01 GiB free.", "Free some.")
    assert survived([told]) == (Finding("disk_full", kept, "/data has 0.01 GiB free.", "Free some."),)
