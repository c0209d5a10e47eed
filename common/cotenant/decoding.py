"""Decodes files and messages by msgspec, with one kind of error for all faults, and types of possible numbers."""

from __future__ import annotations

from typing import Annotated, Protocol, TypeVar

import msgspec

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


MOST = 1 << 63  # no clock and no count reaches it
Nanoseconds = Annotated[int, msgspec.Meta(ge=0, le=MOST - 1)]
Whole = Annotated[int, msgspec.Meta(ge=-MOST, le=MOST - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST - 1)]
AtLeastOne = Annotated[int, msgspec.Meta(ge=1, le=MOST - 1)]
Number = Annotated[float, msgspec.Meta(gt=-MOST, lt=MOST)]
"""A possible number of items or seconds: larger ones would overflow in sums and ratios. NaN is not allowed."""
Positive = Annotated[float, msgspec.Meta(gt=0, lt=MOST)]
Measured = Annotated[float, msgspec.Meta(gt=1 / MOST, lt=MOST)]
"""A positive number whose reciprocal is possible, too."""
NotNegative = Annotated[float, msgspec.Meta(ge=0, lt=MOST)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class MessageDecoder(Protocol[T_co]):
    """A decoder of JSON or MessagePack."""

    def decode(self, buf: bytes, /) -> T_co: ...


def decoded(decoder: MessageDecoder[T], content: bytes) -> T:
    """Return the decoded `content`. Raises msgspec.DecodeError if it cannot be decoded.

    For texts that are not UTF-8, and values nested too deeply, msgspec raises errors of other kinds.
    """
    try:
        return decoder.decode(content)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(str(error)) from error
    except RecursionError as error:
        raise msgspec.DecodeError("it is nested too deeply") from error
