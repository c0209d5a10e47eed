"""Backend v2 on the real kernel, where systemd gives us a cgroup: the plan holds, and nothing is left."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cotenant.isolation import scope
from cotenant.isolation.v2 import V2
from cotenant.machine.limits import cgroup_mounts

CHECKS = Path(__file__).with_name("v2_checks.py")
NOT_HERE = 77
"""As in v2_checks.py, which changes the path of imports, and is not imported here."""


def test_every_check_holds_in_a_scope_of_its_own() -> None:
    refusal = V2(cgroup_mounts()).probe()
    if refusal is not None:
        pytest.skip(f"no delegated v2 cgroup can be had: {refusal.reason}; tests/vm has one")
    line = [*scope._words(), sys.executable, str(CHECKS)]
    ended = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ended.returncode == NOT_HERE:
        pytest.skip(ended.stdout)
    assert ended.returncode == 0, ended.stdout
