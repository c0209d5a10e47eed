"""The first line of a suite on devices."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cotenant.isolation.device_modes import share_mode
from cotenant.isolation.plan import plan
from cotenant.launch.heading import device_line
from machine.invented import GIB, device, machine

H100 = replace(device(0), name="NVIDIA H100 80GB HBM3", memory_bytes=81008 << 20)


@pytest.mark.parametrize(
    ("devices", "users", "mode", "expected"),
    [
        (1, 1, None, "1 x NVIDIA H100 80GB HBM3 of 79.11 GiB, batch sizes of 80gb: one user; 40 launches"),
        (
            2,
            2,
            None,
            "2 x NVIDIA H100 80GB HBM3 of 79.11 GiB, batch sizes of 80gb: a user each; 40 launches",
        ),
        (1, 4, "time", "16gb: 4 users on each in turns"),
        (1, 2, "mps:50", "40gb: 2 users on each by mps:50"),
    ],
)
def test_the_line_says_device_class_and_sharers(devices: int, users: int, mode: str | None, expected: str) -> None:
    boards = tuple(replace(H100, index=i, uuid=f"GPU-{i}") for i in range(devices))
    made = plan(machine(cores=8, devices=boards), users, share=share_mode(mode) if mode else None)
    line = device_line(made, 40)
    assert expected in line
    crowded = device_line(made, 40, strangers=True)
    assert crowded == line.replace(";", ", beside processes of others;")


def test_without_a_device_there_is_no_line() -> None:
    assert device_line(plan(machine(memory_bytes=64 * GIB), 2), 1) == ""
