"""Peers that are none of ours: they hold us no longer than a limit, and their messages lead to an end with a reason."""

import itertools
import json
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest

from cotenant.errors import CotenantError
from cotenant.launch.limits import Limits, late
from cotenant.protocol.messages import encode
from nodes.emulated import Nodes, two
from nodes.pairs import LIMIT_S, RESULT, Pair, never, pair
from tenants.suites import job, until

__all__ = ["pair", "two"]
SOON_S, EVERY_S = 20.0, 0.1
"""Far below the limits of a minute that strangers could hold us for, and far above the time that a busy host takes."""
BEAT = encode("beat")
DRIBBLES = {"beats": itertools.repeat(BEAT), "bytes": itertools.repeat(b"x"), "nothing": itertools.repeat(b"")}
"""Pieces without content that a peer sends again and again."""
HUGE = 1 << 62


@contextmanager
def dribbling(connection: socket.socket, pieces: Iterator[bytes]) -> Iterator[None]:
    """Send a piece every EVERY_S, until the other side hangs up or this ends."""
    over = threading.Event()

    def send() -> None:
        with suppress(OSError):
            while not over.wait(EVERY_S):
                connection.sendall(next(pieces))

    thread = threading.Thread(target=send)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        connection.close()


def seconds(work: Callable[[], object]) -> float:
    begin_s = time.monotonic()
    work()
    return time.monotonic() - begin_s


def test_strangers_hold_node_0_no_longer_than_its_limit(pair: Pair) -> None:
    def refused() -> None:
        with pytest.raises(CotenantError, match=r"Not all of 2 nodes .* within 0\.5 s"):
            pair.coordinator.gather("jobs", 0.5, never)

    with ExitStack() as strangers:
        for pieces in DRIBBLES.values():
            strangers.enter_context(dribbling(socket.create_connection(("127.0.0.1", pair.port)), pieces))
        assert seconds(refused) < SOON_S


def test_a_member_joins_beside_strangers_and_a_signal_is_heard(pair: Pair) -> None:
    strangers = [socket.create_connection(("127.0.0.1", pair.port)) for _ in range(3)]
    with dribbling(strangers[0], DRIBBLES["beats"]), dribbling(strangers[1], DRIBBLES["bytes"]):
        assert seconds(lambda: pair.coordinator.gather("jobs", LIMIT_S, lambda: True)) < SOON_S
        assert pair.meet().connections()
    strangers[2].close()


def test_a_false_node_0_holds_members_no_longer_than_their_limit(pair: Pair) -> None:
    pair.coordinator.close()
    joining = [threading.Thread(target=_refused, args=(pair,)) for _ in DRIBBLES]
    with socket.create_server(("127.0.0.1", pair.port)) as false, ExitStack() as answers:
        begin_s = time.monotonic()
        for thread, pieces in zip(joining, DRIBBLES.values(), strict=True):
            thread.start()
            answers.enter_context(dribbling(false.accept()[0], pieces))
        for thread in joining:
            thread.join(LIMIT_S)
            assert not thread.is_alive()
        assert time.monotonic() - begin_s < 0.5 + SOON_S


def _refused(pair: Pair) -> None:
    with pytest.raises(CotenantError, match=r"Node 0 does not answer at .* within 0\.5 s"):
        pair.member().join("jobs", 0.5, never)


class Impostor:
    """A node 1 that has joined, and sends whatever it is told to."""

    def __init__(self, pair: Pair) -> None:
        self.connection = socket.create_connection(("127.0.0.1", pair.port))
        self.connection.sendall(encode("join", node=1, hostname="h\x1b[2J", boot="b", identity="jobs"))
        pair.coordinator.gather("jobs", LIMIT_S, never)
        pair.coordinator.begin("job", 2)

    def say(self, kind: str, **fields: Any) -> None:
        """Send a message whether or not it is one."""
        self.connection.sendall(json.dumps({"kind": kind, **fields}).encode() + b"\n")


@pytest.fixture
def impostor(pair: Pair) -> Iterator[Impostor]:
    made = Impostor(pair)
    yield made
    made.connection.close()


def row(**fields: Any) -> dict[str, Any]:
    return {"observations": {"1": [RESULT["observations"]["1"][0] | fields]}}


MALFORMED: dict[str, dict[str, Any]] = {
    "without an outcome": {"outcome": None},
    "late as a word": {"late_ns": "much"},
    "late beyond all clocks": {"late_ns": HUGE},
    "a rank without a number": {"observations": {"one": []}},
    "a rank without rows": {"observations": {"1": 5}},
    "a row that is a number": {"observations": {"1": [5]}},
    "a row without a time": row(start_ns=None),
    "a row that ends before it starts": row(end_ns=0),
    "a row of NaN items": row(items=float("nan")),
    "a row beyond all clocks": row(end_ns=HUGE),
    "a slice that is a list": {"isolation": []},
    "changes that are numbers": {"changes": [5]},
}


@pytest.mark.parametrize("what", MALFORMED)
def test_a_malformed_result_loses_its_node_by_name(pair: Pair, impostor: Impostor, what: str) -> None:
    impostor.say("result", **RESULT | MALFORMED[what])
    (result,) = pair.coordinator.results(never)
    assert result.outcome == "node_lost"
    assert result.message.startswith("Node 1 (h) does not speak the protocol: ")
    assert pair.coordinator.lost() == result.message


def test_other_nonsense_loses_a_node_by_name_as_well(pair: Pair, impostor: Impostor) -> None:
    impostor.say("lost", outcome="completed", message="All is well.")
    until(lambda: (end := pair.coordinator.hear()) is not None and "as 'completed'" in end[1], "its end")
    (result,) = pair.coordinator.results(never)
    assert (result.outcome, result.message.isprintable()) == ("node_lost", True)


@pytest.mark.parametrize("what", DRIBBLES)
def test_a_node_that_dribbles_holds_no_result_and_no_clock(
    pair: Pair, impostor: Impostor, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cotenant.nodes.coordinator.ANSWER_S", 0.3)
    monkeypatch.setattr("cotenant.nodes.coordinator.RESULT_LIMIT_S", 0.3)
    assert pair.coordinator.awaited() == "Node 1 (h)"
    with dribbling(impostor.connection, DRIBBLES[what]):
        assert seconds(pair.coordinator.go) < SOON_S
        assert (end := pair.coordinator.hear()) is not None
        assert end[1] == "Node 1 (h) does not answer while it waits for GO."
        assert seconds(lambda: pair.coordinator.results(never)) < SOON_S


def test_after_a_signal_results_are_not_awaited_for_long(pair: Pair, impostor: Impostor) -> None:
    pair.coordinator._silence_s = 0.3
    assert seconds(lambda: pair.coordinator.results(lambda: True)) < SOON_S


def test_a_node_that_is_never_ready_ends_the_launch_at_its_limit() -> None:
    limits = Limits(timeout_s=100, ready_limit_s=10)
    here: Any = [type("Ready", (), {"all_ranks": lambda _, what: what == "ready"})()]
    assert late(here, limits, 9, loaded=False, awaited="Node 1 (h)") == ([], None)
    behind, reason = late(here, limits, 10, loaded=False, awaited="Node 1 (h)")
    assert (behind, reason) == (
        here,
        ("timeout", "Node 1 (h) was not ready within 10 s. Give it longer with --ready-timeout."),
    )


@pytest.mark.parametrize("go", [{"t0_ns": 1}, {"t0_ns": HUGE}, {"number": 0}, {"repeat": 1}, {"skip": -1}])
def test_a_go_that_nobody_could_follow_is_none(pair: Pair, go: dict[str, int]) -> None:
    node1 = pair.meet()
    pair.coordinator._nodes[0].connection.send(
        "go", **{"t0_ns": time.perf_counter_ns(), "number": 1, "repeat": 3, "skip": 1} | go
    )
    until(lambda: (end := node1.hear()) is not None and "Node 0 does not speak the protocol" in end[1], "its end")
    assert node1.go() is None


@pytest.mark.slow
@pytest.mark.parametrize("node", [0, 1])
def test_a_runner_beside_a_false_one_ends_by_its_limit_or_a_signal(two: Nodes, node: int) -> None:
    """As they are typed: node 0 with a stranger that beats, and node 1 with a node 0 that does."""
    both = job("host.sh", name="both", group="all", args={"--repeat": 6})
    for stop, flags, status in ((None, 3, 2), (signal.SIGINT, 60, 130)):
        false = socket.create_server((two.host, two.port)) if node else None
        process = two.start_one(node, [both], "--ready-timeout", flags)
        two.running = [process]
        connection = false.accept()[0] if false else until(lambda: _reached(two), "node 0 listens")
        with dribbling(connection, DRIBBLES["beats"]):
            if stop is not None:
                time.sleep(1)
                process.send_signal(stop)
            assert process.wait(30) == status, two.said()
        if false:
            false.close()


def _reached(two: Nodes) -> socket.socket | None:
    with suppress(OSError):
        return socket.create_connection((two.host, two.port))
    return None
