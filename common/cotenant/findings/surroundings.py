"""The checks that every suite asks at its start: cheap, and about the host alone."""

from __future__ import annotations

from cotenant.findings.check import Check
from cotenant.findings.checks import (
    boost,
    container,
    device_modes,
    device_users,
    devices,
    disk,
    ecc,
    governor,
    load,
    memory,
    other_runs,
    persistence,
    power,
    shared_memory,
    steal,
    swap,
)

SURROUNDINGS: tuple[Check, ...] = (
    container.CHECK,
    other_runs.CHECK,
    governor.CHECK,
    boost.CHECK,
    load.CHECK,
    steal.CHECK,
    memory.CHECK,
    swap.CHECK,
    shared_memory.CHECK,
    devices.CHECK,
    device_users.CHECK,
    device_modes.CHECK,
    ecc.CHECK,
    persistence.CHECK,
    power.CHECK,
    disk.CHECK,
)
