"""The transcript of a challenge: all messages, their times by the buyer's clock, and the results of replays.

Everything else is computed from it (`verdict`), here and by whoever is given the file.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from cotenant.challenge.messages import Digest, Join, Ready
from cotenant.decoding import decoded

Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """A piece and its answer. Times are of the buyer's monotonic clock."""

    nonce: Digest
    sent_ns: Nanoseconds
    """When the nonce was about to be sent."""
    came_ns: Nanoseconds
    """When the whole answer had come."""
    items: Annotated[float, msgspec.Meta(gt=0, lt=1e18)]
    losses: bytes
    weights: Digest
    chain: Digest

    @property
    def took_ns(self) -> int:
        return self.came_ns - self.sent_ns


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """All that one tenant said. `ready` is None, and there are no exchanges, where it never came so far."""

    join: Join
    seed: int
    ready: Ready | None = None
    exchanges: list[Exchange] = []

    @property
    def head(self) -> str:
        """The end of its chain of digests, as a record has it; "" without an answer."""
        return self.exchanges[-1].chain.hex() if self.exchanges else ""

    @property
    def span_ns(self) -> int:
        """From its first nonce to its last answer; 0 without an answer."""
        return self.exchanges[-1].came_ns - self.exchanges[0].sent_ns if self.exchanges else 0

    @property
    def in_order(self) -> bool:
        """Whether each answer came after its nonce, and each nonce after the answer before it."""
        moments = [moment for each in self.exchanges for moment in (each.sent_ns, each.came_ns)]
        return moments == sorted(moments) and all(each.took_ns > 0 for each in self.exchanges)


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """One piece as the buyer made it again, from a state of its own."""

    tenant: int
    index: int
    state: Digest
    items: float
    losses: bytes
    weights: Digest
    software: dict[str, str]


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """A challenge of one launch. `nonce` made the seeds, `broken` says why it ended before its end."""

    schema: str = "cotenant-challenge-1"
    time: str
    """When it began, ISO 8601 by the buyer's calendar."""
    nonce: Digest
    chains: list[Chain]
    replays: list[Replay] = []
    broken: list[str] = []
    tolerance: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 1e-3
    """Relative, for the losses of a replay on another device or other software."""

    @property
    def job(self) -> str:
        return self.chains[0].join.job if self.chains else ""


_DECODER = msgspec.json.Decoder(Transcript)


def written(transcript: Transcript) -> bytes:
    """Return a transcript as its file holds it."""
    return msgspec.json.encode(transcript) + b"\n"


def read(content: bytes) -> Transcript:
    """Return the transcript of a file. Raises msgspec.DecodeError for a file that holds none."""
    return decoded(_DECODER, content)
