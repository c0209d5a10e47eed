"""The tenant's end of the protocol against a scripted runner, and its wait for t0."""

import select
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotenant.protocol.client import Rendezvous, RunnerGoneError, wait_until
from cotenant.protocol.messages import SEND_EVERY_NS, SOCKET_VARIABLE, TENANT_VARIABLE, Message, MessageBuffer, encode


class Runner:
    """The runner's end: one connection, and the messages that came over it."""

    def __init__(self, listener: socket.socket) -> None:
        self.connection = listener.accept()[0]
        self.connection.settimeout(60)
        self._lines = MessageBuffer()

    def say(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.connection.sendall(piece)

    def hear(self, count: int) -> list[Message]:
        heard: list[Message] = []
        while len(heard) < count:
            heard += self._lines.feed(self.connection.recv(65536))
        return heard


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "s")


@pytest.fixture
def both(path: str) -> Iterator[tuple[Rendezvous, Runner]]:
    """A tenant that has sent hello, and its runner."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(path)
        listener.listen()
        environ = {SOCKET_VARIABLE: path, TENANT_VARIABLE: "3", "RANK": "1", "WORLD_SIZE": "2"}
        tenant = Rendezvous.from_environment(environ)
        runner = Runner(listener)
        yield tenant, runner
        tenant.close()
        runner.connection.close()


def test_without_the_variable_there_is_no_rendezvous() -> None:
    assert Rendezvous.from_environment({TENANT_VARIABLE: "0"}) is None


def test_a_runner_that_is_not_there_is_said_so(path: str) -> None:
    with pytest.raises(RunnerGoneError, match=f"no runner listens at {path}"):
        Rendezvous(path, 0)


def test_a_whole_run_in_its_order(both: tuple[Rendezvous, Runner]) -> None:
    tenant, runner = both
    (hello,) = runner.hear(1)
    assert (hello.fields["tenant"], hello.fields["rank"], hello.fields["world"]) == (3, 1, 2)
    tenant.ready(5, 4, 1, [7])
    assert runner.hear(1) == [Message("ready", {"number": 5, "repeat": 4, "skip": 1, "warm_up_ns": [7]})]
    go = encode("go", t0_ns=11, number=6, repeat=2, skip=1, later="more")
    runner.say(go[:9], go[9:])
    assert tenant.await_go() == (11, 6, 2)
    assert not tenant.stopped()
    tenant.observation(index=0, start_ns=1, end_ns=2, items=3, data_wait_ns=0)
    tenant.done()
    runner.say(encode("stop")[:5])
    assert not tenant.stopped()
    runner.say(encode("stop")[5:])
    assert tenant.stopped()
    assert tenant.stopped()
    assert tenant.record({"item": "x"}) == {"item": "x"}
    assert [message.kind for message in runner.hear(3)] == ["observation", "done", "record"]


def test_short_observations_are_sent_in_batches(both: tuple[Rendezvous, Runner]) -> None:
    tenant, runner = both
    runner.hear(1)

    def observe(*after_ns: int) -> None:
        for now_ns in after_ns:
            tenant.observation(index=0, start_ns=1, end_ns=10**12 + now_ns, items=3, data_wait_ns=0)

    observe(0)
    assert len(runner.hear(1)) == 1
    runner.say(encode("enough"))
    observe(1, SEND_EVERY_NS // 2, SEND_EVERY_NS - 1)
    assert select.select([runner.connection], [], [], 0)[0] == []
    assert not tenant.enough()
    observe(SEND_EVERY_NS)
    assert len(runner.hear(4)) == 4
    assert tenant.enough()
    observe(SEND_EVERY_NS + 1)
    tenant.done()
    assert [message.kind for message in runner.hear(2)] == ["observation", "done"]


def test_a_turn_is_waited_for_and_so_is_the_end_of_all_turns(both: tuple[Rendezvous, Runner]) -> None:
    tenant, runner = both
    runner.hear(1)
    runner.say(encode("turn"))
    tenant.turn()
    runner.say(encode("turned") + encode("go", t0_ns=1, number=1, repeat=1, skip=0))
    tenant.turned()
    assert [message.kind for message in runner.hear(2)] == ["turn", "turned"]
    assert tenant.await_go() == (1, 1, 1)


def test_stop_beside_go_in_one_piece_is_not_lost(both: tuple[Rendezvous, Runner]) -> None:
    tenant, runner = both
    runner.say(encode("go", t0_ns=1, number=1, repeat=1, skip=0) + encode("stop"))
    tenant.await_go()
    assert tenant.stopped()


def test_enough_does_not_mean_stop(both: tuple[Rendezvous, Runner]) -> None:
    tenant, runner = both
    runner.say(encode("go", t0_ns=1, number=1, repeat=9, skip=3))
    tenant.await_go()
    assert not tenant.enough()
    runner.say(encode("enough"))
    assert not tenant.stopped()
    assert tenant.enough()
    assert tenant.enough()
    runner.say(encode("stop"))
    assert tenant.stopped()


def test_a_runner_that_dies_is_noticed_wherever(both: tuple[Rendezvous, Runner]) -> None:
    tenant, runner = both
    # The runner has not read the tenant's hello: the kernel reports a reset first, and then the end of the connection.
    runner.connection.close()
    for step in (tenant.await_go, tenant.enough, tenant.stopped, tenant.done):
        with pytest.raises(RunnerGoneError):
            step()


def test_the_wait_ends_at_its_moment_and_not_before() -> None:
    for _ in range(5):
        t0_ns = time.perf_counter_ns() + 10_000_000
        wait_until(t0_ns)
        assert t0_ns <= time.perf_counter_ns()


SPIN_NS = 1000


@pytest.fixture
def now_ns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Clock of the test: reading it takes a microsecond, and a sleep ends 1.5 ms late."""
    now_ns = [0]

    def read() -> int:
        now_ns[0] += SPIN_NS
        return now_ns[0]

    def sleep(seconds: float) -> None:
        now_ns[0] += round(seconds * 1e9) + 1_500_000

    monkeypatch.setattr(time, "perf_counter_ns", read)
    monkeypatch.setattr(time, "sleep", sleep)
    return now_ns


def test_a_late_sleep_does_not_delay_the_start(
    now_ns: list[int],
) -> None:
    wait_until(50_000_000)
    assert 50_000_000 <= now_ns[0] <= 50_000_000 + SPIN_NS
    now_ns[0] = 1_000_000_000
    wait_until(50_000_000)
    assert now_ns[0] == 1_000_000_000 + SPIN_NS
