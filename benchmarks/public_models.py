"""Training steps of tasks with their own networks and with public ones whose weights have equal shapes, by turns.

python benchmarks/run.py public_models [FAMILY ...] [--pairs N] [--seconds S]

Both sides have the step, loss, optimizer and batch of the task; only the network differs. They run with one thread on
one processor. A family whose package is missing is left out, and a line says so.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from time import monotonic
from typing import Any

from pairs import Median, interleaved, median_of
from rich.console import Console
from rich.table import Table
from sides import Timed, benchmark_of, observed, one_processor, prepared

from cotenant.bench import Benchmark, Run

SECONDS = 330.0
"""For all families together, without the imports of their packages: less than six minutes."""
LEAST_PAIRS = 6
"""In each half: twelve pairs are enough for an exact interval."""


@dataclass(frozen=True)
class Family:
    """A task whose `model` is replaced by the one in public/, in sizes that are small enough for one processor."""

    task: str
    model: str
    package: str
    arguments: dict[str, Any] = field(default_factory=dict)
    pairs: int = 40


FAMILIES = {
    "bert": Family(
        "question_answering/bert",
        "BertForSpans",
        "transformers",
        {"batch_size": 4, "words": 8_000, "sequence": 128, "layers": 2, "width": 256, "heads": 4, "inner": 1024},
        pairs=200,
    ),
    "gpt": Family(
        "natural_language_processing/gpt",
        "GPT",
        "transformers",
        {"batch_size": 4, "context": 128, "layers": 4, "width": 256, "heads": 4, "words": 8_192},
        pairs=100,
    ),
    "llama": Family(
        "natural_language_processing/llama",
        "Decoder",
        "transformers",
        {
            "batch_size": 2,
            "context": 128,
            "layers": 4,
            "width": 256,
            "heads": 8,
            "kv_heads": 2,
            "inner": 1024,
            "words": 8_192,
        },
        pairs=100,
    ),
    "vit": Family(
        "image_classification/vit",
        "ViT",
        "torchvision",
        {"batch_size": 2, "size": 224, "layers": 4, "width": 384, "heads": 6},
        pairs=100,
    ),
    "ssd": Family("object_detection/single_stage_detector", "SSD300", "torchvision", {"batch_size": 1}),
    "whisper": Family(
        "speech_recognition/whisper",
        "Whisper",
        "transformers",
        {"batch_size": 1, "frames": 600, "tokens": 64, "words": 8_192, "layers": 2},
        pairs=100,
    ),
    "tacotron2": Family(
        "speech_synthesis/tacotron2",
        "Tacotron2",
        "torchaudio",
        {"batch_size": 4, "characters": 40, "frames": 40, "encoder": 256, "units": 512},
    ),
}


def turn(cls: type[Benchmark], arguments: dict[str, Any]) -> tuple[Timed, int]:
    """Return a turn of one step of a warm benchmark, and the number of parameters that it trains."""
    benchmark = cls(cuda=False, **arguments)
    work, weights = prepared(benchmark, Run(benchmark))
    return observed(work, 1), sum(weight.numel() for weight in weights)


def measured(name: str, family: Family, pairs: int, seconds: float) -> tuple[float, float, Median]:
    """Return the median nanoseconds of our step and of the public one, and our rate over the public one's.

    Each is built once before the other and once after it, since the layout of memory affects speed. `pairs` pairs are
    measured, or as many as fit into `seconds`.
    """
    sys.modules.pop("model", None)  # The previous family's: every task's network lies in a module of this name.
    cls = benchmark_of(family.task)
    names = cls.build.__globals__
    networks = names[family.model], importlib.import_module(f"public.{name}").Model
    times_ns: tuple[list[int], list[int]] = ([], [])
    for order in ((0, 1), (1, 0)):
        begun_s = monotonic()
        turns: dict[int, tuple[Timed, int]] = {}
        for side in order:
            names[family.model] = networks[side]
            turns[side] = turn(cls, family.arguments)
        if turns[0][1] != turns[1][1]:
            raise ValueError(f"The task trains {turns[0][1]:,} parameters, the public network {turns[1][1]:,}.")
        pair_s = sum(turns[side][0]() for side in order) / 1e9
        fitting = max(LEAST_PAIRS, int((seconds / 2 + begun_s - monotonic()) / pair_s))
        half = interleaved(turns[0][0], turns[1][0], min(-(-pairs // 2), fitting))
        for all_ns, new_ns in zip(times_ns, half, strict=True):
            all_ns += new_ns
    return median(times_ns[0]), median(times_ns[1]), median_of([b / a for a, b in zip(*times_ns, strict=True)])


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="run.py public_models")
    parser.add_argument(
        "families", nargs="*", metavar="FAMILY", help=f"of {', '.join(FAMILIES)}; all where none is named"
    )
    parser.add_argument("--pairs", type=int, help="instead of each family's own number, a few to try")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of all families, each an equal part")
    given = parser.parse_args(argv)
    if unknown := sorted(set(given.families) - set(FAMILIES)):
        parser.error(f"there is no family {unknown[0]}; the families are {', '.join(FAMILIES)}")
    one_processor()
    table = Table("family", "size", "against", "our step", "theirs", "our rate / theirs", "pairs")
    names = given.families or [*FAMILIES]
    for name in names:
        family = FAMILIES[name]
        try:
            package = importlib.import_module(family.package)
        except Exception as error:  # A package built for another torch may raise any error.
            print(f"{name} is left out: {family.package} cannot be imported: {error}", file=sys.stderr)
            continue
        share_s = given.seconds / len(names)
        our_ns, their_ns, rate = measured(name, family, given.pairs or family.pairs, share_s)
        size = ", ".join(f"{flag} {value}" for flag, value in family.arguments.items()).replace("_", " ")
        steps = (f"{ns / 1e6:.4g} ms" for ns in (our_ns, their_ns))
        ratio = f"{rate.value:.3f} [{rate.low:.3f}, {rate.high:.3f}]"
        table.add_row(name, size, f"{family.package} {package.__version__}", *steps, ratio, str(rate.n))
    Console(width=150).print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
