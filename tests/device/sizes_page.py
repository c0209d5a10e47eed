"""Write docs/gpu/batch-sizes.md from what `python -m device.sizes FILE` has measured.

PYTHONPATH=tests:common python -m device.sizes_page FILE > docs/gpu/batch-sizes.md
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from cotenant.suite.sizes import MEMORY_CLASSES
from device.sizes import CONTEXT_MIB, GIB, OF_ANOTHER_MEANING, OF_VENDORS, Measured, lines, of_h100

HEAD = f"""# Batch sizes on the null device

All of this page is of a **null device** ([what that is](null-device.md)), which counts what torch's allocator asks for
and computes nothing. `PYTHONPATH=tests:common python -m device.sizes FILE` measures each line of
`profiles/batch_sizes.toml` on a device of its class, `python -m device.sizes_page FILE` writes this page, and
`python -m device.sizes --fit FILE JOB` finds the sizes of a job anew.

A cell is a batch size, and the part of the class's GiB that is taken at the most: {CONTEXT_MIB} MiB of context,
weights, the warm-up, an observation and audits. Sizes are powers of two or multiples of 8 (above 1,000 of few digits),
the largest that take nine tenths: a GPU needs more, as convolutions take workspaces there, and `maskrcnn` finds boxes.
In bf16 none up to 80 GB is larger than in a vendors' comparison
({", ".join(f"{job} {size:,}" for job, size in OF_VENDORS.items())});
`maskrcnn` is smaller, since 64 take 96 %. The sizes of {", ".join(OF_ANOTHER_MEANING)} mean something
else, and `dlrm` has smaller tables below 24 GB. tf32 has fp32's sizes, fp16 has bf16's. An empty cell has the size to
its left; where there is none, nothing fits. `tacotron2` in bf16 was not searched where its cells are empty.

"""
OF_FIXED_SIZE = """
## h100.json

GiB that its jobs take of a device; their sizes are the same on every one.

"""


def page(every: list[Measured]) -> str:
    """Return a row per job and precision, its size and share in each class; and the memory of h100.json's jobs."""
    cells = {(one["job"], one["precision"], one["class"]): one for one in every}
    rows = dict.fromkeys((line.family, line.precision) for line in lines())
    sized = [[*row, *(_cell(cells.get((*row, name))) for name in MEMORY_CLASSES)] for row in rows]
    fixed = {line.family: line for line in of_h100()}
    names = dict.fromkeys(name.rpartition("_")[0] for name in fixed)
    taken = {name: f"{cells[name, line.precision, '80gb']['bytes'] / GIB:.1f}" for name, line in fixed.items()}
    size = {name: f"{fixed[f'{name}_bf16'].batch_size:,}" for name in names}
    more = [
        [name, size[name].strip("0") and size[name], taken[f"{name}_tf32"], taken[f"{name}_bf16"]] for name in names
    ]
    return (
        HEAD
        + _table([["job", "precision", *MEMORY_CLASSES], *sized])
        + OF_FIXED_SIZE
        + _table([["job", "batch size", "tf32", "bf16"], *more])
    )


def _table(rows: list[list[str]]) -> str:
    first, *others = (f"| {' | '.join(row)} |\n" for row in rows)
    return first + "|---" * len(rows[0]) + "|\n" + "".join(others)


def _cell(one: Measured | None) -> str:
    return "" if one is None else f"{one['size']:,}: {one['share']:.0%}"


if __name__ == "__main__":
    print(page([json.loads(text) for text in Path(sys.argv[1]).read_text().splitlines()]), end="")
