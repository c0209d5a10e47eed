"""Node 0 joins the parts of all nodes."""

from datetime import UTC, datetime

import pytest

from cotenant.launch.across import whole
from cotenant.launch.outcome import LaunchResult, TenantResult
from cotenant.launch.rendezvous import Rank
from cotenant.nodes.peers import NodeResult


def node(number: int, *ranks: int) -> NodeResult:
    return NodeResult(number, f"h{number}", False, "completed", "", observations={rank: [] for rank in ranks})


@pytest.mark.parametrize(
    ("nodes", "outcome", "words"),
    [
        ((node(1, 2, 3),), "completed", ""),
        ((node(1, 2, 3), node(2, 4, 5)), "completed", ""),
        # One process on each node, which knows of no other: DataParallel.
        ((node(1, 0, 1),), "failed", "Node 1 (h1) has a rank 0 of its own"),
        ((node(1, 2, 3), node(2, 2, 3)), "failed", "Node 2 (h2) has a rank 2 of its own"),
        ((node(1, 2),), "failed", "Node 1 (h1) has 1 rank and node 0 has 2"),
    ],
)
def test_nodes_have_other_ranks_and_as_many(nodes: tuple[NodeResult, ...], outcome: str, words: str) -> None:
    ranks = {number: Rank(None, number, 4) for number in (0, 1)}  # type: ignore[arg-type] # they have no link here
    now = datetime.now(UTC)
    own = TenantResult(None, "completed", "", ranks)  # type: ignore[arg-type] # nor a slice
    (tenant,) = whole(LaunchResult((own,), now, now), nodes).tenants
    assert (tenant.outcome, words in tenant.message) == (outcome, True)


def test_connections_that_broke_here_are_not_the_cause() -> None:
    now = datetime.now(UTC)
    broken = TenantResult(None, "failed", "Connection closed by peer.", {})  # type: ignore[arg-type] # it has no slice
    for there, outcome in (("out_of_memory", "out_of_memory"), ("node_lost", "node_lost"), ("failed", "failed")):
        other = NodeResult(1, "h1", False, there, "Node 1 (h1): its end.")
        (tenant,) = whole(LaunchResult((broken,), now, now), (other,)).tenants
        assert (tenant.outcome, "its end. Node 0: Conn" in tenant.message) == (outcome, there != "failed")
