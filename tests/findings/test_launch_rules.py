"""Rules over several records: over a launch's tenants and over earlier launches."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from msgspec.structs import replace

from cotenant.findings.rules import LAUNCH_RULES, with_findings
from cotenant.results.record import Record
from results.made import ARGUMENTS, a_lost_record, a_part, a_record, observed, rules

NO_SEED = a_part(arguments={})
FAST = [500.0 + index % 5 for index in range(20)]


def tenant(
    number: int,
    slower: float = 1.0,
    name: str = "vae",
    part: dict[str, Any] | None = None,
    items: Sequence[float] = (3840,),
    **arguments: Any,
) -> Record:
    """One of two tenants; `slower` multiplies its times, and its observations count these items in turn."""
    told = a_part(arguments=ARGUMENTS | {"seed": 100 * (number + 1)} | arguments)
    rows = observed([one * slower for one in FAST])
    rows = [replace(row, items=count) for row, count in zip(rows, itertools.cycle(items), strict=False)]
    place = {"name": name, "tenant": number, "tenants": 2, "vcd": str(number)}
    return a_record(place=place, told={"observations": rows, "skip": 0, "part": told | (part or {})})


def together(launch: list[Record], earlier: list[Record]) -> list[Record]:
    """Return the records with the findings of their launch, in place of those that each has alone."""
    return with_findings([replace(record, findings=[]) for record in launch], earlier)


def pair(**second: Any) -> list[Record]:
    return [tenant(0), tenant(1, **second)]


def in_16_bit(slower: float, **arguments: Any) -> Record:
    seen = {"observed": {"dtype": "bf16", "audit": {}}}
    return tenant(0, slower, name="vae_bf16", part=seen, precision="bf16", **arguments)


def wide(record: Record) -> Record:
    """Return the record with an interval of 10 %."""
    ends = 0.95 * record.statistics.median, 1.05 * record.statistics.median
    return replace(record, statistics=dataclasses.replace(record.statistics, interval=ends))


WORK = "The users of this launch did different work"
EQUAL = "Users 0 and 1 did equal work, and counted "
ERRORS = ("different_work", "different_items")
FIRES: list[tuple[str, Callable[[], tuple[list[Record], list[Record]]], list[int], str]] = [
    ("same_seed", lambda: (pair(seed=100), []), [0, 1], "Users 0, 1 ran with one seed (100): they read"),
    ("slow_user", lambda: (pair(slower=1.25), []), [1], "User 1 ran at 0.800 times the rate of user 0."),
    ("different_work", lambda: (pair(batch_size=64), []), [0, 1], f"{WORK}: batch_size 128, 64."),
    ("different_work", lambda: (pair(part={"version": "x"}), []), [0, 1], f"{WORK}: source 0123456789abcdef, x."),
    ("different_items", lambda: (pair(items=[3841]), []), [0, 1], f"{EQUAL}3840 and 3841 items in an observation."),
    ("different_items", lambda: (pair(slower=1.65, items=[5761, 7000]), []), [0, 1], EQUAL),
    ("no_speed_up", lambda: ([in_16_bit(1.0)], [tenant(0)]), [0], "In bf16 it ran at 1.0000 times the rate of"),
]

SILENT: list[tuple[str, Callable[[], tuple[list[Record], list[Record]]]]] = [
    ("same_seed", lambda: (pair(), [])),
    ("same_seed", lambda: ([tenant(0, seed=None), tenant(1, seed=None)], [])),
    ("same_seed", lambda: ([tenant(0)], [tenant(0)])),
    ("slow_user", lambda: (pair(slower=1.08), [])),
    ("slow_user", lambda: ([tenant(0)], [tenant(1, slower=2)])),
    ("slow_user", lambda: (pair(slower=2, part={"observed": {"work_learned": True, "audit": {}}}), [])),
    ("slow_user", lambda: ([tenant(0), a_lost_record("failed", "x", {"tenant": 1})], [])),
    ("different_work", lambda: (pair(data="elsewhere", report="there"), [])),
    ("different_work", lambda: ([tenant(0), a_lost_record("failed", "x", {"tenant": 1})], [])),
    ("different_items", lambda: (pair(slower=1.5, items=[5760, 5800]), [])),
    ("different_items", lambda: ([tenant(0)], [tenant(1, items=[1])])),
    ("no_speed_up", lambda: ([in_16_bit(1.01)], [tenant(0)])),
    ("no_speed_up", lambda: ([wide(in_16_bit(1.0))], [tenant(0)])),
    ("no_speed_up", lambda: ([in_16_bit(1.0, batch_size=64)], [tenant(0)])),
    ("no_speed_up", lambda: ([tenant(0)], [tenant(0)])),
    ("no_speed_up", lambda: ([in_16_bit(1.0)], [a_lost_record("failed", "x")])),
]


def test_a_rule_speaks_of_the_records_concerned() -> None:
    for rule, made, places, sentence in FIRES:
        severity = "error" if rule in ERRORS else "warning"
        records = together(*made())
        assert [place for place, record in enumerate(records) if record.findings] == places, rule
        for place in places:
            assert list(rules(records[place])) == [rule]
            finding = rules(records[place])[rule]
            assert finding.sentence.startswith(sentence)
            assert finding.severity == severity
            assert finding.remedy
            assert records[place].invalid == (severity == "error")


def test_a_rule_is_silent() -> None:
    assert [rule for rule, made in SILENT for record in together(*made()) if rules(record)] == []


def test_few_or_scattered_observations_name_no_slow_user() -> None:
    few = [
        a_record({"tenant": number}, {"observations": observed([500.0 * (1 + number)] * 5), "skip": 0, "part": NO_SEED})
        for number in (0, 1)
    ]
    assert [list(rules(record)) for record in together(few, [])] == [["few_observations"]] * 2
    scattered = [300.0 * factor for _, factor in zip(range(20), itertools.cycle([1, 2, 3]), strict=False)]
    slow = a_record(place={"tenant": 1}, told={"observations": observed(scattered), "skip": 0})
    assert "slow_user" not in rules(together([tenant(0), slow], [])[1])


def test_every_rule_is_tested_both_ways() -> None:
    speaking = {row[0] for row in FIRES}
    assert speaking == {row[0] for row in SILENT}
    assert speaking == set(LAUNCH_RULES)


def test_what_nothing_is_said_of_stays_itself() -> None:
    launch = pair()
    assert all(mine is given for mine, given in zip(with_findings(launch), launch, strict=True))
