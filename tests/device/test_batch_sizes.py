"""Every line of profiles/batch_sizes.toml fits a device of its class, and takes much of it where it is meant to."""

from __future__ import annotations

import pytest

from device.sizes import GIB, MIB, Line, largest, lines, taken_bytes
from device.zygote import Zygote

MOST, LEAST = 0.92, 0.4
OF_ANOTHER_MEANING = ("decode", "decode16", "prefill", "ppo", "gnn", "dlrm")
"""Their sizes say who is answered at once, how many environments act, or how large tables are: none means to fill."""
OF_VENDORS = {"ncf": 10_000_000, "tacotron2": 256, "maskrcnn": 64, "gnmt": 1_520, "waveglow": 48, "ssd": 448}
"""What a vendors' comparison runs in 16 bit on 80 GB, however much that takes."""
EVERY = list(lines())


@pytest.mark.slow
@pytest.mark.parametrize("line", EVERY, ids=lambda line: f"{line.family}-{line.precision}-{line.memory_class}")
def test_a_line_fits_its_class(zygote: Zygote, line: Line) -> None:
    ended = line.run(zygote, line.gib * GIB // MIB)
    assert ended.record.get("outcome") == "completed", ended
    share = taken_bytes(ended) / (line.gib * GIB)
    assert share <= MOST
    if line.family not in OF_ANOTHER_MEANING and line.batch_size != OF_VENDORS.get(line.family):
        assert share >= LEAST


def test_the_vendors_sizes_are_taken() -> None:
    found = {line.family: line.batch_size for line in EVERY if (line.precision, line.memory_class) == ("bf16", "80gb")}
    assert found | OF_VENDORS == found
    assert found["bert_large_squad"] == 112


def test_sizes_are_powers_of_two_or_multiples_of_eight() -> None:
    assert [largest(bound) for bound in (0.9, 1, 3.9, 7, 15, 24.5, 31.9, 33, 1523.7, 10_480_000)] == [
        None, 1, 2, 4, 8, 24, 24, 32, 1520, 10_400_000,
    ]  # fmt: skip
    assert {line.memory_class for line in EVERY} >= {"8gb", "24gb", "40gb", "48gb", "80gb", "96gb", "140gb", "192gb"}
