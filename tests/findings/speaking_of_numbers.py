"""Every rule about a tenant's numbers at its border and beyond, with the sentence that it says."""

from __future__ import annotations

from cotenant.results.record import Observed
from cotenant.stats.budget import Amount
from findings.rule_records import (
    Made,
    asked_and_seen,
    budgeted,
    durations,
    inside,
    numbers,
    owning,
    rows_of,
    scaled,
    scaled_by,
    seeded,
    trained,
    until,
    warmed_up,
    with_events,
    with_pauses,
    wobbling,
)
from results.made import T0_NS, a_part, a_record, observed, steady

OF_NUMBERS: list[tuple[str, str, Made, str]] = [
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
        "loaded_ahead",
        "warning",
        lambda: numbers(wobbling(), [0.0] * 9 + [100.0] * 11, loaded_ahead=16 * 16),
        "The first 9 of 20 kept observations had input that was loaded before GO: up to 256 batches.",
    ),
    (
        "loaded_ahead",
        "error",
        lambda: numbers(wobbling(), [0.0] * 10 + [100.0] * 10, loaded_ahead=300),
        "The first 10 of 20 kept observations had input that was loaded before GO: up to 300 batches.",
    ),
    (
        "loaded_ahead",
        "warning",
        lambda: numbers(wobbling(), loaded_ahead=600),
        "The first 20 of 20 kept observations had input that was loaded before GO: up to 600 batches.",
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
        "warning",
        lambda: until(0.01, 14, 50),
        "--until-interval 1% ended them after 14 of 50: such an interval covers less than it says.",
    ),
    (
        "until_interval",
        "warning",
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
    ("devices_unused", "warning", lambda: owning(4, 1, group="student"), "4 devices, and one was used."),
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
]
