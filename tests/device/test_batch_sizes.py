"""Every line of profiles/batch_sizes.toml fits a device of its class, and takes much of it where it is meant to."""

from __future__ import annotations

import pytest

from device.sizes import GIB, OF_ANOTHER_MEANING, OF_VENDORS, Line, largest, lines, rounded
from device.zygote import Zygote

MOST, LEAST = 0.92, 0.4
EVERY = list(lines())


@pytest.mark.slow
@pytest.mark.parametrize("line", EVERY, ids=lambda line: f"{line.family}-{line.precision}-{line.memory_class}")
def test_a_line_fits_its_class(zygote: Zygote, line: Line) -> None:
    ended = line.run(zygote)
    assert ended.record.get("outcome") == "completed", ended
    share = ended.peak_bytes / (line.gib * GIB)
    assert share <= MOST
    if line.family not in OF_ANOTHER_MEANING and line.batch_size != line.most:
        assert share >= LEAST


def test_no_line_is_larger_than_the_vendors_and_most_are_theirs_on_80_gb() -> None:
    assert all(line.batch_size <= line.most for line in EVERY)
    found = {line.family: line.batch_size for line in EVERY if line.precision == "bf16" and line.gib <= 80}
    # 64 images with objects would not fit.
    assert {family: found[family] for family in OF_VENDORS} == OF_VENDORS | {"maskrcnn": 56}


def test_sizes_are_powers_of_two_or_multiples_of_eight() -> None:
    assert [rounded(bound) for bound in (0.9, 1, 3.9, 7, 15, 24.5, 31.9, 33, 1523.7, 10_480_000)] == [
        0, 1, 2, 4, 8, 24, 24, 32, 1520, 10_400_000,
    ]  # fmt: skip
    ours = [line.batch_size for line in EVERY if line.batch_size != line.most]
    assert [size for size in ours if rounded(size) != size] == []
    assert {line.memory_class for line in EVERY} >= {"8gb", "24gb", "40gb", "48gb", "80gb", "96gb", "140gb", "192gb"}


@pytest.mark.parametrize("most", [10, 560, 1000, 3000.5, 20_000])
def test_the_largest_size_is_found_where_small_ones_mislead(most: float) -> None:
    """Beyond 16 an item takes 25 times as much, and every third size little more than the one before."""

    def taken(size: int) -> float:
        beyond = max(0, size - 16)
        return 100 + size + 24 * beyond - (150 if beyond and size // 8 % 3 == 0 else 0)

    measured: dict[int, float] = {}
    points = {4: taken(4), 8: taken(8)}
    found = largest(lambda size: measured.setdefault(size, taken(size)), most, points)
    fitting = {size for size in map(rounded, range(1, 1000)) if taken(size) <= most}
    assert found == max(fitting, default=0)
    assert len(measured) <= 9
