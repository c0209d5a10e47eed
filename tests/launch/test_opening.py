"""The first line of a suite on devices."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from cotenant.isolation.device_modes import share_mode
from cotenant.isolation.plan import plan
from cotenant.launch.limits import Limits
from cotenant.launch.opening import device_line
from machine.invented import GIB, device, machine

LIMITS = Limits(settle_s=3.0, at_least_s=10.0)
H100 = replace(device(0), name="NVIDIA H100 80GB HBM3", memory_bytes=81008 << 20)


def starts(*baselines: str | None, takes_turns: bool = False) -> Any:
    more = {"takes_turns": takes_turns, "specs": range(8)}
    return [SimpleNamespace(names=(f"job{i}",), baseline=kind, **more) for i, kind in enumerate(baselines)]


@pytest.mark.parametrize(
    ("devices", "users", "mode", "expected"),
    [
        (1, 1, None, "1 x NVIDIA H100 80GB HBM3 of 79.11 GiB, batch sizes of 80gb: one user; 40 launches, some 19 min"),
        (
            2,
            2,
            None,
            "2 x NVIDIA H100 80GB HBM3 of 79.11 GiB, batch sizes of 80gb: a user each; 40 launches, some 19 min",
        ),
        (1, 4, "time", "16gb: 4 users on each in turns"),
        (1, 2, "mps:50", "40gb: 2 users on each by mps:50"),
    ],
)
def test_the_line_says_device_class_sharers_and_time(devices: int, users: int, mode: str | None, expected: str) -> None:
    boards = tuple(replace(H100, index=i, uuid=f"GPU-{i}") for i in range(devices))
    made = plan(machine(cores=8, devices=boards), users, share=share_mode(mode) if mode else None)
    line = device_line(made, starts(*[None] * 40), LIMITS)
    assert expected in line
    crowded = device_line(made, starts(*[None] * 40), LIMITS, strangers=True)
    assert crowded == line.replace(";", ", beside processes of others;")


def test_time_is_that_of_the_last_launches_and_of_a_quick_baseline_less() -> None:
    made = plan(machine(devices=(H100,)), 1)
    assert device_line(made, starts(None), LIMITS, "40gb", {"job0": 1800.0}).endswith("1 launch, some 30 min")
    quick = [None, *["quick"] * 9]
    assert device_line(made, starts(*quick), LIMITS).endswith("10 launches, some 3 min")
    turns = starts(*[None] * 10, takes_turns=True)
    assert device_line(made, turns, LIMITS).endswith("10 launches, some 13 min")
    assert device_line(made, turns, replace(LIMITS, budget_s=6.0)).endswith("10 launches, some 4 min")


def test_without_a_device_there_is_no_line() -> None:
    assert device_line(plan(machine(memory_bytes=64 * GIB), 2), starts(None), LIMITS) == ""
