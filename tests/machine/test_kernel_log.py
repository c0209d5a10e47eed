"""The kernel's own words about whom it killed, as its log has them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cotenant.machine.kernel_log import KernelLog, MemoryKill, parse_kill

SLICE = "/cotenant.root/41-7/t0"


def record(constraint: str, nodemask: str, limited: str, allowed: str = "0-1") -> str:
    return (
        f"6,423,1072543948,-;oom-kill:constraint=CONSTRAINT_{constraint},nodemask={nodemask},cpuset=t0,"
        f"mems_allowed={allowed},{limited},task_memcg={SLICE},task=python3,pid=4527,uid=0\n SUBSYSTEM=none\n"
    )


def test_a_kill_is_reported_with_what_was_full_and_other_records_are_none() -> None:
    """Its own limit, one above it, the host, the nodes of its cpuset and those of its policy."""
    for text, limited, nodes in [
        (record("MEMCG", "(null)", f"oom_memcg={SLICE}"), SLICE, ()),
        (record("MEMCG", "(null)", "oom_memcg=/docker/4af"), "/docker/4af", ()),
        (record("NONE", "(null)", "global_oom"), None, ()),
        (record("CPUSET", "(null)", "global_oom", allowed="1"), None, (1,)),
        (record("MEMORY_POLICY", "0,2-3", "global_oom"), None, (0, 2, 3)),
    ]:
        assert parse_kill(text) == MemoryKill(4527, SLICE, limited, nodes)
    for text in (
        "",
        "6,1,2,-;usb 1-1: new device\n",
        "3,424,10,-;Memory cgroup out of memory: Killed process 4527 (python3) total-vm:82164kB\n",
        "6,423,10,-;said: oom-kill:constraint=CONSTRAINT_NONE\n",
    ):
        assert parse_kill(text) is None


def test_what_was_logged_before_the_opening_is_not_ours_and_a_log_that_cannot_be_read_is_empty(tmp_path: Path) -> None:
    log = tmp_path / "kmsg"
    log.write_text(record("NONE", "(null)", "global_oom"))
    for path in (log, tmp_path / "absent"):
        reader = KernelLog(path)
        assert reader.kills() == []
        reader.close()


def test_reading_goes_on_after_the_ring_was_overwritten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "kmsg"
    log.write_text("")
    reader = KernelLog(log)
    answers = iter([BrokenPipeError(), record("NONE", "(null)", "global_oom").encode(), BlockingIOError()])

    def read(descriptor: int, size: int) -> bytes:
        answer = next(answers)
        if isinstance(answer, OSError):
            raise answer
        return answer

    with monkeypatch.context() as patch:
        patch.setattr(os, "read", read)
        assert [kill.pid for kill in reader.kills()] == [4527]
    reader.close()
    assert reader.kills() == []
