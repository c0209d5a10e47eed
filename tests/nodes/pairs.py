"""Node 0 and another node over the loopback, in one process."""

import socket
import threading
from collections.abc import Callable, Iterator

import pytest

from cotenant.nodes.cluster import Cluster
from cotenant.nodes.coordinator import Coordinator
from cotenant.nodes.member import Member

SILENCE_S, LIMIT_S, PLANTED_NS = 60.0, 60.0, 5_000_000
RESULT = {
    "outcome": "completed",
    "message": "",
    "version": "v",
    "late_ns": 0,
    "load_end_ns": PLANTED_NS + 40,
    "observations": {
        "1": [{"index": 0, "start_ns": PLANTED_NS + 10, "end_ns": PLANTED_NS + 30, "items": 4, "data_wait_ns": 0}]
    },
    "changes": [],
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

    def begun(self) -> Member:
        """Return a member that has joined, and begin a launch."""
        member = self.meet()
        self.coordinator.begin("job", 2)
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
