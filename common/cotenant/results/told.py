"""A tenant's own part of its record. Any program may send one, so it is checked first."""

from __future__ import annotations

from typing import Any

import msgspec

from cotenant.decoding import Whole
from cotenant.finding import Finding, by_benchmark
from cotenant.stats.budget import Amount


class TenantPart(msgspec.Struct, frozen=True):
    """A tenant's statement at its end. A program leaves out facts that it does not know; unknown keys are dropped."""

    arguments: dict[str, Any] = {}
    ignored: list[str] = []
    item: str = ""
    version: str = ""
    number: Whole | None = None
    repeat: Whole | None = None
    load_end_ns: Whole = 0
    gpu: str = ""
    batch_loss: list[float | None] = []
    epoch_loss: list[float | None] = []
    losses_checked: Whole = 0
    losses_non_finite: Whole = 0
    metrics: dict[str, float | None] = {}
    device_memory: dict[str, Any] = {}
    observed: dict[str, Any] = {}
    torch: dict[str, Any] = {}
    findings: list[Finding] = []

    def given_arguments(self, seen: Amount | None) -> dict[str, Any]:
        """Return the arguments as they were carried out, with the `number` and `repeat` that this program reports.

        If it reports them only among its arguments, the amounts that its runner has `seen` count. With several ranks
        or replicas, `batch_size` is the total of all, and `batch_size_per_device` is added.
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
    """Return the content of `part`, with its findings marked as the program's own; for a malformed part, only an error
    finding that names the wrong field."""
    try:
        stated = msgspec.convert(part, TenantPart)
        return msgspec.structs.replace(stated, findings=by_benchmark(stated.findings))
    except msgspec.ValidationError as error:
        finding = Finding(
            "malformed_part",
            "error",
            f"What this program reported of its run cannot be kept: {error}.",
            "Send a `record` message whose fields have the types of record.schema.json.",
        )
        return TenantPart(findings=[finding])
