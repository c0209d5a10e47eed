"""One process of a tenant as the rendezvous knows it, and whether what it says makes sense."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any

from cotenant.launch.life import Life
from cotenant.launch.rendezvous import Link
from cotenant.protocol.messages import Message, ProtocolError
from cotenant.stats.budget import Amount

MAY_SAY = frozenset(
    (
        "failed",
        "device_out_of_memory",
        "interrupted",
        "missing_data",
        "missing_package",
        "nan",
        "out_of_memory",
        "unsupported",
    )
)
"""The outcomes a tenant knows itself, as memory that was refused; all others are the runner's to see."""


@dataclass(frozen=True, slots=True)
class Go:
    """The word that starts a load: when, and how much of it is measured."""

    t0_ns: int
    given: Amount


@dataclass(slots=True)
class Rank:
    """What one process has said so far."""

    link: Link
    number: int
    world: int
    life: Life | None = None
    work: dict[str, Any] = field(default_factory=dict)
    ready: dict[str, Any] | None = None
    ready_ns: int = 0
    observations: list[dict[str, Any]] = field(default_factory=list)
    enough: bool = False
    """It was told to end its observations before the last one."""
    done: bool = False
    record: dict[str, Any] | None = None
    failed: bool = False

    @property
    def name(self) -> str:
        return f"Rank {self.number} of {self.world}"

    @property
    def complains(self) -> bool:
        """It has said that it fails, and still lives."""
        return self.failed and self.life is not None and not self.life.ended

    @property
    def asked(self) -> Amount | None:
        """How much it is ready to measure."""
        if self.ready is None:
            return None
        return Amount(self.ready["number"], self.ready["repeat"], self.ready["skip"])

    def close(self) -> None:
        self.link.close()
        if self.life is not None:
            self.life.close()
            self.life = None

    def longest_batch_s(self, number: int) -> float:
        """Return the mean seconds of a batch in its slowest observation of `number` batches; 0 without any."""
        times_ns = [fields["end_ns"] - fields["start_ns"] for fields in self.observations]
        return max(times_ns, default=0) / number / 1e9

    def take(self, message: Message, go: Go | None) -> None:
        """Keep what it says after its hello. Raises ProtocolError for what has no meaning at this point."""
        kind, fields = message.kind, message.fields
        if kind == "begin" and not self.work and self.ready is None:
            self.work = fields["work"]
        elif kind == "ready" and self.ready is None:
            _check_ready(fields)
            self.ready, self.ready_ns = fields, time.perf_counter_ns()
        elif kind == "observation" and go is not None and not self.done:
            self._check_observation(fields, go)
            self.observations.append(fields)
        elif kind == "done" and go is not None and not self.done:
            if len(self.observations) != go.given.repeat and not self.enough:
                raise ProtocolError(f"done after {len(self.observations)} of {go.given.repeat} observations")
            self.done = True
        elif kind == "record" and self.done and self.record is None:
            self.record = fields["record"]
        elif kind == "failed":
            if fields["outcome"] not in MAY_SAY:
                raise ProtocolError(f"failed with the unknown outcome '{fields['outcome'][:40]}'")
            self.failed = True
        else:
            raise ProtocolError(f"'{kind}' is not what may be said at this point")

    def _check_observation(self, fields: dict[str, Any], go: Go) -> None:
        index, start_ns, end_ns = fields["index"], fields["start_ns"], fields["end_ns"]
        if index != len(self.observations) or index >= go.given.repeat:
            raise ProtocolError(f"observation {index} where {len(self.observations)} of {go.given.repeat} are known")
        begin_ns = self.observations[-1]["end_ns"] if self.observations else go.t0_ns
        if not begin_ns <= start_ns < end_ns <= time.perf_counter_ns():
            raise ProtocolError(
                f"observation {index} from {start_ns} to {end_ns} ns does not lie between {begin_ns} ns and now: "
                "times are those of CLOCK_MONOTONIC"
            )
        if not (math.isfinite(fields["items"]) and fields["items"] >= 0):
            raise ProtocolError(f"observation {index} of {fields['items']} items")


def _check_ready(fields: dict[str, Any]) -> None:
    number, repeat, skip = fields["number"], fields["repeat"], fields["skip"]
    if number < 1 or not 0 <= skip < repeat:
        raise ProtocolError(f"ready for {repeat} observations of {number} batches, without the first {skip}")
    if not all(isinstance(one, int) for one in fields["warm_up_ns"]):
        raise ProtocolError("ready with a warm-up that is no list of nanoseconds")
