"""The processes of one benchmark that torch.distributed.run started: one trains alone, several train one model.

The launcher sets RANK, LOCAL_RANK, WORLD_SIZE and LOCAL_WORLD_SIZE; a runner adds the processors of each rank.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import distributed

from cotenant.bench.device import Device
from cotenant.bench.outcome import BenchmarkError
from cotenant.bench.parallel import Compression, Form, over_all_ranks
from cotenant.errors import CotenantError
from cotenant.procfs import parse_list
from cotenant.protocol.messages import LOG_VARIABLE, RANKS_VARIABLE, rank_log

T = TypeVar("T")
GATHER_LIMIT = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class World:
    """This process's rank among all; `local_rank` of the `local_size` on this host also picks its device."""

    rank: int = 0
    local_rank: int = 0
    size: int = 1
    local_size: int = 1

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> World:
        """Return the launcher's world; a world of one without a launcher."""
        return cls(*(int(environ.get(name, default)) for name, default in _VARIABLES))

    @property
    def nodes(self) -> int:
        """The number of hosts, each with the same number of ranks."""
        return self.size // self.local_size

    def check_size(self, devices: int) -> None:
        """Raise CotenantError if a benchmark asks for several devices, but not for as many as there are ranks here."""
        if devices not in (1, self.local_size):
            raise CotenantError(
                f"--devices {devices} takes as many processes, and there is {self.local_size}.",
                f"Start it with python -m torch.distributed.run --nproc_per_node={devices}.",
            )

    def settle(self, environ: Mapping[str, str] = os.environ) -> None:
        """Keep to this rank's own processors, if a runner assigned them: a single rank, too, keeps to its share.

        A program without a launcher keeps all of its slice.
        """
        shares = environ.get(RANKS_VARIABLE, "").split(";")
        if "LOCAL_RANK" in environ and self.local_rank < len(shares) and shares[self.local_rank]:
            processors = parse_list(shares[self.local_rank])
            os.sched_setaffinity(0, processors)
            torch.set_num_threads(len(processors))

    def write_apart(self) -> None:
        """Print into a log of this rank's own, if a runner keeps logs, so that last words can be told apart."""
        if self.rank == 0 or LOG_VARIABLE not in os.environ:
            return
        with rank_log(Path(os.environ[LOG_VARIABLE]), self.rank).open("wb") as log:
            sys.stdout.flush()
            sys.stderr.flush()
            os.dup2(log.fileno(), 1)
            os.dup2(log.fileno(), 2)

    def join(self, device: Device) -> None:
        """Meet the other ranks: nccl or rccl between accelerators, gloo between CPUs."""
        if self.size > 1:
            backend = distributed.get_default_backend_for_device(device.torch_device)
            distributed.init_process_group(backend, device_id=device.torch_device if device.is_accelerator else None)

    def spread(self, module: torch.nn.Module, form: Form = "ddp", compression: Compression = "none") -> torch.nn.Module:
        """Return a placed module with its gradients averaged over all ranks; one without gradients as it is."""
        if self.size == 1 or not any(parameter.requires_grad for parameter in module.parameters()):
            return module
        return over_all_ranks(module, form, compression)

    def any_says(self, word: bool, device: Device) -> bool:
        """Return whether any rank says yes; all of them have to call this."""
        if self.size == 1 or not distributed.is_initialized():
            return word
        verdict = torch.tensor(float(word), device=device.torch_device)
        distributed.all_reduce(verdict, distributed.ReduceOp.MAX)
        return bool(verdict.item())

    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks, by their numbers; all of them have to call this, outside of observations.

        Raises BenchmarkError if a rank does not come within GATHER_LIMIT: a gloo group reports that, also between
        accelerators, whose own group would end the process.
        """
        if self.size == 1:
            return [value]
        gathered = [value] * self.size
        try:
            group: Any = distributed.new_group(backend="gloo", timeout=GATHER_LIMIT)
            distributed.all_gather_object(gathered, value, group=group)
        except RuntimeError as error:
            raise BenchmarkError(
                f"Not all of {self.size} ranks reported observations within {GATHER_LIMIT.total_seconds():.0f} s, "
                "so there is no rate of all of them.",
                "See what the other ranks printed last.",
            ) from error
        return gathered

    def leave(self) -> None:
        """Part from the other ranks, if they were met."""
        if self.size > 1 and distributed.is_initialized():
            distributed.destroy_process_group()


_VARIABLES = (("RANK", "0"), ("LOCAL_RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_WORLD_SIZE", "1"))
