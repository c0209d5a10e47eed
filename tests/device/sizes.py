"""Device memory that the batch sizes of profiles/batch_sizes.toml take, by the null device's count.

PYTHONPATH=tests:common python -m device.sizes gpt    finds the batch sizes of a job's lines, and prints these lines

cuDNN's workspaces take no memory on the null device. So a line may take nine tenths of its class's memory at the most.
"""

from __future__ import annotations

import sys
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cotenant.suite.cells import BATCH_SIZE, Job, asks_for_sizes, expand
from cotenant.suite.jobfile import load
from cotenant.suite.sizes import FILE, MEMORY_CLASSES, WHOLE, load_sizes
from device.null.build import built
from device.zygote import ROOT, UNFILLED, Ended, Zygote

GIB, MIB = 1 << 30, 1 << 20
CONTEXT_MIB = 800
"""Memory of a process's context once cuBLAS and cuDNN are loaded."""
MOST = 0.9
FEW = {"--repeat": 1, "--number": 1}
ONE_DEVICE = ("--devices", "--parallel", "--nodes")
"""Arguments of jobs over several devices, which are left out: one device is measured."""
PRECISIONS = ("fp32", "bf16")
"""Precisions that are measured: tf32 takes as much memory as fp32, and fp16 as much as bf16."""
OF_ANOTHER_MEANING = ("decode", "decode16", "prefill", "ppo", "gnn")
"""Jobs whose size counts requests at once, environments or sampled nodes, and is not meant to fill a device."""
OF_VENDORS = {
    "ncf": 10_000_000,
    "tacotron2": 256,
    "maskrcnn": 64,
    "gnmt": 1_520,
    "waveglow": 48,
    "ssd": 448,
    "bert_large_squad": 112,
}
"""Batch sizes of a vendors' comparison in 16 bits on a device of 80 GB."""
ENDLESS = 1 << 40
SIZES = sorted({1 << power for power in range(31)} | {8 * 10**k * n for k in range(6) for n in range(1, 125)})
"""Powers of two, multiples of 8 up to 992, and above them multiples of 80, 800 and so on."""
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

    @property
    def most(self) -> int:
        """Largest size allowed: the vendors' on 80 GB, for bf16 on devices of up to 80 GB."""
        return OF_VENDORS.get(self.family, ENDLESS) if self.precision == "bf16" and self.gib <= 80 else ENDLESS

    def run(self, zygote: Zygote) -> Ended:
        """Run the job for one step on a null device with the memory of the class."""
        given = {flag: value for flag, value in expand(self.job)[0].args if flag not in ONE_DEVICE}
        given |= dict(self.extra) | FEW | {"--precision": self.precision}
        if "--batch-size" in given:
            given["--batch-size"] = str(given["--batch-size"]).replace(f"${BATCH_SIZE}", str(self.batch_size))
        del given["--report"]
        words = [word for flag, value in given.items() for word in (flag, *str(value).split())]
        device = {"NULL_DEVICE_MIB": str(self.gib * GIB // MIB), "NULL_DEVICE_CONTEXT_MIB": str(CONTEXT_MIB)}
        return zygote.run(str(Path(self.job.cmd).parents[1]), *words, **device, **{UNFILLED: "1"})

    def share(self, ended: Ended) -> float:
        """Return the share of the class's memory that a run took at its peak."""
        return ended.peak_bytes / (self.gib * GIB)

    def is_too_large(self, zygote: Zygote) -> bool:
        ended = self.run(zygote)
        assert ended.record.get("outcome") in ("completed", "device_out_of_memory"), ended
        return not ended.completed or self.share(ended) > MOST


def sized_jobs() -> Iterator[Job]:
    """Yield one job for each table of sizes; a job's variant that trains over all devices has the same sizes."""
    for file in ("lambda", "modern", "scaling"):
        seen = set[str]()
        for job in load(PROFILES / f"{file}.json").jobs:
            family = job.family or job.name
            if family not in seen and not family.endswith(WHOLE) and asks_for_sizes(expand(job)[0]):
                seen.add(family)
                yield job


def lines() -> Iterator[Line]:
    """Yield a line for every size that the file gives for a class of device memory."""
    sizes = load_sizes(PROFILES / FILE)
    for job in sized_jobs():
        family = job.family or job.name
        for precision in PRECISIONS:
            for memory_class in MEMORY_CLASSES:
                if memory_class in sizes.families[family].get(precision, {}):
                    size = sizes.size_of(family, precision, memory_class)
                    yield Line(job, precision, memory_class, size.batch_size, size.args)


def of_h100() -> Iterator[Line]:
    """Yield the jobs of h100.json, which have batch sizes of their own, on the 80 GB that these are for."""
    for job in load(PROFILES / "h100.json").jobs:
        args = dict(expand(job)[0].args)
        if "--precision" in args:
            own = replace(job, family=job.name)  # ssd stands in several files.
            yield Line(own, str(args["--precision"]), "80gb", int(args.get("--batch-size", 0)))


def fitted(zygote: Zygote, job: Job, precision: str, others: tuple[str, ...]) -> dict[str, int]:
    """Return the largest size that takes at most nine tenths of each class; classes in `others` are left out."""
    found, place = dict[str, int](), 0
    for name in (name for name in MEMORY_CLASSES if name not in others):
        line = Line(job, precision, name, 0)
        too_large = lambda size, line=line: replace(line, batch_size=size).is_too_large(zygote)  # noqa: E731
        # A larger class fits at least the size found before it. Doubling from there keeps far larger ones untried,
        # which would not fit this machine's memory.
        beyond = place + 1
        while not too_large(SIZES[beyond]):
            place, beyond = beyond + 1, 2 * beyond
        place = bisect_left(SIZES, True, lo=place, hi=beyond, key=too_large)
        if place:
            found[name] = min(SIZES[place - 1], line.most)
    return found


def main(family: str) -> None:
    zygote = Zygote(built())
    (job,) = (job for job in sized_jobs() if (job.family or job.name) == family)
    for precision in PRECISIONS:
        some = [line for line in lines() if (line.family, line.precision) == (family, precision)]
        found = fitted(zygote, job, precision, tuple(line.memory_class for line in some if line.extra))
        print(f"[{family}] {precision} = {{ {', '.join(f'{name} = {size:_}' for name, size in found.items())} }}")
    zygote.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
