"""One launch over several nodes: facts from each runner to its ranks, and from rank 0 about the other nodes."""

from __future__ import annotations

import itertools
import json
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from cotenant.isolation.backend import Backend, ReadBack, expected, unenforced_of
from cotenant.launch.limits import Limits
from cotenant.launch.outcome import TenantResult
from cotenant.launch.planned import PlannedLaunch
from cotenant.launch.prepared import PreparedSuite
from cotenant.launch.resume import conditions_of
from cotenant.launch.tenant import TenantSpec
from cotenant.nodes.cluster import boot_id
from cotenant.nodes.slurm import held
from cotenant.protocol.messages import NODE_VARIABLE
from cotenant.results.decoded import list_of, mapping_of

Variables = Callable[[TenantSpec, ReadBack], dict[str, str]]


def waiting_s(starts: Sequence[PlannedLaunch], launch: PlannedLaunch, limits: Limits) -> float:
    """Return the most seconds that a node waits for node 0, which may first make launches without this node."""
    before = starts[: [start.key for start in starts].index(launch.key)]
    absent = itertools.takewhile(lambda start: start.follows is None, reversed(before))
    return limits.ready_limit_s + sum(limits.of_job(start.timeout_s).timeout_s for start in absent)


def node_variable(suite: PreparedSuite, launch: PlannedLaunch, ready_s: float, wait_s: float) -> Variables:
    """Return a function that makes the variable for the ranks of a tenant, once its slice has been read back.

    All ranks have to be READY within `ready_s`; other nodes wait up to `wait_s` for node 0.
    """
    cluster, options = suite.options.cluster, suite.options
    assert cluster is not None
    # The conditions of --resume, except for each host's slices.
    conditions = conditions_of(options, suite.starts, "") | {"--uid": str(options.uid)}
    del conditions["the slices"]
    keys = [start.key for start in suite.starts]

    def variable(spec: TenantSpec, read_back: ReadBack) -> dict[str, str]:
        facts = {
            "node": cluster.node,
            "nodes": launch.cell.nodes or cluster.nodes,
            "hostname": socket.gethostname(),
            "boot": boot_id(),
            "index": keys.index(launch.key),
            "launch": launch.label,
            "conditions": conditions,
            "ready_s": ready_s,
            "ready_by_s": time.monotonic() + (wait_s if launch.follows else ready_s),
            "isolation": enclosed(spec, read_back, suite.backend, 1),
            "slurm": held(),
        }
        return {NODE_VARIABLE: json.dumps(facts)}

    return variable


def enclosed(spec: TenantSpec, read_back: ReadBack, backend: Backend, sharers: int) -> dict[str, Any]:
    """Return the facts on a tenant's slice as it was made; `sharers` tenants have its processors."""
    return {
        "backend": backend.name,
        "planned": expected(spec.slice),
        "read_back": asdict(read_back),
        "unenforced": unenforced_of(backend, read_back, sharers),
    }


def other_nodes(tenant: TenantResult) -> list[dict[str, Any]]:
    """Return the facts that rank 0 sent about the other nodes of its launch."""
    said = tenant.ranks[0].work.get("nodes") if 0 in tenant.ranks else None
    return [dict(mapping_of(node)) for node in list_of(said)]
