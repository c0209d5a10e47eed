"""Keeps a suite's records: makes them from launches, applies all rules, writes them, and notes them in the journal."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from cotenant.confidential import by_new_key, words_without
from cotenant.finding import survived
from cotenant.launch.alone import GoesOn
from cotenant.launch.limits import Limits
from cotenant.launch.outcome import LaunchResult
from cotenant.launch.output import Output
from cotenant.launch.planned import PlannedLaunch
from cotenant.launch.prepared import PreparedSuite
from cotenant.launch.resume import begin
from cotenant.results.journal import Ended, Launched, now
from cotenant.results.record import Record

T = TypeVar("T", Launched, Ended)


class Recorder:
    """Adds each launch's records to `records`, even if they could not be written."""

    def __init__(self, suite: PreparedSuite, output: Output, records: list[Record]) -> None:
        self._suite, self._output, self._records = suite, output, records
        self._started, self._conceal = datetime.now(UTC), by_new_key()

    def begin(self, tell: Callable[[str], None]) -> Sequence[PlannedLaunch]:
        """Write the plan, and the start into the journal; return the launches to come, fewer with `--resume`.

        Raises CotenantError.
        """
        suite, options = self._suite, self._suite.options
        self._output.write(f"{options.suite.name}.R{options.uid}.resolved", self._resolved())
        progress = begin(options, suite.starts, suite.backend.name, suite.machine.hostname, self._output)
        self._records += progress.records
        if progress.records:
            # A resumed run keeps the start time of the earlier one.
            self._started = datetime.fromisoformat(progress.records[0].suite_start_time)
        for sentence in progress.sentences:
            tell(sentence)
        return [launch for launch in suite.starts if launch.key not in progress.finished]

    def keep(
        self, launch: PlannedLaunch, result: LaunchResult, limits: Limits, tell: Callable[[str], None]
    ) -> list[Record]:
        """Make, write and return a launch's records; tell of records that no longer count. Raises CotenantError."""
        # Late imports, as modules for numbers take time to import, and none was needed before.
        from cotenant.findings.rules import with_findings
        from cotenant.launch.parts import parts_of
        from cotenant.launch.records import SuiteFacts, records_of

        suite, options = self._suite, self._suite.options
        findings = tuple(dict.fromkeys((*launch.findings, *survived(suite.before))))
        seen = (suite.machine_facts, suite.backend, limits.policies(), findings, self._conceal, options.words)
        facts = SuiteFacts(options.suite.name, self._started, options.uid, *seen)
        records: list[Record] = []
        for part, launch_of_part in parts_of(result, launch):
            records += with_findings(records_of(part, launch_of_part, facts), [*self._records, *records])
        self._records += records
        files = self._output.keep(records, result.ended)
        if len(files) == len(records):
            outcomes = tuple(record.outcome for record in records)
            label, host = launch.key, suite.machine.hostname
            ended = self._journal(Launched, label=label, outcomes=outcomes, records=files, host=host)
            if sentence := self._output.supersede(ended, records):
                tell(f"{launch.label}, repetition {options.uid}: {sentence}")
        return records

    def end(self, interrupted: str | None) -> None:
        """Write an entry on the suite's end into the journal."""
        self._journal(Ended, interrupted=interrupted, host=self._suite.machine.hostname)

    def not_yet_alone(self, launch: PlannedLaunch) -> tuple[GoesOn, ...]:
        """Return the tenants that go on alone at a launch's end, except kinds that the suite has measured alone."""
        kept = {(record.name, *record.stands_for) for record in self._records if record.solo and record.completed}
        names = {goer: launch.of_turn(goer).names for goer in launch.goes_on}
        return tuple(goer for goer in launch.goes_on if (*names[goer], *goer.stands_for) not in kept)

    def _journal(self, entry: type[T], **fields: Any) -> T:
        options = self._suite.options
        made = entry(suite=options.suite.name, uid=options.uid, time=now(), **fields)
        self._output.journal(made)
        return made

    def _resolved(self) -> bytes:
        """Return the suite as it runs, in JSON: every cell with the command of each tenant."""
        cells = [
            {
                "name": launch.mix or launch.cell.job.name,
                "label": launch.label,
                "cells": [program.cell.label for program in launch.programs],
                "solo": launch.solo,
                "baseline": launch.baseline,
                "stands_for": launch.stands_for,
                "cgroup": launch.cell.job.group,
                "weight": launch.cell.job.weight,
                "tenants": [words_without(spec.command, self._conceal) for spec in launch.specs],
            }
            for launch in self._suite.starts
        ]
        return json.dumps(cells, indent=1).encode() + b"\n"
