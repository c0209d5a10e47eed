"""How much of a device the lines of profiles/batch_sizes.toml take, as a null device counts what it gives.

PYTHONPATH=tests:common python -m device.sizes gpt    finds the sizes of a job's lines, and prints these

cuDNN's workspaces are nothing there. So a line takes at most nine tenths of what its class has.
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
"""A context once cuBLAS and cuDNN are loaded."""
MOST = 0.9
FEW = {"--repeat": 1, "--number": 1}
ONE_DEVICE = ("--devices", "--parallel", "--nodes")
"""Arguments of jobs of several devices, of which one is measured."""
PRECISIONS = ("fp32", "bf16")
"""tf32 takes as much as fp32, fp16 as bf16."""
OF_ANOTHER_MEANING = ("decode", "decode16", "prefill", "ppo", "gnn")
"""Their sizes say who is answered at once, how many environments act, or what is sampled: none means to fill."""
OF_VENDORS = {
    "ncf": 10_000_000,
    "tacotron2": 256,
    "maskrcnn": 64,
    "gnmt": 1_520,
    "waveglow": 48,
    "ssd": 448,
    "bert_large_squad": 112,
}
"""What a vendors' comparison runs in 16 bit on 80 GB."""
ENDLESS = 1 << 40
SIZES = sorted({1 << power for power in range(31)} | {8 * 10**k * n for k in range(6) for n in range(1, 125)})
"""Powers of two and multiples of 8, above 1,000 of few digits."""
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
        """What a vendors' comparison runs on 80 GB: no size up to there is larger."""
        return OF_VENDORS.get(self.family, ENDLESS) if self.precision == "bf16" and self.gib <= 80 else ENDLESS

    def run(self, zygote: Zygote) -> Ended:
        """Run it in few steps on a null device of its class."""
        given = {flag: value for flag, value in expand(self.job)[0].args if flag not in ONE_DEVICE}
        given |= dict(self.extra) | FEW | {"--precision": self.precision}
        if "--batch-size" in given:
            given["--batch-size"] = str(given["--batch-size"]).replace(f"${BATCH_SIZE}", str(self.batch_size))
        del given["--report"]
        words = [word for flag, value in given.items() for word in (flag, *str(value).split())]
        device = {"NULL_DEVICE_MIB": str(self.gib * GIB // MIB), "NULL_DEVICE_CONTEXT_MIB": str(CONTEXT_MIB)}
        return zygote.run(str(Path(self.job.cmd).parents[1]), *words, **device, **{UNFILLED: "1"})

    def share(self, ended: Ended) -> float:
        """Return the part of its class that a run has taken at the most."""
        return ended.peak_bytes / (self.gib * GIB)

    def is_too_large(self, zygote: Zygote) -> bool:
        ended = self.run(zygote)
        assert ended.record.get("outcome") in ("completed", "device_out_of_memory"), ended
        return not ended.completed or self.share(ended) > MOST


def sized_jobs() -> Iterator[Job]:
    """Yield one job for each table; a twin that trains over all devices has the sizes of its job."""
    for file in ("lambda", "modern", "scaling"):
        seen = set[str]()
        for job in load(PROFILES / f"{file}.json").jobs:
            family = job.family or job.name
            if family not in seen and not family.endswith(WHOLE) and asks_for_sizes(expand(job)[0]):
                seen.add(family)
                yield job


def lines() -> Iterator[Line]:
    """Yield every line that stands in the table at a class of a device's memory."""
    sizes = load_sizes(PROFILES / FILE)
    for job in sized_jobs():
        family = job.family or job.name
        for precision in PRECISIONS:
            for memory_class in MEMORY_CLASSES:
                if memory_class in sizes.families[family].get(precision, {}):
                    size = sizes.size_of(family, precision, memory_class)
                    yield Line(job, precision, memory_class, size.batch_size, size.args)


def of_h100() -> Iterator[Line]:
    """Yield the jobs of h100.json, whose sizes are their own, on the device that they are for."""
    for job in load(PROFILES / "h100.json").jobs:
        args = dict(expand(job)[0].args)
        if "--precision" in args:
            own = replace(job, family=job.name)  # ssd is a job of several files.
            yield Line(own, str(args["--precision"]), "80gb", int(args.get("--batch-size", 0)))


def fitted(zygote: Zygote, job: Job, precision: str, others: tuple[str, ...]) -> dict[str, int]:
    """Return the largest size of each class that takes nine tenths of it, but of `others`."""
    found, place = dict[str, int](), 0
    for name in (name for name in MEMORY_CLASSES if name not in others):
        line = Line(job, precision, name, 0)
        too_large = lambda size, line=line: replace(line, batch_size=size).is_too_large(zygote)  # noqa: E731
        # A larger class takes no smaller size; one far beyond it would not fit this machine.
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
