"""A tenant's own part of its record, checked: any program may speak the rendezvous."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from cotenant.finding import Finding
from cotenant.results.record import Observed
from cotenant.stats.budget import Amount


class TenantPart(msgspec.Struct, frozen=True):
    """What a tenant tells of itself at its end. What a program does not know it leaves out; other keys are dropped."""

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


def tenant_part(part: dict[str, Any]) -> TenantPart:
    """Return what stands in `part`; of a malformed one an error finding that names the wrong field, and no more."""
    try:
        return msgspec.convert(part, TenantPart)
    except msgspec.ValidationError as error:
        finding = Finding(
            "malformed_part",
            "error",
            f"What this program said of its run cannot be kept: {error}.",
            "Send a `record` message whose fields have the types of record.schema.json.",
        )
        return TenantPart(findings=[finding])


def observed_by_ranks(
    messages: Mapping[int, Sequence[dict[str, Any]]],
) -> tuple[list[Observed], dict[str, list[Observed]]]:
    """Return a tenant's observations, and those of each rank where there are several.

    `messages` holds the fields of every rank's observations, by its number. The lowest rank's clock counts, and the
    items are those of all ranks: as many observations as every rank has made.
    """
    seen = {number: [Observed.of_message(fields) for fields in rows] for number, rows in sorted(messages.items())}
    ranks = list(seen.values())
    if len(ranks) == 1:
        return ranks[0], {}
    rows = zip(*ranks, strict=False)
    summed = [msgspec.structs.replace(row[0], items=sum(one.items or 0 for one in row)) for row in rows]
    return summed, {str(number): rows for number, rows in seen.items()}
