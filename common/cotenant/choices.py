"""Words that flags choose from, and default limits.

They stand here so that `--help` does not import the modules that use them.
"""

from __future__ import annotations

from typing import Literal, get_args

IsolationKind = Literal["auto", "require", "v2", "v1", "affinity", "none"]
ISOLATIONS: tuple[IsolationKind, ...] = get_args(IsolationKind)
"""Ways to enforce slices: `isolation/choose.py`."""

BaselineKind = Literal["none", "blocks", "whole"]
BASELINES: tuple[BaselineKind, ...] = get_args(BaselineKind)
"""Ways to measure tenants alone: docs/method.md."""

Launcher = Literal["auto", "local", "torchrun", "slurm", "ray"]
LAUNCHERS: tuple[Launcher, ...] = get_args(Launcher)
"""Programs that start a runner on each of several hosts: `nodes/cluster.py`."""

TIMEOUT_S = 3600.0
"""Time that one launch may take."""
READY_LIMIT_S = 600.0
"""Time that a launch's tenants may take to be ready for GO."""

OF_HOSTS = ("cpu", "llc", "dram", "disk")
OF_DEVICES = ("sm", "hbm")
"""Resources that a neighbour of known pressure presses on: `suite/pressure.py`."""

CPU = "cpu"
MEMORY_CLASSES = {f"{gib}gb": gib for gib in (8, 16, 24, 32, 40, 48, 80, 96, 140, 192)}
"""A device's memory in GiB, by its class; ascending."""
CLASSES = (CPU, *MEMORY_CLASSES)
"""Classes of batch sizes: `suite/sizes.py`."""

FORMS = ("md", "csv", "json")
"""File formats of every view: `report/renderers.py`."""
