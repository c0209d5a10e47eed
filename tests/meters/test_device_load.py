"""Results and findings on devices that were sampled, from any source."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import psutil

from cotenant.machine.nvidia import DeviceProcess
from cotenant.meters.devices import QUANTITIES, DeviceLoad, Reading, stranger
from meters.seen import Script

FULL = dict.fromkeys(QUANTITIES, 1.0)


def sampled(readings: Sequence[Reading], every_s: float = 1.0, foreign: Sequence[int] = ()) -> tuple[Any, DeviceLoad]:
    """Return the result of the one device after these readings, the first of which is read at the start."""
    clock = itertools.count(0.0, every_s)
    meter = DeviceLoad(Script(readings), lambda pid: pid in foreign, lambda: next(clock))
    meter.start([])
    for _ in readings[1:]:
        meter.sample()
    return meter.result()["GPU-0"], meter


def test_samples_of_an_idle_device_count() -> None:
    told, _ = sampled([Reading(3, load_percent=load) for load in (77, 0, 90, 0)])
    assert (told["index"], told["samples"], told["idle_samples"]) == (3, 3, 2)
    assert told["load_percent"] == {"n": 3, "min": 0, "mean": 30, "max": 90}


def test_energy_is_a_difference_over_ten_seconds_at_least() -> None:
    rising = [Reading(0, energy_j=1e6 + 500 * second) for second in range(12)]
    falling = [Reading(0, energy_j=10.0 - second) for second in range(12)]
    for readings, energy, lacks in [
        (rising[:11], (5000, 10), ""),
        (rising[:10], (None, 9), "a window of 10 s, which more"),
        ([Reading(0)] * 12, (None, None), "an energy counter of the device"),
        (falling, (None, 11), "a counter that was not set back"),
    ]:
        device, _ = sampled(readings)
        assert (device["energy_j"], device["energy_window_s"]) == energy
        assert device["energy_lacks"].startswith(lacks)
        assert bool(lacks) == bool(device["energy_lacks"])


def test_a_shared_device_counts_its_sharers_and_mps_clients() -> None:
    readings = [Reading(2, mps_clients=clients) for clients in (0, 1, 4, 3)]
    for sharers, wanted in (({2: 4}, 4), (None, 0)):
        meter = DeviceLoad(Script(readings), sharers=sharers)
        meter.start([])
        for _ in readings[1:]:
            meter.sample()
        assert (meter.result()["GPU-0"]["sharers"], meter.result()["GPU-0"]["mps_clients"]) == (wanted, 4)
    assert sampled([Reading(2)] * 2)[0]["mps_clients"] is None


def test_reasons_are_counted_per_sample() -> None:
    told, _ = sampled([Reading(0, slowed_by=words) for words in (("x",), ("heat",), (), ("heat", "power limit"))])
    assert told["slowed_samples"] == {"heat": 2, "power limit": 1}
    told, _ = sampled([Reading(0, slowed_by=())] * 2)
    assert told["slowed_samples"] == {}
    told, _ = sampled([Reading(0)] * 2)
    assert told["slowed_samples"] is None


def test_strangers_on_a_device_are_named_and_the_unseen_counted() -> None:
    ours, theirs, unseen = DeviceProcess(5, "python", 7), DeviceProcess(6, "other", None), DeviceProcess(9, "", 8)
    readings = [Reading(0), Reading(0, processes=(ours, unseen)), Reading(0, processes=(ours, theirs))]
    told, _ = sampled(readings, foreign=(6, 9))
    assert told["foreign_processes"] == [{"pid": 6, "name": "other", "memory_bytes": None}]
    assert told["unseen_processes"] == 1


HIDDEN, OWN = DeviceProcess(9, "", 8), DeviceProcess(5, "python", 7)


def test_who_stays_nameless_beside_ours_is_hidden() -> None:
    for case, looks, hidden in [
        ("another namespace", ((HIDDEN,), (HIDDEN,)), 0),
        ("it was ending", ((HIDDEN, OWN), (OWN,), (DeviceProcess(10, "", 8), OWN)), 0),
        ("hidden", ((HIDDEN, OWN), (HIDDEN, OWN)), 1),
        ("ours began later", ((HIDDEN,), (HIDDEN, OWN), (OWN,)), 1),
        ("none of ours", ((HIDDEN, DeviceProcess(6, "other", 8)),) * 2, 0),
    ]:
        device, _ = sampled([Reading(0), *(Reading(0, processes=look) for look in looks)], foreign=(6, 9))
        assert (device["unseen_processes"], device["hidden_processes"]) == (1, hidden), case


def test_what_no_device_tells_is_absent() -> None:
    _, meter = sampled([Reading(0, **FULL, slowed_by=())] * 2)
    assert meter.absent() == {}
    _, meter = sampled([Reading(0, **FULL | {"power_w": None})] * 2)
    assert meter.absent().keys() == {"devices.power_w", "devices.slowed_samples"}


def test_a_process_outside_our_tree_is_a_stranger() -> None:
    script = "import subprocess, sys; subprocess.run(['cat'])"
    with subprocess.Popen([sys.executable, "-c", script], stdin=-1) as child:
        tree = psutil.Process(child.pid)
        end_s = time.monotonic() + 20
        while not tree.children():
            assert time.monotonic() < end_s
            time.sleep(0.01)
        ours = [os.getpid(), child.pid, tree.children()[0].pid]
        strangers = [1, 0, os.getppid(), 2**22]
        assert [stranger(pid) for pid in (*ours, *strangers)] == [False] * 3 + [True] * 4
        child.communicate()
    asked: list[int] = []
    meter = DeviceLoad(Script([Reading(0, processes=(DeviceProcess(7, "x", None),))] * 3), asked.append)
    meter.start([])
    meter.sample()
    meter.sample()
    assert asked == [7]
