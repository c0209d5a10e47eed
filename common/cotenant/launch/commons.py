"""What the tenants of a launch have in common beside their slices: the page cache of their input, and /dev/shm."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from cotenant.isolation.shm import ShmWatch
from cotenant.launch.cache import CachePolicy, input_paths, prepare_cache
from cotenant.launch.places import Places
from cotenant.launch.tenant import Order


@contextlib.contextmanager
def commons(
    orders: Sequence[Order], places: Places, policy: CachePolicy, stop: Callable[[], bool], shm: ShmWatch
) -> Iterator[dict[str, Any]]:
    """Yield meters that are whole after the launch: what lay in the cache before it, what was cleared after it."""
    treated = prepare_cache(policy, input_paths([order.command for order in orders], places), stop)
    meters: dict[str, Any] = {} if treated is None else {"input": dataclasses.asdict(treated)}
    try:
        yield meters
    finally:
        leavings = shm.clear()
        for name, what in (("shm_left", leavings.removed), ("shm_kept", leavings.kept)):
            if what.files:
                meters[name] = dataclasses.asdict(what)
