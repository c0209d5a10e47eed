"""How much of a device the lines of profiles/batch_sizes.toml take, as torch's allocator asks for it on a null device.

PYTHONPATH=tests:common python -m device.sizes            measure every line at the size of each class, as a table
PYTHONPATH=tests:common python -m device.sizes fit gpt    propose a job's lines, by what it takes at two sizes

cuDNN's workspaces are nothing there. So a line takes at most nine tenths of what its class has.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cotenant.suite.cells import BATCH_SIZE, Job, asks_for_sizes, expand
from cotenant.suite.jobfile import load
from cotenant.suite.sizes import FILE, MEMORY_CLASSES, WHOLE, Sizes, load_sizes
from device.null.build import built
from device.zygote import ROOT, UNFILLED, Ended, Zygote

GIB, MIB = 1 << 30, 1 << 20
CONTEXT_MIB = 800
"""A context once cuBLAS and cuDNN are loaded."""
MOST = 0.9
ENDLESS_MIB = 4 << 20
FEW = {"--repeat": 1, "--number": 1}
ONE_DEVICE = ("--devices", "--parallel", "--nodes")
"""Arguments of jobs of several devices, of which one is measured."""
PRECISIONS = ("fp32", "bf16")
"""tf32 takes as much as fp32, fp16 as bf16."""
PROFILES = ROOT / "profiles"


@dataclass(frozen=True, slots=True)
class Line:
    """One job in one precision at the size of one class."""

    job: Job
    precision: str
    memory_class: str
    batch_size: int
    extra: tuple[tuple[str, Any], ...] = ()

    @property
    def family(self) -> str:
        return self.job.family or self.job.name

    @property
    def gib(self) -> int:
        return MEMORY_CLASSES[self.memory_class]

    def run(self, zygote: Zygote, mib: int, batch_size: int | None = None) -> Ended:
        """Run it in few steps on a null device of so many MiB."""
        given = {flag: value for flag, value in expand(self.job)[0].args if flag not in ONE_DEVICE}
        given |= dict(self.extra) | FEW | {"--precision": self.precision}
        given |= {
            "--batch-size": str(given["--batch-size"]).replace(f"${BATCH_SIZE}", str(batch_size or self.batch_size))
        }
        del given["--report"]
        words = [word for flag, value in given.items() for word in (flag, *str(value).split())]
        device = {"NULL_DEVICE_MIB": str(mib), "NULL_DEVICE_CONTEXT_MIB": str(CONTEXT_MIB), UNFILLED: "1"}
        return zygote.run(str(Path(self.job.cmd).parents[1]), *words, environ=device)


def taken_bytes(ended: Ended) -> int:
    """Return what a completed run took of its device at the most, its context included."""
    return int(ended.record["meters"]["device_memory"]["reserved_bytes"]) + CONTEXT_MIB * MIB


def sized_jobs() -> Iterator[Job]:
    """Yield one job for each table; a twin that trains over all devices has the sizes of its job."""
    for file in ("lambda", "modern", "scaling"):
        seen = set[str]()
        for job in load(PROFILES / f"{file}.json").jobs:
            family = job.family or job.name
            if family not in seen and not family.endswith(WHOLE) and asks_for_sizes(expand(job)[0]):
                seen.add(family)
                yield job


def lines(sizes: Sizes | None = None) -> Iterator[Line]:
    """Yield every line that stands in the table at a class of a device's memory."""
    sizes = sizes or load_sizes(PROFILES / FILE)
    for job in sized_jobs():
        family = job.family or job.name
        for precision in PRECISIONS:
            for memory_class in MEMORY_CLASSES:
                if memory_class in sizes.families[family].get(precision, {}):
                    size = sizes.size_of(family, precision, memory_class)
                    assert size is not None
                    yield Line(job, precision, memory_class, size.batch_size, size.args)


def proposals(zygote: Zygote, some: list[Line]) -> Iterator[tuple[str, int, float]]:
    """Yield class, batch size and the share that it takes, of lines of one job and precision with equal arguments."""
    sizes = (some[0].batch_size, 2 * some[0].batch_size)
    taken = [taken_bytes(some[-1].run(zygote, ENDLESS_MIB, size)) for size in sizes]
    each = (taken[1] - taken[0]) / (sizes[1] - sizes[0])
    fixed = taken[0] - each * sizes[0]
    print(f"# {fixed / GIB:.2f} GiB and {each / MIB:.3f} MiB for each of the batch", file=sys.stderr)
    for name, gib in MEMORY_CLASSES.items():
        if (most := largest((MOST * gib * GIB - fixed) / each)) is not None:
            yield name, most, (fixed + each * most) / (gib * GIB)


def largest(bound: float) -> int | None:
    """Return the largest power of two or multiple of 8 up to a bound, of few digits where it is large; or None."""
    if bound < 1:
        return None
    power = 1 << int(bound).bit_length() - 1
    step = 8 * 10 ** max(0, len(str(int(bound))) - 3)
    return max(power, int(bound // step) * step)


def main(words: list[str]) -> None:
    zygote = Zygote(built())
    every = [line for line in lines() if not words[1:] or line.family in words[1:]]
    if words[:1] == ["fit"]:
        for family, precision in dict.fromkeys((line.family, line.precision) for line in every):
            some = [one for one in every if (one.family, one.precision) == (family, precision)]
            found = list(proposals(zygote, some))
            print(
                f"[{family}] {precision} = {{",
                ", ".join(f"{name} = {size:_}" for name, size, _ in found),
                "} #",
                ", ".join(f"{share:.0%}" for *_, share in found),
                flush=True,
            )
    else:
        for line in every:
            ended = line.run(zygote, line.gib * GIB // MIB)
            share = f"{taken_bytes(ended) / (line.gib * GIB):.0%}" if ended.status == 0 else ended.record.get("outcome")
            print(line.family, line.precision, line.memory_class, line.batch_size, share, flush=True)
    zygote.close()


if __name__ == "__main__":
    main(sys.argv[1:])
