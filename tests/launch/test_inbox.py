"""Lines of any kind become messages with checked values, or a ProtocolError."""

from __future__ import annotations

import json
import math
import socket
import time
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.launch import inbox
from cotenant.launch.inbox import (
    DoneMessage,
    FailedMessage,
    HelloMessage,
    ObservationMessage,
    OwnOutcome,
    ReadyMessage,
    RecordMessage,
    TenantMessage,
    message_of,
)
from cotenant.nesting import DEEPEST
from cotenant.protocol.messages import ProtocolError, encode

HELLO: dict[str, Any] = {"kind": "hello", "tenant": 1, "rank": 0, "world": 2}
READY: dict[str, Any] = {"kind": "ready", "number": 2, "repeat": 2, "skip": 0, "warm_up_ns": [1]}
SEEN: dict[str, Any] = {"kind": "observation", "index": 3, "start_ns": 1, "end_ns": 5, "items": 2, "data_wait_ns": -1}
FAILED: dict[str, Any] = {"kind": "failed", "outcome": "nan", "message": ""}
DEVICE = {"event_ns": 4, "issued_ns": 3}
MOST = 1 << 63
WHOLE: list[tuple[dict[str, Any], TenantMessage]] = [
    (HELLO, HelloMessage(1, 0, 2)),
    (HELLO | {"elsewhere": 1, "pid": 7, "more": "x"}, HelloMessage(1, 0, 2, elsewhere=1)),
    (READY, ReadyMessage(2, 2, 0, [1])),
    (SEEN, ObservationMessage(3, 1, 5, 2, -1)),
    (SEEN | {"items": 2.5} | DEVICE, ObservationMessage(3, 1, 5, 2.5, -1, 4, 3)),
    (SEEN | {"event_ns": None, "issued_ns": None}, ObservationMessage(3, 1, 5, 2, -1)),
    ({"kind": "done"}, DoneMessage()),
    (FAILED, FailedMessage("nan", "")),
]
WRONG: list[tuple[dict[str, Any], dict[str, list[Any]]]] = [
    (HELLO, {"rank": [2, -1, True, "0"], "world": [0, None], "elsewhere": ["1", 0.5, None, -1, 2], "tenant": [MOST]}),
    (READY, {"number": [0, True, 1.0, MOST], "repeat": [0], "skip": [-1, 2], "warm_up_ns": [["x"], [1.5], [-1], 3]}),
    (SEEN, {"index": [-1, 10**23], "start_ns": [5, -1, None], "end_ns": [1, MOST], "data_wait_ns": [0.5, MOST]}),
    (SEEN, {"items": [-1, -0.5, None, math.nan, math.inf, MOST, "2"], "event_ns": ["4", -1, MOST]}),
    (SEEN, {"issued_ns": ["3", 0, 6]}),
    (FAILED, {"outcome": ["completed", "aborted", "host_out_of_memory", "", "fine", 3], "message": [None]}),
    ({"kind": "record", "record": {}}, {"record": [[], None, {"seed": 1 << 64}]}),
    ({"kind": "begin", "work": {}}, {"work": ["x", {"seeds": [{"seed": -MOST - 1}]}]}),
    ({"kind": "done"}, {"kind": [None, "Done", ["done"], "go"]}),
]


@pytest.mark.parametrize(("fields", "message"), WHOLE)
def test_a_line_is_a_message(fields: dict[str, Any], message: TenantMessage) -> None:
    assert message_of(json.dumps(fields).encode()) == message
    for name in fields.keys() - {"elsewhere", "event_ns", "issued_ns", "pid", "more"}:
        refused({other: value for other, value in fields.items() if other != name})


@pytest.mark.parametrize(("fields", "wrong"), WRONG)
def test_every_value_is_checked(fields: dict[str, Any], wrong: dict[str, list[Any]]) -> None:
    message_of(json.dumps(fields).encode())
    for name, values in wrong.items():
        for value in values:
            refused(fields | {name: value})


def refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ProtocolError):
        message_of(json.dumps(fields).encode())


def test_a_tenant_reports_its_own_outcomes() -> None:
    for outcome in get_args(OwnOutcome):
        assert message_of(encode("failed", outcome=outcome, message="")) == FailedMessage(outcome, "")


@st.composite
def damaged_lines(draw: st.DrawFn) -> bytes:
    whole = json.dumps(draw(st.sampled_from(WHOLE))[0]).encode()
    at, odd = draw(st.integers(0, len(whole) - 1)), draw(st.binary(max_size=3))
    return whole[:at] + odd + whole[at + len(odd) :]


@given(st.binary(max_size=200) | damaged_lines())
def test_bytes_of_any_kind_are_messages_or_a_protocol_error(line: bytes) -> None:
    try:
        message = message_of(line)
    except ProtocolError:
        return
    assert isinstance(message, msgspec.Struct)


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{}", '{"kind":"done"', "[" * 100_000, '{"kind":"record","record":{"x":' + "9" * 100_000 + "}}"],
    ids=lambda text: text[:40],
)
def test_text_that_is_no_message(text: str) -> None:
    with pytest.raises(ProtocolError):
        message_of(text.encode())


@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_a_message_nested_too_deeply_is_refused(brackets: str) -> None:
    """Writing a record recurses through its levels, while decoding accepts deeper ones."""
    begin, end = brackets if brackets == "[]" else ('{"x":', "}")

    def message(levels: int) -> bytes:
        wide = ",".join(["[[]]"] * DEEPEST)
        return f'{{"kind":"record","record":{{"wide":[{wide}],"deep":{begin * levels}0{end * levels}}}}}'.encode()

    assert isinstance(message_of(message(DEEPEST - 1)), RecordMessage)
    for levels in (DEEPEST, 900, 100_000):
        with pytest.raises(ProtocolError, match="recursion" if levels > 900 else "nested more than 64 levels deep"):
            message_of(message(levels))


def test_what_python_writes_and_json_has_not_can_be_kept() -> None:
    """Losses that are not finite, and arguments that are not UTF-8."""
    line = encode("record", record={"batch_loss": [math.nan, math.inf, 1], "data": "a\udcffb \U0001f600"})
    assert message_of(line) == RecordMessage({"batch_loss": [None, None, 1], "data": "a\\udcffb \U0001f600"})


def test_an_observation_is_decoded_within_ten_microseconds() -> None:
    """A runner that hears a thousand a second uses less than 1 % of a processor."""
    line = json.dumps(SEEN | DEVICE).encode()
    times = []
    for _ in range(200):
        begin_ns = time.process_time_ns()
        for _ in range(100):
            message_of(line)
        times.append(time.process_time_ns() - begin_ns)
    assert min(times) / 100 < 10_000


def test_one_that_never_stops_talking_leaves_turns_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """So many chunks are read in a turn; whether more has come is unknown then."""
    monkeypatch.setattr(inbox, "CHUNK_BYTES", 20)
    monkeypatch.setattr(inbox, "CHUNKS_A_TURN", 3)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.sendall(encode("done") * 9)
        box = inbox.Inbox(ours)
        taken = [box.take()]
        assert (box.received_bytes, box.emptied_ns) == (60, 0)
        while not box.emptied_ns:
            taken.append(box.take())
        assert len(taken) > 2
        assert [message for messages in taken for message in messages] == [DoneMessage()] * 9
