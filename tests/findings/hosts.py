"""Invented hosts, in good order except for the changes that a test makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cotenant.finding import Finding
from cotenant.findings import Answer, Check
from cotenant.findings.facts import Facts, Isolation, SelfTest
from cotenant.isolation.plan import plan
from cotenant.machine.cpu import Clocking, Speed
from cotenant.machine.load import Load
from cotenant.machine.nvidia import DeviceState
from cotenant.machine.space import DevShm, Disk, HostMemory
from cotenant.machine.topology import Machine
from cotenant.machine.virtual import Virtual
from machine.invented import GIB, device, machine

HOLDS_ALL = Isolation("v1")
LOOSE = Isolation("affinity", ("memory", "swap", "pids"))
TESTED = SelfTest(torch="2.14.1+cu130", built_for="cu130", vision="0.29.2", devices=("", ""))
DISK = Disk(("records", "data"), Path("/home/me/cotenant"), 500 * GIB, True)


def host(**changes: Any) -> Facts:
    """A quiet server with two devices on two nodes and a plan for two tenants, with `changes` to its facts."""
    fields: dict[str, Any] = {
        "machine": server(),
        "clocking": Clocking("acpi-cpufreq", ("performance",), (), (), False),
        "memory": HostMemory(64 * GIB, 63 * GIB, 0, 0),
        "shared": DevShm(32 * GIB, 32 * GIB),
        "disks": (DISK,),
        "load": Load(0.1, 0),
        "virtual": Virtual("", ""),
        "stolen_share": 0.0,
        "devices": (board(0), board(1)),
        "isolation": HOLDS_ALL,
        "self_test": TESTED,
        "speed": Speed(54.0, 56.0),
        "jobs": (),
    }
    fields |= changes
    fields.setdefault("plan", plan(fields["machine"], 2))
    return Facts(**fields)


def server(**changes: Any) -> Machine:
    return machine(**{"nodes": 2, "cores": 4, "threads": 2, "devices": (device(0, 0), device(1, 1))} | changes)


def board(index: int, **changes: Any) -> DeviceState:
    """One device's state, in good order."""
    fields: dict[str, Any] = dict.fromkeys(("mps", "mig", "mig_pending", "repair_pending"), False)
    fields |= dict.fromkeys(("persistent", "ecc"), True) | dict.fromkeys(("power_limit_w", "power_default_w"), 300.0)
    fields |= {"index": index, "processes": (), "uncorrected_errors": 0, "compute_mode": "default", "slowed_by": ()}
    return DeviceState(**fields | changes)


def asked(check: Check, **changes: Any) -> Answer:
    """Return the answer of the check on such a host."""
    answer = check.ask(host(**changes))
    assert answer is not None
    return answer


def said(check: Check, **changes: Any) -> dict[str, Finding]:
    """Return the findings of the check on such a host, by their rule."""
    return {finding.rule: finding for finding in asked(check, **changes).findings}
