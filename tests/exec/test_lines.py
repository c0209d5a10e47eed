"""Which lines of a program's output are counted."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import accumulate
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.exec import lines as module
from cotenant.exec.lines import Counter, Lines
from cotenant.exec.settings import Settings
from cotenant.exec.steps import WARM_UP_STEPS
from exec.test_steps import Told


def counted(counter: Counter, *lines: str) -> list[float | None]:
    return [counter.items(line.encode()) for line in lines]


def test_a_line_counts_one_item_and_a_group_a_running_total() -> None:
    assert counted(Counter("^step"), "step 7", "epoch", "step 8") == [1, None, 1]
    assert counted(Counter(r"^step (\d+)"), "step 7", "epoch", "step 9", "x step 10") == [7, None, 2, None]
    assert counted(Counter(r"(\d+) it", items=32), "2 it", "4 it") == [64, 64]
    assert counted(Counter(r"(\d+)/9"), "8/9", "9/9", "9/9", "1/9", "3/9") == [8, 1, 0, 1, 2]


def test_no_line_counts_before_the_ready_line() -> None:
    assert counted(Counter("^step", "^listening"), "step", "listening", "step") == [None, None, 1]
    assert counted(Counter("^step (.*)"), "step one", "step 2") == [None, 2]
    assert counted(Counter(r"^step( \d+)?"), "step", "step 3") == [1, 3]


def test_the_total_of_a_restarted_program_begins_at_zero() -> None:
    counter, items = Counter(r"^step (\d+)"), list[float | None]()
    for _ in range(3):
        counter.begin()
        items += counted(counter, "step 100")
    assert items == [100, 100, 100]


@given(st.lists(st.integers(0, 1000), min_size=1))
def test_running_totals_add_up_to_the_last_one(steps: list[int]) -> None:
    items = counted(Counter(r"^(\d+)$"), *map(str, accumulate(steps)))
    assert sum(each or 0 for each in items) == sum(steps)


def test_bytes_that_are_no_text_count_as_they_stand() -> None:
    assert Counter("^step").items(b"step \xff\xfe") == 1
    with pytest.raises(Exception, match="unterminated"):
        Counter("(")


class Waited(Told):
    """Told, and meanwhile the program has gone on."""

    released = False

    def __init__(self, goes_on: Callable[[], object]) -> None:
        super().__init__(number=2, repeat=3)
        self._goes_on = goes_on

    def await_go(self) -> tuple[int, int, int]:
        self._goes_on()
        self.released = True
        return super().await_go()


def test_unread_lines_from_before_go_count_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rank of torchrun is in a session of its own, which is not stopped."""
    program = -1

    def start(output: int) -> Any:
        nonlocal program
        program = os.dup(output)
        os.write(program, b"step\n" * (1 + WARM_UP_STEPS + 5))
        return SimpleNamespace(pid=1, wait=lambda: 0)

    def copied(chunk: bytes) -> None:
        if b"late" in chunk:
            os.write(program, b"step of ten\n" * 10)
            os.close(program)

    runner = Waited(lambda: os.write(program, b"step, late\n" * 100))
    monkeypatch.setattr(module, "Held", lambda *address: runner)
    monkeypatch.setattr(module, "address", lambda: ())
    monkeypatch.setattr(module.sys, "stdout", SimpleNamespace(buffer=SimpleNamespace(write=copied, flush=lambda: None)))
    lines = Lines(Settings(count_line="^step"), start, lambda: False)
    assert lines.follow() == 0
    assert runner.kinds() == ["ready", *["observation"] * 3, "done", "record"]
    assert lines._steps is not None
    assert lines._steps.count == 1 + WARM_UP_STEPS + 10
