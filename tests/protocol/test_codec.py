"""Messages encoded and decoded, arriving in pieces of any size, and bytes of any kind."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.nesting import DEEPEST
from cotenant.protocol.messages import FIELDS, LINE_LIMIT_BYTES, Message, MessageBuffer, ProtocolError, decode, encode

integers = st.integers(-(2**63), 2**63 - 1)
values = st.recursive(
    st.none()
    | st.booleans()
    | integers
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
OF_TYPE = {
    int: integers,
    list: st.lists(integers, max_size=5),
    str: texts,
    dict: st.dictionaries(texts, values, max_size=3),
    (int, float): st.floats(0, 1e9),
}


@st.composite
def messages(draw: st.DrawFn) -> Message:
    kind = draw(st.sampled_from(sorted(FIELDS)))
    return Message(kind, {name: draw(OF_TYPE[wanted]) for name, wanted in FIELDS[kind].items()})


def line(message: Message) -> bytes:
    return encode(message.kind, **message.fields)


@given(messages())
def test_what_is_said_is_what_is_heard(message: Message) -> None:
    assert line(message).count(b"\n") == 1
    assert decode(line(message)) == message


@given(st.lists(messages(), max_size=4), st.data())
def test_any_pieces_make_the_same_messages(said: list[Message], data: st.DataObject) -> None:
    stream = b"".join(map(line, said))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    lines, heard = MessageBuffer(), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        heard += lines.feed(stream[begin:end])
    assert heard == said


@st.composite
def damaged_lines(draw: st.DrawFn) -> bytes:
    whole, odd = line(draw(messages())), draw(st.binary(max_size=3))
    at = draw(st.integers(0, len(whole) - 1))
    return whole[:at] + odd + whole[at + len(odd) :]


@given(st.binary(max_size=200) | damaged_lines())
def test_bytes_of_any_kind_are_messages_or_a_protocol_error(data: bytes) -> None:
    try:
        heard = MessageBuffer().feed(data + b"\n")
    except ProtocolError:
        return
    assert all(message.kind in FIELDS for message in heard)


@given(messages(), st.data())
def test_whatever_fields_change_it_is_a_message_or_a_protocol_error(message: Message, data: st.DataObject) -> None:
    """It is a message exactly where each field of its kind is there and of its type; fields that nobody knows pass."""
    changed = data.draw(st.dictionaries(st.sampled_from([*message.fields, "x"]), values, max_size=2))
    lost = data.draw(st.sampled_from(["", *message.fields]))
    fields = {name: value for name, value in (message.fields | changed).items() if name != lost}
    whole = all(
        isinstance(fields.get(name), wanted) and not isinstance(fields[name], bool)
        for name, wanted in FIELDS[message.kind].items()
    )
    line_of_it = json.dumps({**fields, "kind": message.kind}).encode()
    if whole:
        assert decode(line_of_it) == Message(message.kind, fields)
    else:
        with pytest.raises(ProtocolError):
            decode(line_of_it)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        '{"kind":null}',
        '{"kind":["done"]}',
        '{"kind":"Done"}',
        '{"kind":"go","t0_ns":1,"number":true,"repeat":1,"skip":0}',
        '{"kind":"go","t0_ns":1.0,"number":1,"repeat":1,"skip":0}',
        '{"kind":"go","t0_ns":1,"number":1,"repeat":1}',
        '{"kind":"go","t0_ns":9223372036854775808,"number":1,"repeat":1,"skip":0}',
        '{"kind":"record","record":[]}',
        '{"kind":"done"',
        "[" * 100_000,
        '{"kind":"failed","outcome":"failed","message":"","x":' + "9" * 100_000 + "}",
    ],
    ids=lambda text: text[:40],
)
def test_what_is_no_message(text: str) -> None:
    with pytest.raises(ProtocolError):
        decode(text.encode())


@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_a_message_nested_deeper_than_a_record_ever_is_is_refused(brackets: str) -> None:
    """Writing a record recurses through its levels, while decoding accepts deeper ones."""
    begin, end = brackets if brackets == "[]" else ('{"x":', "}")

    def message(levels: int) -> bytes:
        wide = ",".join(["[[]]"] * DEEPEST)
        return f'{{"kind":"record","record":{{"wide":[{wide}],"deep":{begin * levels}0{end * levels}}}}}'.encode()

    assert decode(message(DEEPEST - 2)).kind == "record"
    for levels in (DEEPEST - 1, 900, 100_000):
        with pytest.raises(ProtocolError, match="not JSON" if levels > 900 else "nested more than 64 levels deep"):
            decode(message(levels))


def test_losses_that_are_not_finite_pass() -> None:
    record = decode(encode("record", record={"batch_loss": [math.nan, math.inf]})).fields["record"]
    assert math.isnan(record["batch_loss"][0])
    assert record["batch_loss"][1] == math.inf


def test_half_a_surrogate_pair_becomes_a_text_that_can_be_written() -> None:
    heard = decode(encode("failed", outcome="failed", message="a\udcffb \U0001f600"))
    assert heard.fields["message"] == "a?b \U0001f600"


def test_a_line_without_end_is_refused() -> None:
    lines = MessageBuffer()
    for _ in range(LINE_LIMIT_BYTES >> 20):
        assert lines.feed(b"x" * (1 << 20)) == []
    with pytest.raises(ProtocolError, match="more than"):
        lines.feed(b"x")
