"""All checks of `doctor`: the surroundings, and what of what is to run a suite's own start would find out by itself."""

from __future__ import annotations

from typing import get_args

from cotenant.findings.check import Check, Group
from cotenant.findings.checks import (
    backend,
    data,
    device_test,
    lapack,
    locality,
    packages,
    siblings,
    slices,
    speed,
    torch_pair,
)
from cotenant.findings.surroundings import SURROUNDINGS

_PURPOSE = (
    backend.CHECK,
    slices.CHECK,
    siblings.CHECK,
    locality.CHECK,
    speed.CHECK,
    torch_pair.CHECK,
    lapack.CHECK,
    device_test.CHECK,
    packages.CHECK,
    data.CHECK,
)

CHECKS: tuple[Check, ...] = tuple(sorted((*_PURPOSE, *SURROUNDINGS), key=lambda one: get_args(Group).index(one.group)))
"""By group, in the order in which `doctor` shows them."""
