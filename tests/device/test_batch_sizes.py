"""Every line of profiles/batch_sizes.toml fits a device of its class, and fills much of it where it is meant to."""

from __future__ import annotations

import pytest

from device.sizes import OF_ANOTHER_MEANING, OF_VENDORS, SIZES, Line, lines
from device.zygote import Zygote

MOST, LEAST = 0.92, 0.4
EVERY = list(lines())


@pytest.mark.slow
@pytest.mark.parametrize("line", EVERY, ids=lambda line: f"{line.family}-{line.precision}-{line.memory_class}")
def test_a_line_fits_its_class(zygote: Zygote, line: Line) -> None:
    ended = line.run(zygote)
    assert ended.completed, ended
    assert line.share(ended) <= MOST
    if line.family not in OF_ANOTHER_MEANING and line.batch_size != line.most:
        assert line.share(ended) >= LEAST


def test_no_batch_size_exceeds_that_of_the_vendor() -> None:
    assert all(line.batch_size <= line.most for line in EVERY)
    found = {line.family: line.batch_size for line in EVERY if line.precision == "bf16" and line.gib <= 80}
    # The vendors' 64 images do not fit: ours have objects in them.
    assert {family: found[family] for family in OF_VENDORS} == OF_VENDORS | {"maskrcnn": 56}


def test_sizes_are_powers_of_two_or_multiples_of_eight() -> None:
    ours = [line.batch_size for line in EVERY if line.batch_size != line.most]
    assert [size for size in ours if size not in SIZES] == []
    assert {line.memory_class for line in EVERY} >= {"8gb", "24gb", "40gb", "48gb", "80gb", "96gb", "140gb", "192gb"}
