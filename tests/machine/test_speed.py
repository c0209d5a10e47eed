"""A processor's speed: what a clock read adds to a loop, and how far it goes from moment to moment."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import pytest

from cotenant.machine import cpu as speed
from cotenant.machine.cpu import Speed, clock_read_ns, speed_over


def test_what_the_loop_itself_takes_is_no_read(monkeypatch: pytest.MonkeyPatch) -> None:
    stamps_ns = itertools.count(0, 60)
    ended_ns = []

    def clock() -> int:
        now_ns = next(stamps_ns) + sum(ended_ns)
        if now_ns > 60 * speed._READS and not ended_ns:
            # The empty loop after the last of the reads.
            ended_ns.append(10 * speed._READS)
        return now_ns

    monkeypatch.setattr(speed.time, "perf_counter_ns", clock)
    assert clock_read_ns() == pytest.approx(50, rel=0.01)


@pytest.mark.parametrize(
    ("slow_of_ten", "speed_seen"), [(0, Speed(50, 50)), (4, Speed(50, 80)), (10, Speed(80, 80))], ids=str
)
def test_two_speeds_are_both_seen_and_an_interrupt_is_not(
    slow_of_ten: int, speed_seen: Speed, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s, readings = [100.0], itertools.count()

    def read_ns() -> float:
        now_s[0] += 0.002
        if next(readings) % 5 == 0:
            return 5000.0
        return 80.0 if int(now_s[0] / 0.1) % 10 < slow_of_ten else 50.0

    monkeypatch.setattr(speed, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    monkeypatch.setattr(speed, "clock_read_ns", read_ns)
    seen = speed_over(2.0)
    assert seen == speed_seen
    assert now_s[0] - 100 == pytest.approx(2.0, abs=0.02)
