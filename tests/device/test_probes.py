"""Probes of a device: it computes in the precision asked for, clock and meters are right, the loop costs nothing."""

from __future__ import annotations

from typing import Any

import pytest

from cotenant.meters.devices import QUANTITIES
from device.host import Host

ERRORS = {"fp32": (0.0, 5e-5), "tf32": (5e-5, 3e-3), "bf16": (5e-4, 5e-2), "fp16": (5e-5, 1e-2)}
"""Least and greatest relative error against fp64 of each precision; below the least a more exact precision ran."""
MAY_BE_EXACT = ("tf32", "recurrence")
"""cuDNN's recurrent kernels need not use TF32 where it is allowed."""
LEAST_OF_BARE = 0.995
LOOK_MS = 20.0
"""Longest reading of the meters: one each second then takes two hundredths of one processor."""


@pytest.fixture(scope="module")
def errors(real: Host) -> Any:
    return real.asked("probes", "precision")


@pytest.mark.parametrize("operation", ["product", "convolution", "recurrence"])
@pytest.mark.parametrize("precision", ERRORS)
def test_the_error_against_fp64_is_that_of_the_precision(
    precision: str, operation: str, errors: Any, record_property: Any
) -> None:
    error = errors[precision][operation]
    if isinstance(error, str):
        pytest.skip(error)
    record_property("error", error)
    least, most = ERRORS[precision]
    assert (0.0 if (precision, operation) == MAY_BE_EXACT else least) <= error <= most


def test_a_step_of_known_length_is_measured_correctly(real: Host, record_property: Any) -> None:
    seen = real.asked("probes", "clock")
    record_property("clock", seen)
    busy, idle = seen["busy"], seen["idle"]
    assert busy["host_ms"] == pytest.approx(seen["true_ms"], rel=0.01)
    assert busy["event_ms"] == pytest.approx(busy["host_ms"], rel=0.01)
    assert busy["waited"] >= 0.9, "the host waits for steps that keep the device busy"
    assert idle["waited"] <= 0.05, "and not for its own"


@pytest.mark.parametrize(
    "words",
    [
        ["regression/polynome", "--batch-size", "256"],
        ["variational_auto_encoder/auto_encoding_variational_bayes", "--batch-size", "128"],
        ["recommendation/neural_collaborative_filtering", "--batch-size", "65536"],
    ],
    ids=["toy_reg", "vae", "recom"],
)
def test_the_measured_loop_reaches_a_bare_ones_rate(words: list[str], real: Host, record_property: Any) -> None:
    found = real.asked("probes", "loop", *words)
    record_property("rate_over_bare", found)
    assert found["high"] >= LEAST_OF_BARE, "the whole interval lies below"


def test_devices_report_everything_with_consistent_energy(host: Host, record_property: Any) -> None:
    seen = host.asked("probes", "meters", 1 if host.null else 10)
    record_property("meters", seen)
    readings = seen["readings"].values()
    assert readings
    for name in (*QUANTITIES, "energy_j", "slowed_by"):
        assert all(reading[name] is not None for reading in readings), name
    assert any(reading["load_percent"] >= 50 for reading in readings), "under products without end"
    for state in seen["states"]:
        assert state["compute_mode"]
        assert state["power_limit_w"] <= state["power_default_w"] * 1.5
    assert seen["energy"]["counted_j"] == pytest.approx(seen["energy"]["added_j"], rel=0.05)
    assert host.null or seen["look_ms"] <= LOOK_MS
