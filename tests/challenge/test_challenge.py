"""A challenge over the loopback: honest tenants pass, and each cheat is refused with its reason."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import socket
import struct
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from challenge.vendors import (
    ITEMS,
    NUMBER,
    PATIENT,
    PIECE_NS,
    PIECES,
    SOFTWARE,
    TASK,
    VERSION,
    Vendor,
    challenged,
    join,
    listening,
    losses_of,
    replays,
)
from cotenant.challenge.listener import MOST_OF_AN_ADDRESS, MOST_SESSIONS, ChallengeListener
from cotenant.challenge.messages import (
    FRAME_BYTES,
    Begin,
    NonsenseError,
    Piece,
    ToBuyer,
    framed,
    length_of,
    of_vendor,
    seed_of,
)
from cotenant.challenge.transcript import Transcript, read, written
from cotenant.challenge.vendor import Buyer, BuyerConnection, BuyerError, ChallengedRun, address_of, token_of
from cotenant.challenge.verdict import Kind, summary, verdict
from cotenant.commands.challenge import _lines
from cotenant.errors import CotenantError
from cotenant.report.challenges import challenge_lines


@pytest.fixture(scope="module")
def honest() -> Transcript:
    return challenged(Vendor())


def kinds(transcript: Transcript) -> set[str]:
    found = verdict(transcript)
    assert found.holds == (not found.reasons)
    assert {reason.kind for reason in found.reasons} <= {*get_args(Kind)}
    return {reason.kind for reason in found.reasons}


def claiming(transcript: Transcript, *claims: dict[str, Any]) -> Transcript:
    """Return the transcript with other fields of the tenants' claims."""
    chains = [
        replace(chain, join=replace(chain.join, **fields))
        for chain, fields in zip(transcript.chains, claims, strict=True)
    ]
    return replace(transcript, chains=chains)


def test_honest_tenants_pass_and_their_floor_is_their_rate(honest: Transcript) -> None:
    found = verdict(honest)
    assert found.reasons == ()
    assert (found.exact, found.replayed) == (True, 4)
    # A tenant may have answered one piece more, which takes no time on this clock.
    items = [ITEMS * len(chain.exchanges) for chain in honest.chains]
    assert found.floors == pytest.approx([each / PIECES for each in items], rel=0.01)
    assert 119 < found.floor < 145
    assert found.floor == sum(found.floors)
    assert found.together == 1.0
    assert {chain.seed for chain in honest.chains} == {seed_of(honest.nonce, 0), seed_of(honest.nonce, 1)}
    assert f"at least {found.floor:.4g} items/s of 2 users in 5.0 s" in summary(honest)
    assert read(written(honest)) == honest
    told = summary(claiming(honest, *[{"job": "vae\n\x1b[2J"}] * 2))
    assert told.startswith("vae: challenge REFUSED: ")  # and in one line
    assert told.isprintable()


def test_what_is_printed_has_the_claim_of_every_tenant(honest: Transcript) -> None:
    """So a reader sees a tenant that trains something smaller than the first."""
    lines = _lines(claiming(honest, {}, {"words": ("--width", "1\x1b[2J")}))
    assert f"claimed by user 0: {TASK} --lr 1" in lines
    assert f"claimed by user 1: {TASK} --width 1" in lines


def in_turn(vendor: Vendor) -> Callable[[int, int], None]:
    """Return a `before` that holds the second tenant back until the first has answered all its pieces."""
    first, second = threading.Event(), threading.Event()

    def wait(tenant: int, index: int) -> None:
        if tenant == 0 and index == PIECES:
            first.set()
            second.wait(60)
        elif tenant == 1:
            first.wait(60)
        vendor.clock.go_on()
        if tenant == 1 and index == PIECES - 1:
            second.set()

    return wait


def cheats() -> dict[str, tuple[Vendor, str, str]]:
    def altered(**how: Any) -> Vendor:
        return Vendor(answer=lambda seed, _, nonce: losses_of(**{"seed": seed, "nonce": nonce} | how))

    late, turns = Vendor(), Vendor()
    late.answer = lambda seed, index, nonce: (
        (late.clock.go_on(9 * PIECE_NS) if index == 3 else None) or losses_of(seed, nonce)
    )
    turns.before = in_turn(turns)
    return {
        "a skipped step": (altered(left_out=[2]), "skipped", "up to step 2"),
        "the last step": (altered(left_out=[NUMBER - 1]), "skipped", "the weights behind the last step do not"),
        "a loss too few": (
            Vendor(answer=lambda seed, _, nonce: (losses_of(seed, nonce)[0][:-8], bytes(32))),
            "skipped",
            f"{NUMBER - 1} losses of {NUMBER} steps",
        ),
        "a late answer": (late, "late", "piece 3: the answer took 1"),
        "users in turn": (turns, "in turn", "All users worked in"),
        "a changed loss": (altered(scale=0.5), "changed", "first step"),
        "computed before": (altered(nonce=bytes(32)), "changed", "first step"),
        "another seed": (altered(seed=1), "changed", "first step"),
    }


@pytest.mark.parametrize("cheat", cheats())
def test_a_cheat_is_refused_with_its_reason(cheat: str) -> None:
    vendor, kind, words = cheats()[cheat]
    transcript = challenged(vendor)
    assert kind in kinds(transcript)
    assert any(words in reason.sentence for reason in verdict(transcript).reasons if reason.kind == kind)
    assert verdict(transcript).floor == 0
    assert "REFUSED" in summary(transcript)


def edited(transcript: Transcript, tenant: int = 0, index: int = 1, **fields: Any) -> Transcript:
    chains = list(transcript.chains)
    exchanges = list(chains[tenant].exchanges)
    exchanges[index] = replace(exchanges[index], **fields)
    chains[tenant] = replace(chains[tenant], exchanges=exchanges)
    return replace(transcript, chains=chains)


def differently(transcript: Transcript, scale: float, tolerance: float = 1e-3) -> Transcript:
    """Return the transcript with replays on another device, whose losses are `scale` times as high."""
    made = []
    for replay in transcript.replays:
        losses = struct.unpack(f"<{NUMBER}d", replay.losses)
        scaled = struct.pack(f"<{NUMBER}d", *(loss * scale for loss in losses))
        made.append(replace(replay, losses=scaled, weights=bytes(32), software=SOFTWARE | {"device": "another"}))
    return replace(transcript, replays=made, tolerance=tolerance)


EDITS: dict[str, tuple[Callable[[Transcript], Transcript], set[str]]] = {
    "an answer changed afterwards": (lambda t: edited(t, items=2 * ITEMS, losses=bytes(8 * NUMBER)), {"chain"}),
    "a nonce of one's own": (lambda t: edited(t, nonce=bytes(32)), {"chain"}),
    "one nonce twice": (lambda t: edited(t, nonce=t.chains[0].exchanges[0].nonce), {"chain"}),
    "an answer before its nonce": (lambda t: edited(t, came_ns=0), {"chain"}),
    "a seed of one's own": (lambda t: replace(t, nonce=bytes(32)), {"claim"}),
    "a user left out": (lambda t: replace(t, chains=t.chains[:1], replays=t.replays[:2]), {"claim"}),
    "pieces left out": (
        lambda t: replace(t, chains=[replace(chain, exchanges=chain.exchanges[:2]) for chain in t.chains], replays=[]),
        {"broken", "unchecked"},
    ),
    "nothing replayed": (lambda t: replace(t, replays=[]), {"unchecked"}),
    "one user not replayed": (lambda t: replace(t, replays=t.replays[:2]), {"unchecked"}),
    "nobody answered": (lambda t: replace(t, chains=[], replays=[]), {"broken"}),
    "elsewhere, as far as roundings go": (lambda t: differently(t, 1 + 1e-5), set()),
    "elsewhere, another loss": (lambda t: differently(t, 1.01), {"changed"}),
    "elsewhere, with a tolerance that tells nothing": (lambda t: differently(t, 1.01, 0.5), {"no power"}),
}


@pytest.mark.parametrize("edit", EDITS)
def test_a_verdict_is_of_the_transcript_alone(edit: str, honest: Transcript) -> None:
    change, expected = EDITS[edit]
    assert expected <= kinds(change(honest))
    if not expected:
        assert verdict(change(honest)).holds
        assert not verdict(change(honest)).exact


def test_items_and_saved_state_are_those_of_the_replay(honest: Transcript) -> None:
    for difference in ({"items": ITEMS - 1}, {"state": bytes(32)}):
        again = [replay for chain in honest.chains for replay in replays(chain, [0], **difference)]
        assert kinds(replace(honest, replays=again)) == {"changed"}


JOINED = msgspec.msgpack.encode(join(0))
DAMAGED = st.tuples(st.integers(0, len(JOINED) - 1), st.binary(max_size=3)).map(
    lambda change: JOINED[: change[0]] + change[1] + JOINED[change[0] + len(change[1]) :]
)


@given(st.binary(max_size=200) | DAMAGED)
def test_bytes_are_a_message_or_nonsense(content: bytes) -> None:
    with contextlib.suppress(NonsenseError):
        assert isinstance(of_vendor(content), ToBuyer)
    assert of_vendor(JOINED) == join(0)
    for size in (0, FRAME_BYTES + 1, 1 << 31):
        with pytest.raises(NonsenseError):
            length_of(size.to_bytes(4, "big"))


NONSENSE = (
    b"GET / HTTP/1.1\r\n\r\n",
    b"\0\0\0\1\xc1",
    b"\xff\xff\xff\xff",
    b"\0\0\0\x05\x85\xa4",
    framed(join(0))[:-3],
    framed(join(7)),
    framed(join(0, protocol="cotenant-challenge-0")),
    framed(join(0, task="../../etc/passwd")),
    framed(join(0, version="another")),
    (200).to_bytes(4, "big") + msgspec.msgpack.encode({"type": "join", "words": ["x"] * 10}).ljust(200, b"\x90"),
)


def test_nonsense_is_refused_and_an_honest_launch_still_passes() -> None:
    vendor = Vendor()
    with listening(vendor.clock) as (port, kept):
        for content in NONSENSE:
            with socket.create_connection(("127.0.0.1", port), 60) as stranger:
                stranger.sendall(content)
                stranger.shutdown(socket.SHUT_WR)
                assert b"refused" in stranger.recv(4096)
        with pytest.raises(BuyerError, match="is another than here"):
            ChallengedRun(BuyerConnection(f"127.0.0.1:{port}"), join(0, version="another"))
        with pytest.raises(BuyerError, match="no such launch"):
            Buyer(f"127.0.0.1:{port}").transcript("unknown", lambda: False)
        vendor.sell(port)
    assert vendor.refused == []
    assert verdict(kept[0]).holds


def test_who_has_no_token_is_refused_and_uses_up_no_launch() -> None:
    """A single tenant that joins and leaves uses up none either; no transcript holds the token."""
    vendor = Vendor(token="secret")
    with listening(vendor.clock, token="secret") as (port, kept):
        for token in ("", "guess", "s\xe9cret"):
            with pytest.raises(BuyerError, match="the token is not this buyer's"):
                ChallengedRun(BuyerConnection(f"127.0.0.1:{port}"), join(0, token=token))
        for launch in range(MOST_SESSIONS + 2):
            half = BuyerConnection(f"127.0.0.1:{port}")
            half.send(join(0, launch=f"half{launch}", token="secret"))
            half.close()
            with pytest.raises(BuyerError, match=r"no such launch|refuses|left"):
                Buyer(f"127.0.0.1:{port}").transcript(f"half{launch}", lambda: False)
        vendor.sell(port)
    (transcript,) = kept
    assert verdict(transcript).holds
    assert b"secret" not in written(transcript)


def test_a_claim_and_one_addresss_silence_are_limited() -> None:
    vendor = Vendor()
    with listening(vendor.clock) as (port, _):
        with pytest.raises(BuyerError, match="bytes of words"):
            ChallengedRun(BuyerConnection(f"127.0.0.1:{port}"), join(0, words=("x" * 4096,) * 5))
        silent = [socket.create_connection(("127.0.0.1", port), 60) for _ in range(MOST_OF_AN_ADDRESS + 1)]
        assert b"too many connections" in silent[-1].recv(4096)
        for each in silent:
            each.close()
        vendor.sell(port)


def test_tenants_of_other_words_did_not_do_the_same_work(honest: Transcript) -> None:
    for first, second, is_another in (
        ("--hidden 1", "--hidden 400", True),
        ("--hidden 1 --seed 1", "--hidden 1 --seed 2", False),
        ("-s 1 --hidden 1", "--seed=3 --hidden 1", False),
    ):
        claims = ({"words": tuple(line.split())} for line in (first, second))
        assert ("claim" in kinds(claiming(honest, *claims))) == is_another, (first, second)


def test_a_floor_above_the_rate_is_an_error(honest: Transcript, tmp_path: Path) -> None:
    (tmp_path / "a.challenge").write_bytes(written(honest))
    floor = verdict(honest).floor
    for rate, word in ((2 * floor, "at least 0.50"), (0.95 * floor, "at least 1.05"), (0.1 * floor, "error: ")):
        job = SimpleNamespace(name="work", node=SimpleNamespace(rate=rate), label="work", unit="item")
        _, line = challenge_lines(cast(Any, SimpleNamespace(jobs=[job])), [tmp_path])
        assert word in line
        assert line.startswith("error: ") == (word == "error: ")
    of_hosts = [SimpleNamespace(**vars(job), suite="s", host=host) for host in ("one", "two")]
    _, *lines = challenge_lines(cast(Any, SimpleNamespace(jobs=of_hosts)), [tmp_path])
    for of, line in zip(of_hosts, lines, strict=True):
        assert f"of the published rate of work, s on {of.host} (" in line


def test_where_a_token_is_read_from(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("of a file\n")
    environ = {"COTENANT_CHALLENGE_TOKEN": "of the environment"}
    assert token_of(None, {}) == ""
    assert token_of(None, environ) == "of the environment"
    assert token_of("typed", environ) == "typed"
    assert token_of(f"@{tmp_path}/token", environ) == "of a file"
    for wrong in ("", "x" * 300, f"@{tmp_path}/none", f"@{tmp_path}"):
        with pytest.raises(CotenantError):
            token_of(wrong, environ)


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("leaves", "User 1 left"),
        ("answers twice", "User 1 does not speak"),
        ("fails to replay", "It does not run here."),
        ("has no room to replay", "No space left."),
    ],
)
def test_a_launch_that_breaks_off_is_kept_with_the_reason(what: str, words: str) -> None:
    def failing(*_: Any) -> Any:
        raise OSError("No space left.") if what == "has no room to replay" else CotenantError("It does not run here.")

    class Breaking(Vendor):
        def _tenant(self, port: int, tenant: int) -> None:
            if tenant == 1 and "to replay" not in what:
                connection = BuyerConnection(f"127.0.0.1:{port}")
                buyer = ChallengedRun(connection, join(1))
                if what == "answers twice":
                    connection.send(join(1))
                assert buyer.seed
                connection.close()
            else:
                super()._tenant(port, tenant)

    transcript = challenged(Breaking(), **({"replayer": failing} if "to replay" in what else {}))
    assert "broken" in kinds(transcript)
    assert any(words in sentence for sentence in transcript.broken)


def test_a_transcript_that_cannot_be_kept_ends_the_listener() -> None:
    def full(_: Transcript) -> None:
        raise CotenantError("Nothing can be written there.")

    vendor, ports = Vendor(), queue.Queue[int]()
    listener = ChallengeListener({TASK: VERSION}, replays, full, clock_ns=vendor.clock, patience=PATIENT)
    with ThreadPoolExecutor(1) as pool:
        ended = pool.submit(asyncio.run, listener.serve("127.0.0.1", 0, 0, ports.put))
        vendor.sell(ports.get(timeout=60))
        with pytest.raises(CotenantError, match="Nothing can be written there"):
            ended.result(60)


def test_a_tenant_knows_how_long_it_waited_for_each_nonce(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(perf_counter_ns=itertools.count(0, 7).__next__)
    monkeypatch.setattr("cotenant.challenge.vendor.time", clock)
    said = iter([Begin(seed=3), Piece(index=0, nonce=bytes(32)), Piece(index=1, nonce=bytes(32))])
    connection: Any = SimpleNamespace(send=lambda message: None, receive=lambda: next(said))
    buyer = ChallengedRun(connection, join(0))
    for _ in range(2):
        assert buyer.nonce()
        buyer.answer(ITEMS, b"", b"")
    assert buyer.facts()["waited_ns"] == [7, 7]


def test_addresses() -> None:
    assert [address_of(text) for text in ("7000", "a.b:7000", "[::1]:7000")] == [
        ("127.0.0.1", 7000),
        ("a.b", 7000),
        ("::1", 7000),
    ]
    for wrong in ("", "a.b", "a.b:x", "a:99999", "a..b:7000", 64 * "x" + ":7000"):
        with pytest.raises(CotenantError, match="no address"):
            address_of(wrong)
    with pytest.raises(BuyerError, match="No buyer listens"):
        BuyerConnection("127.0.0.1:1")
