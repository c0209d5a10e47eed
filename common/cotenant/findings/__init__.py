"""Findings on a number's validity: the rules for records, and doctor's checks of a host.

A rule is one decorated function in a file of `rules`, a check one in a file of `checks`. These packages list them, so
that a list is complete once it can be imported.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Literal, TypeVar, get_args

from cotenant.finding import Finding, Severity
from cotenant.findings.facts import Facts
from cotenant.results.record import Record

RecordQuestion = Callable[[Record], Finding | None]
LaunchQuestion = Callable[[Sequence[Record], Sequence[Record]], dict[int, Finding]]
Inspection = Generator[Finding, None, str | None]
"""A check yields its findings and returns a text on what it saw; None if it does not arise, as without devices."""
Group = Literal["isolation", "processors", "memory", "devices", "disk", "software", "data"]


def named(finding: Finding, name: str) -> Finding:
    return finding if finding.rule else replace(finding, rule=name)


@dataclass(frozen=True, slots=True)
class RecordRule:
    """A rule about one record: it returns its finding, or None. A finding has the name of its rule's function."""

    ask: RecordQuestion

    @property
    def name(self) -> str:
        return self.ask.__name__


@dataclass(frozen=True, slots=True)
class LaunchRule:
    """A rule about the records of one launch's tenants, and of the launches of the suite run before it.

    It returns findings by the place of their record in the launch.
    """

    ask: LaunchQuestion

    @property
    def name(self) -> str:
        return self.ask.__name__


record_rule = RecordRule
"""Declares a function as a rule about one record."""
launch_rule = LaunchRule
"""Declares a function as a rule about the records of a launch."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A check's result, in a few words, and the findings about it; without findings all is well."""

    text: str
    findings: tuple[Finding, ...] = ()

    @property
    def severity(self) -> Severity | None:
        """The worst severity among the findings, None without any."""
        return max((finding.severity for finding in self.findings), key=get_args(Severity).index, default=None)


@dataclass(frozen=True, slots=True)
class Check:
    """One question of `doctor`; `every_suite`: cheap, about the host alone, and asked before every suite."""

    group: Group
    name: str
    inspect: Callable[[Facts], Inspection]
    every_suite: bool = False

    def ask(self, facts: Facts) -> Answer | None:
        """Return the answer, None if the question does not arise."""
        findings: list[Finding] = []
        inspection = self.inspect(facts)
        while True:
            try:
                findings.append(named(next(inspection), self.inspect.__name__))
            except StopIteration as end:
                return None if end.value is None else Answer(end.value, tuple(findings))


def check(group: Group, name: str, every_suite: bool = False) -> Callable[[Callable[[Facts], Inspection]], Check]:
    """Declare a function as the check of this name."""
    return lambda inspect: Check(group, name, inspect, every_suite)


Kind = TypeVar("Kind", RecordRule, LaunchRule, Check)


def declared_in(kind: type[Kind], files: Iterable[ModuleType]) -> tuple[Kind, ...]:
    """Return the rules or checks of these files, in their order."""
    return tuple(dict.fromkeys(value for file in files for value in vars(file).values() if isinstance(value, kind)))


def ask_all(checks: Iterable[Check], facts: Facts) -> Iterator[tuple[Check, Answer]]:
    """Yield each check that arises, with its answer."""
    for question in checks:
        answer = question.ask(facts)
        if answer is not None:
            yield question, answer
