"""Cells of profiles/h100.json on a device: they complete, in the precision asked for, at a rate that it can have."""

from __future__ import annotations

from typing import Any

import pytest

from cotenant.suite.cells import expand, precision_of
from cotenant.suite.jobfile import load
from device.host import ROOT, Host, rate, wrong

SMALL_GIB = 70
"""The profile's batches are made for 80 GB."""
CELLS = {cell.label: cell for job in load(ROOT / "profiles/h100.json").jobs for cell in expand(job)}
IN_TF32 = ("vae_tf32", "convnet_tf32", "wlm_tf32")
READS_FILES = ("loader_nvjpeg",)
CHOSEN = [
    name for name in CELLS if (precision_of(CELLS[name]) == "bf16" or name in IN_TF32) and name not in READS_FILES
]
FORMED = ("dcgan_bf16", "convnet_bf16")
FORMS = {
    "contiguous": ["--no-channels-last"],
    "graph": ["--graph"],
    "compile": ["--compile"],
}
"""channels_last is what convolutions are in tf32 and bf16 unless told otherwise."""


def measured(host: Host, cell: str, form: str = "", words: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the first tenant's record of two seconds of a cell; skip what this device has no room or kernels for."""
    records = host.suite(
        f"{cell}-{form}" if form else cell,
        ["--jobs", "h100", "--name", cell, *host.budget],
        [*(word for pair in host.amount.items() for word in pair), *words],
    )
    record = records[0]
    small = record["machine"]["accelerators"][0]["memory_bytes"] < SMALL_GIB << 30
    if record["outcome"] == "unsupported" or (record["outcome"] == "device_out_of_memory" and small):
        pytest.skip(record["message"])
    return record


def judge(host: Host, record: dict[str, Any], precision: str) -> None:
    """Assert that a record is what was asked for. Kernels that compute nothing make findings of their own."""
    if host.null:
        assert record["outcome"] == "completed", record["message"]
    else:
        assert wrong([record]) == []
    assert record["observed"]["device"].startswith("cuda")
    if precision in ("bf16", "fp16"):
        assert record["observed"]["dtype"] == precision
    assert (rate(record) or 0) > 0


@pytest.mark.parametrize("cell", CHOSEN)
@pytest.mark.gpu
@pytest.mark.slow
def test_a_cell_completes_in_its_precision(cell: str, real: Host, record_property: Any) -> None:
    record = measured(real, cell)
    record_property("rate", rate(record))
    judge(real, record, precision_of(CELLS[cell]))
    compute = (record["meters"] or {}).get("compute") or {}
    # Convolutions may take fewer products than are counted: `mfu_least` is what they take at least.
    assert (compute.get("mfu_least", compute.get("mfu")) or 0) <= 1


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cell", FORMED)
@pytest.mark.timeout(180)
def test_a_form_runs_and_nothing_is_compiled_while_it_is_timed(
    cell: str, form: str, host: Host, record_property: Any
) -> None:
    if host.null and form == "compile":
        pytest.skip("A processor of these tests compiles for minutes.")
    record = measured(host, cell, form, tuple(FORMS[form]))
    record_property("rate", rate(record))
    judge(host, record, precision_of(CELLS[cell]))
    assert "benchmark:recompiled" not in {finding["rule"] for finding in record["findings"]}
