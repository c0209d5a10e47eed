"""What a launch ran on that may change under it: versions of software, of drivers, of the checkout."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from cotenant.results.row import list_of, mapping_of

CHECKOUT = "git"


def setting_of(machine: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions that a record's `machine` knows, by what has them; what it does not know is not in it."""
    software, git, torch = (mapping_of(machine.get(key)) for key in ("software", "git", "torch"))
    commit = git.get("commit")
    drivers = [mapping_of(one).get("driver") for one in list_of(machine.get("accelerators"))]
    found: dict[str, Any] = {
        **mapping_of(software.get("packages")),
        "python": software.get("python"),
        "kernel": software.get("kernel"),
        "distribution": software.get("distribution"),
        "driver": ", ".join(sorted({one for one in drivers if isinstance(one, str)})),
        "CUDA": torch.get("cuda"),
        "ROCm": torch.get("hip"),
        CHECKOUT: f"{commit[:12]}{' and changes' if git.get('dirty') else ''}" if isinstance(commit, str) else "",
    }
    # What the tenant imported says more than what is installed.
    found |= {"torch": torch["version"]} if torch.get("version") else {}
    return {name: value for name, value in found.items() if isinstance(value, str) and value}


def joint_setting(machines: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return the versions that these `machine` parts of records know; several of one thing are one text."""
    found: dict[str, set[str]] = defaultdict(set)
    for machine in machines:
        for name, version in setting_of(machine).items():
            found[name].add(version)
    return {name: " and ".join(sorted(versions)) for name, versions in found.items()}


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return `torch 2.14.0 -> 2.14.1` per version that both know and that is not the same."""
    return [
        f"{name} {before[name]} -> {after[name]}"
        for name in sorted(before.keys() & after.keys())
        if before[name] != after[name]
    ]
