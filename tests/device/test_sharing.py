"""Several users of one device: what they keep, and what one of them does to the others, in each mode to be had here."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

import pytest

from device.host import HERE, Host, deed, entry, rate, wrong

VAE = HERE.parents[1] / "tasks/variational_auto_encoder/auto_encoding_variational_bayes/pytorch/run.sh"
ABOVE = 1.1
"""K users cannot keep more than K times the rate of one: above it something did not run together."""
HUNG_S = 60

FAULTS = {
    "die": ("failed", "aborted"),
    "hog": ("device_out_of_memory",),
    "image": ("unsupported",),
    "assert": ("failed",),
    "long": ("completed",),
    "flood": ("completed",),
    "bandwidth": ("completed",),
}
"""What user 0 does (deeds/main.py), and how it ends then."""
BEFORE_GO = ("image",)
"""A launch whose tenant dies before it is ready ends for all."""
NEEDS_KERNELS = ("assert", "long")


def launched(host: Host, name: str, mode: str, users: int, jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Launch users of one device for some seconds; skip modes that this host lacks."""
    if mode.startswith("mps") and shutil.which("nvidia-cuda-mps-control") is None:
        pytest.skip("There is no nvidia-cuda-mps-control here.")
    name = f"{name}-{mode.replace(':', '-')}-{users}"
    flags = ["--share", mode, "--users", users, *host.budget, "--timeout", f"{HUNG_S}s"]
    return host.suite(name, ["--jobs", host.jobs(name, jobs), *flags])


def vae(host: Host, mode: str, users: int) -> list[dict[str, Any]]:
    return launched(host, "vae", mode, users, [entry("vae", VAE, host.amount | {"--batch-size": 128, "--cuda": ""})])


def judge(host: Host, records: Sequence[dict[str, Any]], users: int, mode: str) -> None:
    """Assert that all of them ran, together, each in the mode that was asked for."""
    lost = [record["message"] for record in records if record["outcome"] != "completed"]
    assert (len(records), lost) == (users, [])
    assert {record["share"]["seen"] for record in records} == {mode}
    # Kernels that compute nothing make findings of their own.
    assert host.null or wrong(records) == []


@pytest.fixture(scope="module")
def alone(real: Host) -> float:
    """The rate of one user."""
    records = vae(real, "time", 1)
    judge(real, records, 1, "time")
    return rate(records[0]) or 0.0


@pytest.fixture(scope="module")
def quiet() -> dict[str, float | None]:
    """The rate beside a user that does nothing, by mode."""
    return {}


@pytest.mark.parametrize("mode", ["time", "mps", "mps:25", "mig"])
@pytest.mark.gpu
@pytest.mark.slow
def test_users_share_a_device_as_they_were_told(mode: str, real: Host, alone: float, record_property: Any) -> None:
    users = 2 if mode == "mig" else 4
    records = vae(real, mode, users)
    judge(real, records, users, mode)
    rates = [rate(record) or 0.0 for record in records]
    record_property("stp", sum(rates) / alone)
    record_property("fairness", min(rates) / max(rates))
    assert mode == "mig" or sum(rates) <= ABOVE * users * alone


@pytest.mark.parametrize("users", [2, pytest.param(8, marks=pytest.mark.slow)])
def test_users_of_a_pretended_device_have_their_parts_of_it(users: int, null: Host) -> None:
    """The first line says how many they are; their memory and contexts fit what CUDA gives of the device."""
    records = vae(null, "time", users)
    judge(null, records, users, "time")
    first = (null.results / f"vae-time-{users}" / "printed.txt").read_text().splitlines()[0]
    assert first.startswith("1 x NVIDIA H100 80GB HBM3 of 79.11 GiB, batch sizes of ")
    assert first.endswith(f": {users} users on each in turns; 1 launch")
    seen = [record["observed"]["device_share"] for record in records]
    (total,) = {share["memory_total_bytes"] for share in seen}
    assert sum(share["memory_fraction"] for share in seen) * total + users * (800 << 20) <= total


def done(host: Host, fault: str, mode: str) -> list[dict[str, Any]]:
    """Let one of two users do something; assert how it ended, and that the other went on. Return the records."""
    doer, other = records = launched(host, fault, mode, 2, [deed(fault, host.amount)])
    assert doer["outcome"] in FAULTS[fault], doer["message"]
    assert other["outcome"] == ("aborted" if fault in BEFORE_GO else "completed"), other["message"]
    return records


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in NEEDS_KERNELS])
@pytest.mark.slow
def test_one_user_of_a_pretended_device_ends_nobody_else(fault: str, null: Host) -> None:
    done(null, fault, "time")


@pytest.mark.parametrize("mode", ["time", "mps"])
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.gpu
@pytest.mark.slow
def test_one_user_ends_nobody_else(
    fault: str, mode: str, real: Host, quiet: dict[str, float | None], record_property: Any
) -> None:
    doer, other = done(real, fault, mode)
    record_property("message", doer["message"])
    if fault not in BEFORE_GO:
        if mode not in quiet:
            quiet[mode] = rate(launched(real, "none", mode, 2, [deed("none", real.amount)])[1])
        record_property("kept", (rate(other) or 0) / (quiet[mode] or 1))
