"""Where each process of a tenant writes: rank 0 and what started it into the tenant's log, the others beside it."""

from __future__ import annotations

from pathlib import Path


def rank_log(log: Path, rank: int) -> Path:
    """Return the log of one rank, given the tenant's: `job.R0.T0.log` and `job.R0.T0.rank1.log`."""
    return log if rank == 0 else log.with_name(f"{log.stem}.rank{rank}.log")
