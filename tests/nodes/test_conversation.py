"""Node 0 and another node over the loopback, in one process: who is let in, one launch, and what silence means."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest

from cotenant.errors import CotenantError
from cotenant.nodes import member as member_module
from cotenant.nodes.cluster import Cluster
from cotenant.nodes.coordinator import Coordinator
from cotenant.nodes.member import Member
from cotenant.nodes.peers import CommonGo
from cotenant.stats.budget import Amount

SILENCE_S, LIMIT_S, PLANTED_NS = 2.0, 10.0, 5_000_000
RESULT = {
    "outcome": "completed",
    "message": "",
    "version": "v",
    "late_ns": 0,
    "load_end_ns": PLANTED_NS + 40,
    "observations": {"1": [{"start_ns": PLANTED_NS + 10, "end_ns": PLANTED_NS + 30, "items": 4}]},
    "isolation": {},
    "slurm": {},
}


def never() -> bool:
    return False


class Pair:
    """Node 0 of two, and its port."""

    def __init__(self) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.coordinator = Coordinator(self.cluster(0), SILENCE_S)
        self.members: list[Member] = []

    def cluster(self, node: int) -> Cluster:
        return Cluster(2, node, "127.0.0.1", self.port)

    def member(self, node: int = 1) -> Member:
        self.members.append(Member(self.cluster(node), SILENCE_S))
        return self.members[-1]

    def meet(self) -> Member:
        """Return a member that has joined."""
        member = self.member()
        beside(lambda: member.join("jobs", LIMIT_S, never), lambda: self.coordinator.gather("jobs", LIMIT_S, never))
        return member


def beside(first: Callable[[], object], second: Callable[[], object]) -> None:
    """Do the second while the first is done in another thread."""
    thread = threading.Thread(target=first)
    thread.start()
    second()
    thread.join(LIMIT_S)
    assert not thread.is_alive()


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.coordinator.close()
    for member in made.members:
        member.close()


def test_a_node_of_other_jobs_or_of_another_place_is_refused_and_told_why(pair: Pair) -> None:
    refusals: list[str] = []

    def join(node: int, identity: str) -> None:
        with pytest.raises(CotenantError) as raised:
            pair.member(node).join(identity, LIMIT_S, never)
        refusals.append(str(raised.value))

    def both() -> None:
        join(1, "others")
        join(2, "jobs")

    with pytest.raises(CotenantError, match=r"Not all of 2 nodes came to .* within 1 s: missing are 1\."):
        beside(both, lambda: pair.coordinator.gather("jobs", 1, never))
    assert "other jobs, arguments, limits, devices or software than node 0" in refusals[0]
    assert "no place for a node 2 among 2" in refusals[1]


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
        assert node1.audits == 1
        node1.send_result(RESULT)
        assert node1.next_launch(never) is None

    def near() -> None:
        node0.begin("job", 2)
        while not node0.ready():
            assert node0.hear() is None
        assert node0.go() is None
        node0.started(1_000_000_000, Amount(3, 6, 1))
        node0.audit()
        while not node0.done():
            assert node0.hear() is None
        node0.stop()
        (result,) = node0.results()
        assert (result.outcome, result.shared, result.offset is not None) == ("completed", True, True)
        assert result.offset is not None
        assert abs(result.offset.ns - PLANTED_NS) <= result.offset.error_ns
        (row,) = result.observations[1]
        assert (row["start_ns"], row["end_ns"]) == (
            PLANTED_NS + 10 - result.offset.ns,
            PLANTED_NS + 30 - result.offset.ns,
        )
        assert gos == [CommonGo(1_000_000_000 + result.offset.ns, Amount(3, 6, 1))]
        node0.close()

    beside(far, near)


def test_a_failure_there_ends_it_here_and_one_here_ends_it_there(pair: Pair) -> None:
    node0, node1 = pair.coordinator, pair.meet()
    node0.begin("job", 2)
    assert node1.next_launch(never) == "job"
    node1.fail(("out_of_memory", "The slice was full."))
    node0.fail(("failed", "A rank died."))
    deadline = time.monotonic() + LIMIT_S
    while (there := node1.hear()) is None or (here := node0.hear()) is None:
        assert time.monotonic() < deadline
    assert there == ("failed", "Node 0: A rank died.")
    assert here[0] == "out_of_memory"
    assert here[1].endswith("): The slice was full.")


def test_a_node_that_leaves_or_is_silent_is_lost(pair: Pair) -> None:
    node0, node1 = pair.coordinator, pair.meet()
    node0.begin("job", 2)
    (connection,) = node0.connections()
    connection._heard_s -= SILENCE_S + 1
    assert (silent := node0.hear()) is not None
    assert silent[0] == "node_lost"
    assert "was not heard for 2 s: its link is cut, or the host is down" in silent[1]
    node1.close()
    (result,) = node0.results()
    assert (result.outcome, "has left" in result.message) == ("node_lost", True)


def test_who_was_busy_between_launches_has_lost_nobody_and_in_one_has(pair: Pair) -> None:
    node0, node1 = pair.coordinator, pair.meet()
    node0.begin("job", 2)
    (connection,) = node1.connections()
    connection._heard_s -= SILENCE_S + 1
    assert node1.next_launch(never) == "job"
    node0.close()
    deadline = time.monotonic() + LIMIT_S
    while (end := node1.hear()) is None:
        assert time.monotonic() < deadline
    assert (end[0], "has left" in end[1]) == ("node_lost", True)


def test_a_node_that_ends_a_launch_too_late_takes_part_in_no_other(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.nodes.coordinator.RESULT_LIMIT_S", 0.0)
    node0, node1 = pair.coordinator, pair.meet()
    node0.begin("job", 2)
    (result,) = node0.results()
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
