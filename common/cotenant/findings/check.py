"""The check: a name, and an answer whether all is well or not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from cotenant.finding import Finding, Severity
from cotenant.findings.facts import Facts

Group = Literal["isolation", "processors", "memory", "devices", "disk", "software", "data"]


@dataclass(frozen=True, slots=True)
class Answer:
    """What was found, in a few words, and what is to be said about it; without findings all is well."""

    text: str
    findings: tuple[Finding, ...] = ()

    @property
    def severity(self) -> Severity | None:
        """The worst severity among the findings, None without any."""
        worst: tuple[Severity, ...] = ("error", "warning", "info")
        said = {finding.severity for finding in self.findings}
        return next((severity for severity in worst if severity in said), None)


@dataclass(frozen=True, slots=True)
class Check:
    """One question; `ask` answers None where it does not arise: no devices, or facts that nobody gathered."""

    group: Group
    name: str
    ask: Callable[[Facts], Answer | None]


def ask_all(checks: Iterable[Check], facts: Facts) -> Iterator[tuple[Check, Answer]]:
    """Yield each check that arises, with its answer."""
    for check in checks:
        answer = check.ask(facts)
        if answer is not None:
            yield check, answer
