"""Where the ranks of several nodes meet: over a real store of this process, each node a thread."""

import threading
import time
from typing import Any

import pytest

from cotenant.bench.meeting import GoneOnError, Node, NotMetError
from cotenant.errors import CotenantError
from cotenant.launch.environment import free_ports

HOST = "127.0.0.1"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cotenant.bench.meeting.AGAIN_S", 0.2)
    monkeypatch.setattr("cotenant.bench.meeting.READ_S", 0.3)


def node(number: int, index: int = 0, ranks: int = 1, ready_s: float = 20.0, **conditions: str) -> Node:
    facts = {
        "node": number,
        "nodes": 2,
        "hostname": f"h{number}",
        "boot": "one kernel",
        "index": index,
        "launch": f"job{index}",
        "conditions": {"the jobs": "a", "--uid": "0"} | conditions,
        "ready_s": ready_s,
        "ready_by_s": time.monotonic() + ready_s,
        "isolation": {"backend": "v1"},
        "slurm": {},
    }
    return Node(facts, ranks)


def met(*nodes: Node) -> dict[int, Any]:
    """Let nodes meet; return by their numbers what each got, or why it did not."""
    port, ends, stores = free_ports(1), dict[int, Any](), list[object]()

    def meet(each: Node) -> None:
        try:
            store, ends[each.facts["node"]] = each.meet(HOST, port)
            stores.append(store)
        except CotenantError as error:
            ends[each.facts["node"]] = error

    threads = [threading.Thread(target=meet, args=(each,)) for each in nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return ends


def test_nodes_of_one_command_learn_of_each_other() -> None:
    ends = met(node(0), node(1))
    shown = [
        {"node": number, "hostname": f"h{number}", "isolation": {"backend": "v1"}, "slurm": {}, "shared": True}
        for number in (0, 1)
    ]
    assert ends == {0: shown, 1: shown}


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({"the jobs": "b", "--uid": "1"}, "Node 1 (h1) differs from node 0 in the jobs, --uid."),
        ({"ranks": 2}, "Node 1 (h1) has 2 ranks and node 0 has 1, but a rate needs the same number"),
    ],
)
def test_nodes_of_other_commands_are_told_so_on_both_sides(other: dict[str, Any], words: str) -> None:
    ends = met(node(0), node(1, **other))
    assert all(isinstance(end, NotMetError) and words in str(end) for end in ends.values()), ends


def test_a_node_behind_leaves_and_one_that_is_missing_is_named() -> None:
    ends = met(node(0, index=1, ready_s=1.0), node(1))
    assert isinstance(ends[1], GoneOnError)
    assert str(ends[1]) == "Node 0 is at its launch job1 already, and this node at job0."
    assert f"Not all of 2 nodes came to {HOST}:" in str(ends[0])
    assert "within 1 s: missing are 1." in str(ends[0])


def test_a_node_ahead_waits_for_node_0_but_not_for_ever() -> None:
    ends = met(node(0, ready_s=1.5), node(1, index=1, ready_s=0.5))
    assert "Node 0 does not answer at" in str(ends[1])
    assert "missing are 1" in str(ends[0])


def test_an_address_of_another_host_is_a_sentence() -> None:
    with pytest.raises(NotMetError, match=r"Node 0 cannot listen at 192\.0\.2\.1:70"):
        node(0).meet("192.0.2.1", 70)
