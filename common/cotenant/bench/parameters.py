"""The parameters of a benchmark: the flags that every one has, their defaults and limits, and its declarations."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar, Literal

from cotenant.bench.arguments import declared, flag
from cotenant.bench.loader import usual_workers
from cotenant.bench.precision import asked_precision
from cotenant.errors import CotenantError

CompileMode = Literal["default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs"]
"""The modes of torch.compile; the first one is the flag's without a word."""


class BenchmarkParameters:
    """All that a benchmark is asked for, and what it declares of itself, without its work.

    The annotated attributes are the flags that every benchmark has.
    """

    item: ClassVar[str] = "item"
    same_shapes: ClassVar[bool] = False
    """Have all steps the same shapes? Then cuDNN and MIOpen time their convolutions in the warm-up, for the fastest."""

    padding: ClassVar[int | None] = None
    """The word that fills up `texts` to the longest of a batch: the harness counts the others of some batches."""

    fast_channels_last: ClassVar[bool] = False
    """Are its convolutions faster on channels_last tensors, in 16 bit and tf32? Then devices do them so by default."""
    serves: ClassVar[bool] = False
    """Does somebody wait for each step, as for the next word of an answer? Then every one's time is recorded, too."""
    ignored: ClassVar[dict[str, int]] = {}
    aliases: ClassVar[dict[str, str]] = {}
    """Other suites' flags, and the words that they become."""
    fixed: ClassVar[dict[str, Any]] = {}
    """Parameters of which this benchmark has one value: another is taken from nobody, and the flag did nothing.

    Where that depends on another parameter, an instance says so before it calls `__init__`.
    """

    batch_size: int = flag(64, "--batch-size", "-b", help="rows in one batch")
    cuda: bool = flag(True, help="use an accelerator where there is one")
    workers: int | None = flag(
        None, "--workers", "-j", help="data-loader processes; by default one per processor", least=0
    )
    seed: int = flag(0, "--seed", "-s", help="seed of every generator", least=0)
    devices: int = flag(1, help="over how many devices, each with a process of its own")
    repeat: int = flag(15, help="observations")
    number: int = flag(5, help="batches in one observation")
    skip: int | None = flag(None, help="first observations left out of statistics", least=0)
    report: Path | None = flag(None, help="a .json file or a directory for the record")
    precision: Literal["fp32", "tf32", "bf16", "fp16"] | None = flag(
        None, help="of the products; wins over its aliases below"
    )
    half: bool = flag(False, help="fp16 weights with fp32 norms (as --opt-level O3)")
    fp16: bool = flag(False, help="as --precision fp16")
    opt_level: Literal["O0", "O1", "O2", "O3"] | None = flag(
        None, help="O0 fp32, O1 and O2 fp16 autocast, O3 fp16 weights"
    )
    data: Path | None = flag(None, help="read the input from files here, not from a random batch")
    compile: bool | CompileMode = flag(False, help="torch.compile the models, in this mode of it")
    channels_last: bool | None = flag(None, help="channels_last memory format; by default where it is faster")
    cached_batch: bool = flag(False, help="train on the first batch alone: the rate without input")
    deterministic: bool = flag(False, help="kernels that give the same bits for the same seed, alone")

    def __init__(self, **parameters: Any) -> None:
        """Set every parameter, those not given to their defaults. Raises CotenantError for impossible ones."""
        known = declared(type(self))
        assert parameters.keys() <= known.keys(), parameters.keys() - known.keys()
        for name, (_, how) in known.items():
            setattr(self, name, self.fixed.get(name, parameters.get(name, how.default)))
        if self.compile == "default":
            self.compile = True
        self.asked_precision = asked_precision(self.precision, self.half, self.fp16, self.opt_level)
        if self.workers is None:
            self.workers = usual_workers()
        for name, (_, how) in known.items():
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
