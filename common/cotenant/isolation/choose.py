"""Which backend serves: the one asked for, or the best that can be had."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cotenant.errors import IsolationError
from cotenant.findings.finding import Finding
from cotenant.isolation.backend import Backend
from cotenant.isolation.loose import Affinity, NoIsolation
from cotenant.isolation.v1 import V1

CHOICES = ("auto", "require", "v1", "affinity", "none")


@dataclass(frozen=True, slots=True)
class Chosen:
    """A backend and, where `auto` had to degrade, a finding that says why."""

    backend: Backend
    findings: tuple[Finding, ...] = ()


def choose_backend(asked: str, mounts: Mapping[str, Path], base: str | None) -> Chosen:
    """Return the backend that serves.

    `auto` takes `v1`, else `affinity`; `require` refuses to degrade; a backend asked for by name is had or is an error.
    Raises IsolationError.
    """
    v1 = V1(mounts, base)
    if asked == "none":
        return Chosen(NoIsolation())
    if asked == "affinity":
        return Chosen(Affinity())
    reason = v1.probe()
    if reason is None:
        return Chosen(v1)
    if asked == "auto":
        finding = Finding(
            "degraded",
            "warning",
            f"Slices are not enforced by cgroups here: {reason}.",
            "Run as root where cgroups are mounted; --isolation require refuses to run without them.",
        )
        return Chosen(Affinity(), (finding,))
    raise IsolationError(
        f"Isolation {'is required' if asked == 'require' else 'by v1 was asked for'}, but {reason}.",
        "Run as root where cgroups are mounted, or let it degrade with --isolation auto.",
    )
