"""Tenants of root that change their slices, or leave them, while they are measured: their launches are INVALID."""

import re

import pytest

from tenants.suites import Suites, found, rogue

pytestmark = pytest.mark.v1
LEFT = r"user 0 was planned in its slice, but pid \d+ \(\S+\) of it left that\."
SENTENCES = {
    "raise-limits": [
        r"user 0 was planned with bytes of memory \d+, but /\S+/memory/\S+/t0 holds \d{12,} now\.",
        r"user 0 was planned with bytes of memory and swap \d+, but /\S+/memory/\S+/t0 holds \d{12,} now\.",
        r"user 0 was planned with processes \d+, but /\S+/pids/\S+/t0 holds max now\.",
    ],
    "leave": [LEFT],
    "leave-a-thread": [LEFT],
    "leave-a-daemon": [r"users were planned in slices, but pid \d+ \(sleep\) lived outside\."],
    "children": [],
}


def test_a_slice_that_was_changed_or_left_makes_its_launch_invalid(v1: Suites) -> None:
    v1.run([rogue(deed, "observed", deed) for deed in SENTENCES], "--users", 2, "--strict", status=1)
    records = v1.by_job()
    for deed, sentences in SENTENCES.items():
        for record in records[deed]:
            assert record["outcome"] == "completed", record["message"]
            said = found(record, "slice_changed")
            assert {finding["severity"] for finding in said} <= {"error"}
            assert len(said) == len(sentences), (deed, said)
            for pattern, finding in zip(sentences, said, strict=True):
                assert re.fullmatch(f"The slices did not stay as planned: {pattern}", finding["sentence"]), finding
    assert not v1.leftovers()
