"""Every rule: it speaks when it should, in whole sentences with the numbers, and is silent otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from cotenant.findings.rules import RULES, findings_of
from cotenant.results.record import Observed, Record
from results.made import (
    ARGUMENTS,
    ISOLATION,
    T0_NS,
    a_lost_record,
    a_part,
    a_record,
    observed,
    rules,
    steady,
)


def with_events(factor: float, more: int = 0) -> Record:
    rows = [replace(one, event_ns=round((one.end_ns - one.start_ns) * factor) + more) for one in steady()]
    return a_record(told={"observations": rows})


def asked_and_seen(precision: str, dtype: str | None) -> Record:
    part = a_part(arguments=ARGUMENTS | {"precision": precision}, observed={"dtype": dtype})
    return a_record(told={"part": part})


def inside(share: float) -> Record:
    """A record of which this share of the kept time lies inside the common load."""
    kept = observed([1000.0] * 6)
    total_ns = sum(one.end_ns - one.start_ns for one in kept)
    return a_record(
        told={"observations": kept, "skip": 0},
        common={"load": (T0_NS, kept[-1].end_ns - round((1 - share) * total_ns))},
    )


def unenforced(*names: str) -> Record:
    return a_record(place={"isolation": type(ISOLATION)("affinity", {}, {}, {}, list(names))})


def runner(share: float) -> Record:
    return a_record(common={"meters": {"runner_processor_share": share}})


def treated(policy: str, cached_bytes: int | None, size_bytes: int = 1 << 30) -> Record:
    isolation = replace(ISOLATION, policies={"cache": policy})
    seen = {"files": 4, "size_bytes": size_bytes, "cached_bytes": cached_bytes}
    return a_record(place={"isolation": isolation}, common={"meters": {"input": seen}})


def durations(*durations_ms: float, **told: Any) -> Record:
    return a_record(told={"observations": observed(durations_ms), "skip": 0, **told})


Made = Callable[[], Record]
FIRES: list[tuple[str, str, Made, str]] = [
    (
        "neighbour_lost",
        "error",
        lambda: a_record(comparable=False),
        "Another tenant of this launch did not finish, so this rate was not measured beside all of them.",
    ),
    (
        "overlap",
        "error",
        lambda: inside(0.98996),
        "Only 98.99 % of the observed time lies inside the load common to all tenants.",
    ),
    (
        "overlap",
        "error",
        lambda: a_record(common={"load": (0, 0)}),
        "Only 0.00 % of the observed time lies inside the load common to all tenants.",
    ),
    (
        "impossible_observation",
        "error",
        lambda: a_record(told={"observations": [*steady(), Observed(T0_NS, T0_NS, 64, 0)]}),
        "Observation 25 counts 64 items in 0 ns; 1 of 21 kept ones are like this, so there is no rate.",
    ),
    (
        "impossible_observation",
        "error",
        lambda: a_record(told={"observations": observed([1.0] * 8, items=0)}),
        "Observation 5 counts no items in 1000000 ns; 3 of 3 kept ones are like this, so there is no rate.",
    ),
    (
        "impossible_observation",
        "error",
        lambda: a_record(told={"skip": 25}),
        "None of 25 observations is kept: the first 25 are skipped.",
    ),
    (
        "precision",
        "error",
        lambda: asked_and_seen("fp16", "fp32"),
        "Asked for fp16, but the heaviest products of a step ran in fp32.",
    ),
    (
        "precision",
        "error",
        lambda: asked_and_seen("half", "bf16"),
        "Asked for half, but the heaviest products of a step ran in bf16.",
    ),
    (
        "clocks",
        "warning",
        lambda: with_events(0.97),
        "Device events say -3.0 % against the host clock.",
    ),
    (
        "clocks",
        "warning",
        lambda: with_events(0.0),
        "Device events say -100.0 % against the host clock.",
    ),
    (
        "few_observations",
        "warning",
        lambda: durations(1, 1, 1, 1, 1),
        "Kept observations: 5. That is too few for an interval of their median.",
    ),
    (
        "no_loss",
        "info",
        lambda: a_record(told={"part": a_part(losses_checked=0)}),
        "This benchmark returns no loss, so none was checked for NaN.",
    ),
    (
        "not_enforced",
        "warning",
        lambda: unenforced("memory", "swap"),
        "These limits of the slice are not enforced (isolation: affinity): memory, swap.",
    ),
    (
        "unsynchronised",
        "warning",
        lambda: a_record(told={"observations": [], "part": {}}),
        "This program reported no observation: it ran unsynchronised beside the others, and nothing was timed.",
    ),
    (
        "runner_share",
        "warning",
        lambda: runner(0.0104),
        "The runner used 1.0 % of a processor while tenants were timed.",
    ),
    (
        "shm_left",
        "warning",
        lambda: a_record(common={"meters": {"shm_left": {"files": 2, "memory_bytes": 3 << 20}}}),
        "The tenants of this launch left 2 files (3.0 MiB) in /dev/shm; they were removed.",
    ),
    (
        "cache_policy",
        "warning",
        lambda: treated("warm", 1 << 29),
        "Only 50 % of the 1.00 GiB of input lay in the page cache.",
    ),
    (
        "cache_policy",
        "warning",
        lambda: treated("drop", 1 << 28),
        "25 % of the input were still in the page cache: other processes have it mapped.",
    ),
]

SILENT: list[tuple[str, Made]] = [
    ("neighbour_lost", lambda: a_record(comparable=False, outcome="failed")),
    ("overlap", lambda: inside(0.99)),
    ("overlap", lambda: a_lost_record("aborted", "x")),
    ("impossible_observation", lambda: a_record(told={"observations": [Observed(9, 9, 1, 0), *steady()]})),
    ("impossible_observation", lambda: a_record(outcome="failed")),
    ("precision", lambda: asked_and_seen("half", "fp16")),
    ("precision", lambda: asked_and_seen("tf32", "tf32")),
    ("precision", lambda: asked_and_seen("bf16", None)),
    ("precision", lambda: a_record(told={"part": a_part(arguments={"batch_size": 1})})),
    ("precision", lambda: a_record(told={"part": a_part(arguments={"precision": [4]}, observed={})})),
    ("clocks", lambda: with_events(1.0099)),
    ("clocks", lambda: with_events(0.9901)),
    (
        "clocks",
        lambda: a_record(told={"observations": [replace(one, event_ns=1) for one in steady()[:5]] + steady()[5:]}),
    ),
    ("few_observations", lambda: durations(1, 1, 1, 1, 1, 1)),
    ("few_observations", lambda: a_lost_record("failed", "x")),
    ("no_loss", lambda: a_record(told={"observations": [], "part": {}})),
    ("no_loss", lambda: a_lost_record("failed", "x")),
    ("not_enforced", lambda: unenforced()),
    ("unsynchronised", lambda: a_lost_record("failed", "x")),
    ("runner_share", lambda: runner(0.0099)),
    ("runner_share", lambda: a_record(common={"meters": {}})),
    ("shm_left", lambda: a_record(common={"meters": {}})),
    ("cache_policy", lambda: treated("warm", 1 << 30)),
    ("cache_policy", lambda: treated("drop", 0)),
    ("cache_policy", lambda: treated("drop", None)),
    ("cache_policy", lambda: treated("warm", 0, size_bytes=0)),
]


@pytest.mark.parametrize(("rule", "severity", "made", "sentence"), FIRES, ids=[row[0] for row in FIRES])
def test_a_rule_speaks(rule: str, severity: str, made: Made, sentence: str) -> None:
    record = made()
    assert list(rules(record)) == [rule]
    finding = rules(record)[rule]
    assert finding.sentence == sentence
    assert finding.severity == severity
    assert record.invalid == (severity == "error")
    assert re.fullmatch(r"([A-Z-].*\.)?", finding.remedy)
    assert bool(finding.remedy) == (severity != "info")


@pytest.mark.parametrize(("rule", "made"), SILENT, ids=[row[0] for row in SILENT])
def test_a_rule_is_silent(rule: str, made: Made) -> None:
    assert rule not in rules(made())


def test_a_good_record_has_no_finding() -> None:
    assert findings_of(a_record()) == []
    assert not a_record().invalid


def test_every_rule_is_tested_both_ways() -> None:
    speaking = {row[0] for row in FIRES}
    assert speaking == {row[0] for row in SILENT}
    assert len(speaking) == len(RULES)


def test_what_failed_is_not_invalid_but_failed() -> None:
    record = a_record(outcome="nan", common={"load": (0, 0)})
    assert [finding.severity for finding in record.findings] == ["error"]
    assert not record.invalid


def test_an_error_of_the_launch_makes_it_invalid() -> None:
    finding = rules(inside(0.5))["overlap"]
    record = a_record(common={"findings": (finding,)})
    assert record.invalid
