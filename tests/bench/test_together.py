"""Why a launch over several nodes ends: the reason that explains the others."""

import pytest

from cotenant.bench.together import Reason, Together
from cotenant.bench.world import World

NODES = [{"node": number, "hostname": f"h{number}"} for number in range(3)]
FAILED, FULL = ("failed", "RuntimeError: Connection closed by peer"), ("device_out_of_memory", "It is full.")


@pytest.mark.parametrize(
    ("own", "ends", "outcome", "words"),
    [
        (None, {4: None}, "node_lost", "Node 2 (h2) is lost: its rank 4 ended without a word"),
        # Its neighbour, and rank 0 too, have failed of that.
        (FAILED, {2: FAILED, 4: None}, "node_lost", "Node 2 (h2) is lost"),
        # The launcher of a node ends the ranks beside one that has failed.
        (None, {3: FAILED, 2: None}, "failed", "Node 1 (h1), rank 3: RuntimeError"),
        (FAILED, {5: None, 2: FULL}, "device_out_of_memory", "Node 1 (h1), rank 2: It is full."),
        (FULL, {4: FAILED, 2: None}, "device_out_of_memory", "It is full."),
        (FAILED, {}, "failed", "RuntimeError: Connection closed by peer"),
    ],
)
def test_the_cause_is_named_and_not_what_follows_from_it(
    own: Reason | None, ends: dict[int, Reason | None], outcome: str, words: str
) -> None:
    together = object.__new__(Together)
    together._world, together._nodes, together._ends = World(0, 0, 6, 2), NODES, ends
    found, message = together._cause(own)
    assert (found, message.startswith(words)) == (outcome, True), message
