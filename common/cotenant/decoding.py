"""Decodes files and messages by msgspec, with one kind of error for all faults."""

from __future__ import annotations

from typing import Protocol, TypeVar

import msgspec

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


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
