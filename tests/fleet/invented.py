"""Invented fleets as folders of records: levels, faults, repeats, other losses, other facts."""

from __future__ import annotations

import copy
import functools
import json
import random
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cotenant.results.record import encode
from results.made import a_part, a_record

JOBS = {
    **dict.fromkeys(("convnet", "dcgan", "gpt"), "compute"),
    **dict.fromkeys(("recom", "wlm", "dlrm"), "memory"),
    **dict.fromkeys(("vae", "toy_reg", "cart"), "latency"),
}
"""Jobs with the resource that profiles/resources.csv gives them."""
FAILED: dict[str, Any] = {"completed": False, "outcome": "device_out_of_memory", "statistics": None, "train_item": None}
"""Fields of a record without a rate."""
COMPUTE = tuple(job for job, resource in JOBS.items() if resource == "compute")


@functools.cache
def _fields() -> dict[str, Any]:
    part = a_part(epoch_loss=[0.9 - 0.01 * step for step in range(25)])
    fields: dict[str, Any] = msgspec.json.decode(encode(a_record(told={"part": part}, place={"tenants": 1})))
    del fields["batch_loss"]
    return fields


def put(place: Path, node: str, job: str, uid: int = 0, rate: float = 100.0, **changes: Any) -> None:
    """Write the record of a launch of one tenant at this rate into a node's folder, in the place of an earlier one."""
    fields = copy.deepcopy(_fields())
    fields["statistics"]["median"] = rate
    moment = f"2026-03-14T{12 + uid % 10}:00:00+00:00"
    identity = {"hostname": node, "name": job, "run_id": uid, "version": f"of {job}", "unique_id": f"{job:64}"}
    fields |= identity | {"start_time": moment, "suite_start_time": moment, "findings": []} | changes
    path = place / node / f"s.{job}.R{fields['run_id']}.D{fields['tenant']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(fields))


def machine(power_w: float = 700.0, kernel: str = "6.1.0") -> dict[str, Any]:
    """The facts of a host in its records."""
    device = {"index": 0, "firmware": "96.00.61", "power_limit_w": power_w, "ecc": True, "pcie_width": 16}
    inventory = {"firmware": "1.2", "governor": "performance", "boost": True, "devices": [device]}
    return {"inventory": inventory, "software": {"kernel": kernel}}


def write_fleet(
    place: Path,
    nodes: Sequence[str],
    slow: Mapping[tuple[str, str], float] | None = None,
    again: Collection[str] = (),
    changes: Mapping[str, dict[str, Any]] | None = None,
    spread: float = 0.02,
) -> Path:
    """Write a folder for each node: one run of every job, and three more runs of the nodes `again`.

    `slow` has the share of its rate that a (node, job) loses, `changes` the fields of all records of a node.
    """
    chance = random.Random(5)
    levels = {node: chance.gauss(0, spread) for node in nodes}
    for uid in range(4 if again else 1):
        for node in nodes if uid == 0 else again:
            for number, job in enumerate(JOBS):
                kept = 1 - (slow or {}).get((node, job), 0.0)
                rate = 100.0 * (number + 1) * kept * (1 + levels[node]) * (1 + chance.gauss(0, 0.004))
                put(place, node, job, uid, rate, **(changes or {}).get(node, {}))
    return place
