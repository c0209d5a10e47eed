"""The batch size of a launch's tenants, from the table, by the class of the device memory that each tenant has.

All tenants of a launch, and each of them alone as a baseline, have one class, by the smallest device memory.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cotenant.choices import MEMORY_CLASSES
from cotenant.errors import CotenantError
from cotenant.isolation.plan import Plan
from cotenant.suite.cells import BATCH_SIZE, Job, JobCell, asks_for_sizes, expand, precision_of, with_arguments
from cotenant.suite.sizes import FILE, Size, SizeTable, load_sizes, memory_class
from cotenant.text import gib


@dataclass(frozen=True)
class Sizing:
    """Batch sizes of one suite for one machine's plans, in the class `class_name`, else in the memory's own class.

    The table is read from the first of `folders` that has one: beside the job file, else the checkout's profiles.
    """

    class_name: str | None
    folders: Sequence[Path]
    plans: Mapping[str, Plan]
    extra: Sequence[str]

    @functools.cached_property
    def _table(self) -> SizeTable:
        paths = [folder / FILE for folder in self.folders]
        return load_sizes(next((path for path in paths if path.exists()), paths[-1]))

    def class_of(self, job: Job) -> str | None:
        """Return the class of a job's tenants; None if their part of a device is smaller than every class."""
        return self.class_name or memory_class(self.plans[job.group].device_share_bytes)

    def size_of(self, cell: JobCell) -> Size | None:
        """Return the table's size for a cell; None if the cell does not ask for it, or the memory is too small.

        Raises CotenantError for a job or a precision missing from the table.
        """
        name = self.class_of(cell.job)
        if name is None or not asks_for_sizes(cell):
            return None
        device = "" if self.class_name else self.plans[cell.job.group].whole_device
        family = cell.job.family or cell.job.name
        return self._table.size_of(family, precision_of(cell, self.extra), name, device)

    def is_too_large(self, cell: JobCell) -> bool:
        """Return whether a cell asks for a batch size and the table has none for its tenants' memory."""
        return asks_for_sizes(cell) and self.size_of(cell) is None

    def sized(self, cell: JobCell) -> tuple[JobCell, Size | None]:
        """Return the cell with the table's additional arguments, and its size."""
        size = self.size_of(cell)
        return (cell, None) if size is None else (with_arguments(cell, size.args), size)

    def variables(self, job: Job, size: Size | None) -> dict[str, str]:
        """Return MEMORY_CLASS, if it is known, and BATCH_SIZE for a job that asks for it."""
        name = self.class_of(job)
        memory = {"MEMORY_CLASS": name} if name else {}
        return memory | ({BATCH_SIZE: str(size.batch_size)} if size else {})

    def left_out(self, jobs: Sequence[Job]) -> Iterator[str]:
        """Yield a sentence on the jobs whose tenants' memory is too small for them."""
        for group, plan in self.plans.items():
            of_group = [job for job in jobs if job.group == group]
            names = [job.stem for job in of_group if any(self.is_too_large(cell) for cell in expand(job))]
            if names:
                part = "" if not plan.device_share_bytes else f" ({gib(plan.device_share_bytes)} of a device each)"
                where = self.class_of(of_group[0]) or f"less than {next(iter(MEMORY_CLASSES))}"
                reason = f"{self._table.path} has no batch sizes for these jobs and {where}{part}"
                yield f"{', '.join(names)}: left out, as {reason}; --memory-class names another class."


def check_axis(job: Job, extra: Sequence[str]) -> None:
    """Raise CotenantError if arguments after -- name another precision than the cell's name."""
    for cell in expand(job):
        named, requested = precision_of(cell), precision_of(cell, extra)
        if job.family and requested != named:
            raise CotenantError(
                f"{job.stem} trains in {named}, and --precision {requested} stands after --.",
                f"Choose --name {job.family}_{requested}.",
            )
