"""Every rule: it speaks when it should, in whole sentences with the numbers, and is silent otherwise."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from cotenant.finding import error, info, survived, warning
from cotenant.findings.rules import RECORD_RULES, findings_of, with_findings
from cotenant.results.record import Observed, Record
from cotenant.stats.budget import Amount
from findings import rule_records as of
from findings.rule_records import Made
from golden import check_golden
from results.made import ISOLATION, T0_NS, a_lost_record, a_part, a_record, observed, rules, steady

SENTENCES = Path(__file__).with_name("sentences.txt")
"""The rule's sentence on each of the records below, line by line."""


def each(rule: str, made: Callable[..., Record], *arguments: tuple[Any, ...]) -> Iterator[tuple[str, Made]]:
    """Yield a row for the record that is made of each of these arguments."""
    for given in arguments:
        yield rule, partial(made, *given)


SPEAKING: list[tuple[str, Made]] = [
    ("drift", lambda: of.numbers([500 + i for i in range(20)])),
    ("drift", lambda: of.numbers([550 - i / 100 for i in range(6000)])),
    ("drift", lambda: of.numbers([500 + i for i in range(20)], work_learned=True)),
    ("drift", lambda: of.with_skipped([440, 455, 470], [500, 490, 510, 505, 495, 520, 508])),
    ("wide_interval", lambda: of.numbers([100.0, 133.0, 200.0] * 8)),
    ("outliers", lambda: of.numbers([*of.wobbling(15), 1500, *of.wobbling(15)])),
    ("bursts", lambda: of.numbers([*of.wobbling(15), 250, 900, 250, 900, *of.wobbling(15)])),
    ("bursts", lambda: of.numbers([each * (2 if at % 4 == 3 else 1) for at, each in enumerate(of.wobbling(40))])),
    ("bursts", lambda: of.numbers([*of.wobbling(15), 5000, *of.wobbling(15)])),
    ("bursts", lambda: of.by_blocks(pause_s=5)),
    ("outliers", lambda: of.shared(of.numbers([*of.wobbling(15), 250, 900, 250, 900, *of.wobbling(15)]))),
    ("input_stall", lambda: of.numbers([*of.wobbling(9), 1500, *of.wobbling(11)], [*[2.0] * 9, 800.0, *[2.0] * 11])),
    ("data_bound", lambda: of.numbers(of.wobbling(), [150.0] * 20, workers=4)),
    ("loaded_ahead", lambda: of.numbers(of.wobbling(), [0.0] * 9 + [100.0] * 11, loaded_ahead=16 * 16)),
    ("loaded_ahead", lambda: of.numbers(of.wobbling(), [0.0] * 10 + [100.0] * 10, loaded_ahead=300)),
    ("loaded_ahead", lambda: of.numbers(of.wobbling(), loaded_ahead=600)),
    ("slow_start", lambda: of.numbers([520, 520, *of.wobbling()])),
    ("worked_at_rest", lambda: of.by_blocks(rest=0.02)),
    ("other_load", lambda: of.by_blocks(together=0.1)),
    ("other_load", lambda: of.by_blocks(alone=0.1)),
    ("other_load", lambda: of.by_blocks(together=0.0)),
    ("other_load", lambda: of.by_blocks(alone=0.05, kept=0.5, sharers=2)),
    ("other_load", lambda: of.by_blocks(together=0.336, alone=1.878, kept=0.0122, sharers=2)),
    ("not_held", lambda: of.by_blocks(unheld=3, void=3)),
    ("starting", lambda: of.by_blocks(starts=3, lasted_s=6.25)),
    ("starting", lambda: of.by_blocks(starts=9, lasted_s=8)),
    ("pace", lambda: of.warmed_up(9_000_000, 500_000, 600_000, duration_ms=120, number=3000)),
    ("pace", lambda: of.warmed_up(duration_ms=29.7, number=30_000)),
    ("pace", lambda: of.shared(of.warmed_up(9_000_000, 900_000, 900_000, duration_ms=120, number=3000))),
    ("pace", lambda: of.among_pairs(of.warmed_up(9_000_000, 2_500_000, duration_ms=120, number=3000))),
    ("pace", lambda: of.warmed_up(duration_ms=30.3, last_ms=29.9, number=30_000)),
    ("impossible_rate", lambda: a_record(told={"observations": observed([500.0] * 25, items=2e18)})),
    ("late_observations", lambda: a_record(told={"late_ns": 9_000_000_000})),
    ("impossible_wait", lambda: of.numbers(of.wobbling(), [*[0.0] * 9, -1e9])),
    ("impossible_wait", lambda: of.numbers(of.wobbling(), [*[0.0] * 9, 503.000_001])),
    ("untimed", lambda: of.with_pauses(100)),
    ("untimed", lambda: of.with_pauses(25)),
    ("untimed", lambda: of.with_pauses(8)),
    ("untimed", lambda: of.shared(of.with_pauses(25))),
    ("untimed", lambda: of.on_one_device(of.with_pauses(13), "mps")),
    ("untimed", lambda: of.on_one_device(of.with_pauses(14), "time")),
    ("untimed", lambda: of.with_one_pause(200)),
    ("untimed", lambda: of.with_one_pause(300)),
    ("untimed", lambda: of.audited([], 20, pause_ms=100)),
    ("untimed", lambda: of.audited([], 5, pause_ms=100)),
    ("untimed", lambda: of.audited([], 19, "much", pause_ms=100)),
    ("untimed", lambda: of.audited([], "end", pause_ms=100)),
    ("credited", lambda: of.trained(100, 30)),
    ("credited", lambda: of.audited(["products in fp32, not bf16", "batches of 9 words per item, not 16"])),
    *each("skipped_updates", of.scaled_by, (100, 2), (100, 100)),
    ("slow_start", lambda: of.numbers([511.6, 511.5, 511.7, 511.5, 511.6, *(500 + i / 50 for i in range(100))])),
    ("batch_rows", lambda: of.rows_of(12_800)),
    ("batch_rows", lambda: of.rows_of(3839, first=127)),
    ("batch_rows", lambda: of.rows_of(3841, first=128)),
    ("seed", lambda: of.seeded("100", 7)),
    ("few_observations", lambda: of.durations(1)),
    ("precision", lambda: of.in_precision("bf16", dtype=None)),
    ("scaling", lambda: of.scaled(0.375)),
    ("budget", lambda: of.budgeted(60.0, Amount(30, 20, 5), Amount(15, 20, 5), 2990.0)),
    ("budget", lambda: of.budgeted(60.0, Amount(30, 20, 5), Amount(1, 12, 4), 6000.0)),
    ("budget", lambda: of.budgeted(2.5, Amount(30, 20, 5), Amount(30, 20, 5), 1000.0)),
    (
        "budget",
        lambda: of.budgeted(8.0, Amount(30, 20, 5), Amount(30, 20, 5), 0.0, observations=observed([800.0] * 13)),
    ),
    ("until_interval", lambda: of.until(0.01, 14, 50)),
    ("until_interval", lambda: of.until(0.01, 14, 50, budget_s=60.0)),
    ("until_interval", lambda: of.until(0.005, 50, 50)),
    ("until_interval", lambda: of.until(0.01, 20, 20, rank_observations={"0": steady()[:20], "1": steady()[:20]})),
    ("scaling", lambda: of.scaled(1.05)),
    ("shared_nodes", lambda: of.metered(nodes=[{"node": 1, "shared": True}])),
    ("devices_unused", lambda: of.owning(2, 1)),
    ("devices_unused", lambda: of.owning(4, 1, group="student")),
    *each("devices_unused", of.owning, (8, 2, "--devices", "0"), (8, 2, "--devices=2", "--devices", "4")),
    ("neighbour_lost", lambda: a_record(comparable=False)),
    ("unaudited", lambda: a_record(told={"part": a_part(audited=False)})),
    ("other_steppers", lambda: of.seen(other_steppers=2)),
    ("overlap", lambda: of.inside(0.98996)),
    ("overlap", lambda: a_record(common={"load": (0, 0)})),
    *each("idle_load", of.working, ((1.0, 0.02, 5, 10), (1.0, 0.98, 5, 10)), ((0.9, 0.0, 10, 10), (1.0, 0.1, 9, 10))),
    ("idle_load", lambda: of.working((1.0, 0.5, 5, 10))),
    ("impossible_observation", lambda: a_record(told={"observations": [*steady(), Observed(T0_NS, T0_NS, 64, 0)]})),
    ("impossible_observation", lambda: a_record(told={"observations": observed([1.0] * 8, items=0)})),
    ("impossible_observation", lambda: a_record(told={"skip": 25})),
    ("impossible_observation", lambda: of.counting([0, 3])),
    ("precision", lambda: of.in_precision("fp16", dtype="fp32")),
    ("precision", lambda: of.in_precision("half", dtype="bf16")),
    ("products", lambda: of.mixed({"bf16": ["mm"], "fp16": ["_cudnn_rnn", "_cudnn_rnn_backward"]})),
    ("products", lambda: of.mixed({"bf16": ["addmm", "mm"], "fp16": ["_cudnn_rnn"], "fp32": ["bmm"]})),
    ("clocks", lambda: of.with_events(0.97)),
    ("clocks", lambda: of.with_events(0.0)),
    ("clocks", lambda: of.with_events(1.0, 2_000_000 + 6_000_000)),
    ("host_bound", lambda: of.issued(0.0)),
    ("host_bound", lambda: of.issued(0.09)),
    ("few_observations", lambda: of.durations(*[10] * 5)),
    ("no_loss", lambda: a_record(told={"part": a_part(losses_checked=0)})),
    ("not_enforced", lambda: of.unenforced("memory", "swap")),
    ("runner_share", lambda: of.metered(runner_processor_share=0.0104)),
    ("shm_kept", lambda: of.metered(shm_kept={"files": 2, "memory_bytes": 3 << 20})),
    ("swapped", lambda: of.on_host(swapped_in_bytes=5 << 20, swapped_out_bytes=2 << 20)),
    ("stolen", lambda: of.on_host(stolen_share=0.034)),
    ("throttled", lambda: of.on_host(processor_throttles=7, **of.slowed(20_000_000, 10_000_000))),
    ("throttled", lambda: a_record(place={"isolation": replace(ISOLATION, counters={"throttled_ns": 1_500_000_000})})),
    ("throttled", lambda: of.on_host(**of.slowed(20_000_000, None))),
    ("memory_kills", lambda: of.on_host(memory_kills_outside=2)),
    ("processes_refused", lambda: of.refused(3)),
    ("throttled", lambda: of.on_devices(["GPU-a"], slowed={"GPU-a": {"heat": 1}, "GPU-b": {"power brake": 2}})),
    ("throttled", lambda: of.on_devices(["GPU-a"], slowed={"GPU-b": {"power limit": 1}})),
    ("flops_closed", lambda: of.computed(1e11, flops_closed=1.03e11)),
    ("padding_counted", lambda: of.padded(61, 60)),
    ("batch_sizes", lambda: of.sized(0.5, 9)),
    ("uneven_work", lambda: of.seen(audit={"even": False})),
    ("padding_counted", lambda: of.padded(3, 60, item_is_row=True)),
    ("mfu_impossible", lambda: of.computed(2e11)),
    ("mfu_above_peak", lambda: of.computed(2e11, flops_reducible=1.9e11)),
    ("foreign_load", lambda: of.beside(1.25, busiest=[{"pid": 7, "name": "backup", "share": 0.98}])),
    ("foreign_load", lambda: of.beside(1.3, total=128)),
    ("foreign_load", lambda: of.beside(119.6, total=256)),
    ("foreign_load", lambda: of.beside(1.81, window_s=0.4, total=2)),
    ("load_unread", lambda: of.beside(1.81, window_s=0.05, total=2)),
    ("load_unread", lambda: of.metered(sampling={"window_s": 9.0}, absent={"foreign": "/proc/stat, which is hidden"})),
    *each("share_not_seen", of.shared_by, ("mps:25", "time"), ("time", "")),
    ("device_elsewhere", lambda: of.computing_on("GPU-b", ["GPU-a"])),
    ("device_elsewhere", lambda: of.computing_on("GPU-a", [])),
    ("device_elsewhere", lambda: of.computing_on("MIG-2", ["MIG-1"])),
    ("device_in_use", lambda: of.on_devices(["GPU-b"], {"GPU-a": [(4, "theirs")], "GPU-b": [(5, "python")]})),
    ("device_in_use", lambda: of.on_devices(["MIG-1"], {"GPU-a": [(4, "theirs")]})),
    ("device_in_use", lambda: of.on_devices(["GPU-b"], hidden={"GPU-a": 1, "GPU-b": 2})),
    ("meters_absent", lambda: of.unmeasured({"packages": "a launch alone"}, ["pids_peak"])),
    ("meters_absent", lambda: of.unmeasured({}, ["throttled_ns", "oom_kills"])),
]
SILENT: list[tuple[str, Made]] = [
    ("until_interval precision drift few_observations no_loss", lambda: a_lost_record("failed", "x")),
    ("runner_share shm_kept memory_kills mfu_impossible foreign_load device_in_use", of.metered),
    ("other_load not_held", of.by_blocks),
    ("worked_at_rest starting other_load not_held host_bound scaling padding_counted", a_record),
    ("worked_at_rest", lambda: of.by_blocks(rest=0.01)),
    ("worked_at_rest", lambda: of.by_blocks(lasted_s=0, rested_ns=5_000_000)),
    ("starting", lambda: of.by_blocks(starts=1, lasted_s=8)),
    ("starting", lambda: of.by_blocks(starts=3, lasted_s=5.75)),
    # A quarter of the time makes a quarter of the items, as for tenants of one processor.
    ("other_load", lambda: of.by_blocks(together=0.25, kept=0.25)),
    ("other_load", lambda: of.by_blocks(together=0.31)),
    # Two tenants share two processors: a thread spins while the thread that it waits for rests.
    ("other_load", lambda: of.by_blocks(together=0.42, alone=0.85, kept=0.13, sharers=2)),
    ("other_load", lambda: of.by_blocks(together=0.336, alone=1.878, kept=0.0122, sharers=6)),
    ("budget", lambda: of.budgeted(60.0, Amount(30, 20, 5), Amount(30, 20, 5), 3290.0)),
    ("budget", lambda: a_record(told={"asked": Amount(30, 25, 5), "given": Amount(1, 25, 5)})),
    ("budget", lambda: of.budgeted(60.0, Amount(30, 20, 5), Amount(15, 20, 5), 2990.0, observations=[])),
    ("budget", lambda: of.budgeted(60.0, Amount(30, 20, 5), Amount(1, 12, 4), 6000.0, baseline="quick")),
    ("until_interval", lambda: of.until(0.01, 0, 20)),
    ("until_interval", lambda: a_record(told={"asked": Amount(30, 50, 5), "given": Amount(30, 50, 5)})),
    ("neighbour_lost", lambda: a_record(comparable=False, outcome="failed")),
    ("unaudited", lambda: a_record(told={"part": a_part(observed={"audit": {"steps": 1}})})),
    ("unaudited", lambda: a_lost_record("failed", "It fell.")),
    ("other_steppers", lambda: of.seen(other_steppers=0)),
    ("overlap", lambda: of.inside(0.99)),
    ("overlap", lambda: a_lost_record("aborted", "x")),
    ("idle_load", lambda: of.working((1.0, 0.61, 10, 10), (1.0, 1.3, 10, 10))),
    ("idle_load", lambda: of.working((1.0, 0.0, 0.1, 10), (0.04, 0.0, 10, 10), (1.0, 0.0, 0.5, 60), (0.0, 0.0, 9, 10))),
    ("idle_load", lambda: of.working((0.47, 0.18, 0.58, 6.7), foreign=1.1)),
    ("impossible_observation", lambda: a_record(told={"observations": [Observed(9, 9, 1, 0), *steady()]})),
    ("impossible_observation", lambda: a_record(outcome="failed")),
    ("precision", lambda: of.in_precision("half", dtype="fp16")),
    ("products", lambda: of.mixed({"bf16": ["addmm", "mm"]})),
    ("products", lambda: of.mixed(None)),
    ("products", lambda: of.in_precision("bf16", dtype="fp32")),
    ("precision", lambda: of.in_precision("tf32", dtype="tf32")),
    ("precision", lambda: of.in_precision("fp32", dtype=None)),
    ("drift", lambda: of.numbers([500 + i / 5 for i in range(20)])),
    ("drift", lambda: of.numbers(of.wobbling())),
    ("drift", lambda: of.numbers([500 + 40 * (i % 2) + i for i in range(8)])),
    ("drift", lambda: of.with_skipped([900, 700, 600, 550, 520], of.wobbling(12))),
    ("wide_interval", lambda: of.numbers([160.0, 200.0] * 12)),
    ("outliers", lambda: of.numbers([*of.wobbling(), 520])),
    ("outliers", lambda: of.numbers([500 + (i % 3) / 1000 for i in range(20)] + [501])),
    ("outliers", lambda: of.numbers([*of.wobbling(), 1500], [*[2.0] * 20, 900.0])),
    ("input_stall", lambda: of.numbers([*of.wobbling(), 1500], [*[2.0] * 20, 300.0])),
    ("input_stall", lambda: of.numbers([*of.wobbling(), 250], [*[300.0] * 20, 10.0])),
    ("data_bound", lambda: of.numbers(of.wobbling(), [90.0] * 20, workers=4)),
    ("data_bound", lambda: of.numbers(of.wobbling(), [400.0] * 20)),
    ("loaded_ahead", lambda: of.numbers(of.wobbling(), [20.0] * 20, loaded_ahead=256)),
    ("loaded_ahead", lambda: of.numbers(of.wobbling(), [100.0] * 20, loaded_ahead=0)),
    ("loaded_ahead", lambda: of.numbers(of.wobbling(), [100.0] * 20, loaded_ahead=None)),
    ("slow_start", lambda: of.numbers([600, *of.wobbling()])),
    ("slow_start", lambda: of.numbers([508, 507, *of.wobbling()])),
    ("slow_start", lambda: of.numbers([600 - 4 * i for i in range(20)])),
    ("slow_start", lambda: of.numbers([650, 640, 630, *(500 + 2 * i for i in range(20))])),
    ("pace", lambda: of.warmed_up(9_000_000, 390_000, 600_000, duration_ms=120, number=3000)),
    ("pace", lambda: of.shared(of.warmed_up(9_000_000, 790_000, 900_000, duration_ms=120, number=3000))),
    ("pace", lambda: of.among_pairs(of.warmed_up(9_000_000, 2_000_000, duration_ms=120, number=3000))),
    ("pace", lambda: of.warmed_up(duration_ms=30.3, number=30_000)),
    ("pace", lambda: of.warmed_up(9_000_000, number="many")),
    ("untimed", lambda: a_record(told={"observations": [Observed(9, 19, 1, 0), Observed(3, 9, 1, 0)], "skip": 0})),
    ("pace", lambda: a_record(told={"observations": [*observed([0.000_001]), *steady()[1:]]})),
    ("impossible_rate", lambda: a_record(told={"observations": observed([500.0] * 25, items=4.9e17)})),
    ("late_observations", lambda: a_record(told={"late_ns": 1_000_000_000})),
    ("late_observations", lambda: of.durations(*[2000] * 6, late_ns=2_000_000_000)),
    ("impossible_wait", lambda: of.numbers([500.0] * 20, [500.0] * 20)),
    ("untimed", lambda: of.with_pauses(7)),
    ("untimed", lambda: of.shared(of.with_pauses(9))),
    ("untimed", lambda: of.on_one_device(of.with_pauses(13), "time")),
    *each("batch_sizes", of.sized, (0.96, 1), (0, 0), (0, 9, 0)),
    ("batch_sizes", lambda: of.seen(size_per_item={"warm_up": 2, "observed": 1})),
    *each("padding_counted", of.padded, (0, -1), (60, 60), (3, 60)),
    ("uneven_work", lambda: of.seen(audit={"even": True})),
    ("uneven_work", lambda: of.seen(audit={"even": False, "uneven": True})),
    ("credited", lambda: of.audited([])),
    ("credited", lambda: of.audited("all")),
    ("credited", lambda: of.seen(audit="none")),
    ("untimed", lambda: of.audited([], 19, pause_ms=7)),
    ("budget", lambda: of.budgeted(7.2, Amount(30, 8, 2), Amount(30, 8, 2), 1000.0, part=of.audit_part([], 7))),
    *each("credited", of.trained, (100, 100), (None, 3), (0, -1)),
    ("credited", lambda: of.trained("all", [])),
    *each("skipped_updates", of.scaled_by, (100, 1), (0, 0), ("all", None)),
    ("batch_rows", lambda: of.rows_of(3840)),
    ("batch_rows", lambda: of.rows_of(3839, first=128)),
    ("batch_rows", lambda: of.rows_of(12_800, item_is_row=False)),
    *each("seed", of.seeded, ("100", 100), ("100", None), ("$SEED", 100)),
    ("scaling", lambda: of.scaled(0.5)),
    ("precision", lambda: a_record(told={"part": a_part(arguments={"batch_size": 1})})),
    ("precision", lambda: a_record(told={"part": a_part(arguments={"precision": [4]}, observed={})})),
    ("products", lambda: of.mixed({"fp32": 7})),
    ("products", lambda: of.mixed([["fp32"]])),
    ("clocks", lambda: of.with_events(1.0099)),
    ("clocks", lambda: of.with_events(0.9901)),
    ("clocks", lambda: of.with_events(1.0, 2_000_000 + 4_000_000)),  # two tenants of one device take turns of 2 ms
    ("host_bound", lambda: of.issued(0.11)),
    (
        "clocks",
        lambda: a_record(told={"observations": [replace(one, event_ns=1) for one in steady()[:5]] + steady()[5:]}),
    ),
    ("few_observations", lambda: of.durations(*[10] * 6)),
    ("no_loss", lambda: a_record(told={"observations": [], "part": {}})),
    ("not_enforced", lambda: of.unenforced()),
    ("runner_share", lambda: of.metered(runner_processor_share=0.0099)),
    ("swapped", lambda: of.on_host(swapped_in_bytes=1 << 19, swapped_out_bytes=1 << 19)),
    ("stolen", lambda: of.on_host(stolen_share=0.01)),
    ("throttled", lambda: of.on_host(processor_throttles=0, **of.slowed(10_000_000, None))),
    ("throttled", lambda: a_record(place={"isolation": replace(ISOLATION, counters={"throttled_ns": None})})),
    ("memory_kills", lambda: of.on_host()),
    ("processes_refused", lambda: of.refused(0)),
    ("processes_refused", lambda: of.refused(None)),
    ("scaling", lambda: of.scaled(1.04)),
    ("shared_nodes", lambda: of.metered(nodes=[{"node": 1, "shared": False}])),
    ("throttled", lambda: of.on_devices(["GPU-a"], slowed={"GPU-a": None, "GPU-b": {}})),
    ("flops_closed", lambda: of.computed(1e11, flops_closed=1.019e11)),
    ("flops_closed", lambda: of.computed(1e11, flops_closed=None)),
    ("padding_counted", lambda: of.padded(3, 75, item_is_row=True)),
    ("padding_counted", lambda: of.padded(3, math.nan, item_is_row=True)),
    ("mfu_impossible", lambda: of.computed(1.3e11)),
    ("mfu_impossible", lambda: of.computed(2e11, device="cpu")),
    ("mfu_impossible", lambda: of.computed(2e11, flops_reducible=1.9e11)),
    ("mfu_above_peak", lambda: of.computed(1.3e11, flops_reducible=1e11)),
    ("mfu_above_peak", lambda: of.computed(2e11, flops_reducible=5e10)),
    ("foreign_load", lambda: of.beside(0.1)),
    ("foreign_load", lambda: of.beside(1.28, total=128)),
    ("foreign_load", lambda: of.beside(0.24, window_s=0.4)),
    ("load_unread", lambda: of.beside(0.0, window_s=0.06, total=2)),
    ("load_unread", a_record),
    *each("devices_unused", of.owning, (1, 1), (8, 8), (8, 16), (8, 1, "--devices", "1"), (8, 2, "--devices=2")),
    ("devices_unused", lambda: of.owning(8, 1, replicas=8)),
    ("devices_unused", lambda: of.owning(8, 1, device="cpu")),
    ("devices_unused", lambda: of.owning(1, 1, group="student")),
    ("devices_unused", lambda: a_record(place={"group": "all", "devices": 4}, told={"part": {}})),
    *each("share_not_seen", of.shared_by, ("", "mps"), ("mps", "mps")),
    ("device_elsewhere", lambda: of.computing_on("GPU-a", ["GPU-a", "GPU-b"])),
    ("device_elsewhere", lambda: of.computing_on("MIG-1", ["MIG-1"])),
    ("device_elsewhere", lambda: of.computing_on("", ["GPU-a"])),
    ("device_in_use", lambda: of.on_devices(["GPU-b"], {"GPU-a": [(4, "theirs")]})),
    ("device_in_use", lambda: of.on_devices(["GPU-a"], {"GPU-a": [(4, "nvidia-cuda-mps-server")]})),
    ("meters_absent", lambda: of.unmeasured({}, [])),
    ("meters_absent", lambda: of.unmeasured({"packages": "a launch alone"}, ["pids_peak"], outcome="failed")),
]


def test_a_rest_is_seen_on_a_busy_host_too_and_hunger_is_none() -> None:
    for tenant, found in (
        ((0.31, 0.01, 4, 4), ["idle_load"]),
        ((0.47, 0.18, 3, 6), []),
        ((0.47, 0.05, 0.6, 6), []),
        ((0.58, 0.04, 0.55, 1.75), []),
    ):
        assert list(rules(of.working(tenant, foreign=1.7))) == [*found, "foreign_load"]
        assert list(rules(of.working(tenant))) == ["idle_load"]


def test_rules_speak_in_whole_sentences() -> None:
    lines = []
    for name, made in SPEAKING:
        record = made()
        assert list(rules(record)) == [name]
        finding = rules(record)[name]
        assert record.invalid == (finding.severity == "error")
        assert re.fullmatch(r"([A-Z-].*\.)?", finding.remedy)
        assert finding.remedy or finding.severity == "info"
        lines.append(f"{name} {finding.severity}: {finding.sentence}\n")
    check_golden(SENTENCES, "".join(lines))


def test_rules_stay_silent_at_thresholds_or_without_data() -> None:
    found = [(names, place, rules(made()).keys()) for place, (names, made) in enumerate(SILENT)]
    assert [row for row in found if {*row[0].split()} & row[2]] == []


def test_a_warning_with_a_small_effect_on_a_rate_becomes_a_note() -> None:
    """An effect beyond both 2 % and half the interval makes a warning, and so does an unknown effect."""
    found = [warning("It was disturbed.", "Wait.", rule="disturbed", effect=effect) for effect in (0.019, 0.021, None)]
    wide = {"observations": observed([500.0, 540.0] * 12), "skip": 0}
    for told, severities in (({}, ("info", "warning", "warning")), (wide, ("info", "info", "warning"))):
        record = replace(a_record(told=told), findings=[])
        (weighed,) = with_findings([replace(record, findings=found)])
        assert tuple(each.severity for each in weighed.findings if each.rule == "disturbed") == severities
    busy = warning("Other work keeps 1 of 2 processors busy.", "End it.", rule="busy_host")
    for meters, severity in ((of.beside(0.05, total=2).meters, "info"), ({}, "warning")):
        (weighed,) = with_findings([replace(a_record(common={"meters": meters}), findings=[busy])])
        assert weighed.findings[0].severity == severity


def test_few_observations_in_a_budget_ask_for_a_larger_budget() -> None:
    alone = rules(of.budgeted(5.0, Amount(30, 20, 5), Amount(1, 1, 0), 7300.0))["budget"]
    assert alone.severity == "info"
    assert alone.sentence.endswith("1 of 600 batches. They took 7.3 s.")
    record = of.budgeted(60.0, Amount(30, 20, 5), Amount(1, 5, 1), 10_000.0)
    assert rules(record)["few_observations"].remedy == "Use a larger --budget: six kept observations are the least."
    ended = of.budgeted(60.0, Amount(30, 20, 1), Amount(30, 20, 1), 0.0, observations=observed([20_000.0] * 4))
    assert rules(ended)["few_observations"].remedy.startswith("Use a larger --budget")
    assert rules(of.durations(1, 1))["few_observations"].remedy.startswith("Use a larger --repeat")


def test_each_requirement_of_absent_meters_is_named_once() -> None:
    record = of.unmeasured({"packages": "a launch alone"}, ["pids_refused", "pids", "throttled_ns"])
    assert rules(record)["meters_absent"].remedy == (
        "They would need a launch alone (packages); the v1 controller pids (pids, pids_refused)."
    )
    assert rules(of.unmeasured({}, ["throttled_ns"]))["meters_absent"].remedy == ""


def test_what_a_launch_ran_in_spite_of_spoils_no_number() -> None:
    before = error("/data has 0.01 GiB free.", "Free some.", "disk_full")
    after = warning("/data has 0.01 GiB free.", "Free some.", "disk_full")
    assert survived([before, after, info("Odd.")]) == (after, after, info("Odd."))


def test_what_is_invalid() -> None:
    """A good record is not, nor is a failed one; an error of the whole launch makes each of its records INVALID."""
    assert findings_of(a_record()) == []
    assert not a_record().invalid
    failed = a_record(outcome="nan", common={"load": (0, 0)})
    assert [finding.severity for finding in failed.findings] == ["error"]
    assert not failed.invalid
    assert a_record(common={"findings": (rules(of.inside(0.5))["overlap"],)}).invalid


def test_every_rule_is_tested_both_ways() -> None:
    speaking = {name for name, _ in SPEAKING} - {"bursts"}  # the rule `outliers` makes it of many
    assert speaking == {name for names, _ in SILENT for name in names.split()}
    assert speaking == set(RECORD_RULES)


def test_what_lies_between_blocks_is_nobodys_time() -> None:
    """A minute of rest between two blocks is not untimed; a pause of a minute within one is."""
    rows = of.by_blocks().observations
    apart = [moved(row, 60_000_000_000 * (row.block or 0)) for row in rows]
    assert "untimed" not in rules(of_rows(apart))
    within = [moved(row, 2_000_000_000 * index) for index, row in enumerate(rows)]
    assert "untimed" in rules(of_rows(within))


def test_only_observations_beside_all_others_are_judged() -> None:
    """Observations alone are twice as fast: that is no drift and no outlier, and enters no number."""
    rows = of.by_blocks().observations
    fast = [
        replace(row, kind="only", end_ns=(row.start_ns + row.end_ns) // 2) if row.block == 1 else row for row in rows
    ]
    record = of_rows(fast)
    assert rules(record) == {}
    assert record.statistics.n == len(rows) - 5
    nothing = of_rows([replace(row, kept=False) for row in rows])
    assert (
        rules(nothing)["impossible_observation"].sentence
        == "None of 20 observations is kept: none lies within a block."
    )


def test_a_budget_and_an_interval_are_of_rounds() -> None:
    record = of.by_blocks()
    policies = {"budget_s": 4.0, "until_interval": 0.01}
    isolation = replace(record.isolation, policies=policies)
    given = replace(record, isolation=isolation, asked=Amount(30, 25, 5), given=Amount(1, 9000, 0), findings=[])
    found = {finding.rule: finding.sentence for finding in findings_of(given)}
    assert found["budget"] == "A budget of 4 s has room for 9 rounds of blocks."
    assert found["until_interval"] == "--until-interval 1% did not end its observations before the last of 20."
    assert record.blocks is not None
    early = replace(given, blocks=replace(record.blocks, complete=False))
    sentence = {finding.rule: finding.sentence for finding in findings_of(early)}["until_interval"]
    assert sentence.startswith("--until-interval 1% ended the blocks before the last round")


def moved(row: Observed, by_ns: int) -> Observed:
    return replace(row, start_ns=row.start_ns + by_ns, end_ns=row.end_ns + by_ns)


def of_rows(rows: list[Observed]) -> Record:
    """A record of these observations in a launch by blocks."""
    return a_record(told={"observations": rows, "skip": 0, "blocks": of.by_blocks().blocks})
