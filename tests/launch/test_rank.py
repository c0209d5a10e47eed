"""The messages that one process may send, and when; and how its end is judged."""

import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from cotenant.launch.rendezvous import OWN_OUTCOMES, Go, Link, Rank
from cotenant.launch.tenant import Tenant, signal_name
from cotenant.protocol.messages import SEND_EVERY_NS, Message, ProtocolError, encode
from cotenant.stats.budget import Amount

READY = Message("ready", {"number": 2, "repeat": 2, "skip": 0, "warm_up_ns": [1]})
DONE = Message("done", {})
RECORD = Message("record", {"record": {}})


@pytest.fixture
def rank() -> Iterator[Rank]:
    ours, theirs = socket.socketpair()
    with theirs:
        link = Link(ours)
        yield Rank(link, 0, 1)
        link.close()


@pytest.fixture
def go() -> Go:
    """A GO that lies a second back."""
    return Go(time.perf_counter_ns() - 1_000_000_000, Amount(2, 2, 0))


def seen(go: Go, index: int, /, **other: Any) -> Message:
    """An observation of a millisecond, the `index`-th after GO."""
    start_ns = go.t0_ns + index * 1_000_000
    fields = {"index": index, "start_ns": start_ns, "end_ns": start_ns + 1_000_000, "items": 4, "data_wait_ns": 0}
    return Message("observation", fields | other)


def test_the_order_of_a_whole_run(rank: Rank, go: Go) -> None:
    rank.take(READY, None)
    assert rank.longest_batch_s(2) == 0
    for message in (seen(go, 0), seen(go, 1, end_ns=go.t0_ns + 5_000_000), DONE, RECORD):
        rank.take(message, go)
    assert rank.longest_batch_s(2) == 0.002
    assert [fields["index"] for fields in rank.observations] == [0, 1]
    assert rank.done
    assert rank.record == {}


def refuses(rank: Rank, message: Message, go: Go | None) -> None:
    with pytest.raises(ProtocolError):
        rank.take(message, go)


def test_what_needs_go_is_nothing_before_it_and_nothing_comes_twice(rank: Rank, go: Go) -> None:
    assert rank.requested is None
    rank.take(READY, None)
    assert rank.requested == Amount(2, 2, 0)
    for early in (seen(go, 0), DONE, RECORD, READY):
        refuses(rank, early, None)
    for message in (seen(go, 0), seen(go, 1), DONE):
        rank.take(message, go)
    refuses(rank, DONE, go)
    rank.take(RECORD, go)
    refuses(rank, RECORD, go)


def test_rank_0_reports_for_ranks_elsewhere_what_it_could_have_seen(rank: Rank, go: Go) -> None:
    rank.world, rank.elsewhere = 3, 2
    for message in (READY, seen(go, 0), seen(go, 1)):
        rank.take(message, go)

    def elsewhere(number: int, *rows: Message) -> Message:
        return Message("elsewhere", {"rank": number, "observations": [row.fields for row in rows]})

    whole = elsewhere(1, seen(go, 0), seen(go, 1))
    refuses(rank, whole, go)
    rank.take(DONE, go)
    rank.take(whole, go)
    assert [row["index"] for row in rank.others[1]] == [0, 1]
    twice, early = elsewhere(2, seen(go, 0), seen(go, 0)), elsewhere(2, seen(go, 0, start_ns=1), seen(go, 1))
    for wrong in (whole, elsewhere(0, *rank_rows(go)), elsewhere(3, *rank_rows(go)), elsewhere(2), twice, early):
        refuses(rank, wrong, go)
    refuses(rank, Message("elsewhere", {"rank": 2, "observations": [7, 8]}), go)
    rank.elsewhere = 0
    refuses(rank, elsewhere(2, *rank_rows(go)), go)


def rank_rows(go: Go) -> list[Message]:
    return [seen(go, 0), seen(go, 1)]


def test_a_record_is_of_all_observations_unless_enough_was_sent(rank: Rank, go: Go) -> None:
    rank.take(READY, None)
    rank.take(seen(go, 0), go)
    for message in (DONE, RECORD):
        refuses(rank, message, go)
    rank.enough = True
    rank.take(DONE, go)
    rank.take(RECORD, go)
    refuses(rank, seen(go, 1), go)


def test_impossible_observations(rank: Rank, go: Go) -> None:
    """Nor may they overlap, or be too many."""
    times: list[dict[str, Any]] = [{"index": 1}, {"index": -1}, {"start_ns": 0}, {"end_ns": 0}, {"end_ns": 1 << 62}]
    for fields in [*times, *({"items": items} for items in (float("nan"), float("inf"), -1))]:
        refuses(rank, seen(go, 0, **fields), go)
    now_ns = time.time_ns()
    with pytest.raises(ProtocolError, match="CLOCK_MONOTONIC"):
        rank.take(seen(go, 0, start_ns=now_ns - 10, end_ns=now_ns), go)
    assert rank.observations == []
    rank.take(seen(go, 0), go)
    refuses(rank, seen(go, 1, start_ns=go.t0_ns + 999_999), go)
    rank.take(seen(go, 1), go)
    refuses(rank, seen(go, 2), go)


@pytest.mark.parametrize("elsewhere", ["1", 0.5, None, -1, 2])
def test_a_hello_says_in_a_whole_number_how_many_ranks_are_elsewhere(rank: Rank, elsewhere: object) -> None:
    """The runner takes it off the number of all."""
    tenant: Any = object.__new__(Tenant)
    tenant.spec, tenant.ranks = SimpleNamespace(slice=SimpleNamespace(tenant=0)), {}
    hello = {"tenant": 0, "rank": 0, "world": 2, "pid": 1}
    with pytest.raises(ProtocolError):
        tenant.join(rank.link, Message("hello", hello | {"elsewhere": elsewhere}))
    joined = tenant.join(rank.link, Message("hello", hello | {"elsewhere": 1}))
    assert not tenant.all_ranks("ready")
    joined.life.close()


def test_ready_for_nothing(rank: Rank) -> None:
    amounts: list[dict[str, Any]] = [{"number": 0}, {"repeat": 0}, {"skip": -1}, {"skip": 2}]
    for fields in [*amounts, {"warm_up_ns": ["x"]}, {"warm_up_ns": [1.5]}]:
        refuses(rank, Message("ready", READY.fields | fields), None)


def test_outcomes_that_a_tenant_may_report(rank: Rank) -> None:
    for outcome in ("completed", "aborted", "host_out_of_memory", "", "fine"):
        refuses(rank, Message("failed", {"outcome": outcome, "message": ""}), None)
    for outcome in OWN_OUTCOMES:
        rank.take(Message("failed", {"outcome": outcome, "message": ""}), None)


def test_an_exit_status_in_words() -> None:
    words = {0: "exit status 0", 3: "exit status 3", -9: "killed by SIGKILL", -40: "killed by signal 40"}
    assert {status: signal_name(status) for status in words} == words


def test_one_that_may_be_sent_with_the_next_is_late_where_the_next_is(rank: Rank, go: Go) -> None:
    """A short one waits for the next, which took seconds on a busy host: only a next that came late may be invented."""
    sent_ns = go.t0_ns + 1_000_000
    rank.take(seen(go, 0, end_ns=sent_ns), go)
    rank.link.awaited_ns = time.perf_counter_ns()
    rank.take(seen(go, 1, start_ns=sent_ns, end_ns=sent_ns + SEND_EVERY_NS - 1), Go(go.t0_ns, Amount(2, 3, 0)))
    assert rank.late_ns < 0.5e9
    next_ns = sent_ns + 2 * SEND_EVERY_NS
    rank.take(seen(go, 2, start_ns=sent_ns + SEND_EVERY_NS, end_ns=next_ns), Go(go.t0_ns, Amount(2, 3, 0)))
    assert rank.late_ns == rank.link.awaited_ns - next_ns


def test_how_late_an_observation_came_is_known_by_the_looks_before(go: Go) -> None:
    """A message that two looks have not found was sent after the first of them, however full the buffer was."""
    ours, theirs = socket.socketpair()
    with theirs:
        link = Link(ours)
        rank = Rank(link, 0, 1)
        looks = []
        for _ in range(3):
            looks.append(time.perf_counter_ns())
            assert link.receive() == []
        theirs.sendall(encode(READY.kind, **READY.fields))
        assert [message.kind for message in link.receive()] == ["ready"]
        assert looks[1] <= link.awaited_ns < looks[2]
        message = seen(go, 0)
        rank.take(message, go)
        assert rank.late_ns == link.awaited_ns - message.fields["end_ns"] > 0
        rank.take(seen(go, 1, end_ns=time.perf_counter_ns()), go)
        assert rank.late_ns == link.awaited_ns - message.fields["end_ns"]
        link.close()
