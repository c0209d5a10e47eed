"""The buyer's end: listens, gives nonces, takes answers with the time of their coming, and has pieces made again.

Whoever reaches the port may speak, so nothing that comes is believed: messages are typed and of limited length, all
waiting has an end, and a connection that sends nonsense is refused with the reason. All is kept in a transcript.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import random
import secrets
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import accumulate

import msgspec

from cotenant.challenge.messages import (
    FRAME_BYTES,
    HEADER_BYTES,
    MOST_CLAIM_BYTES,
    MOST_PIECES,
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
    framed,
    length_of,
    of_vendor,
    seed_of,
)
from cotenant.challenge.transcript import Chain, Exchange, Replay, Transcript, written
from cotenant.errors import CotenantError
from cotenant.text import many, printable

MOST_CONNECTIONS = 512
MOST_OF_AN_ADDRESS = 64
"""Connections of one address that have said nothing yet: others still find a place."""
MOST_SESSIONS = 8
MOST_BYTES = 256 << 20
"""Limit for the losses of one launch: a hundred tenants with a hundred thousand steps each."""
PART_BYTES = FRAME_BYTES // 2
KEPT_OUTCOMES, KEPT_BYTES = 64, 1 << 29

Replayer = Callable[[Chain, Sequence[int]], list[Replay]]
"""Makes pieces of a tenant again, by their indices. Raises CotenantError where that fails."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the buyer waits, in seconds: for a message, for all to join, to be ready, for an answer, for all."""

    greeting_s: float = 10.0
    joining_s: float = 300.0
    ready_s: float = 1800.0
    answer_s: float = 300.0
    whole_s: float = 7200.0


@dataclass(slots=True)
class Seat:
    """The connection of one tenant, and its messages so far."""

    join: Join
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    seed: int = 0
    ready: Ready | None = None
    exchanges: list[Exchange] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return self.ready is not None and len(self.exchanges) >= self.ready.pieces

    def chain(self) -> Chain:
        return Chain(join=self.join, seed=self.seed, ready=self.ready, exchanges=list(self.exchanges))


@dataclass(slots=True)
class Session:
    """One launch: its tenants, and its outcome."""

    seats: dict[int, Seat] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)
    loss_bytes: int = 0
    outcome: asyncio.Future[bytes] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    work: asyncio.Task[None] | None = None
    complete: bool = False
    """All tenants have joined."""


class ChallengeListener:
    """Challenges every launch that joins, and gives its transcript to `keep`, and to the vendor that asks for it.

    `versions` has the hash of the buyer's own source of each benchmark: other work is refused. `replays` pieces of each
    tenant are made again, chosen after the last answer. With a `token` who does not say it is refused, and counts as no
    launch; nor does a launch of which not all tenants have joined.
    """

    def __init__(
        self,
        versions: Mapping[str, str],
        replayer: Replayer,
        keep: Callable[[Transcript], None],
        replays: int = 2,
        tolerance: float = 1e-3,
        patience: Patience | None = None,
        clock_ns: Callable[[], int] = time.monotonic_ns,
        token: str = "",
    ) -> None:
        self._token = token.encode()
        self._waiting = Counter[str]()
        self._versions = versions
        self._replayer = replayer
        self._keep = keep
        self._replays = replays
        self._tolerance = tolerance
        self._patience = patience or Patience()
        self._clock_ns = clock_ns
        self._sessions: dict[str, Session] = {}
        self._connections = 0
        self._finished = 0
        self._unkept: CotenantError | None = None
        self._enough = asyncio.Event()
        self._one_replay = asyncio.Lock()
        self._last_asked = asyncio.Event()

    async def serve(self, host: str, port: int, launches: int, opened: Callable[[int], None]) -> None:
        """Listen until so many launches are challenged (0: for ever); `opened` hears the port.

        Raises OSError, and the error of `keep`.
        """
        server = await asyncio.start_server(self._connected, host, port, limit=FRAME_BYTES)
        async with server:
            opened(server.sockets[0].getsockname()[1])
            while self._unkept is None and (not launches or self._finished < launches):
                await self._enough.wait()
                self._enough.clear()
            # The vendor's runner may ask for the last one in a moment.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._last_asked.wait(), self._patience.greeting_s)
        if self._unkept is not None:
            raise self._unkept

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take a connection's first message; a tenant's connection stays open for its launch."""
        peer = (writer.get_extra_info("peername") or ("",))[0]
        self._connections += 1
        self._waiting[peer] += 1
        stays = False
        try:
            if self._connections > MOST_CONNECTIONS or self._waiting[peer] > MOST_OF_AN_ADDRESS:
                raise NonsenseError("too many connections")
            first = await _received(reader, self._patience.greeting_s)
            if not isinstance(first, Join | Ask) or first.protocol != PROTOCOL:
                raise NonsenseError(f"a connection begins with a join or an ask of {PROTOCOL}")
            if isinstance(first, Ask):
                await self._tell_outcome(first, writer)
            else:
                self._seat(first, reader, writer)
                stays = True
        except (NonsenseError, OSError, EOFError, TimeoutError) as error:
            await _refuse(writer, str(error) or "nothing came")
        finally:
            self._connections -= 1
            self._waiting[peer] -= 1
            self._waiting += Counter()  # Only of those that wait anything is kept.
            if not stays:
                writer.close()

    def _seat(self, join: Join, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Give a tenant its place; with the last one the launch begins. Raises NonsenseError."""
        if not hmac.compare_digest(join.token.encode(), self._token):
            raise NonsenseError("the token is not this buyer's")
        if sum(len(word.encode()) for word in join.words) > MOST_CLAIM_BYTES:
            raise NonsenseError(f"more than {MOST_CLAIM_BYTES} bytes of words")
        version = self._versions.get(join.task)
        if version is None:
            raise NonsenseError(f"there is no benchmark {printable(join.task)} here")
        if version != join.version:
            raise NonsenseError(f"the source of {join.task} is another than here ({version}): both need one release")
        session = self._sessions.get(join.launch)
        if session is None:
            if sum(not each.outcome.done() for each in self._sessions.values()) >= MOST_SESSIONS:
                raise NonsenseError("too many launches at once")
            session = self._sessions[join.launch] = Session()
            session.work = asyncio.create_task(self._conduct(session))
            self._forget()
        if join.tenant in session.seats or join.tenant >= join.tenants or session.outcome.done():
            raise NonsenseError(f"there is no place for user {join.tenant} of {join.tenants}")
        session.seats[join.tenant] = Seat(msgspec.structs.replace(join, token=""), reader, writer)

    def _forget(self) -> None:
        """Keep the newest outcomes only, of so many bytes in all."""
        done = [launch for launch, session in self._sessions.items() if session.outcome.done()]
        kept_bytes = list(accumulate(len(self._sessions[launch].outcome.result()) for launch in reversed(done)))
        kept = min(KEPT_OUTCOMES, sum(each <= KEPT_BYTES for each in kept_bytes))
        for launch in done[: len(done) - kept]:
            del self._sessions[launch]

    async def _conduct(self, session: Session) -> None:
        """Challenge one launch, have pieces made again, and keep the transcript."""
        began, nonce = datetime.now(UTC), secrets.token_bytes(32)
        try:
            async with asyncio.timeout(self._patience.whole_s):
                await self._exchange(session, nonce)
        except TimeoutError:
            session.broken.append(f"It did not end within {self._patience.whole_s:g} s.")
        for seat in session.seats.values():
            if session.broken:
                await _refuse(seat.writer, " ".join(session.broken))
            seat.writer.close()
        if not session.complete:
            # Nobody's launch: nothing was said of any work.
            self._sessions = {name: other for name, other in self._sessions.items() if other is not session}
            session.outcome.set_exception(NonsenseError("not all users of the launch have joined"))
            session.outcome.exception()  # Where nobody asks it is no mistake.
            return
        chains = [seat.chain() for _, seat in sorted(session.seats.items())]
        replays = [] if session.broken else await self._replayed(session, chains)
        transcript = Transcript(
            time=began.isoformat(timespec="seconds"),
            nonce=nonce,
            chains=chains,
            replays=replays,
            broken=session.broken,
            tolerance=self._tolerance,
        )
        try:
            self._keep(transcript)
        except CotenantError as error:
            self._unkept = error
        finally:
            session.outcome.set_result(written(transcript))
            self._finished += 1
            self._last_asked.clear()
            self._enough.set()

    async def _exchange(self, session: Session, nonce: bytes) -> None:
        """Wait for all tenants, begin, and give nonces until each has answered as many as it promised."""
        deadline_s = time.monotonic() + self._patience.joining_s
        while not session.seats or len(session.seats) < min(seat.join.tenants for seat in session.seats.values()):
            if time.monotonic() > deadline_s:
                session.broken.append(f"{many(len(session.seats), 'user')} joined, and not all of its launch.")
                return
            if any(_has_left(seat.reader) for seat in session.seats.values()):
                session.broken.append("A user left before all of its launch had joined.")
                return
            await asyncio.sleep(0.01)
        session.complete = True
        for seat in session.seats.values():
            seat.seed = seed_of(nonce, seat.join.tenant)
        everybody = session.seats.values()
        await self._each(session, lambda seat: _send(seat.writer, Begin(seed=seat.seed)))
        await self._each(session, self._await_ready)
        await self._each(session, lambda seat: self._challenge(session, seat))
        if not session.broken:
            await asyncio.gather(*(_send(seat.writer, Over()) for seat in everybody), return_exceptions=True)

    async def _each(self, session: Session, act: Callable[[Seat], object]) -> None:
        """Do something with all tenants at once, unless the launch is broken; a failure breaks it."""
        if not session.broken:
            await asyncio.gather(*(self._guarded(session, seat, act) for seat in session.seats.values()))

    async def _guarded(self, session: Session, seat: Seat, act: Callable[[Seat], object]) -> None:
        tenant = seat.join.tenant
        try:
            await act(seat)  # type: ignore[misc] # every act is a coroutine function
        except TimeoutError:
            session.broken.append(f"User {tenant} was silent for too long.")
        except NonsenseError as error:
            session.broken.append(f"User {tenant} does not speak the protocol: {printable(str(error))[:200]}.")
        except (OSError, EOFError):
            session.broken.append(f"User {tenant} left before the end.")

    async def _await_ready(self, seat: Seat) -> None:
        ready = await _received(seat.reader, self._patience.ready_s)
        if not isinstance(ready, Ready):
            raise NonsenseError("where its saved state was due")
        seat.ready = ready

    async def _challenge(self, session: Session, seat: Seat) -> None:
        """Give one tenant nonces, each after the answer to the one before, until all tenants have answered enough."""
        while not session.broken and not all(other.is_done for other in session.seats.values()):
            index, nonce = len(seat.exchanges), secrets.token_bytes(32)
            if index >= MOST_PIECES:
                raise NonsenseError(f"more than {MOST_PIECES} pieces while others were at work")
            sent_ns = self._clock_ns()
            await _send(seat.writer, Piece(index=index, nonce=nonce))
            answer = await _received(seat.reader, self._patience.answer_s)
            came_ns = self._clock_ns()
            if not isinstance(answer, PieceAnswer) or answer.index != index:
                raise NonsenseError(f"where the answer to piece {index} was due")
            session.loss_bytes += len(answer.losses)
            if session.loss_bytes > MOST_BYTES:
                raise NonsenseError(f"more than {MOST_BYTES} bytes of losses")
            seat.exchanges.append(
                Exchange(
                    nonce=nonce,
                    sent_ns=sent_ns,
                    came_ns=came_ns,
                    items=answer.items,
                    losses=answer.losses,
                    weights=answer.weights,
                    chain=answer.chain,
                )
            )

    async def _replayed(self, session: Session, chains: Sequence[Chain]) -> list[Replay]:
        """Have pieces of each tenant made again, chosen now: answers can no longer be changed."""
        replays, chance = [], random.SystemRandom()
        async with self._one_replay:
            for chain in chains:
                count = len(chain.exchanges)
                chosen = sorted(chance.sample(range(count), min(self._replays, count)))
                try:
                    replays += await asyncio.to_thread(self._replayer, chain, chosen)
                except (CotenantError, OSError) as error:
                    session.broken.append(f"User {chain.join.tenant} could not be replayed: {error}")
        return replays

    async def _tell_outcome(self, ask: Ask, writer: asyncio.StreamWriter) -> None:
        """Send the transcript of a launch once there is one. Raises NonsenseError for a launch that never joined."""
        session = self._sessions.get(ask.launch)
        if session is None:
            raise NonsenseError("no such launch has joined")
        content = await asyncio.shield(session.outcome)
        parts = [content[at : at + PART_BYTES] for at in range(0, len(content), PART_BYTES)]
        await _send(writer, Outcome(parts=len(parts)))
        for part in parts:
            await _send(writer, TranscriptPart(part))
        self._last_asked.set()


def _has_left(reader: asyncio.StreamReader) -> bool:
    return reader.at_eof() or reader.exception() is not None


async def _received(reader: asyncio.StreamReader, patience_s: float) -> ToBuyer:
    """Return the next message. Raises NonsenseError, TimeoutError, and EOFError where the other side has left."""
    async with asyncio.timeout(patience_s):
        header = await reader.readexactly(HEADER_BYTES)
        return of_vendor(await reader.readexactly(length_of(header)))


async def _send(writer: asyncio.StreamWriter, message: ToVendor) -> None:
    writer.write(framed(message))
    await writer.drain()


async def _refuse(writer: asyncio.StreamWriter, reason: str) -> None:
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(1.0):
            await _send(writer, Refused(printable(reason)[:1000]))
