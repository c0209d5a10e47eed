"""Input from files on a device, and whose memory the pages are that a tenant pins."""

from __future__ import annotations

from typing import Any

import pytest

from device.host import FEW, Host, deed, rate, wrong

WORKERS = 8
PINNED = {"as torch does": "", "registered": "pinned_use_cuda_host_register:True"}
SEEN = 0.5
"""Of what one tenant holds, the share by which its slice's peak has to be above the other's at least; the rest may be
pages of files, which belong to the slice that has touched them first."""


@pytest.mark.parametrize(("jobs", "cell"), [("baselines", "loader"), ("h100", "loader_nvjpeg")])
@pytest.mark.gpu
@pytest.mark.slow
def test_a_loader_feeds_the_device(jobs: str, cell: str, real: Host, record_property: Any) -> None:
    flags = ["--jobs", jobs, "--name", cell, "--budget", "3s"]
    (record, *_) = real.suite(cell, flags, ["--workers", WORKERS], DATASET_SIZE="small")
    if record["outcome"] in ("missing_package", "unsupported"):
        pytest.skip(record["message"])
    assert wrong([record]) == []
    kept = record["observations"][record["skip"] :]
    record_property("rate", rate(record))
    record_property("waits", sum(o["data_wait_ns"] for o in kept) / sum(o["end_ns"] - o["start_ns"] for o in kept))


@pytest.mark.parametrize("way", PINNED)
def test_a_slice_counts_the_memory_that_its_tenant_pins(way: str, host: Host, record_property: Any) -> None:
    """It is measured, and promised of pages that torch registers only: others are the driver's own."""
    mebibytes = 128 if host.null else 4096
    jobs = host.jobs("pin", [deed("pin", FEW | {"--repeat": 6}, mebibytes)])
    variables = {"PYTORCH_ALLOC_CONF": PINNED[way]} if PINNED[way] else {}
    users = ["--users", 2, "--share", "time"]
    records = host.suite(f"pin {way}".replace(" ", "-"), ["--jobs", jobs, *users], **variables)
    if any(record["outcome"] == "out_of_memory" for record in records):
        pytest.skip(f"The slices are too small for {mebibytes} MiB.")
    assert [record["outcome"] for record in records] == ["completed"] * 2
    peaks = [record["isolation"]["counters"].get("memory_peak_bytes") for record in records]
    if None in peaks:
        pytest.skip(f"Slices count no memory here ({records[0]['isolation']['backend']}).")
    record_property("peaks_mib", [peak >> 20 for peak in peaks])
    counted = (peaks[0] - peaks[1]) / (mebibytes << 20)
    record_property("counted", counted)
    assert counted >= SEEN or not PINNED[way], "pages that are registered belong to the slice"
