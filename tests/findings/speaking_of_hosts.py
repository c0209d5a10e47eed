"""Every rule about a slice, its devices and its host at its border and beyond, with the sentence that it says."""

from __future__ import annotations

from msgspec.structs import replace

from findings.rule_records import (
    Made,
    beside,
    computed,
    on_devices,
    on_host,
    runner,
    slowed,
    treated,
    unenforced,
    unmeasured,
)
from results.made import ISOLATION, a_record

OF_HOSTS: list[tuple[str, str, Made, str]] = [
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
        "foreign_load",
        "warning",
        lambda: beside(119.6, total=256),
        "While tenants were timed other work kept 120 of 256 processors busy.",
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
