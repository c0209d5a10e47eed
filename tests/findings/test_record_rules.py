"""Every rule: it speaks when it should, in whole sentences with the numbers, and is silent otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from cotenant.findings.rules import RULES, findings_of
from cotenant.isolation.enabling import OF_V1
from cotenant.results.record import Observed, Record
from cotenant.stats.budget import Amount
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


def treated(policy: str, cached_bytes: int | None, size_bytes: int = 1 << 30, files: int = 4) -> Record:
    isolation = replace(ISOLATION, policies={"cache": policy})
    seen = {"files": files, "size_bytes": size_bytes, "cached_bytes": cached_bytes}
    return a_record(place={"isolation": isolation}, common={"meters": {"input": seen}})


def durations(*durations_ms: float, **told: Any) -> Record:
    return a_record(told={"observations": observed(durations_ms), "skip": 0, **told})


Made = Callable[[], Record]


def on_host(**changes: Any) -> Record:
    """A record of a launch during which this happened on the host."""
    quiet: dict[str, Any] = {
        "swapped_in_bytes": 0,
        "swapped_out_bytes": 0,
        "memory_kills_outside": 0,
        "stolen_share": 0.0,
        "processor_throttles": None,
        "devices": [],
    }
    return a_record(common={"meters": {"host": quiet | changes}})


def slowed(power_ns: int | None, thermal_ns: int | None) -> dict[str, Any]:
    return {"devices": [{"index": 3, "power_ns": power_ns, "thermal_ns": thermal_ns}]}


def beside(busy: float, window_s: float = 12.0, total: int = 8, **changes: Any) -> Record:
    """A record of a launch beside which others kept `busy` of `total` processors at work."""
    foreign = {"processors": busy, "host_processors": total, "busiest": [], **changes}
    return a_record(common={"meters": {"foreign": foreign, "sampling": {"window_s": window_s}}})


def computed(flops_per_step: float, **seen: Any) -> Record:
    """A record of half-second observations of 30 steps in fp32 on a T4, whose peak is 8.1 TFLOP/s."""
    part = a_part(gpu="Tesla T4", observed={"dtype": "fp32", "device": "cuda", "flops_per_step": flops_per_step} | seen)
    return a_record(told={"part": part, "observations": observed([500.0] * 20)})


def unmeasured(absent: dict[str, str], uncounted: list[str], outcome: str = "completed") -> Record:
    """A record on v1 without these meters and counters, of which an older kernel lacks `pids_peak`."""
    known = {name: how for name, how in OF_V1.items() if name in uncounted}
    isolation = replace(ISOLATION, uncounted=uncounted, enabled_by=known)
    return a_record({"isolation": isolation}, common={"meters": {"absent": absent}}, outcome=outcome)


def on_devices(
    own: list[str],
    users: dict[str, list[tuple[int, str]]] | None = None,
    slowed: dict[str, dict[str, int] | None] | None = None,
) -> Record:
    """A record of the tenant of `own` of two devices, with these foreign processes and reasons per device."""
    devices = {
        uuid: {
            "index": index,
            "foreign_processes": [{"pid": pid, "name": name} for pid, name in (users or {}).get(uuid, [])],
            "slowed_samples": (slowed or {}).get(uuid, {}),
        }
        for index, uuid in enumerate(("GPU-a", "GPU-b"))
    }
    isolation = replace(ISOLATION, planned={"accelerators": own})
    return a_record(place={"isolation": isolation}, common={"meters": {"devices": devices}})


def scaled(devices: int, efficiency: float) -> Record:
    return a_record(common={"meters": {"scaling": {"devices": devices, "efficiency": efficiency}}})


def owning(devices: int, ranks: int, *words: str, **seen: Any) -> Record:
    """A record of a launch that owns a machine with so many devices."""
    place = {"group": "all", "devices": devices, "command": ["run.sh", *words]}
    part = a_part(observed={"dtype": "fp32", "device": "cuda:0", "world_size": ranks} | seen)
    return a_record(place=place, told={"part": part})


def numbers(durations_ms: Sequence[float], waits_ms: Sequence[float] = (), **seen: Any) -> Record:
    """A record of kept observations that took so long and waited so long for data."""
    rows = observed(durations_ms)
    waits = [*waits_ms, *[0.0] * (len(rows) - len(waits_ms))]
    rows = [replace(one, data_wait_ns=round(wait * 1e6)) for one, wait in zip(rows, waits, strict=True)]
    part = a_part(observed={"dtype": "fp32", "device": "cpu"} | seen)
    return a_record(told={"observations": rows, "skip": 0, "part": part})


def wobbling(n: int = 20) -> list[float]:
    """Durations around half a second without a trend."""
    return [500 + (i * 7) % 11 - 5 for i in range(n)]


def trained(expected: object, ran: object) -> Record:
    return a_record(told={"part": a_part(observed={"updates_credited": expected, "updates": ran})})


def rows_of(items: float, item_is_row: bool = True) -> Record:
    part = a_part(observed={"dtype": "fp32", "item_is_row": item_is_row})
    return a_record(told={"observations": observed([500.0] * 20, items), "part": part})


def warmed_up(*warm_up_ns: int, duration_ms: float = 500.0, **arguments: Any) -> Record:
    part = a_part(arguments=ARGUMENTS | arguments)
    return a_record(told={"observations": observed([duration_ms] * 20), "warm_up_ns": list(warm_up_ns), "part": part})


def seeded(asked: str, seen: object) -> Record:
    part = a_part(arguments=ARGUMENTS | {"seed": seen})
    return a_record(place={"command": ["run.sh", "--seed", "1", "--seed", asked]}, told={"part": part})


def with_pauses(pause_ms: float) -> Record:
    """A record of observations of a tenth of a second with pauses between them."""
    starts = [T0_NS + round(index * (100 + pause_ms) * 1e6) for index in range(20)]
    rows = [Observed(start_ns, start_ns + 100_000_000, 3840, 0) for start_ns in starts]
    return a_record(told={"observations": rows})


def budgeted(budget_s: float, asked: Amount, given: Amount, each_ms: float, **more: Any) -> Record:
    """A record of a launch with this budget, of observations of `each_ms`."""
    isolation = replace(ISOLATION, policies={"cache": "none", "budget_s": budget_s})
    rows = observed([each_ms] * given.repeat)
    told = {"observations": rows, "asked": asked, "given": given, "skip": given.skip, **more}
    return a_record(place={"isolation": isolation}, told=told)


def until(share: float, made: int, repeat: int, **more: Any) -> Record:
    """A record of a launch that was to end at such an interval, after `made` of `repeat` observations."""
    isolation = replace(ISOLATION, policies={"until_interval": share})
    amount = Amount(30, repeat, 5)
    told = {"observations": observed([100.0] * made), "asked": amount, "given": amount, **more}
    return a_record(place={"isolation": isolation}, told=told)


FIRES: list[tuple[str, str, Made, str]] = [
    (
        "drift",
        "warning",
        lambda: numbers([500 + i for i in range(20)]),
        "The rate drifted by -3.7 % over the launch (Mann-Kendall p = 9e-10).",
    ),
    (
        "drift",
        "warning",
        lambda: numbers([550 - i / 100 for i in range(6000)]),
        "The rate drifted by +11.5 % over the launch (Mann-Kendall p = 0).",
    ),
    (
        "outliers",
        "info",
        lambda: numbers([*wobbling(15), 1500, *wobbling(15)]),
        "1 of 31 kept observations stand far off (modified z > 14.8): the farthest took 3.00 times the median time.",
    ),
    (
        "outliers",
        "warning",
        lambda: numbers([*wobbling(15), 250, 900, 250, 900, *wobbling(15)]),
        "4 of 34 kept observations stand far off (modified z > 14.8): the farthest took 1.80 times the median time.",
    ),
    (
        "input_stall",
        "warning",
        lambda: numbers([*wobbling(9), 1500, *wobbling(11)], [*[2.0] * 9, 800.0, *[2.0] * 11]),
        (
            "In 1 of 21 kept observations the input came late: the slowest took 3.00 times the median time, "
            "most of it waiting for data."
        ),
    ),
    (
        "data_bound",
        "info",
        lambda: numbers(wobbling(), [150.0] * 20, workers=4),
        "The task waited for its input for 30 % of its time.",
    ),
    (
        "slow_start",
        "warning",
        lambda: numbers([520, 520, *wobbling()]),
        "The first 2 of 22 kept observations took 4 % longer than the rest: warm-up is counted in.",
    ),
    (
        "pace",
        "warning",
        lambda: warmed_up(9_000_000, 500_000, 600_000, duration_ms=120, number=3000),
        "A batch took 40 us, and the fastest step of the warm-up 12 times as long.",
    ),
    (
        "pace",
        "warning",
        lambda: warmed_up(duration_ms=29.7, number=30_000),
        "A batch took 990 ns: that is the cost of a loop that does nothing.",
    ),
    (
        "untimed",
        "warning",
        lambda: with_pauses(100),
        "Only 52 % of the time from the first to the last kept observation lies inside observations.",
    ),
    (
        "credited",
        "error",
        lambda: trained(100, 30),
        "100 updates of weights were credited, as many per batch as in the warm-up, and 30 ran.",
    ),
    (
        "batch_rows",
        "error",
        lambda: rows_of(12_800),
        "30 batches of 128 rows are 3840, and an observation counts 12800 (15 of 15 are like this).",
    ),
    (
        "seed",
        "warning",
        lambda: seeded("100", 7),
        "Asked for seed 100, but it ran with seed 7.",
    ),
    (
        "few_observations",
        "error",
        lambda: durations(1),
        "Kept observations: 1. That is too few for an interval of their median.",
    ),
    (
        "precision",
        "warning",
        lambda: asked_and_seen("bf16", None),
        "Asked for bf16, but no product was seen in a step: nothing shows that it ran so.",
    ),
    (
        "scaling",
        "warning",
        lambda: scaled(8, 0.375),
        "8 devices ran 3.00 times as fast as one: an efficiency of 0.38.",
    ),
    (
        "budget",
        "info",
        lambda: budgeted(60.0, Amount(30, 20, 5), Amount(15, 20, 5), 2990.0),
        "A budget of 60 s cut 20 observations of 30 batches to 20 of 15: 300 of 600 batches.",
    ),
    (
        "budget",
        "warning",
        lambda: budgeted(60.0, Amount(30, 20, 5), Amount(1, 12, 4), 6000.0),
        "A budget of 60 s cut 20 observations of 30 batches to 12 of 1: 12 of 600 batches. They took 72.0 s.",
    ),
    (
        "budget",
        "warning",
        lambda: budgeted(2.5, Amount(30, 20, 5), Amount(30, 20, 5), 1000.0),
        "A budget of 2.5 s cut nothing. They took 20.0 s.",
    ),
    (
        "until_interval",
        "info",
        lambda: until(0.01, 14, 50),
        "--until-interval 1% ended them after 14 of 50: such an interval covers less than it says.",
    ),
    (
        "until_interval",
        "info",
        lambda: until(0.005, 50, 50),
        "--until-interval 0.5% did not end its observations before the last of 50.",
    ),
    (
        "until_interval",
        "info",
        lambda: until(0.01, 20, 20, rank_observations={"0": steady()[:20], "1": steady()[:20]}),
        "--until-interval 1% has no effect here: ranks that stopped at different times would hang.",
    ),
    (
        "scaling",
        "warning",
        lambda: scaled(8, 1.05),
        "8 devices ran 8.40 times as fast as one: an efficiency of 1.05.",
    ),
    ("devices_unused", "warning", lambda: owning(2, 1), "2 devices, and one was used."),
    ("devices_unused", "warning", lambda: owning(8, 2, "--devices", "0"), "8 devices, and 2 were used."),
    (
        "devices_unused",
        "warning",
        lambda: owning(8, 2, "--devices=2", "--devices", "4"),
        "8 devices, and 2 were used.",
    ),
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
        lambda: durations(*[10] * 5),
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
        "shm_kept",
        "warning",
        lambda: a_record(common={"meters": {"shm_kept": {"files": 2, "memory_bytes": 3 << 20}}}),
        (
            "2 files (3.0 MiB) that appeared in /dev/shm during this launch are still there: "
            "nothing shows that its tenants made them."
        ),
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
        lambda: treated("drop", 0, size_bytes=0, files=0),
        "--cache drop found no file to treat: no argument of the benchmark names an input that exists.",
    ),
    (
        "cache_policy",
        "warning",
        lambda: treated("drop", 1 << 28),
        "25 % of the input were still in the page cache: other processes have it mapped.",
    ),
    (
        "swapped",
        "warning",
        lambda: on_host(swapped_in_bytes=5 << 20, swapped_out_bytes=2 << 20),
        "During this launch the host swapped 5 MiB in and 2 MiB out.",
    ),
    (
        "stolen",
        "warning",
        lambda: on_host(stolen_share=0.034),
        "During this launch the host below took away 3.4 % of all processor time.",
    ),
    (
        "throttled",
        "warning",
        lambda: on_host(processor_throttles=7, **slowed(20_000_000, 10_000_000)),
        "During this launch heat slowed processor cores 7 times, the power limit slowed devices 3.",
    ),
    (
        "throttled",
        "warning",
        lambda: a_record(place={"isolation": replace(ISOLATION, counters={"throttled_ns": 1_500_000_000})}),
        "During this launch a quota of processor time held this slice back for 1.50 s.",
    ),
    (
        "throttled",
        "info",
        lambda: on_host(**slowed(20_000_000, None)),
        "During this launch the power limit slowed devices 3.",
    ),
    (
        "memory_kills",
        "warning",
        lambda: on_host(memory_kills_outside=2),
        "During this launch the kernel killed 2 processes outside of the slices for memory.",
    ),
    (
        "throttled",
        "warning",
        lambda: on_devices(["GPU-a"], slowed={"GPU-a": {"heat": 1}, "GPU-b": {"power brake": 2}}),
        "During this launch heat slowed devices 0, the power supply's brake slowed devices 1.",
    ),
    (
        "throttled",
        "info",
        lambda: on_devices(["GPU-a"], slowed={"GPU-b": {"power limit": 1}}),
        "During this launch the power limit slowed devices 1.",
    ),
    (
        "mfu_impossible",
        "error",
        lambda: computed(2e11),
        "This rate takes 12.0 TFLOP/s, 1.48 times the peak of Tesla T4 in fp32 (8.1 TFLOP/s).",
    ),
    (
        "foreign_load",
        "warning",
        lambda: beside(1.25, busiest=[{"pid": 7, "name": "backup", "share": 0.98}]),
        "While tenants were timed other work kept 1.2 of 8 processors busy: backup (pid 7, 98 %).",
    ),
    (
        "foreign_load",
        "warning",
        lambda: beside(1.3, total=128),
        "While tenants were timed other work kept 1.3 of 128 processors busy.",
    ),
    (
        "device_in_use",
        "warning",
        lambda: on_devices(["GPU-b"], {"GPU-a": [(4, "theirs")], "GPU-b": [(5, "python")]}),
        "While tenants were timed other processes used their devices: python (pid 5) on device 1.",
    ),
    (
        "device_in_use",
        "warning",
        lambda: on_devices(["MIG-1"], {"GPU-a": [(4, "theirs")]}),
        "While tenants were timed other processes used their devices: theirs (pid 4) on device 0.",
    ),
    (
        "meters_absent",
        "info",
        lambda: unmeasured({"packages": "a launch alone"}, ["pids_peak"]),
        "Not measured in this launch: packages, pids_peak.",
    ),
    (
        "meters_absent",
        "info",
        lambda: unmeasured({}, ["throttled_ns", "oom_kills"]),
        "Not measured in this launch: oom_kills, throttled_ns.",
    ),
]

SILENT: list[tuple[str, Made]] = [
    ("budget", lambda: budgeted(60.0, Amount(30, 20, 5), Amount(30, 20, 5), 3290.0)),
    ("budget", lambda: a_record(told={"asked": Amount(30, 25, 5), "given": Amount(1, 25, 5)})),
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
    ("slow_start", lambda: numbers([600, *wobbling()])),
    ("slow_start", lambda: numbers([508, 507, *wobbling()])),
    ("slow_start", lambda: numbers([600 - 4 * i for i in range(20)])),
    ("pace", lambda: warmed_up(9_000_000, 390_000, 600_000, duration_ms=120, number=3000)),
    ("pace", lambda: warmed_up(duration_ms=30.3, number=30_000)),
    ("pace", lambda: warmed_up(9_000_000, number="many")),
    ("untimed", lambda: with_pauses(33)),
    ("credited", lambda: trained(100, 100)),
    ("credited", lambda: trained(None, 3)),
    ("credited", lambda: trained("all", [])),
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
    ("shm_left", lambda: a_record(common={"meters": {}})),
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
    ("devices_unused", lambda: a_record(place={"devices": 4})),
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
    assert len(speaking) == len(RULES)


def test_what_failed_is_not_invalid_but_failed() -> None:
    record = a_record(outcome="nan", common={"load": (0, 0)})
    assert [finding.severity for finding in record.findings] == ["error"]
    assert not record.invalid


def test_an_error_of_the_launch_makes_it_invalid() -> None:
    finding = rules(inside(0.5))["overlap"]
    record = a_record(common={"findings": (finding,)})
    assert record.invalid
