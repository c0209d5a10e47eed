"""Several users of one device in each mode that the host has: the rates that they keep, and the harm that one does."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from typing import Any

import pytest

from device.host import FEW, Host, Record, deed, entry, rate
from launch.mps_daemon import running

VAE = "variational_auto_encoder/auto_encoding_variational_bayes"
ABOVE = 1.1
"""K users cannot have more than K times the rate of one; above ABOVE times that, users did not run at once."""
FAULTS = {
    "none": ("completed",),
    "die": ("failed", "aborted"),
    "hog": ("device_out_of_memory",),
    "image": ("unsupported",),
    "assert": ("failed",),
    "long": ("completed",),
    "flood": ("completed",),
    "bandwidth": ("completed",),
}
"""Deed of user 0 (deeds/main.py), and the outcomes that its record may have."""
BEFORE_GO = ("image",)
"""Deeds that end a tenant before it is ready, which ends the launch for all tenants."""
NEEDS_KERNELS = ("assert", "long")
PINNED = {"as torch does": "", "registered": "pinned_use_cuda_host_register:True"}
SEEN = 0.5
"""Least share of the pinned memory by which its slice's peak exceeds the other slice's peak.

The rest may be hidden by pages of files, which count for the slice that touched them first.
"""


def launched(host: Host, mode: str, users: int, job: Record) -> list[Record]:
    """Launch users of one device for some seconds; skip the test where this host lacks the mode."""
    control = shutil.which("nvidia-cuda-mps-control")
    if mode.startswith("mps") and control is None:
        pytest.skip("There is no nvidia-cuda-mps-control here.")
    name = f"{job['name']}-{mode.replace(':', '-')}-{users}"
    flags = ("--share", mode, "--users", users, *host.budget, "--timeout", "60s")
    with running(host.results / "pipes", control) if mode != "time" else nullcontext({}) as variables:
        return host.suite(name, [job], *flags, **variables)


def vae(host: Host, mode: str, users: int) -> list[Record]:
    """Launch `users` users of a small network; assert that all completed, in the mode that was asked for."""
    records = launched(host, mode, users, entry("vae", VAE, host.amount | {"--batch-size": 128}))
    assert (len(records), host.wrong(records)) == (users, [])
    assert {record["share"]["seen"] for record in records} == {mode}
    return records


@pytest.fixture(scope="module")
def alone(real: Host) -> float:
    """Rate of one user alone, in items per second."""
    return rate(vae(real, "time", 1)[0])


@pytest.mark.parametrize("mode", ["time", "mps", "mps:25"])
def test_users_share_a_device_as_they_were_told(mode: str, real: Host, alone: float, record_property: Any) -> None:
    rates = [rate(record) for record in vae(real, mode, 4)]
    record_property("stp", sum(rates) / alone)
    record_property("fairness", min(rates) / max(rates))
    assert sum(rates) <= ABOVE * 4 * alone


@pytest.mark.parametrize("mode", ["time", "mps"])
@pytest.mark.parametrize("fault", FAULTS)
def test_one_user_ends_nobody_else(fault: str, mode: str, host: Host, record_property: Any) -> None:
    """The recorded rates are compared with the rate beside deed `none`."""
    if host.null and (mode == "mps" or fault in NEEDS_KERNELS):
        pytest.skip("No daemon of MPS serves a null device here, and its kernels compute nothing.")
    doer, other = launched(host, mode, 2, deed(fault, host.amount))
    record_property("message", doer["message"])
    record_property("rate", rate(other))
    assert doer["outcome"] in FAULTS[fault], doer["message"]
    assert other["outcome"] == ("aborted" if fault in BEFORE_GO else "completed"), other["message"]


@pytest.mark.parametrize("way", PINNED)
def test_a_slice_counts_the_memory_that_its_tenant_pins(way: str, host: Host, record_property: Any) -> None:
    """The share is recorded for both ways, and asserted for pages that torch registers: others are the driver's."""
    mebibytes = 128 if host.null else 4096
    variables = {"PYTORCH_ALLOC_CONF": PINNED[way]} if PINNED[way] else {}
    job = deed("pin", FEW | {"--repeat": 6, "--mebibytes": mebibytes})
    records = host.suite(f"pin {way}".replace(" ", "-"), [job], "--share", "time", "--users", 2, **variables)
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
