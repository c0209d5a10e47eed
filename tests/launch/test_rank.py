"""The messages that one process may send, and when; and how its end is judged."""

import socket
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from cotenant.launch.inbox import (
    BeginMessage,
    DoneMessage,
    ElsewhereMessage,
    FailedMessage,
    HelloMessage,
    ObservationMessage,
    ReadyMessage,
    RecordMessage,
    TenantMessage,
    TurnedMessage,
    TurnMessage,
)
from cotenant.launch.rank import Go, Rank, RankPhase
from cotenant.launch.rendezvous import Link
from cotenant.launch.tenant import Tenant, signal_name
from cotenant.protocol.messages import SEND_EVERY_NS, ProtocolError
from cotenant.stats.budget import Amount

READY = ReadyMessage(2, 2, 0, [1])
DONE = DoneMessage()
RECORD = RecordMessage({})


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


def started(rank: Rank, go: Go, *messages: TenantMessage) -> None:
    """Let a process be ready, have GO, and send these messages."""
    rank.take(READY)
    rank.start(go)
    for message in messages:
        rank.take(message)


def seen(go: Go, index: int, /, **other: Any) -> ObservationMessage:
    """An observation of a millisecond, the `index`-th after GO."""
    start_ns = go.t0_ns + index * 1_000_000
    fields = {"index": index, "start_ns": start_ns, "end_ns": start_ns + 1_000_000, "items": 4, "data_wait_ns": 0}
    return ObservationMessage(**fields | other)


def test_the_order_of_a_whole_run(rank: Rank, go: Go) -> None:
    started(rank, go)
    assert rank.longest_batch_s(2) == 0
    for message in (seen(go, 0), seen(go, 1, end_ns=go.t0_ns + 5_000_000), DONE, RECORD):
        rank.take(message)
    assert rank.longest_batch_s(2) == 0.002
    assert [made.start_ns for made in rank.observations] == [go.t0_ns, go.t0_ns + 1_000_000]
    assert (rank.phase, rank.record) == (RankPhase.RECORDED, {})


def refuses(rank: Rank, message: TenantMessage) -> None:
    with pytest.raises(ProtocolError):
        rank.take(message)


BEGIN, TURN, TURNED = BeginMessage({}), TurnMessage(), TurnedMessage()


def test_each_phase_has_its_messages(rank: Rank, go: Go) -> None:
    """Nothing that needs GO comes before it, and nothing comes twice, but turns."""
    hello, failed = HelloMessage(0, 0, 1), FailedMessage("failed", "")
    says: list[tuple[list[TenantMessage], TenantMessage | None]] = [
        ([BEGIN, TURN, TURNED, READY], BEGIN),
        ([TURN, TURNED, READY], READY),
        ([], None),
        ([seen(go, 0), DONE], seen(go, 0)),
        ([seen(go, 1), DONE], seen(go, 1)),
        ([DONE], DONE),
        ([ElsewhereMessage(1, []), RECORD], RECORD),
        ([], failed),
        ([], failed),
    ]
    every = [hello, BEGIN, TURN, TURNED, READY, seen(go, 0), DONE, ElsewhereMessage(1, []), RECORD]
    for allowed, message in says:
        kinds = {type(one) for one in allowed}
        for wrong in every:
            if type(wrong) not in kinds:
                refuses(rank, wrong)
        if message is None:
            rank.start(go)
        else:
            rank.take(message)
    assert rank.phase is RankPhase.FAILED
    assert not any(rank.has_come_to(phase) for phase in RankPhase if phase != RankPhase.FAILED)


def test_rank_0_reports_only_plausible_rows_of_other_ranks(rank: Rank, go: Go) -> None:
    rank.world, rank.elsewhere = 3, 2
    started(rank, go, seen(go, 0), seen(go, 1))
    rows = [seen(go, 0), seen(go, 1)]
    whole = ElsewhereMessage(1, rows)
    rank.take(DONE)
    rank.take(whole)
    assert rank.others == {1: rank.observations}
    twice, early = [seen(go, 0), seen(go, 0)], [seen(go, 0, start_ns=1), seen(go, 1)]
    wrong = [ElsewhereMessage(2, wrong_rows) for wrong_rows in (twice, early, [], rows[:1])]
    for message in (whole, ElsewhereMessage(0, rows), ElsewhereMessage(3, rows), *wrong):
        refuses(rank, message)
    rank.elsewhere = 0
    refuses(rank, ElsewhereMessage(2, rows))


def test_a_record_is_of_all_observations_unless_enough_was_sent(rank: Rank, go: Go) -> None:
    started(rank, go, seen(go, 0))
    refuses(rank, DONE)
    rank.say_enough()
    for message in (DONE, RECORD):
        rank.take(message)
    rank.say_enough()
    assert rank.phase is RankPhase.RECORDED


def test_the_observation_under_way_at_enough_is_kept(rank: Rank, go: Go) -> None:
    started(rank, Go(go.t0_ns, Amount(2, 9, 0)), seen(go, 0))
    rank.say_enough()
    for message in (seen(go, 1), DONE, RECORD):
        rank.take(message)
    assert len(rank.observations) == 2


def test_time_a_tenant_was_held_does_not_make_observations_late(rank: Rank, go: Go) -> None:
    end_ns = go.t0_ns + 100_000_000
    rank.rests.append((end_ns + 1, end_ns + 600_000_001))
    rank.link.awaited_ns = end_ns + 610_000_000
    started(rank, go, seen(go, 0, end_ns=end_ns))
    assert rank.late_ns == 10_000_000


def test_impossible_observations(rank: Rank, go: Go) -> None:
    """Nor may they overlap, or be too many."""
    started(rank, go)
    for fields in ({"index": 1}, {"start_ns": 0}, {"end_ns": 1 << 62}):
        refuses(rank, seen(go, 0, **fields))
    now_ns = time.time_ns()
    with pytest.raises(ProtocolError, match="CLOCK_MONOTONIC"):
        rank.take(seen(go, 0, start_ns=now_ns - 10, end_ns=now_ns))
    assert rank.observations == []
    rank.take(seen(go, 0))
    refuses(rank, seen(go, 1, start_ns=go.t0_ns + 999_999))
    rank.take(seen(go, 1))
    refuses(rank, seen(go, 2))


def test_ranks_elsewhere_are_taken_off_the_number_of_all(rank: Rank) -> None:
    tenant: Any = object.__new__(Tenant)
    tenant.spec, tenant.ranks = SimpleNamespace(slice=SimpleNamespace(tenant=0)), {}
    joined = tenant.join(rank.link, HelloMessage(0, 0, 2, elsewhere=1))
    assert not tenant.all_ranks(RankPhase.READY)
    for unlike in (
        HelloMessage(0, 1, 2),
        HelloMessage(0, 1, 3, elsewhere=1),
        HelloMessage(1, 1, 2, elsewhere=1),
        READY,
    ):
        with pytest.raises(ProtocolError):
            tenant.join(rank.link, unlike)
    joined.life.close()


def test_an_exit_status_in_words() -> None:
    words = {0: "exit status 0", 3: "exit status 3", -9: "killed by SIGKILL", -40: "killed by signal 40"}
    assert {status: signal_name(status) for status in words} == words


def test_a_deferred_observation_is_late_only_if_the_next_is(rank: Rank, go: Go) -> None:
    """A short one waits for the next, which took seconds on a busy host: only a next that came late may be invented."""
    sent_ns = go.t0_ns + 1_000_000
    started(rank, Go(go.t0_ns, Amount(2, 3, 0)), seen(go, 0, end_ns=sent_ns))
    rank.link.awaited_ns = time.perf_counter_ns()
    rank.take(seen(go, 1, start_ns=sent_ns, end_ns=sent_ns + SEND_EVERY_NS - 1))
    assert rank.late_ns < 0.5e9
    next_ns = sent_ns + 2 * SEND_EVERY_NS
    rank.take(seen(go, 2, start_ns=sent_ns + SEND_EVERY_NS, end_ns=next_ns))
    assert rank.late_ns == rank.link.awaited_ns - next_ns


def test_lateness_of_an_observation_is_known_by_earlier_looks(go: Go) -> None:
    """A message that two looks have not found was sent after the first of them, however full the buffer was."""
    ours, theirs = socket.socketpair()
    with theirs:
        link = Link(ours)
        rank = Rank(link, 0, 1)
        looks = []
        for _ in range(3):
            looks.append(time.perf_counter_ns())
            assert link.receive() == []
        theirs.sendall(msgspec.json.encode(READY) + b"\n")
        assert link.receive() == [READY]
        assert looks[1] <= link.awaited_ns < looks[2]
        message = seen(go, 0)
        started(rank, go, message)
        assert rank.late_ns == link.awaited_ns - message.end_ns > 0
        rank.take(seen(go, 1, end_ns=time.perf_counter_ns()))
        assert rank.late_ns == link.awaited_ns - message.end_ns
        link.close()
