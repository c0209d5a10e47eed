"""The planted faults have unlike names, and stand in today's code."""

from __future__ import annotations

from faults.plant import ROOT, known_faults, place_of


def test_the_text_of_each_fault_is_found_in_one_place() -> None:
    faults = known_faults()
    assert len(faults) > 100
    missing = [(one["id"], test) for one in faults for test in one.get("tests", ()) if not (ROOT / test).exists()]
    assert missing == []
    for one in faults:
        assert one["new"] not in (None, one["old"]), one["id"]
        place_of(ROOT, one)
