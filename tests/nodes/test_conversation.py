"""Node 0 and another node over the loopback, in one process: who is let in, one launch, and the end after silence."""

import socket
import time
from types import SimpleNamespace

import pytest

from cotenant.errors import CotenantError
from cotenant.nodes import member as member_module
from cotenant.nodes.cluster import Cluster
from cotenant.nodes.coordinator import Coordinator
from cotenant.nodes.member import Member
from cotenant.nodes.peers import CommonGo
from cotenant.stats.budget import Amount
from nodes.pairs import LIMIT_S, PLANTED_NS, RESULT, SILENCE_S, Pair, beside, never, pair
from tenants.suites import until

__all__ = ["pair"]


def test_a_node_of_other_jobs_or_of_another_place_is_refused_and_told_why(pair: Pair) -> None:
    refusals: list[str] = []

    def join(node: int, identity: str) -> None:
        with pytest.raises(CotenantError) as raised:
            pair.member(node).join(identity, LIMIT_S, never)
        refusals.append(str(raised.value))

    def both() -> None:
        join(1, "others")
        join(2, "jobs")

    beside(both, lambda: pair.coordinator.gather("jobs", LIMIT_S, lambda: len(refusals) == 2))
    with pytest.raises(CotenantError, match=r"Not all of 2 nodes came to .* within 0 s: missing are 1\."):
        pair.coordinator.gather("jobs", 0, never)
    assert "other jobs, arguments, limits, devices or software than node 0" in refusals[0]
    assert "no place for a node 2 among 2" in refusals[1]


def test_a_node_that_left_before_all_came_may_come_again(pair: Pair) -> None:
    pair.coordinator._cluster = Cluster(3, 0, "127.0.0.1", pair.port)
    twice: list[Member] = []

    def join() -> None:
        for _ in range(2):
            twice.append(pair.member())
            twice[-1].join("jobs", LIMIT_S, never)
            twice[0].close()

    beside(join, lambda: pair.coordinator.gather("jobs", LIMIT_S, lambda: len(twice) == 2 and twice[1].connections()))
    assert twice[1].connections()


def test_one_launch_from_its_key_to_its_result(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(**vars(time) | {"perf_counter_ns": lambda: time.perf_counter_ns() + PLANTED_NS})
    monkeypatch.setattr(member_module, "time", clock)
    node0, node1 = pair.coordinator, pair.meet()
    gos: list[CommonGo | None] = []

    def far() -> None:
        assert node1.next_launch(never) == "job"
        while not node1.ready():
            assert node1.hear() is None
            time.sleep(0.001)
        gos.append(node1.go())
        while not node1.done():
            assert node1.hear() is None
            time.sleep(0.001)
        node1.send_result(RESULT)
        assert node1.next_launch(never) is None

    def near() -> None:
        node0.begin("job", 2)
        while not node0.ready():
            assert node0.hear() is None
        assert node0.go() is None
        t0_ns = time.perf_counter_ns()
        node0.started(t0_ns, Amount(3, 6, 1))
        while not node0.done():
            assert node0.hear() is None
        node0.stop()
        (result,) = node0.results(never)
        assert (result.outcome, result.shared, result.offset is not None) == ("completed", True, True)
        assert result.offset is not None
        assert abs(result.offset.ns - PLANTED_NS) <= result.offset.error_ns
        (row,) = result.observations[1]
        begin_ns = PLANTED_NS - result.offset.ns
        assert (row["start_ns"], row["end_ns"]) == (begin_ns + 10, begin_ns + 30)
        assert gos == [CommonGo(t0_ns + result.offset.ns, Amount(3, 6, 1))]
        node0.close()

    beside(far, near)


def test_a_failure_there_ends_it_here_and_one_here_ends_it_there(pair: Pair) -> None:
    node0, node1 = pair.coordinator, pair.begun()
    assert node1.next_launch(never) == "job"
    node1.fail(("out_of_memory", "The slice was full."))
    node0.fail(("failed", "A rank died."))
    there, here = (until(node.hear, "the other's end", LIMIT_S) for node in (node1, node0))
    assert there == ("failed", "Node 0: A rank died.")
    assert here[0] == "out_of_memory"
    assert here[1].endswith("): The slice was full.")


def test_a_node_that_leaves_or_is_silent_is_lost(pair: Pair) -> None:
    node0, node1 = pair.coordinator, pair.begun()
    (connection,) = node0.connections()
    connection._inbox.heard_s -= SILENCE_S + 1
    assert (silent := node0.hear()) is not None
    assert silent[0] == "node_lost"
    assert "was not heard for 60 s: its link is cut, or the host is down" in silent[1]
    node1.close()
    (result,) = node0.results(never)
    assert (result.outcome, "has left" in result.message) == ("node_lost", True)


def test_who_was_busy_between_launches_has_lost_nobody_and_in_one_has(pair: Pair) -> None:
    node0, node1 = pair.coordinator, pair.begun()
    (connection,) = node1.connections()
    connection._inbox.heard_s -= SILENCE_S + 1
    assert node1.next_launch(never) == "job"
    node0.close()
    end = until(node1.hear, "its end", LIMIT_S)
    assert (end[0], "has left" in end[1]) == ("node_lost", True)


def test_a_node_that_ends_a_launch_too_late_takes_part_in_no_other(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.nodes.coordinator.RESULT_LIMIT_S", 0.0)
    node0, node1 = pair.coordinator, pair.begun()
    (result,) = node0.results(never)
    assert (result.outcome, "did not end its launch within 0 s" in result.message) == ("node_lost", True)
    assert node1.next_launch(never) == "job"
    node1.send_result(RESULT)
    assert "did not end its launch" in (node0.lost() or "")


def test_node_0_listens_at_addresses_of_either_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    families: list[int] = []
    real = socket.create_server

    def listening(address: tuple[str, int], family: int, backlog: int) -> socket.socket:
        families.append(family)
        return real(("127.0.0.1", 0), backlog=backlog)

    monkeypatch.setattr(socket, "create_server", listening)
    for host in ("127.0.0.1", "::1"):
        Coordinator(Cluster(2, 0, host, 1), SILENCE_S).close()
    assert families == [socket.AF_INET, socket.AF_INET6]
