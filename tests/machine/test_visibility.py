from __future__ import annotations

import pytest

from cotenant.machine.accelerators import select

UUIDS = ("GPU-aaaa-1", "GPU-aabb-2", "GPU-cccc-3", "GPU-dddd-4")


@pytest.mark.parametrize(
    ("value", "chosen"),
    [
        ("0", (0,)),
        ("2,0", (2, 0)),
        (" 1 , 3 ", (1, 3)),
        ("", ()),
        ("-1", ()),
        ("0,-1,1", (0,)),
        ("0,9,1", (0,)),
        ("0,,1", (0,)),
        ("1,1", ()),
        ("0,1,0", ()),
        ("1gpu,2", (1, 2)),
        ("none", ()),
        ("NoDevFiles", ()),
        ("GPU-cccc-3", (2,)),
        ("GPU-dd,GPU-aaaa", (3, 0)),
        ("GPU-aa", ()),
        ("GPU-cccc-3,GPU-aa,GPU-dddd-4", (2,)),
        ("GPU-cccc-3,1", (2,)),
        ("1,GPU-cccc-3", (1,)),
        ("GPU-cccc-3,GPU-cc", ()),
        ("GPU-ffff", ()),
        ("GPU-cccc-3,", (2,)),
    ],
)
def test_select(value: str, chosen: tuple[int, ...]) -> None:
    assert select(value, UUIDS) == chosen
