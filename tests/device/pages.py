"""Write the pages on what runs on the null device.

PYTHONPATH=tests:common python -m device.pages tasks > docs/gpu/null-device.md     what every task does: some minutes
PYTHONPATH=tests:common python -m device.pages sizes > docs/gpu/batch-sizes.md     what each batch size takes: an hour
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from cotenant.suite.sizes import MEMORY_CLASSES
from device.jobs import ARTEFACTS, PRECISIONS, REASONS, TASKS
from device.null.build import built
from device.sizes import CONTEXT_MIB, GIB, OF_ANOTHER_MEANING, OF_VENDORS, Line, lines, of_h100
from device.zygote import Ended, Zygote

TASKS_HEAD = f"""# On the null device

All of this page is of a **null device**: torch's own host side for CUDA (allocator, autograd, streams, capture of
graphs, autocast) over a driver that computes nothing ([tests](../testing.md)). It says what would run, in which dtype
and with how many waits of the host. It says nothing of speed, of numbers that are computed, or of what a real driver
refuses. `PYTHONPATH=tests:common python -m device.pages tasks` writes it anew; flags make each task small.

Every memory reads as zeros there. So losses are 0, and these findings are of the null device and not of a task:
`constant_input`, {", ".join(f"`{rule}`" for rule in sorted(ARTEFACTS))}. `mask_rcnn` finds no boxes, so its steps are
those of an image without objects. Convolutions take no workspace. cuDNN's attention is not there: torch's own flash
attention runs in its place. NCCL's ranks meet and send nothing, and cuSOLVER's
workspaces have one size.

## Precisions

A cell names the dtypes of all products of a step, and how often the host waits for the device in one, where it does.
"""
GRAPHS = """
## With --graph

In bf16. `recorded`: the step was captured and replayed, and an audit fitted beside it.
"""
SIZES_HEAD = f"""# Batch sizes on the null device

All of this page is of a **null device** ([what that is](null-device.md)), which counts what torch's allocator asks for
and computes nothing. `PYTHONPATH=tests:common python -m device.pages sizes` measures each line of
`profiles/batch_sizes.toml` on a device of its class and writes this page, and `python -m device.sizes JOB` finds the
sizes of a job anew.

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


def of_tasks(zygote: Zygote) -> Iterator[str]:
    yield TASKS_HEAD
    rows = ([task, *(_cell(zygote.small(task, *words)) for words in PRECISIONS.values())] for task in TASKS)
    yield from _table(["task", *PRECISIONS], rows)
    yield "\nWhy a step waits:\n"
    yield from (f"- `{task}` {reason}." for task, reason in REASONS.items())
    yield GRAPHS
    graphs = ((task, zygote.small(task, *PRECISIONS["bf16"], "--graph")) for task in TASKS)
    yield from _table(["task", "--graph"], ([task, _outcome(ended) or "recorded"] for task, ended in graphs))


def of_sizes(zygote: Zygote) -> Iterator[str]:
    yield SIZES_HEAD
    every = {(line.family, line.precision, line.memory_class): line for line in lines()}
    jobs = dict.fromkeys((family, precision) for family, precision, _ in every)
    rows = ([*job, *(_size(zygote, every.get((*job, name))) for name in MEMORY_CLASSES)] for job in jobs)
    yield from _table(["job", "precision", *MEMORY_CLASSES], rows)
    yield OF_FIXED_SIZE
    fixed = {line.family: line for line in of_h100()}
    names = dict.fromkeys(name.rpartition("_")[0] for name in fixed)
    sizes = {name: f"{size:,}" if (size := fixed[f"{name}_bf16"].batch_size) else "" for name in names}
    taken = ([name, sizes[name], *(_gib(zygote, fixed[f"{name}_{one}"]) for one in ("tf32", "bf16"))] for name in names)
    yield from _table(["job", "batch size", "tf32", "bf16"], taken)


def _table(head: list[str], rows: Iterable[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |\n" + "|---" * len(head) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _cell(ended: Ended) -> str:
    waits = f", {max(ended.waits)} waits" if max(ended.waits, default=0) else ""
    return _outcome(ended) or " + ".join(ended.record["observed"]["products"]) + waits


def _outcome(ended: Ended) -> str:
    return (
        "" if ended.completed else f"`{ended.record.get('outcome', 'unsupported')}`: {ended.refusal}".replace("|", "/")
    )


def _size(zygote: Zygote, line: Line | None) -> str:
    return "" if line is None else f"{line.batch_size:,}: {line.share(line.run(zygote)):.0%}"


def _gib(zygote: Zygote, line: Line) -> str:
    return f"{line.run(zygote).peak_bytes / GIB:.1f}"


def main(page: str) -> None:
    zygote = Zygote(built())
    for text in {"tasks": of_tasks, "sizes": of_sizes}[page](zygote):
        print(text, flush=True)
    zygote.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
