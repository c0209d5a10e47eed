"""The parameters of a benchmark: the flags of every benchmark, their defaults and limits, and its declarations."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

from cotenant.bench.arguments import declared, flag
from cotenant.bench.loader import usual_workers
from cotenant.bench.precision import asked_precision
from cotenant.errors import CotenantError

CompileMode = Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]
"""The modes of torch.compile; the flag without a word means the first."""


class BenchmarkParameters:
    """The flags and the declarations of a benchmark, without its work.

    The annotated attributes are the flags that every benchmark has.
    """

    item: ClassVar[str] = "item"
    same_shapes: ClassVar[bool] = False
    """True if all steps have the same shapes: cuDNN and MIOpen then time their convolutions before observations."""

    padding: ClassVar[int | None] = None
    """The word that pads `texts` to the longest of a batch: the harness counts the other words of some batches."""

    fast_channels_last: ClassVar[bool] = False
    """True if its convolutions are faster on channels_last tensors, in 16 bits and tf32: then devices use them."""
    serves: ClassVar[bool] = False
    """True if someone waits for each step, as for the next word of an answer: each step's time is then recorded."""
    ignored: ClassVar[dict[str, int]] = {}
    aliases: ClassVar[dict[str, str]] = {}
    """Other suites' flags, and the words that they become."""
    fixed: ClassVar[dict[str, Any]] = {}
    """Parameters with only one value in this benchmark: a flag for another value has no effect.

    If such a value depends on another parameter, an instance sets `fixed` before it calls `__init__`.
    """

    batch_size: int = flag(64, "--batch-size", "-b", help="rows in one batch")
    cuda: bool = flag(True, help="use an accelerator if there is one")
    workers: int | None = flag(
        None, "--workers", "-j", help="data-loader processes; by default one per processor", least=0
    )
    seed: int = flag(0, "--seed", "-s", help="seed of every generator", least=0)
    devices: int = flag(1, help="number of devices, each with a process of its own")
    repeat: int = flag(15, help="observations")
    number: int = flag(5, help="batches in one observation")
    skip: int | None = flag(None, help="first observations left out of statistics", least=0)
    report: Path | None = flag(None, help="a .json file or a directory for the record")
    precision: Literal["fp32", "tf32", "bf16", "fp16"] | None = flag(
        None, help="precision of products; overrides the aliases below"
    )
    half: bool = flag(False, help="fp16 weights with fp32 norms (as --opt-level O3)")
    fp16: bool = flag(False, help="as --precision fp16")
    opt_level: Literal["O0", "O1", "O2", "O3"] | None = flag(
        None, help="O0 fp32, O1 and O2 fp16 autocast, O3 fp16 weights"
    )
    data: Path | None = flag(None, help="read the input from files in this directory, not from a random batch")
    compile: bool | CompileMode = flag(False, help="compile the models by torch.compile, in this mode")
    channels_last: bool | None = flag(None, help="channels_last memory format; by default if it is faster")
    cached_batch: bool = flag(False, help="train on the first batch alone: the rate without input")
    deterministic: bool = flag(False, help="only kernels that give the same bits for the same seed")

    def __init__(self, **parameters: Any) -> None:
        """Set every parameter, missing ones to their defaults. Raises CotenantError for impossible values."""
        fields = declared(type(self))
        assert parameters.keys() <= fields.keys(), parameters.keys() - fields.keys()
        for name, (_, how) in fields.items():
            setattr(self, name, self.fixed.get(name, parameters.get(name, how.default)))
        if self.compile == "default":
            self.compile = True
        self.asked_precision = asked_precision(self.precision, self.half, self.fp16, self.opt_level)
        if self.workers is None:
            self.workers = usual_workers()
        for name, (_, how) in fields.items():
            value = getattr(self, name)
            numbers = [number for number in (value if isinstance(value, tuple) else (value,)) if type(number) is int]
            if numbers and min(numbers) < how.least:
                raise CotenantError(f"{how.spellings(name)[0]} must be at least {how.least}, not {min(numbers)}.")
        if self.skip is None:
            self.skip = min(5, self.repeat // 3)
        if self.skip >= self.repeat:
            raise CotenantError(
                f"--skip {self.skip} leaves none of {self.repeat} observations.", "Give a --skip smaller than --repeat."
            )
