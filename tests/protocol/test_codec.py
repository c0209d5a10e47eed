"""Messages encoded and decoded, arriving in pieces of any size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cotenant.protocol.messages import LINE_LIMIT_BYTES, Message, MessageBuffer, ProtocolError, WholeLines, encode

values = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.lists(st.integers())
messages = st.builds(
    Message,
    st.sampled_from(["hello", "go", "stop"]),
    st.dictionaries(st.text(max_size=5).filter(lambda name: name != "kind"), values, max_size=3),
)


def line(message: Message) -> bytes:
    return encode(message.kind, **message.fields)


@given(st.lists(messages, max_size=4), st.data())
def test_any_pieces_make_the_same_messages(said: list[Message], data: st.DataObject) -> None:
    assert all(line(message).count(b"\n") == 1 for message in said)
    stream = b"".join(map(line, said))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    lines, heard = MessageBuffer(), []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        heard += lines.feed(stream[begin:end])
    assert heard == said


def test_a_line_without_end_is_refused() -> None:
    lines = WholeLines()
    for _ in range(LINE_LIMIT_BYTES >> 20):
        assert lines.feed(b"x" * (1 << 20)) == []
    with pytest.raises(ProtocolError, match="more than"):
        lines.feed(b"x")
