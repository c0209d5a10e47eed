"""How much of a device the lines of profiles/batch_sizes.toml take, as a null device counts what it gives.

PYTHONPATH=tests:common python -m device.sizes FILE [JOB ...]    measure lines and add them to FILE, as JSON
PYTHONPATH=tests:common python -m device.sizes --fit FILE gpt    find the sizes of a job's lines, and print these

cuDNN's workspaces are nothing there. So a line takes at most nine tenths of what its class has.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

from cotenant.suite.cells import BATCH_SIZE, Job, asks_for_sizes, expand
from cotenant.suite.jobfile import load
from cotenant.suite.sizes import FILE, MEMORY_CLASSES, WHOLE, SizeTable, load_sizes
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
PROFILES = ROOT / "profiles"
Measured = dict[str, Any]


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

    def run(self, zygote: Zygote, mib: int | None = None) -> Ended:
        """Run it in few steps on a null device of so many MiB; without, of its class."""
        given = {flag: value for flag, value in expand(self.job)[0].args if flag not in ONE_DEVICE}
        given |= dict(self.extra) | FEW | {"--precision": self.precision}
        if "--batch-size" in given:
            given["--batch-size"] = str(given["--batch-size"]).replace(f"${BATCH_SIZE}", str(self.batch_size))
        del given["--report"]
        words = [word for flag, value in given.items() for word in (flag, *str(value).split())]
        mib = mib or self.gib * GIB // MIB
        device = {"NULL_DEVICE_MIB": str(mib), "NULL_DEVICE_CONTEXT_MIB": str(CONTEXT_MIB), UNFILLED: "1"}
        return zygote.run(str(Path(self.job.cmd).parents[1]), *words, environ=device)

    def measured(self, zygote: Zygote) -> Measured:
        """Run it on a device of its class, and on one without an end where that is too small; return what it took."""
        ended = self.run(zygote)
        fits = ended.status == 0
        if not fits:
            assert ended.record.get("outcome") == "device_out_of_memory", ended
            ended = self.run(zygote, ENDLESS_MIB)
            assert ended.status == 0, ended
        what = {"job": self.family, "precision": self.precision, "class": self.memory_class, "size": self.batch_size}
        return what | {"fits": fits, "bytes": ended.peak_bytes, "share": round(ended.peak_bytes / self.gib / GIB, 4)}


def sized_jobs() -> Iterator[Job]:
    """Yield one job for each table; a twin that trains over all devices has the sizes of its job."""
    for file in ("lambda", "modern", "scaling"):
        seen = set[str]()
        for job in load(PROFILES / f"{file}.json").jobs:
            family = job.family or job.name
            if family not in seen and not family.endswith(WHOLE) and asks_for_sizes(expand(job)[0]):
                seen.add(family)
                yield job


def lines(sizes: SizeTable | None = None) -> Iterator[Line]:
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


def of_h100() -> Iterator[Line]:
    """Yield the jobs of h100.json, whose sizes are their own, on the device that they are for."""
    for job in load(PROFILES / "h100.json").jobs:
        args = dict(expand(job)[0].args)
        if "--precision" in args:
            own = replace(job, family=job.name)  # ssd is a job of several files.
            yield Line(own, str(args["--precision"]), "80gb", int(args.get("--batch-size", 0)))


def rounded(bound: float) -> int:
    """Return the largest power of two or multiple of 8 up to a bound, of few digits where it is large; 0 below 1."""
    if bound < 1:
        return 0
    return max(1 << int(bound).bit_length() - 1, int(bound // _step(bound)) * _step(bound))


def _step(bound: float) -> int:
    return int(8 * 10 ** max(0, len(str(int(bound))) - 3))


def largest(taken: Callable[[int], float], most: float, points: dict[int, float]) -> int:
    """Return the largest size that takes at most so much; 0 where none does.

    `points` are at least two sizes of which is known what they take; what `taken` measures is added: where the line
    through the largest one that fits and the next one that does not says, and at last the size above it.
    """
    while True:
        fits = max((size for size, took in points.items() if took <= most and rounded(size) == size), default=0)
        too_large = min((size for size, took in points.items() if took > most and size > fits), default=None)
        # Of sizes that are close together one may take less than a smaller one: so the line is a long one.
        one = fits or min(points)
        other = too_large if too_large not in (None, one) else min(points) if one != min(points) else max(points)
        bound = one + (most - points[one]) * (other - one) / (points[other] - points[one])
        guess = rounded(bound if too_large is None else min(bound, too_large - 1))
        guess = guess if guess > fits else next(size for more in count(1) if (size := rounded(fits + more)) > fits)
        if guess in points:
            return fits
        points[guess] = taken(guess)


def fitted(zygote: Zygote, some: list[Line], known: list[Measured]) -> Iterator[Measured]:
    """Find the size of each class, of a job in one precision of which these lines stand in the table; yield each.

    A class with arguments of its own keeps its size.
    """
    found = {(one["class"], one["size"]): one for one in known}
    own = {line.memory_class: line for line in some if line.extra}
    plain = [line for line in some if not line.extra]

    def at(memory_class: str, size: int) -> Measured:
        if (memory_class, size) not in found:
            line = replace(own.get(memory_class, plain[0]), memory_class=memory_class, batch_size=size)
            found[memory_class, size] = line.measured(zygote)
        return found[memory_class, size]

    for line in (plain[0], plain[-1]):
        at(line.memory_class, line.batch_size)
    if plain[0].batch_size == plain[-1].batch_size:
        at(plain[0].memory_class, 2 * plain[0].batch_size)
    points = {size: float(one["bytes"]) for (name, size), one in found.items() if name not in own}
    for name, gib in MEMORY_CLASSES.items():
        if name in {one["class"] for one in known}:
            continue
        size = own[name].batch_size if name in own else 0
        size = size or largest(lambda size, name=name: at(name, size)["bytes"], MOST * gib * GIB, points)
        size = min(size, replace(some[0], memory_class=name).most)
        if size:
            yield at(name, size)


def main(words: list[str]) -> None:
    fits = words[:1] == ["--fit"]
    path, jobs = Path(words[fits]), words[fits + 1 :]
    every = [json.loads(text) for text in path.read_text().splitlines()] if path.exists() else []
    zygote = Zygote(built())
    asked = [line for line in (*lines(), *(() if jobs else of_h100())) if not jobs or line.family in jobs]
    for family, precision in dict.fromkeys((line.family, line.precision) for line in asked):
        some = [line for line in asked if (line.family, line.precision) == (family, precision)]
        known = [one for one in every if (one["job"], one["precision"]) == (family, precision)]
        for one in (
            fitted(zygote, some, known)
            if fits and family not in OF_ANOTHER_MEANING
            else (line.measured(zygote) for line in some)
        ):
            known.append(one)
            with path.open("a") as out:
                out.write(json.dumps(one) + "\n")
        sizes = ", ".join(f"{one['class']} = {one['size']:_}" for one in known)
        print(f"[{family}] {precision} = {{ {sizes} }}", flush=True)
    zygote.close()


if __name__ == "__main__":
    main(sys.argv[1:])
