"""Values that follow from a record's parts: the identity of its work, and contradictions."""

from __future__ import annotations

from msgspec.structs import replace

from cotenant.results.as_read import ReadRecord
from results.made import a_part, a_record


def work(workers: int, *words: str) -> str:
    part = a_part(arguments={"batch_size": 128, "workers": workers})
    return ReadRecord(a_record({"command": ["run.sh", *words]}, {"part": part})).work


def test_workers_are_work_only_if_they_were_asked_for() -> None:
    """Their default follows from the processors of a slice."""
    assert work(1) == work(4) != ""
    asked = {work(1, "--workers", "1"), work(4, "--workers=4"), work(2, "-j2")}
    assert len(asked) == 3
    assert work(1) not in asked


def test_a_record_without_a_rate_contradicts_nothing() -> None:
    without = replace(a_record(), statistics=None, train_item=None)
    assert without.completed
    assert "contradicted" not in {finding.rule for finding in ReadRecord(without).all_findings}
