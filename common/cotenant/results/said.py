"""What a tenant says of itself at its end, checked: any program may speak the rendezvous."""

from __future__ import annotations

from typing import Any

import msgspec

from cotenant.finding import Finding
from cotenant.stats.budget import Amount


class Said(msgspec.Struct, frozen=True):
    """A tenant's part of its record. Whatever a program does not know it leaves out; further keys are dropped."""

    arguments: dict[str, Any] = {}
    ignored: list[str] = []
    item: str = ""
    version: str = ""
    number: int | None = None
    repeat: int | None = None
    load_end_ns: int = 0
    gpu: str = ""
    batch_loss: list[float | None] = []
    epoch_loss: list[float | None] = []
    losses_checked: int = 0
    losses_non_finite: int = 0
    metrics: dict[str, float | None] = {}
    device_memory: dict[str, Any] = {}
    observed: dict[str, Any] = {}
    torch: dict[str, Any] = {}
    findings: list[Finding] = []

    def given_arguments(self, seen: Amount | None = None) -> dict[str, Any]:
        """Return the arguments with what was done instead of asked for: `number` and `repeat` as this program says.

        Where it only names them among its arguments, they are what its runner has `seen`. Of several ranks, and of
        several replicas, `batch_size` is that of all, and `batch_size_per_device` stands beside it.
        """
        by_runner = {"number": seen.number, "repeat": seen.repeat} if seen else {}
        by_itself = {"number": self.number, "repeat": self.repeat}
        done = {name: value for name, value in by_runner.items() if name in self.arguments}
        done |= {name: value for name, value in by_itself.items() if value is not None}
        world, batch_size = self.observed.get("world_size"), self.arguments.get("batch_size")
        if isinstance(world, int) and isinstance(batch_size, int) and world > 1:
            done |= {"batch_size": batch_size * world, "batch_size_per_device": batch_size}
        replicas = self.observed.get("replicas")
        if isinstance(replicas, int) and isinstance(batch_size, int) and replicas > 1:
            done |= {"batch_size_per_device": batch_size // replicas}
        return self.arguments | done


def said(part: dict[str, Any]) -> Said:
    """Return what `part` says; of a malformed one nothing but an error finding that names the wrong field."""
    try:
        return msgspec.convert(part, Said)
    except msgspec.ValidationError as error:
        finding = Finding(
            "malformed_part",
            "error",
            f"What this program said of its run cannot be kept: {error}.",
            "Send a `record` message whose fields have the types of record.schema.json.",
        )
        return Said(findings=[finding])
