"""Jobs and their cells: a job, an entry of a job file, becomes cells, and a cell the arguments of a command."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from cotenant.suite.fields import PRECISION, Args, Group
from cotenant.suite.foreign import Foreign
from cotenant.suite.sizes import WHOLE
from cotenant.suite.variables import Value, expand_variables, flag_name, is_flag, value_behind, variables_in, words

_DEVICES = "--devices"
_NODES = "--nodes"
BATCH_SIZE = "BATCH_SIZE"
PLAIN = "fp32"
ON_PROCESSORS = ("fp32", "bf16")
"""Precisions in which processors train fast enough to be worth measuring."""


@dataclass(frozen=True, slots=True)
class Job:
    """One entry of a job file, launched or named in a mix, in one of its precisions if that is an axis.

    Its texts still hold variables. `stem` is the start of its files' names; `family` is the entry's own name if
    precision is an axis, else empty.
    """

    name: str
    cmd: str
    args: Args
    group: Group
    weight: float = 1.0
    timeout_s: float | None = None
    env: tuple[tuple[str, str], ...] = ()
    stem: str = ""
    family: str = ""
    foreign: Foreign | None = None
    """The program of `exec`, which replaces command and arguments."""


@dataclass(frozen=True, slots=True)
class JobCell:
    """A job with one value per argument; it is number `index`, from 1, among the `of` cells of its job."""

    job: Job
    index: int
    of: int
    args: tuple[tuple[str, Value], ...]

    @property
    def label(self) -> str:
        """The start of its files' names: the job's stem, with `.c<index>` if there are several cells."""
        stem = self.job.stem or self.job.name
        return stem if self.of == 1 else f"{stem}.c{self.index}"

    @property
    def devices(self) -> int:
        """The value of `--devices`; by default 0, which stands for all devices."""
        return self._number(_DEVICES)

    @property
    def nodes(self) -> int:
        """The value of `--nodes`; by default 0, which stands for all nodes."""
        return self._number(_NODES)

    def _number(self, flag: str) -> int:
        number = str(dict(self.args).get(flag, ""))
        return int(number) if number.isdecimal() else 0


def expand(job: Job) -> tuple[JobCell, ...]:
    """Return one cell per combination of the job's values; the last argument varies fastest."""
    keys = [key for key, _ in job.args]
    combinations = list(itertools.product(*(values for _, values in job.args)))
    return tuple(
        JobCell(job, index, len(combinations), tuple(zip(keys, values, strict=True)))
        for index, values in enumerate(combinations, start=1)
    )


def with_values(job: Job, flag: str, *values: Value) -> Job:
    """Return the job with these values of a flag, in the place of its own, else at the end."""
    return replace(job, args=tuple((dict(job.args) | {flag: values}).items()))


def labels_of(job: Job) -> tuple[str, ...]:
    """Return the names of a job's cells."""
    return tuple(cell.label for cell in expand(job))


SWEEPING = "image_classification/scaling/"
"""The path of the benchmark whose `--devices 0` means every number of devices in turn, as in the reference suite."""


def swept(job: Job, devices: int) -> Job:
    """Return the job of SWEEPING with a cell for each of 1 to `devices` in place of 0; other jobs unchanged."""
    asked = [str(value) for value in dict(job.args).get(_DEVICES, ())]
    if job.group != "all" or SWEEPING not in job.cmd or asked != ["0"]:
        return job
    return with_values(job, _DEVICES, *range(1, devices + 1))


def over_devices(chosen: Sequence[Job], jobs: Sequence[Job], devices: int) -> tuple[Job, ...]:
    """Return the chosen jobs as one model over `devices` devices each: jobs that own the machine, and others' twins.

    The twin of `bert_fp32` is `bert_all_fp32` among `jobs`. A job without one is left out. 0 is all devices.
    """
    twins = {(job.family or job.name, _precision_axis(job)): job for job in jobs if job.group == "all"}
    whole = [
        job if job.group == "all" else twins.get(((job.family or job.name) + WHOLE, _precision_axis(job)))
        for job in chosen
    ]
    return tuple(_over(devices, job) for job in dict.fromkeys(job for job in whole if job is not None))


def _over(devices: int, job: Job) -> Job:
    if devices:
        return with_values(job, _DEVICES, devices)
    # A job without the flag takes all: not every benchmark knows 0, and SWEEPING's 0 is a sweep.
    return replace(job, args=tuple(pair for pair in job.args if pair[0] != _DEVICES))


def _precision_axis(job: Job) -> object:
    return dict(job.args)[PRECISION] if job.family else None


def fitting(job: Job, devices: int) -> tuple[JobCell, ...]:
    """Return the cells that ask for at most `devices` devices, with their labels among all cells.

    All are returned for a job of the group `student`, whose tenants share the devices, and for one without a cell that
    fits: the benchmark itself reports the lack.
    """
    cells = expand(job)
    if job.group == "student":
        return cells
    return tuple(cell for cell in cells if cell.devices <= devices) or cells


def without_unsupported(jobs: Sequence[Job], has_devices: bool) -> tuple[Job, ...]:
    """Return the jobs without the cells of the axis `--precision` that a host without devices cannot train.

    If no other cell of an axis is chosen, all are returned: the benchmark itself reports the precision that it lacks.
    """
    if has_devices:
        return tuple(jobs)
    trained = {job.family for job in jobs if _of_processors(job)}
    return tuple(job for job in jobs if _of_processors(job) or job.family not in trained)


def _of_processors(job: Job) -> bool:
    return not job.family or dict(job.args)[PRECISION][0] in ON_PROCESSORS


def precision_of(cell: JobCell, extra: Sequence[str] = ()) -> str:
    """Return the value of `--precision` in `extra`, else in the cell; fp32 if both lack it."""
    return value_behind(_unexpanded(cell, extra), PRECISION, usual=PLAIN)


def asks_for_sizes(cell: JobCell) -> bool:
    """Return whether the job takes its batch size from the table of sizes: an argument names $BATCH_SIZE."""
    return BATCH_SIZE in named_variables(cell, ())


def with_arguments(cell: JobCell, args: Sequence[tuple[str, Value]]) -> JobCell:
    """Return the cell with these arguments added at the end, replacing its own of the same flags."""
    flags = {flag for flag, _ in args}
    return replace(cell, args=(*(pair for pair in cell.args if pair[0] not in flags), *args))


def arguments(
    cell: JobCell, variables: Mapping[str, str], extra: Sequence[str] = (), seed: int | None = None
) -> list[str]:
    """Return the words after the command: the cell's own, then `extra`, then `--seed`.

    A flag in `extra` replaces the same flag of the cell with all its values; the rest of `extra` is added.
    Every word is expanded by itself, so a variable's value never becomes two arguments. `--seed` comes last, so that it
    overrides others in argparse, unless `extra` names it. It comes before a `-s` of `extra`, which is its short name in
    our benchmarks, and may mean anything in others. Words after a `--` in `extra` stay last: no flag may follow.
    """
    return [expand_variables(word, variables) for word in _unexpanded(cell, extra, seed)]


def named_variables(cell: JobCell, extra: Sequence[str]) -> set[str]:
    """Return the names of the variables that `arguments` would expand."""
    return {name for word in _unexpanded(cell, extra) for name in variables_in(word)}


def _unexpanded(cell: JobCell, extra: Sequence[str], seed: int | None = None) -> list[str]:
    end = extra.index("--") if "--" in extra else len(extra)
    options, operands = extra[:end], extra[end:]
    replaced = {flag_name(word) for word in options if is_flag(word)}
    line: list[str] = []
    for key, value in cell.args:
        if not (is_flag(key) and flag_name(key) in replaced):
            line += [key, *words(value)]
    ours = ["--seed", str(seed)] if seed is not None and "--seed" not in replaced else []
    line += [*ours, *options] if any(flag.startswith("-s") for flag in replaced) else [*options, *ours]
    return [*line, *operands]
