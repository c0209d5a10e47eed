"""Print two tables, made by running tasks on the null device.

PYTHONPATH=tests:common python -m device.pages tasks    outcome of every task: some minutes
PYTHONPATH=tests:common python -m device.pages sizes    memory of each batch size: an hour
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

from cotenant.suite.sizes import MEMORY_CLASSES
from device.jobs import PRECISIONS, TASKS
from device.null.build import built
from device.sizes import GIB, Line, lines, of_h100
from device.zygote import Ended, Zygote


def of_tasks(zygote: Zygote) -> Iterator[str]:
    rows = ([task, *(_cell(zygote.small(task, *words)) for words in PRECISIONS.values())] for task in TASKS)
    yield from _table(["task", *PRECISIONS], rows)


def of_sizes(zygote: Zygote) -> Iterator[str]:
    every = {(line.family, line.precision, line.memory_class): line for line in lines()}
    jobs = dict.fromkeys((family, precision) for family, precision, _ in every)
    rows = ([*job, *(_size(zygote, every.get((*job, name))) for name in MEMORY_CLASSES)] for job in jobs)
    yield from _table(["job", "precision", *MEMORY_CLASSES], rows)
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
