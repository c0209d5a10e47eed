"""The first line of a suite on devices: their models, their memory class, and the users that share them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cotenant.isolation.plan import Plan
from cotenant.isolation.slice import Slice
from cotenant.suite.sizes import memory_class
from cotenant.text import gib, many


def device_line(made: Plan, launches: int, class_name: str | None = None, strangers: bool = False) -> str:
    """Return the line; "" without devices. `class_name`: the requested one; `strangers`: others use the devices."""
    devices = list(dict.fromkeys(device for slice_ in made.slices for device in slice_.accelerators))
    if not devices:
        return ""
    models = ", ".join(f"{count} x {name}" for name, count in Counter(device.name for device in devices).items())
    memory = min(device.memory_bytes for device in devices)
    name = class_name or memory_class(made.device_share_bytes)
    sizes = f"batch sizes of {name}" if name else "no batch sizes for that"
    beside = ", beside processes of others" if strangers else ""
    return (
        f"{models} of {gib(memory) if memory else 'unknown memory'}, {sizes}: {_sharing(made.slices)}{beside}; "
        f"{many(launches, 'launch', 'es')}"
    )


def _sharing(slices: Sequence[Slice]) -> str:
    sharers = max(Counter(device for slice_ in slices for device in slice_.accelerators).values())
    if sharers == 1:
        return "a user each" if len(slices) > 1 else "one user"
    part = slices[0].device_share
    return f"{sharers} users on each {'in turns' if part is None or part.mode.kind == 'time' else f'by {part.mode}'}"
