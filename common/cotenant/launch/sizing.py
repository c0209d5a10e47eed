"""Which batch size a launch's tenants have: the class of the memory that each has of a device, looked up in the table.

All tenants of a launch, and each of them alone as a baseline, have one class: that of the smallest part.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from cotenant.choices import MEMORY_CLASSES
from cotenant.errors import CotenantError
from cotenant.isolation.plan import Plan
from cotenant.suite.cells import BATCH_SIZE, Job, JobCell, asks_for_sizes, expand, precision_of, with_arguments
from cotenant.suite.sizes import FILE, Size, SizeTable, load_sizes, memory_class
from cotenant.text import gib


class Sizing:
    """Batch sizes of one suite on one machine's plans, in the class that is `asked` for, else in the memory's own.

    The table stands beside the job file, else among the profiles of the checkout.
    """

    def __init__(
        self, class_name: str | None, folders: Sequence[Path], plans: Mapping[str, Plan], extra: Sequence[str]
    ) -> None:
        self._class, self._folders, self._plans, self._extra = class_name, folders, plans, extra

    @functools.cached_property
    def _table(self) -> SizeTable:
        paths = [folder / FILE for folder in self._folders]
        return load_sizes(next((path for path in paths if path.exists()), paths[-1]))

    def class_of(self, job: Job) -> str | None:
        """Return the class of a job's tenants; None where their part of a device is smaller than every class."""
        return self._class or memory_class(self._plans[job.group].device_share_bytes)

    def size_of(self, cell: JobCell) -> Size | None:
        """Return the table's size for a cell; None where the cell does not ask for it, or the memory is too small.

        Raises CotenantError for a job or a precision that the table does not know.
        """
        name = self.class_of(cell.job)
        if name is None or not asks_for_sizes(cell):
            return None
        device = "" if self._class else self._plans[cell.job.group].whole_device
        family = cell.job.family or cell.job.name
        return self._table.size_of(family, precision_of(cell, self._extra), name, device)

    def is_too_large(self, cell: JobCell) -> bool:
        """Tell whether a cell asks for a batch size, and its tenants' memory has none."""
        return asks_for_sizes(cell) and self.size_of(cell) is None

    def sized(self, cell: JobCell) -> tuple[JobCell, Size | None]:
        """Return the cell with the further arguments of its class, and its size."""
        size = self.size_of(cell)
        return (cell, None) if size is None else (with_arguments(cell, size.args), size)

    def variables(self, job: Job, size: Size | None) -> dict[str, str]:
        """Return MEMORY_CLASS, where it is known, and BATCH_SIZE of a job that asks for it."""
        name = self.class_of(job)
        known = {"MEMORY_CLASS": name} if name else {}
        return known | ({BATCH_SIZE: str(size.batch_size)} if size else {})

    def left_out(self, jobs: Sequence[Job]) -> Iterator[str]:
        """Yield a sentence on the jobs whose tenants' memory is too small for them."""
        for group, plan in self._plans.items():
            of_group = [job for job in jobs if job.group == group]
            names = [job.stem for job in of_group if any(self.is_too_large(cell) for cell in expand(job))]
            if names:
                part = "" if not plan.device_share_bytes else f" ({gib(plan.device_share_bytes)} of a device each)"
                where = self.class_of(of_group[0]) or f"less than {next(iter(MEMORY_CLASSES))}"
                reason = f"{self._table.path} has no batch size of theirs for {where}{part}"
                yield f"{', '.join(names)}: left out, as {reason}; --memory-class names another class."


def check_axis(job: Job, extra: Sequence[str]) -> None:
    """Raise CotenantError where arguments after -- name another precision than the cell's name does."""
    for cell in expand(job):
        named, requested = precision_of(cell), precision_of(cell, extra)
        if job.family and requested != named:
            raise CotenantError(
                f"{job.stem} trains in {named}, and --precision {requested} stands after --.",
                f"Choose --name {job.family}_{requested}.",
            )
