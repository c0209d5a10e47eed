"""The flags of commands that launch, as typed values: decoded once, with every default in one place.

The parsers have no defaults for them: a flag that is not given is None there, False or empty.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from cotenant.choices import BASELINES, READY_LIMIT_S, TIMEOUT_S, BaselineKind, IsolationKind, Launcher
from cotenant.commands.flags import duration, given_path, share
from cotenant.suite.duets import REPETITIONS

if TYPE_CHECKING:
    from cotenant.isolation.device_modes import ShareMode
    from cotenant.isolation.memory_shares import Mems
    from cotenant.isolation.plan import Policy
    from cotenant.launch.limits import OnOom


@dataclass(frozen=True, slots=True)
class SliceFlags:
    """The flags for the number of slices, their resources, and their enforcement: also the flags of `plan`."""

    users: int | None = None
    slices: int | None = None
    share: ShareMode | None = None
    isolation: IsolationKind = "auto"
    cgroup_base: str | None = None
    plan: Policy = "cores"
    mems: Mems = "local"
    reserve: int | None = None

    @classmethod
    def of(cls, given: argparse.Namespace, **fixed: object) -> Self:
        """Return the flags that were given, under the `fixed` ones; all others have their defaults."""
        names = {field.name for field in fields(cls)}
        values = {name: value for name, value in vars(given).items() if name in names and value is not None}
        return cls(**{**values, **fixed})


@dataclass(frozen=True, slots=True)
class LaunchFlags(SliceFlags):
    """The flags that a suite and `exec` have in common: how to measure, and which results to keep and to print."""

    baseline: BaselineKind | None = None
    budget: float | None = None
    until_interval: float | None = None
    timeout: float = TIMEOUT_S
    ready_timeout: float = READY_LIMIT_S
    uid: int = 0
    repetitions: int | None = None
    outdir: Path | None = None
    resume: bool = False
    dry: bool = False
    verbose: bool = False
    strict: Literal["invalid", "suspect"] | None = None
    format: str = "text"


@dataclass(frozen=True, slots=True)
class CommandFlags(LaunchFlags):
    """The flags of `exec`."""

    duet: bool = False
    item: str = ""
    items: float = 1.0
    count_line: str = ""
    ready_line: str = ""
    runs: int = 10
    again: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class SuiteFlags(LaunchFlags):
    """The flags of a suite: of `run`, and in part of `doctor`, `tune` and `capacity`."""

    jobs: str | None = None
    name: Sequence[str] = ()
    exclude: Sequence[str] = ()
    mix: str | None = None
    pairs: str | None = None
    pressure: Sequence[str] = ()
    free_for_all: bool = False
    duet: str | None = None
    devices: int | None = None
    memory_class: str | None = None
    settle: float | None = None
    at_least: float | None = None
    on_oom: OnOom = "group"
    singularity: str | None = None
    docker: str | None = None
    launcher: Launcher = "auto"
    nnodes: int | None = None
    node_rank: int | None = None
    rdzv_endpoint: str = ""
    raise_error: bool = False
    show: bool = False


LAUNCHING: Mapping[str, Mapping[str, Any]] = {
    "--baseline": {
        "choices": BASELINES,
        "metavar": "KIND",
        "help": "rate of a user alone: by turns within the launch (blocks), in launches as long (whole), or none",
    },
    "--budget": {
        "type": duration,
        "metavar": "S",
        "help": "seconds that a launch may measure; it ends after twice that, or 10 s more",
    },
    "--until-interval": {
        "type": share,
        "metavar": "SHARE",
        "help": "end a launch once half of every user's 95 %% interval is at most this share of its median, as 1%%",
    },
    "--ready-timeout": {
        "type": duration,
        "metavar": "S",
        "help": "seconds a launch's users may take to be ready for GO, downloads included (default 600)",
    },
    "--timeout": {"type": duration, "metavar": "S", "help": "seconds one launch may take (default 3600); 2m, 1h, too"},
    "--outdir": {"type": given_path, "metavar": "DIR", "help": "where records go (default $BASE/output)"},
    "--uid": {"type": int, "help": "number of this repetition (default 0)"},
    "--repetitions": {
        "type": int,
        "metavar": "N",
        "help": f"number of repetitions, from --uid on (default 1, for a duet {REPETITIONS})",
    },
    "--resume": {"action": "store_true", "help": "go on after the last finished launch of this --uid"},
    "--dry": {"action": "store_true", "help": "show every launch with its command; nothing runs"},
    "--verbose": {
        "action": "store_true",
        "help": "show a row per user and every finding; with --dry each user's slice, too",
    },
    "--strict": {
        "nargs": "?",
        "const": "invalid",
        "choices": ("invalid", "suspect"),
        "help": "an INVALID launch counts as failed; --strict=suspect: so does one with a warning",
    },
}
"""Flags that several launching commands share."""


def add_flags(add: Callable[..., object], *names: str) -> None:
    """Add flags of `LAUNCHING`."""
    for name in names:
        add(name, **LAUNCHING[name])
