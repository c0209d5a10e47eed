"""Every rule at its border and beyond, with the sentence that it says."""

from __future__ import annotations

from msgspec.structs import replace

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
from results.made import ISOLATION, T0_NS, a_part, a_record, observed, steady

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
        "skipped_updates",
        "warning",
        lambda: scaled_by(100, 2),
        "2 of 100 updates since the warm-up changed no weight: their fp16 gradients were not finite.",
    ),
    (
        "skipped_updates",
        "error",
        lambda: scaled_by(100, 100),
        "100 of 100 updates since the warm-up changed no weight: their fp16 gradients were not finite.",
    ),
    (
        "slow_start",
        "warning",
        lambda: numbers([511.6, 511.5, 511.7, 511.5, 511.6, *(500 + i / 50 for i in range(100))]),
        "The first 5 of 105 kept observations took 2 % longer than the rest: warm-up is counted in.",
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
        "budget",
        "warning",
        lambda: budgeted(8.0, Amount(30, 20, 5), Amount(30, 20, 5), 0.0, observations=observed([800.0] * 13)),
        "A budget of 8 s cut nothing. They were ended after 13 observations and 10.4 s.",
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
        lambda: until(0.01, 14, 50, budget_s=60.0),
        "--until-interval 1% or --budget ended them after 14 of 50: such an interval covers less than it says.",
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
        "mfu_above_peak",
        "warning",
        lambda: computed(2e11, flops_reducible=1.9e11),
        (
            "This rate takes 12.0 TFLOP/s, 1.48 times the peak of Tesla T4 in fp32 (8.1 TFLOP/s). Its convolutions can "
            "be done with a quarter of the products that are counted: 0.43 then."
        ),
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
        "device_in_use",
        "warning",
        lambda: on_devices(["GPU-b"], hidden={"GPU-a": 1, "GPU-b": 2}),
        "While tenants were timed other processes used their devices: 2 that cannot be seen from here on device 1.",
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
