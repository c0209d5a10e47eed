"""One launch on several nodes: the part that each node reports, and the whole that node 0 makes of them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, replace
from typing import Any

from cotenant.isolation.backend import Backend, expected, unenforced_of
from cotenant.launch.outcome import LaunchResult, TenantResult
from cotenant.nodes.peers import NodeResult
from cotenant.nodes.slurm import held
from cotenant.results.build import tenant_part
from cotenant.stats.tenants import Span, overlap
from cotenant.text import many, printable


def node_part(result: LaunchResult, backend: Backend) -> dict[str, Any]:
    """Return a node's message about its part to node 0: JSON, with times by its own clock."""
    (tenant,) = result.tenants
    ranks = tenant.ranks.values()
    versions = {str(rank.work.get("version", "")) for rank in ranks}
    return {
        "outcome": tenant.outcome,
        "message": tenant.message,
        "version": ", ".join(sorted(versions)),
        "late_ns": max((rank.late_ns for rank in ranks), default=0),
        "load_end_ns": max((tenant_part(rank.record).load_end_ns for rank in ranks if rank.record), default=0),
        "observations": {str(rank.number): rank.observations for rank in ranks},
        "slurm": held(),
        "changes": list(result.changes),
        "isolation": enclosed(tenant, backend, 1),
    }


def enclosed(tenant: TenantResult, backend: Backend, sharers: int) -> dict[str, Any]:
    """Return the facts on a tenant's slice that a record keeps; so many `sharers` had its processors."""
    return {
        "backend": backend.name,
        "planned": expected(tenant.spec.slice),
        "read_back": asdict(tenant.read_back),
        "counters": asdict(tenant.after.since(tenant.before)),
        "unenforced": unenforced_of(backend, tenant.read_back, sharers),
    }


def whole(result: LaunchResult, nodes: tuple[NodeResult, ...]) -> LaunchResult:
    """Return node 0's result as that of all nodes: a tenant completed if it did on every node, as one program."""
    (tenant,) = result.tenants
    outcome, message = tenant.outcome, tenant.message
    own = next((rank.work.get("version", "") for rank in tenant.ranks.values()), "")
    causes = [node for node in nodes if node.outcome not in ("completed", "failed")]
    if outcome == "failed" and causes:
        # A failure that ends ranks on another node breaks our ranks' connections, and ours may report first.
        outcome, message = causes[0].outcome, f"{causes[0].message} Node 0: {message}"
    if outcome == "completed":
        failed = [(node.outcome, node.message) for node in nodes if node.outcome != "completed"]
        others = [node for node in nodes if node.version != own]
        if failed:
            outcome, message = failed[0]
        elif others:
            sentence = f"Node {others[0].node} ({others[0].hostname}) runs another version of this benchmark."
            outcome, message = "failed", f"{sentence} Bring all nodes to one checkout."
        elif misfit := _misfit(tenant.ranks, nodes):
            outcome, message = "failed", misfit
    changes = (f"node {node.node}: {change}" for node in nodes for change in map(printable, node.changes))
    tenant = replace(tenant, outcome=outcome, message=message)
    return replace(result, tenants=(tenant,), nodes=nodes, changes=(*result.changes, *changes))


def _misfit(own: Collection[int], nodes: Sequence[NodeResult]) -> str:
    """Return why `own` ranks and those of other nodes are not of one program with as many on each node; else ""."""
    seen = set(own)
    for node in nodes:
        ranks, name = node.observations.keys(), f"Node {node.node} ({node.hostname})"
        if seen & ranks:
            sentence = f"{name} has a rank {min(seen & ranks)} of its own, and so has a node before it: each ran alone."
            return f"{sentence} What starts the ranks has to heed PET_NNODES and PET_NODE_RANK, as torchrun does."
        if len(ranks) != len(own):
            sentence = f"{name} has {many(len(ranks), 'rank')} and node 0 has {len(own)}, where a rate needs as many."
            return f"{sentence} --devices says how many take part on each node."
        seen |= ranks
    return ""


def load_of(node: NodeResult) -> Span | None:
    """Return when a node's load began and ended by node 0's clock; None if it observed nothing."""
    rows = [row for of_rank in node.observations.values() for row in of_rank]
    if not rows:
        return None
    return min(row["start_ns"] for row in rows), max(node.load_end_ns, *(row["end_ns"] for row in rows))


def described(nodes: tuple[NodeResult, ...], common: Span) -> list[dict[str, Any]]:
    """Return a record's entry for each other node; `overlap` is the part of its observations in the `common` load."""
    return [
        {
            "node": node.node,
            "hostname": node.hostname,
            "shared": node.shared,
            "outcome": node.outcome,
            "offset_ns": node.offset and node.offset.ns,
            "offset_error_ns": node.offset and node.offset.error_ns,
            "start_ns": load and load[0],
            "load_end_ns": load and load[1],
            "overlap": load
            and overlap([(row["start_ns"], row["end_ns"]) for of in node.observations.values() for row in of], common),
            "isolation": node.isolation,
            "slurm": node.slurm,
        }
        for node in nodes
        for load in [load_of(node)]
    ]
