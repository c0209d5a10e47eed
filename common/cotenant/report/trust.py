"""Judges whether a rate can be trusted: clean, or suspect because of its worst warning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from cotenant.findings.rules import LAUNCH_RULES, RECORD_RULES
from cotenant.frames import pl
from cotenant.report.problems import GRAVEST
from cotenant.results.table import AT, Rows

THEMES = ("host", "devices", "work", "launches", "input", "timing")
"""Themes of rules, the worst first: other load on the machine explains most irregular times of a launch."""


CAUSES = {"foreign_load": "other programs", "stolen": "the hypervisor", "slow_start": "warm-up that was counted in"}
"""The causes that rules blame, where a rule's name does not state it."""


class Doubt(NamedTuple):
    """The worst warning of a job: its rule, its gravest sentence (may be empty), the number of records that have it,
    and the greatest share by which it can have moved one of their rates."""

    rule: str
    sentence: str
    records: int
    effect: float | None

    @property
    def cause(self) -> str:
        """Its rule in words."""
        return CAUSES.get(self.rule, self.rule.replace("_", " "))


def doubts(jobs: Sequence[Rows]) -> list[Doubt | None]:
    """Return the worst warning of each job's records that count, None for a clean job."""
    if not jobs:
        return []
    of_jobs = pl.DataFrame(
        {"job": [job for job, rows in enumerate(jobs) for _ in rows.at], AT: [at for rows in jobs for at in rows.at]},
        {"job": pl.UInt32, AT: pl.UInt32},
    )
    warnings = jobs[0].table.findings.filter(pl.col("severity") == "warning").join(of_jobs, on=AT)
    by_rule = warnings.group_by("job", "rule").agg(GRAVEST, pl.len(), pl.col("effect").max())
    of_job: dict[int, list[Doubt]] = defaultdict(list)
    for job, *fields in by_rule.iter_rows():
        of_job[job].append(Doubt(*fields))
    return [
        min(of_job[job], key=lambda doubt: (_rank(doubt.rule), -doubt.records, doubt.rule), default=None)
        for job in range(len(jobs))
    ]


def _rank(rule: str) -> int:
    """Rank rules by their themes; warnings on the host before the suite come after warnings on the launch."""
    entry = RECORD_RULES.get(rule) or LAUNCH_RULES.get(rule)
    theme = "" if entry is None else entry.ask.__module__.rpartition(".")[2]
    return THEMES.index(theme) if theme in THEMES else len(THEMES)
