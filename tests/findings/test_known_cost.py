"""A benchmark of known cost: its rate comes out within one percent, and only the planted faults are found.

Scripted: the planted observations as they are. Real: the same through a launch. Both send planned times;
tests/bench/test_loop.py shows that the measured loop tells true ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from cotenant.findings.rules import with_findings
from cotenant.results.record import Observed, Record
from results.made import T0_NS, a_part, a_record
from tenants import planted
from tenants.suites import Suites, job

TENANTS = 2
PLANTED: list[tuple[list[str], list[set[str]]]] = [
    ([], [set(), set()]),
    (["--drift", "0.1"], [{"drift"}, {"drift"}]),
    (["--drift", "-0.05"], [{"drift"}, {"drift"}]),
    (["--drift", "0.005"], [set(), set()]),
    (["--spike", "7"], [{"outliers"}, {"outliers"}]),
    (["--spike", "7", "15"], [{"bursts"}, {"bursts"}]),
    (["--stall", "9"], [{"input_stall"}, {"input_stall"}]),
    (["--spike", "5", "--stall", "16"], [{"bursts", "input_stall"}] * 2),
    (["--slow-tenant", "1"], [set(), {"slow_user"}]),
    (["--slow-tenant", "0", "--stall", "16"], [{"slow_user", "input_stall"}, {"input_stall"}]),
    (["--spike", "0", "1"], [set(), set()]),
    (["--spike", "2", "3", "4"], [{"slow_start", "bursts"}] * 2),
    (["--one-seed"], [{"same_seed"}, {"same_seed"}]),
    (["--repeat", "3"], [{"few_observations"}] * 2),
]


def given_by(words: Sequence[str]) -> Any:
    return planted.flags().parse_args(["--repeat", "22", *words])


def scripted(words: Sequence[str]) -> list[Record]:
    """Return the records of the planned launch."""
    given = given_by(words)
    records = []
    for tenant in range(TENANTS):
        start_ns, rows = T0_NS, []
        for one in planted.plan(given, tenant):
            end_ns = start_ns + round(one.seconds * 1e9)
            rows.append(Observed(start_ns, end_ns, given.number * planted.ROWS, round(one.wait_s * 1e9)))
            start_ns = end_ns + 100_000
        seed = 7 if given.one_seed else 100 * (tenant + 1)
        arguments = {"number": given.number, "batch_size": planted.ROWS, "seed": seed}
        part = a_part(arguments=arguments, observed={"workers": 1})
        place = {"tenant": tenant, "command": ["planted.py"]}
        records.append(a_record(place, {"observations": rows, "skip": given.skip, "part": part}))
    return with_findings([replace(record, findings=[]) for record in records])


def true_rate(words: Sequence[str], tenant: int) -> float:
    """The planted rate: the median over the kept observations."""
    given = given_by(words)
    kept = planted.plan(given, tenant)[given.skip :]
    rates = sorted(given.number * planted.ROWS / one.seconds for one in kept)
    return (rates[(len(rates) - 1) // 2] + rates[len(rates) // 2]) / 2


@pytest.mark.parametrize(("words", "expected"), PLANTED, ids=[" ".join(words) or "steady" for words, _ in PLANTED])
def test_what_was_planted_is_found_and_nothing_else(words: list[str], expected: list[set[str]]) -> None:
    records = scripted(words)
    assert [{finding.rule for finding in record.findings} for record in records] == expected
    for tenant, record in enumerate(records):
        assert record.statistics.median == pytest.approx(true_rate(words, tenant), rel=0.01)


@pytest.mark.parametrize(
    ("words", "planted_here"),
    [
        pytest.param([], set(), marks=pytest.mark.slow),
        pytest.param(["--drift", "0.3"], {"drift"}, marks=pytest.mark.slow),
        (
            ["--spike", "7", "--stall", "15", "--slow-tenant", "1", "--one-seed"],
            {"bursts", "input_stall", "slow_user", "same_seed", "seed"},
        ),
    ],
    ids=["steady", "drift", "spike, stall, slow user, one seed"],
)
def test_through_a_real_launch(loose: Suites, words: list[str], planted_here: set[str]) -> None:
    ended = loose.run([job("planted.py", "--repeat", 22, *words)], "--users", TENANTS, "--strict")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    records = loose.records()
    assert len(records) == TENANTS
    for record in records:
        assert record["statistics"]["median"] == pytest.approx(true_rate(words, record["tenant"]), rel=0.01)
    found = {finding["rule"] for record in records for finding in record["findings"]}
    of_the_numbers = {
        "drift",
        "bursts",
        "outliers",
        "slow_user",
        "input_stall",
        "slow_start",
        "same_seed",
        "seed",
        "pace",
    }
    assert found & of_the_numbers == planted_here
