"""Cells of job files on a device: they complete, in the precision asked for, at a rate that the device can reach."""

from __future__ import annotations

from statistics import median
from typing import Any

import pytest

from cotenant.suite.cells import expand, precision_of
from cotenant.suite.jobfile import load
from cotenant.suite.pressure import OF_DEVICES
from device.host import ROOT, Host, Record, entry, rate

SMALL_GIB = 70
"""Devices below this may lack memory: the profile's batch sizes are made for 80 GB."""
CELLS = {cell.label: cell for job in load(ROOT / "profiles/h100.json").jobs for cell in expand(job)}
IN_TF32 = ("vae_tf32", "convnet_tf32", "wlm_tf32")
READS_FILES = ("loader_nvjpeg",)
CHOSEN = [
    name for name in CELLS if (precision_of(CELLS[name]) == "bf16" or name in IN_TF32) and name not in READS_FILES
]
FORMED = ("dcgan_bf16", "convnet_bf16")
FORMS = {
    "contiguous": "--no-channels-last",
    "compile": "--compile",
    "reduce-overhead": "--compile=reduce-overhead",
}
"""Forms that are not the default; convolutions in tf32 and bf16 are channels_last by default."""
WORKERS = 8
HALF, FULL = 50, 100


def measured(host: Host, cell: str, *form: str) -> Record:
    """Run a cell for two seconds, and return its first tenant's record, without errors and in the precision asked for.

    Skips the test where this device has too little memory or no kernels for the cell.
    """
    name = "".join((cell, *form)).replace("--", "-")
    amount = [word for pair in host.amount.items() for word in pair]
    record = host.suite(name, "h100", "--name", cell, *host.budget, "--", *amount, *form)[0]
    small = record["machine"]["accelerators"][0]["memory_bytes"] < SMALL_GIB << 30
    if record["outcome"] == "unsupported" or (record["outcome"] == "device_out_of_memory" and small):
        pytest.skip(record["message"])
    assert host.wrong([record]) == []
    assert record["observed"]["device"].startswith("cuda")
    if (precision := precision_of(CELLS[cell])) in ("bf16", "fp16"):
        assert record["observed"]["dtype"] == precision
    assert rate(record) > 0
    return record


@pytest.mark.parametrize("cell", CHOSEN)
def test_a_cell_completes_in_its_precision(cell: str, real: Host, record_property: Any) -> None:
    record = measured(real, cell)
    record_property("rate", rate(record))
    compute = (record["meters"] or {}).get("compute") or {}
    # Convolutions may do fewer operations than are counted: `mfu_least` counts the fewest possible.
    assert (compute.get("mfu_least", compute.get("mfu")) or 0) <= 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cell", FORMED)
@pytest.mark.timeout(180)
def test_a_form_runs_and_nothing_is_compiled_while_it_is_timed(
    cell: str, form: str, host: Host, record_property: Any
) -> None:
    if host.null and form != "contiguous":
        pytest.skip("A processor of these tests compiles for minutes.")
    record = measured(host, cell, FORMS[form])
    record_property("rate", rate(record))
    assert "benchmark:recompiled" not in {finding["rule"] for finding in record["findings"]}


@pytest.mark.parametrize(("jobs", "cell"), [("baselines", "loader"), ("h100", "loader_nvjpeg")])
def test_a_loader_feeds_the_device(jobs: str, cell: str, real: Host, record_property: Any) -> None:
    flags = ("--name", cell, "--budget", "3s", "--", "--workers", WORKERS)
    (record, *_) = real.suite(cell, jobs, *flags, DATASET_SIZE="small")
    if record["outcome"] in ("missing_package", "unsupported"):
        pytest.skip(record["message"])
    assert real.wrong([record]) == []
    kept = record["observations"][record["skip"] :]
    record_property("rate", rate(record))
    record_property("waits", sum(o["data_wait_ns"] for o in kept) / sum(o["end_ns"] - o["start_ns"] for o in kept))


@pytest.mark.parametrize("resource", OF_DEVICES)
def test_half_a_level_of_pressure_achieves_half(resource: str, real: Host, record_property: Any) -> None:
    words = {"--number": 1_000_000, "--repeat": 12, "--skip": 0}
    jobs = [entry(f"{resource}_{level}", f"pressure/{resource}", words | {"--level": level}) for level in (HALF, FULL)]
    records = real.suite(f"pressure-{resource}", jobs, "--users", 1, "--budget", "3s")
    assert real.wrong(records) == []
    achieved = {
        record["name"]: median(
            seen["items"] * 1e9 / (seen["end_ns"] - seen["start_ns"]) for seen in record["observations"]
        )
        for record in records
    }
    record_property("achieved", achieved)
    assert achieved[f"{resource}_{HALF}"] / achieved[f"{resource}_{FULL}"] == pytest.approx(0.5, abs=0.1)
