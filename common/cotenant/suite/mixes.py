"""Mixes: launches whose tenants run different cells of one job file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement

from cotenant.errors import CotenantError, did_you_mean
from cotenant.suite.decode import kind
from cotenant.suite.fields import Group, checked_name, name_of, positive_of
from cotenant.text import quoted

KEYS = ("name", "mix", "cgroup", "timeout")
JOINED = "+"


@dataclass(frozen=True, slots=True)
class Mix:
    """A launch whose tenant i runs the i-th of `labels`, cells of the same job file; these repeat round the tenants."""

    name: str
    labels: tuple[str, ...]
    timeout_s: float | None = None

    @property
    def stem(self) -> str:
        return self.name

    @property
    def family(self) -> str:
        return ""

    def of_tenants(self, tenants: int) -> tuple[str, ...]:
        """Return the cell of each tenant."""
        return tuple(self.labels[tenant % len(self.labels)] for tenant in range(tenants))


def mix_of(entry: Mapping[str, object]) -> Mix:
    """Return the mix of an entry of a job file, its cells not yet looked up. Raises CotenantError."""
    for key in entry:
        if key not in KEYS:
            remedy = f"{did_you_mean(key, KEYS)} A mix's keys are {', '.join(KEYS)}.".strip()
            raise CotenantError(f"a mix has no key {quoted(key)}.", remedy)
    if "name" not in entry:
        raise CotenantError("the key 'name' is missing.", 'Add "name": "...".')
    if entry.get("cgroup", "student") != "student":
        raise CotenantError("'cgroup' of a mix is 'student': its tenants have a slice each.", "Leave it out.")
    labels = entry["mix"]
    if not isinstance(labels, list) or not labels or not all(isinstance(label, str) for label in labels):
        raise CotenantError(f"'mix' is {kind(labels)}.", 'It is a list of jobs: ["convnet", "wlm"].')
    return Mix(name_of(dict(entry)), tuple(labels), positive_of(dict(entry), "timeout"))


def mix_named(text: str) -> Mix:
    """Return the mix of `--mix a,b`, called `a+b`. Raises CotenantError for fewer than two names."""
    labels = _labels(text, "--mix")
    if len(labels) == 1:
        raise CotenantError(
            f"all tenants would run {quoted(labels[0])}, as without --mix.", f"Use --name {labels[0]}, or name others."
        )
    return Mix(checked_name(JOINED.join(labels)), tuple(labels))


def pairs_named(text: str) -> tuple[Mix, ...]:
    """Return every pair of the cells of `--pairs a,b,c`, each cell beside itself included. Raises CotenantError."""
    labels = list(dict.fromkeys(_labels(text, "--pairs")))
    return tuple(Mix(checked_name(JOINED.join(pair)), pair) for pair in combinations_with_replacement(labels, 2))


def check_mixes(mixes: Iterable[Mix], cells: Mapping[str, Group], jobs: Mapping[str, Sequence[str]]) -> None:
    """Raise CotenantError for a mix of what is no cell, of a cell that owns the machine, or with a name that is taken.

    `cells` are the file's labels with their groups; `jobs` are the labels of each job of several cells.
    """
    names: set[str] = set()
    for mix in mixes:
        if mix.name in names or mix.name in cells or mix.name in jobs:
            raise CotenantError(f"{quoted(mix.name)} is the name of a mix and of another entry.", "Rename one.")
        names.add(mix.name)
        for label in mix.labels:
            if label in jobs:
                remedy = f"Name one of them: {', '.join(jobs[label][:4])}."
                raise CotenantError(f"mix {quoted(mix.name)}: {quoted(label)} has several cells.", remedy)
            if label not in cells:
                remedy = did_you_mean(label, cells) or f"The jobs are {', '.join(cells)}."
                raise CotenantError(f"mix {quoted(mix.name)}: there is no job {quoted(label)}.", remedy)
            if cells[label] == "all":
                raise CotenantError(
                    f"mix {quoted(mix.name)}: {quoted(label)} is of the group 'all' and owns the machine.",
                    "A mix is of jobs of the group 'student'.",
                )


def _labels(text: str, flag: str) -> list[str]:
    labels = [label.strip() for label in text.split(",") if label.strip()]
    if not labels:
        raise CotenantError(f"{flag} names no job.", f"As {flag} convnet,wlm.")
    return labels
