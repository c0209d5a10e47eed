"""Tenants of root that change or leave their slices, and harm that one tenant of a shared slice does to the others."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

from cotenant.machine.topology import discover
from tenants.suites import Suites, found, job, rogue

pytestmark = pytest.mark.v1
LEFT = r"user 0 was planned in its slice, but pid \d+ \(\S+\) left it\."
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


@pytest.mark.parametrize(
    "deeds",
    [["raise-limits", "leave-a-thread"], pytest.param(["leave", "leave-a-daemon", "children"], marks=pytest.mark.slow)],
)
def test_a_changed_or_abandoned_slice_invalidates_its_launch(deeds: list[str], v1: Suites) -> None:
    v1.run([rogue(deed, "observed", deed) for deed in deeds], "--users", 2, "--strict", status=1)
    records = v1.by_job()
    for deed in deeds:
        sentences = SENTENCES[deed]
        for record in records[deed]:
            assert record["outcome"] == "completed", record["message"]
            said = found(record, "slice_changed")
            assert {finding["severity"] for finding in said} <= {"error"}
            assert len(said) == len(sentences), (deed, said)
            for pattern, finding in zip(sentences, said, strict=True):
                assert re.fullmatch(f"The slices did not stay as planned: {pattern}", finding["sentence"]), finding
    assert not v1.leftovers()


USERS, MEMORY = 4, 96 << 20


def launched(suites: Suites, uid: int, *words: object, slices: int = 1) -> list[dict[str, Any]]:
    """Launch four tenants of which the first does the deeds that the words name; return their records by tenant."""
    reserve = discover().memory_bytes - USERS * MEMORY
    program = job("rogue.py", "--who", 0, "--repeat", 8, "--number", 40, *words)
    flags = ("--users", USERS, "--slices", slices, "--reserve", reserve, "--uid", uid)
    ended = suites.run([program], *flags)
    assert ended.returncode in (0, 1), ended.stderr
    records = [record for record in suites.records() if record["run_id"] == uid]
    return sorted(records, key=lambda record: record["tenant"])


@pytest.mark.slow
@pytest.mark.parametrize("slices", [1, 2])
def test_a_killed_tenant_and_a_hog_end_alone_in_a_shared_slice(v1: Suites, slices: int) -> None:
    """Neighbours finish, at no less than the rate that they have beside a tenant that goes on."""
    if len(os.sched_getaffinity(0)) < slices:
        pytest.skip("needs a processor for each slice")
    quiet = launched(v1, 0, "--at", "never", "--do", "exit", slices=slices)
    assert [record["outcome"] for record in quiet] == ["completed"] * USERS
    assert {record["sharers"] for record in quiet} == {USERS // slices}
    planned = [record["isolation"]["planned"] for record in quiet]
    assert len({plan["processors"] for plan in planned}) == slices
    assert {plan["memory_bytes"] for plan in planned} == {MEMORY}
    severities = {each["severity"] for record in quiet for each in found(record, "processors_shared")}
    assert severities <= {"info"}
    for uid, (deed, outcome) in enumerate({"die": "failed", "hog": "out_of_memory"}.items(), 1):
        records = launched(v1, uid, "--at", "observed", "--do", deed, slices=slices)
        assert [record["outcome"] for record in records] == [outcome, *["completed"] * (USERS - 1)]
        kills = [record["isolation"]["counters"]["oom_kills"] for record in records]
        assert [bool(count) for count in kills] == [deed == "hog", False, False, False]
        assert [record["comparable"] for record in records[1:]] == [False] * (USERS - 1)
        for record, undisturbed in zip(records[1:], quiet[1:], strict=True):
            assert record["statistics"]["median"] > 0.5 * undisturbed["statistics"]["median"]
        assert not v1.inhabitants()
    v1.gone(5)
