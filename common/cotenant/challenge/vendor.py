"""The vendor's end of a challenge: a tenant's connection to the buyer, and a runner's request for the transcript."""

from __future__ import annotations

import contextlib
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from cotenant.challenge.messages import (
    HEADER_BYTES,
    PROTOCOL,
    Ask,
    Begin,
    Join,
    NonsenseError,
    Outcome,
    Over,
    Piece,
    PieceAnswer,
    Ready,
    Refused,
    ToBuyer,
    ToVendor,
    TranscriptPart,
    first_link,
    framed,
    length_of,
    link,
    of_buyer,
)
from cotenant.challenge.transcript import read
from cotenant.challenge.verdict import summary
from cotenant.choices import BUYER_VARIABLE, TOKEN_VARIABLE
from cotenant.errors import EXIT_FAILED, CotenantError
from cotenant.files import content_of, readable
from cotenant.text import is_host

LAUNCH_VARIABLE = "COTENANT_CHALLENGE_LAUNCH"
CONNECT_S, LOOK_S = 10.0, 0.5
SILENCE_S = 1800.0
"""A buyer waits for the slowest tenant; its replays are as long as the pieces, on a machine that may be slower."""


class BuyerError(CotenantError):
    """The buyer refuses, or is not there."""

    exit_status = EXIT_FAILED


def address_of(text: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`, `[HOST]:PORT` or `PORT`, which is of the loopback. Raises CotenantError."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or not 0 <= int(port) < 1 << 16 or (host and not is_host(host)):
        raise CotenantError(f"'{text}' is no address.", "Write HOST:PORT, as buyer.example:7000; a port is 0 to 65535.")
    return host.removeprefix("[").removesuffix("]") or "127.0.0.1", int(port)


def token_of(given: str | None, environ: Mapping[str, str]) -> str:
    """Return a token that is `given` as it is or as @FILE, else that of the environment; "" without any.

    Raises CotenantError where a file cannot be read, or holds no token of at most 256 characters.
    """
    if given is None:
        return environ.get(TOKEN_VARIABLE, "")
    token = given
    if given.startswith("@"):
        try:
            token = content_of(Path(given[1:]), 1024).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise CotenantError(
                f"The token in {given[1:]} cannot be read: {error}.", "Name a file of one line."
            ) from error
    if not 0 < len(token) <= 256:
        raise CotenantError(f"A token has 1 to 256 characters, and this one {len(token)}.", "Write TOKEN or @FILE.")
    return token


class BuyerConnection:
    """Messages to and from a buyer. Raises BuyerError where it is not there, leaves, or refuses."""

    def __init__(self, address: str) -> None:
        self._address = address
        try:
            self._socket = socket.create_connection(address_of(address), CONNECT_S)
        except OSError as error:
            raise BuyerError(
                f"No buyer listens at {address}: {error.strerror or error}.", "cotenant challenge --listen PORT, there."
            ) from error
        self._socket.settimeout(SILENCE_S)
        # An answer is small, and the clock runs.
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._incoming = self._socket.makefile("rb")

    def send(self, message: ToBuyer) -> None:
        """Send a message; a buyer that has left is seen where its answer is awaited."""
        with contextlib.suppress(OSError):
            self._socket.sendall(framed(message))

    def receive(self) -> ToVendor:
        """Return the buyer's next message, once it comes; where none does the connection is closed."""
        try:
            return self._received()
        except BuyerError:
            self.close()
            raise

    def _received(self) -> ToVendor:
        try:
            message = of_buyer(self._exactly(length_of(self._exactly(HEADER_BYTES))))
        except (OSError, EOFError) as error:
            raise BuyerError(f"The buyer at {self._address} has left: {error}.") from error
        except NonsenseError as error:
            raise BuyerError(f"What answers at {self._address} is no buyer: {error}.") from error
        if isinstance(message, Refused):
            raise BuyerError(f"The buyer at {self._address} refuses: {message.reason}.")
        return message

    def wait(self, interrupted: Callable[[], object]) -> None:
        """Wait for a message while nothing interrupts. Raises BuyerError where something does."""
        deadline_s = time.monotonic() + SILENCE_S
        while not readable(self._socket.fileno(), LOOK_S):
            if interrupted() or time.monotonic() > deadline_s:
                raise BuyerError(f"The buyer at {self._address} had not ended its replays.")

    def close(self) -> None:
        self._incoming.close()
        self._socket.close()

    def _exactly(self, count: int) -> bytes:
        content = self._incoming.read(count)
        if len(content) < count:
            raise EOFError("it closed the connection")
        return content


class ChallengedRun:
    """A tenant in front of its buyer: joined at once, with a `seed` once all tenants of its launch have."""

    def __init__(self, connection: BuyerConnection, join: Join) -> None:
        self._connection = connection
        # Without its token: the beginning of its chain may be shown to everybody.
        self._join = msgspec.structs.replace(join, token="")
        self._head = b""
        self.answers = 0
        self._waited_ns: list[int] = []
        connection.send(join)
        begin = connection.receive()
        if not isinstance(begin, Begin):
            raise BuyerError("The buyer does not begin with a seed.")
        self.seed = begin.seed

    @classmethod
    def join(cls, task: str, version: str, words: tuple[str, ...]) -> ChallengedRun:
        """Join the buyer that a runner's environment names. Raises BuyerError."""
        environ = os.environ
        join = Join(
            protocol=PROTOCOL,
            launch=environ[LAUNCH_VARIABLE],
            job=environ["BENCH_NAME"],
            tenant=int(environ["JOB_ID"]),
            tenants=int(environ["DEVICE_TOTAL"]),
            task=task,
            version=version,
            words=words,
            token=environ.get(TOKEN_VARIABLE, ""),
        )
        return cls(BuyerConnection(environ[BUYER_VARIABLE]), join)

    def ready(self, ready: Ready) -> None:
        """Commit to the saved state; the first nonce comes once all tenants have."""
        self._head = first_link(self._join, self.seed, ready)
        self._connection.send(ready)

    def nonce(self) -> bytes | None:
        """Return the nonce of the piece to do, once it comes; None where the buyer has seen enough."""
        begin_ns = time.perf_counter_ns()
        message = self._connection.receive()
        self._waited_ns.append(time.perf_counter_ns() - begin_ns)
        if isinstance(message, Over):
            self._connection.close()
            return None
        if not isinstance(message, Piece) or message.index != self.answers:
            raise BuyerError(f"The buyer asks for another piece than {self.answers}.")
        self._nonce = message.nonce
        return message.nonce

    def answer(self, items: float, losses: bytes, weights: bytes) -> None:
        """Answer the piece of the last nonce."""
        self._head = link(self._head, self._nonce, losses, weights)
        self._connection.send(
            PieceAnswer(index=self.answers, items=items, losses=losses, weights=weights, chain=self._head)
        )
        self.answers += 1

    def facts(self) -> dict[str, object]:
        """Return the facts for its record: those that find it in the transcript, and its waits for nonces."""
        return {
            "launch": self._join.launch,
            "seed": self.seed,
            "answers": self.answers,
            "chain": self._head.hex(),
            "waited_ns": self._waited_ns,
        }


@dataclass(frozen=True, slots=True)
class Buyer:
    """The buyer of a suite's launches, all that a runner knows of challenges: its address, and the vendor's token.

    Raises CotenantError for a text that is no address.
    """

    address: str
    token: str = ""

    def __post_init__(self) -> None:
        address_of(self.address)

    def greet(self) -> None:
        """Raise BuyerError where it does not listen."""
        BuyerConnection(self.address).close()

    def variables(self, launch: str) -> dict[str, str]:
        """Return the environment by which the tenants of this launch find it."""
        return {BUYER_VARIABLE: self.address, LAUNCH_VARIABLE: launch, TOKEN_VARIABLE: self.token}

    def transcript(self, launch: str, interrupted: Callable[[], object]) -> tuple[bytes, str]:
        """Return its transcript of a launch and a line on it, once pieces are made again. Raises BuyerError."""
        with contextlib.closing(BuyerConnection(self.address)) as connection:
            connection.send(Ask(protocol=PROTOCOL, launch=launch))
            connection.wait(interrupted)
            outcome = connection.receive()
            if not isinstance(outcome, Outcome):
                raise BuyerError("The buyer sends something else than a transcript.")
            parts = [connection.receive() for _ in range(outcome.parts)]
        content = b"".join(part.content for part in parts if isinstance(part, TranscriptPart))
        try:
            return content, summary(read(content))
        except msgspec.MsgspecError as error:
            raise BuyerError(f"The buyer has sent no transcript: {error}.") from error
