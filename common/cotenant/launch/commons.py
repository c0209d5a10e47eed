"""What the tenants of a launch have in common beside their slices: the page cache of their input, and /dev/shm."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cotenant.isolation import shm
from cotenant.launch.cache import CachePolicy, input_paths, prepare_cache
from cotenant.launch.places import Places
from cotenant.launch.tenant import Order


@contextlib.contextmanager
def commons(
    orders: Sequence[Order], places: Places, policy: CachePolicy, stop: Callable[[], bool]
) -> Iterator[dict[str, Any]]:
    """Yield meters that are whole after the launch: what lay in the cache before it, what was cleared after it."""
    treated = prepare_cache(policy, input_paths([order.command for order in orders], places), stop)
    meters: dict[str, Any] = {} if treated is None else {"input": dataclasses.asdict(treated)}
    before = shm.present()
    try:
        yield meters
    finally:
        left = shm.clear_leavings(before)
        if left.files:
            meters["shm_left"] = dataclasses.asdict(left)
