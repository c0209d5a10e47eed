"""Messages between the two sides of a challenge, typed, in frames of limited length.

A frame is four bytes of length, big-endian, and one message in MessagePack. The first message of a connection is a
`Join`, which names the protocol's version; whoever cannot be understood is refused with a reason, and disconnected.
"""

from __future__ import annotations

import hashlib
from typing import Annotated

import msgspec

from cotenant.decoding import decoded

PROTOCOL = "cotenant-challenge-1"
FRAME_BYTES = 1 << 20
HEADER_BYTES = 4
LOSS_BYTES = 8
MOST_STEPS = FRAME_BYTES // LOSS_BYTES - 1024
LEAST_PIECES, MOST_PIECES = 5, 10_000
"""With fewer pieces nobody could tell tenants that take turns from tenants that run together."""
MOST_TENANTS, MOST_WORDS = 256, 256
MOST_CLAIM_BYTES = 16 << 10
"""Longest list of words of one tenant: they stand in a transcript, whatever comes of the launch."""
SEED_BITS = 32
"""Every generator of a benchmark takes so many: numpy's no more."""

Text = Annotated[str, msgspec.Meta(max_length=256)]
Word = Annotated[str, msgspec.Meta(max_length=4096)]
Digest = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]


class Join(msgspec.Struct, frozen=True, kw_only=True, tag="join", omit_defaults=True):
    """A tenant's claim: its work, and beside how many others of its launch."""

    protocol: Text
    launch: Text
    """One random name for all tenants of a launch."""
    job: Text
    tenant: Annotated[int, msgspec.Meta(ge=0, lt=MOST_TENANTS)]
    tenants: Annotated[int, msgspec.Meta(ge=1, le=MOST_TENANTS)]
    task: Text
    """The benchmark's file, below `tasks`."""
    version: Text
    """Hash of its source (`version_of`)."""
    words: Annotated[tuple[Word, ...], msgspec.Meta(max_length=MOST_WORDS)]
    """Its arguments. Their seed does not count: it is the buyer's."""
    token: Text = ""
    """The buyer's, of whom it is a vendor. It goes over the line and stands in no transcript and no chain."""


class Ready(msgspec.Struct, frozen=True, kw_only=True, tag="ready"):
    """It has built its model of the seed, warmed up, and saved that state: from here every piece begins."""

    state: Digest
    number: Annotated[int, msgspec.Meta(ge=1, le=MOST_STEPS)]
    """Steps in a piece."""
    pieces: Annotated[int, msgspec.Meta(ge=LEAST_PIECES, le=MOST_PIECES)]
    """As many as it will answer at least."""
    software: Annotated[dict[Text, Text], msgspec.Meta(max_length=32)]
    """Device, torch, threads: where all of it is equal a replay has the same bits."""


class PieceAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="answer"):
    """A piece is done: its losses as doubles, little-endian, one of each step; the weights' digest after the last."""

    index: Annotated[int, msgspec.Meta(ge=0, le=MOST_PIECES)]
    items: Annotated[float, msgspec.Meta(gt=0, lt=1e18)]
    losses: Annotated[bytes, msgspec.Meta(max_length=MOST_STEPS * LOSS_BYTES)]
    weights: Digest
    chain: Digest
    """`link` of all that came before it."""


class Ask(msgspec.Struct, frozen=True, kw_only=True, tag="ask"):
    """The vendor's runner waits for the buyer's transcript of a launch."""

    protocol: Text
    launch: Text


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag="begin"):
    """All tenants have joined: this one's seed."""

    seed: int


class Piece(msgspec.Struct, frozen=True, kw_only=True, tag="piece"):
    """Do a piece: input and every random number come from this nonce, which nobody knew before."""

    index: int
    nonce: Digest


class Over(msgspec.Struct, frozen=True, tag="over"):
    """Every tenant has answered as many pieces as it said."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True, tag="outcome"):
    """The buyer's report of a launch; the transcript follows it, in as many parts."""

    parts: Annotated[int, msgspec.Meta(ge=1, le=4096)]


class TranscriptPart(msgspec.Struct, frozen=True, tag="part"):
    """Some bytes of a transcript."""

    content: bytes


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """Why the other side goes."""

    reason: Annotated[str, msgspec.Meta(max_length=1024)]


ToBuyer = Join | Ready | PieceAnswer | Ask
ToVendor = Begin | Piece | Over | Outcome | TranscriptPart | Refused
Message = ToBuyer | ToVendor

_ENCODER = msgspec.msgpack.Encoder()
_OF_VENDOR = msgspec.msgpack.Decoder(ToBuyer)
_OF_BUYER = msgspec.msgpack.Decoder(ToVendor)


class NonsenseError(ValueError):
    """The bytes received are no message of this protocol."""


def framed(message: Message) -> bytes:
    """Return a message as it is sent."""
    content = _ENCODER.encode(message)
    assert len(content) <= FRAME_BYTES
    return len(content).to_bytes(HEADER_BYTES, "big") + content


def length_of(header: bytes) -> int:
    """Return how many bytes follow a frame's header. Raises NonsenseError for more than a frame may have."""
    length = int.from_bytes(header, "big")
    if not 0 < length <= FRAME_BYTES:
        raise NonsenseError(f"a frame of {length} bytes")
    return length


def of_vendor(content: bytes) -> ToBuyer:
    """Return the message that a vendor sent. Raises NonsenseError."""
    try:
        message: ToBuyer = decoded(_OF_VENDOR, content)
    except msgspec.DecodeError as error:
        raise NonsenseError(str(error)) from error
    return message


def of_buyer(content: bytes) -> ToVendor:
    """Return the message that a buyer sent. Raises NonsenseError."""
    try:
        message: ToVendor = decoded(_OF_BUYER, content)
    except msgspec.DecodeError as error:
        raise NonsenseError(str(error)) from error
    return message


def seed_of(nonce: bytes, tenant: int = 0) -> int:
    """Return the seed that a nonce gives a tenant; the nonce of a piece is one tenant's own."""
    return int.from_bytes(hashlib.sha256(nonce + tenant.to_bytes(4, "big")).digest()[: SEED_BITS // 8], "big")


def first_link(join: Join, seed: int, ready: Ready) -> bytes:
    """Return the beginning of a tenant's chain: its claim, its seed and its saved state."""
    claim = msgspec.json.encode([join, seed, ready], order="sorted")
    return hashlib.sha256(claim).digest()


def link(before: bytes, nonce: bytes, losses: bytes, weights: bytes) -> bytes:
    """Return the chain behind one more answer."""
    digest = hashlib.sha256(before)
    for part in (nonce, losses, weights):
        digest.update(hashlib.sha256(part).digest())
    return digest.digest()
