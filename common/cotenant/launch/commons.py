"""What the tenants of a launch have in common beside their slices: the page cache of their input, and /dev/shm."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cotenant.isolation.leftovers import new_shared_files, shared_files
from cotenant.launch.cache import CachePolicy, input_paths, prepare_cache
from cotenant.launch.places import Places
from cotenant.launch.tenant import Order


@contextlib.contextmanager
def commons(
    orders: Sequence[Order], places: Places, policy: CachePolicy, stop: Callable[[], bool], own_shm: bool
) -> Iterator[dict[str, Any]]:
    """Yield meters that are whole after the launch: what lay in the cache before it, what is new in /dev/shm after it.

    `own_shm`: each tenant has a /dev/shm of its own, so that what is new in the machine's is not theirs.
    """
    before = shared_files().keys()
    treated = prepare_cache(policy, input_paths([order.command for order in orders], places), stop)
    meters: dict[str, Any] = {} if treated is None else {"input": dataclasses.asdict(treated)}
    try:
        yield meters
    finally:
        if not own_shm and (new := new_shared_files(before)):
            meters["shm_kept"] = new
