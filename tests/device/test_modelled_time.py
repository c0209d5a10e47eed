"""Modelled time on the null device: of torch alone, and of users through runner, slices, torch, records and report.

No number here is a real device's: the tests ask whether measurements find the numbers of the model (null/clock.c).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest

from cotenant.report.beside import mix_blocks
from cotenant.report.kept_table import kept_table
from cotenant.report.share import share_points
from cotenant.report.summary import summarise
from cotenant.results.read import read_records
from cotenant.results.table import Rows
from device.host import Host, Record, deed, entry, rate
from device.zygote import Zygote
from launch.mps_daemon import running

PRODUCT = "ceilings/product"
PEAK_FLOP_NS, REACHED, LAUNCH_NS, MEMORY_BYTES_NS, QUEUE = 989.5e3, 0.7, 5_000, 3350, 1024
SIDE, NUMBER = 4096, 25
PRODUCT_NS = 2 * SIDE**3 / (REACHED * PEAK_FLOP_NS) + LAUNCH_NS
OBSERVED = {"--repeat": 8, "--skip": 2}
SCALES = (100, 200, 400)
"""Factors by which the device is slowed: the next one is tried where the host issues work too slowly."""
MOST_ISSUING = 0.1
LIMIT_S = 280.0


def observed(zygote: Zygote, scale: int, side: int, number: int) -> list[dict[str, int]]:
    """Return the three observations of `number` steps each; a step is two products."""
    flags = ("--cuda", "--precision", "bf16", "--batch-size", 2, "--repeat", 3, "--side", side, "--number", number)
    ended = zygote.run(PRODUCT, *flags, NULL_DEVICE_SCALE=str(scale))
    assert ended.completed, ended
    seen: list[dict[str, int]] = ended.record["observations"]
    return seen


def test_products_take_their_modelled_time(zygote: Zygote) -> None:
    """The host has issued all steps long before the device is done.

    Waiting threads sleep until the modelled end of the work: a busy host wakes them late, never early.
    """
    seen = observed(zygote, SCALES[0], SIDE, 5)
    modelled_ns = SCALES[0] * 5 * 2 * PRODUCT_NS
    assert min(one["event_ns"] for one in seen) == pytest.approx(modelled_ns, rel=0.01)
    assert all(one["end_ns"] - one["start_ns"] >= 0.99 * modelled_ns for one in seen)
    assert min(one["issued_ns"] - one["start_ns"] for one in seen) < 0.1 * modelled_ns


@pytest.mark.slow
def test_a_full_queue_blocks_the_host_until_half_is_done(zygote: Zygote) -> None:
    """These products take little but their launch, slowed so much that few are done before the queue is full.

    The host issues the rest when the first half of the queue is done.
    """
    side, scale, number = 64, 1000, QUEUE // 2 + 8
    seen = observed(zygote, scale, side, number)
    launch_ns = scale * (LAUNCH_NS + 3 * 2 * side**2 / MEMORY_BYTES_NS)
    assert [one["event_ns"] for one in seen] == pytest.approx([2 * number * launch_ns] * len(seen), rel=0.01)
    assert min(one["issued_ns"] - one["start_ns"] for one in seen) == pytest.approx(QUEUE / 2 * launch_ns, rel=0.01)


def product(**words: Any) -> Record:
    return entry("product", PRODUCT, {"--side": SIDE, "--precision": "bf16", "--number": NUMBER} | OBSERVED | words)


def issuing(record: Record) -> float:
    """Return the share of the observations' time in which the host issued their work."""
    seen = record["observations"]
    issued_ns = sum(one["issued_ns"] - one["start_ns"] for one in seen)
    return float(issued_ns / sum(one["end_ns"] - one["start_ns"] for one in seen))


def launched(host: Host, name: str, jobs: list[Record], *flags: object, **variables: str) -> tuple[int, list[Record]]:
    """Launch jobs in modelled time; return the factor that is slow enough for this host, and the records."""
    for scale in SCALES:
        records = host.suite(name, jobs, *flags, limit_s=LIMIT_S, NULL_DEVICE_SCALE=str(scale), **variables)
        assert host.wrong(records) == []
        # Each of several jobs has a factor of its own in its environment.
        if len(jobs) > 1 or max(map(issuing, records)) <= MOST_ISSUING:
            break
    return scale, records


def found_again(measure: Callable[[], list[float]], known: list[float], rel: float) -> None:
    """Assert that `measure` finds the known values; a miss is measured once more, since this machine has other load."""
    seen = measure()
    again = [] if seen == pytest.approx(known, rel=rel) else measure()
    assert (again or seen) == pytest.approx(known, rel=rel), f"missed twice: {seen}, then {again}"


def rows_of(host: Host, name: str) -> Rows:
    return Rows.all(read_records([host.results / name]).table)


def shared(host: Host, name: str, mode: str, users: int) -> list[float]:
    """Launch `users` users of one device, and each alone; return STP, ANTT and the share that each of them keeps."""
    flags = ("--users", users, "--share", mode, "--baseline", "whole")
    with running(host.results / "pipes") if mode != "time" else nullcontext({}) as variables:
        _, records = launched(host, name, [product()], *flags, **variables)
    assert [record["share"]["seen"] for record in records if not record.get("baseline")] == [mode] * users
    (point,) = share_points(rows_of(host, name))
    table = kept_table(summarise(rows_of(host, name))).filter(measure="kept")
    return [point["stp"], point["antt"], *table["value"].filter(table["tenant"].is_not_null())]


@pytest.mark.slow
def test_measured_rate_and_energy_match_the_modelled_device(null: Host) -> None:
    def measured() -> list[float]:
        # 26 observations: energy is measured over ten seconds at the least.
        scale, (record,) = launched(null, "modelled", [product(**{"--repeat": 26})], "--users", 1)
        events_ns = sum(one["event_ns"] for one in record["observations"]) / len(record["observations"])
        mfu = record["meters"]["compute"]["mfu"]
        (device,) = record["meters"]["devices"].values()
        watts = device["energy_j"] / device["energy_window_s"]
        return [scale * rate(record) / 1e9, events_ns / scale, scale * mfu, watts]

    # Operations per ns; ns of an observation; share of the peak; the constant power of null/nvml.c in watts.
    known = [2 * SIDE**3 / PRODUCT_NS, NUMBER * PRODUCT_NS, 2 * SIDE**3 / PRODUCT_NS / PEAK_FLOP_NS, 400.0]
    found_again(measured, known, rel=0.01)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "users", "part"),
    [
        ("time", 2, 1 / 2),
        ("time", 4, 1 / 4),
        ("time", 8, 1 / 8),
        ("mps", 2, 1 / 2),
        ("mps:25", 2, 1 / 4),
        ("mps:50", 4, 1 / 4),
    ],
)
def test_what_users_of_one_device_keep_is_what_it_gave_them(mode: str, users: int, part: float, null: Host) -> None:
    def measured() -> list[float]:
        return shared(null, f"modelled-{mode.replace(':', '-')}-{users}", mode, users)

    found_again(measured, [users * part, 1 / part, *[part] * users], rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "scale"), [("flood", 10), ("none", 1)])
def test_only_a_flood_of_kernels_takes_half_of_the_device(name: str, scale: int, null: Host) -> None:
    """With these factors the flood always has work for the device, and the small network of deed `none` has little."""
    other = deed(name, {"--number": 2} | OBSERVED, who=1) | {"env": {"NULL_DEVICE_SCALE": str(scale)}}
    flags = ("--mix", f"product,{name}", "--share", "time", "--users", 2, "--baseline", "whole", "--budget", "5s")

    def measured() -> list[float]:
        launched(null, f"beside-{name}", [product(), other], *flags)
        (block,) = mix_blocks(summarise(rows_of(null, f"beside-{name}")))
        kept = {user["job"]: user["value"] for user in block.users}
        return [kept["product"], kept[name], block.measures["stp"].value]

    if name == "flood":
        found_again(measured, [0.5, 0.5, 1.0], rel=0.02)
    else:
        assert measured()[0] > 0.75
