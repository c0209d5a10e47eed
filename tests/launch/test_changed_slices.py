"""Tenants of root that change their slices, or leave them, while they are measured: their launches are INVALID."""

import re

import pytest

from tenants.suites import Suites, job

pytestmark = pytest.mark.v1
SENTENCES = {
    "raise-limits": [
        r"user 0 was planned with bytes of memory \d+, but /\S+/memory/\S+/t0 holds \d{12,} now\.",
        r"user 0 was planned with bytes of memory and swap \d+, but /\S+/memory/\S+/t0 holds \d{12,} now\.",
        r"user 0 was planned with processes \d+, but /\S+/pids/\S+/t0 holds max now\.",
    ],
    "leave": [r"user 0 was planned in its slice, but pid \d+ \(\S+\) of it left that\."],
    "leave-a-thread": [r"user 0 was planned in its slice, but pid \d+ \(\S+\) of it left that\."],
    "leave-a-daemon": [r"users were planned in slices, but pid \d+ \(sleep\) lived outside\."],
    "children": [],
}


def test_a_slice_that_was_changed_or_left_makes_its_launch_invalid(v1: Suites) -> None:
    rogues = [job("rogue.py", "--who", 0, "--at", "observed", "--do", deed, name=deed) for deed in SENTENCES]
    ended = v1.run(rogues, "--users", 2, "--strict")
    records = v1.by_job()
    for deed, sentences in SENTENCES.items():
        for record in records[deed]:
            assert record["outcome"] == "completed", record["message"]
            said = [finding for finding in record["findings"] if finding["rule"] == "slice_changed"]
            assert {finding["severity"] for finding in said} <= {"error"}
            assert len(said) == len(sentences), (deed, said)
            for pattern, finding in zip(sentences, said, strict=True):
                assert re.fullmatch(f"The slices did not stay as planned: {pattern}", finding["sentence"]), finding
    assert ended.returncode == 1
    assert not v1.leftovers()
