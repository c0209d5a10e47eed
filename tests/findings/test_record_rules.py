"""Every rule: it speaks when it should, in whole sentences with the numbers, and is silent otherwise."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from cotenant.findings import RECORD_RULES
from cotenant.findings.rules import findings_of
from cotenant.results.record import Observed
from cotenant.stats.budget import Amount
from findings.rule_records import (
    Made,
    asked_and_seen,
    beside,
    budgeted,
    computed,
    durations,
    inside,
    numbers,
    on_devices,
    on_host,
    owning,
    rows_of,
    runner,
    scaled,
    scaled_by,
    seeded,
    slowed,
    trained,
    treated,
    unenforced,
    unmeasured,
    until,
    warmed_up,
    with_events,
    with_pauses,
    wobbling,
)
from findings.speaking_of_hosts import OF_HOSTS
from findings.speaking_of_numbers import OF_NUMBERS
from results.made import ISOLATION, a_lost_record, a_part, a_record, observed, rules, steady

FIRES = [*OF_NUMBERS, *OF_HOSTS]
SILENT: list[tuple[str, Made]] = [
    ("budget", lambda: budgeted(60.0, Amount(30, 20, 5), Amount(30, 20, 5), 3290.0)),
    ("budget", lambda: a_record(told={"asked": Amount(30, 25, 5), "given": Amount(1, 25, 5)})),
    ("budget", lambda: budgeted(60.0, Amount(30, 20, 5), Amount(15, 20, 5), 2990.0, observations=[])),
    ("until_interval", lambda: until(0.01, 0, 20)),
    ("until_interval", lambda: a_record(told={"asked": Amount(30, 50, 5), "given": Amount(30, 50, 5)})),
    ("until_interval", lambda: a_lost_record("failed", "x")),
    ("neighbour_lost", lambda: a_record(comparable=False, outcome="failed")),
    ("overlap", lambda: inside(0.99)),
    ("overlap", lambda: a_lost_record("aborted", "x")),
    ("impossible_observation", lambda: a_record(told={"observations": [Observed(9, 9, 1, 0), *steady()]})),
    ("impossible_observation", lambda: a_record(outcome="failed")),
    ("precision", lambda: asked_and_seen("half", "fp16")),
    ("precision", lambda: asked_and_seen("tf32", "tf32")),
    ("precision", lambda: asked_and_seen("fp32", None)),
    ("precision", lambda: a_lost_record("failed", "x")),
    ("drift", lambda: numbers([500 + i / 5 for i in range(20)])),
    ("drift", lambda: numbers(wobbling())),
    ("drift", lambda: numbers([500 + 40 * (i % 2) + i for i in range(8)])),
    ("drift", lambda: a_lost_record("failed", "x")),
    ("outliers", lambda: numbers([*wobbling(), 520])),
    ("outliers", lambda: numbers([500 + (i % 3) / 1000 for i in range(20)] + [501])),
    ("outliers", lambda: numbers([*wobbling(), 1500], [*[2.0] * 20, 900.0])),
    ("input_stall", lambda: numbers([*wobbling(), 1500], [*[2.0] * 20, 300.0])),
    ("input_stall", lambda: numbers([*wobbling(), 250], [*[300.0] * 20, 10.0])),
    ("data_bound", lambda: numbers(wobbling(), [90.0] * 20, workers=4)),
    ("data_bound", lambda: numbers(wobbling(), [400.0] * 20)),
    ("loaded_ahead", lambda: numbers(wobbling(), [20.0] * 20, loaded_ahead=256)),
    ("loaded_ahead", lambda: numbers(wobbling(), [100.0] * 20, loaded_ahead=0)),
    ("loaded_ahead", lambda: numbers(wobbling(), [100.0] * 20, loaded_ahead=None)),
    ("slow_start", lambda: numbers([600, *wobbling()])),
    ("slow_start", lambda: numbers([508, 507, *wobbling()])),
    ("slow_start", lambda: numbers([600 - 4 * i for i in range(20)])),
    ("slow_start", lambda: numbers([650, 640, 630, *(500 + 2 * i for i in range(20))])),
    ("pace", lambda: warmed_up(9_000_000, 390_000, 600_000, duration_ms=120, number=3000)),
    ("pace", lambda: warmed_up(duration_ms=30.3, number=30_000)),
    ("pace", lambda: warmed_up(9_000_000, number="many")),
    ("untimed", lambda: a_record(told={"observations": [Observed(9, 19, 1, 0), Observed(3, 9, 1, 0)], "skip": 0})),
    ("untimed", lambda: with_pauses(33)),
    ("credited", lambda: trained(100, 100)),
    ("credited", lambda: trained(None, 3)),
    ("credited", lambda: trained("all", [])),
    ("skipped_updates", lambda: scaled_by(100, 1)),
    ("skipped_updates", lambda: scaled_by(0, 0)),
    ("skipped_updates", lambda: scaled_by("all", None)),
    ("batch_rows", lambda: rows_of(3840)),
    ("batch_rows", lambda: rows_of(12_800, item_is_row=False)),
    ("seed", lambda: seeded("100", 100)),
    ("seed", lambda: seeded("100", None)),
    ("seed", lambda: seeded("$SEED", 100)),
    ("scaling", lambda: scaled(8, 0.5)),
    ("precision", lambda: a_record(told={"part": a_part(arguments={"batch_size": 1})})),
    ("precision", lambda: a_record(told={"part": a_part(arguments={"precision": [4]}, observed={})})),
    ("clocks", lambda: with_events(1.0099)),
    ("clocks", lambda: with_events(0.9901)),
    (
        "clocks",
        lambda: a_record(told={"observations": [replace(one, event_ns=1) for one in steady()[:5]] + steady()[5:]}),
    ),
    ("few_observations", lambda: durations(*[10] * 6)),
    ("few_observations", lambda: a_lost_record("failed", "x")),
    ("no_loss", lambda: a_record(told={"observations": [], "part": {}})),
    ("no_loss", lambda: a_lost_record("failed", "x")),
    ("not_enforced", lambda: unenforced()),
    ("unsynchronised", lambda: a_lost_record("failed", "x")),
    ("runner_share", lambda: runner(0.0099)),
    ("runner_share", lambda: a_record(common={"meters": {}})),
    ("shm_kept", lambda: a_record(common={"meters": {}})),
    ("cache_policy", lambda: treated("warm", 1 << 30)),
    ("cache_policy", lambda: treated("drop", 0)),
    ("cache_policy", lambda: treated("drop", None)),
    ("cache_policy", lambda: treated("warm", 0, size_bytes=0)),
    ("swapped", lambda: on_host(swapped_in_bytes=1 << 19, swapped_out_bytes=1 << 19)),
    ("stolen", lambda: on_host(stolen_share=0.01)),
    ("throttled", lambda: on_host(processor_throttles=0, **slowed(10_000_000, None))),
    ("throttled", lambda: a_record(place={"isolation": replace(ISOLATION, counters={"throttled_ns": None})})),
    ("memory_kills", lambda: on_host()),
    ("scaling", lambda: scaled(8, 1.04)),
    ("scaling", lambda: a_record()),
    ("memory_kills", lambda: a_record(common={"meters": {}})),
    ("throttled", lambda: on_devices(["GPU-a"], slowed={"GPU-a": None, "GPU-b": {}})),
    ("mfu_impossible", lambda: computed(1.3e11)),
    ("mfu_impossible", lambda: computed(2e11, device="cpu")),
    ("mfu_impossible", lambda: a_record(common={"meters": {}})),
    ("mfu_impossible", lambda: computed(2e11, flops_reducible=1.9e11)),
    ("mfu_above_peak", lambda: computed(1.3e11, flops_reducible=1e11)),
    ("mfu_above_peak", lambda: computed(2e11, flops_reducible=5e10)),
    ("foreign_load", lambda: beside(0.1)),
    ("foreign_load", lambda: beside(1.28, total=128)),
    ("foreign_load", lambda: beside(2.0, window_s=0.9)),
    ("foreign_load", lambda: a_record(common={"meters": {}})),
    ("devices_unused", lambda: owning(1, 1)),
    ("devices_unused", lambda: owning(8, 8)),
    ("devices_unused", lambda: owning(8, 16)),
    ("devices_unused", lambda: owning(8, 1, replicas=8)),
    ("devices_unused", lambda: owning(8, 1, "--devices", "1")),
    ("devices_unused", lambda: owning(8, 2, "--devices=2")),
    ("devices_unused", lambda: owning(8, 1, device="cpu")),
    ("devices_unused", lambda: owning(1, 1, group="student")),
    ("devices_unused", lambda: a_record(place={"group": "all", "devices": 4}, told={"part": {}})),
    ("device_in_use", lambda: on_devices(["GPU-b"], {"GPU-a": [(4, "theirs")]})),
    ("device_in_use", lambda: on_devices(["GPU-a"], {"GPU-a": [(4, "nvidia-cuda-mps-server")]})),
    ("device_in_use", lambda: a_record(common={"meters": {}})),
    ("meters_absent", lambda: unmeasured({}, [])),
    ("meters_absent", lambda: unmeasured({"packages": "a launch alone"}, ["pids_peak"], outcome="failed")),
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
    assert finding.remedy or severity == "info"


@pytest.mark.parametrize(("rule", "made"), SILENT, ids=[row[0] for row in SILENT])
def test_a_rule_is_silent(rule: str, made: Made) -> None:
    assert rule not in rules(made())


def test_too_few_for_a_budget_is_mended_by_the_budget() -> None:
    record = budgeted(60.0, Amount(30, 20, 5), Amount(1, 5, 1), 10_000.0)
    assert rules(record)["few_observations"].remedy == "Use a larger --budget: six kept observations are the least."
    ended = budgeted(60.0, Amount(30, 20, 1), Amount(30, 20, 1), 0.0, observations=observed([20_000.0] * 4))
    assert rules(ended)["few_observations"].remedy.startswith("Use a larger --budget")
    assert rules(durations(1, 1))["few_observations"].remedy.startswith("Use a larger --repeat")


def test_a_batch_longer_than_the_budget_is_said_alone() -> None:
    record = budgeted(5.0, Amount(30, 20, 5), Amount(1, 1, 0), 7300.0)
    assert rules(record)["budget"].severity == "warning"
    assert rules(record)["budget"].sentence.endswith("1 of 600 batches. One batch alone took 7.3 s.")


def test_what_would_enable_meters_is_said_once_for_all_it_enables() -> None:
    record = unmeasured({"packages": "a launch alone"}, ["pids_refused", "pids", "throttled_ns"])
    assert rules(record)["meters_absent"].remedy == (
        "They would need a launch alone (packages); the v1 controller pids (pids, pids_refused)."
    )
    assert rules(unmeasured({}, ["throttled_ns"]))["meters_absent"].remedy == ""


def test_a_good_record_has_no_finding() -> None:
    assert findings_of(a_record()) == []
    assert not a_record().invalid


def test_every_rule_is_tested_both_ways() -> None:
    speaking = {row[0] for row in FIRES}
    assert speaking == {row[0] for row in SILENT}
    assert speaking == set(RECORD_RULES)


def test_what_failed_is_not_invalid_but_failed() -> None:
    record = a_record(outcome="nan", common={"load": (0, 0)})
    assert [finding.severity for finding in record.findings] == ["error"]
    assert not record.invalid


def test_an_error_of_the_launch_makes_it_invalid() -> None:
    finding = rules(inside(0.5))["overlap"]
    record = a_record(common={"findings": (finding,)})
    assert record.invalid
