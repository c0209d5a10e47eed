"""The first line of a suite on devices: which they are, their memory class, who shares them, how long it will take."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from cotenant.isolation.plan import Plan, Slice
from cotenant.launch.baseline import QUICK_KEPT_S
from cotenant.launch.limits import Limits
from cotenant.launch.schedule import BUDGET_NS
from cotenant.launch.start import Start
from cotenant.suite.sizes import memory_class
from cotenant.text import gib, many

START_S = 15.0
"""An estimate of what a launch on a device takes beside its load: imports, contexts, choices of algorithms, the end."""


def device_line(
    made: Plan,
    starts: Sequence[Start],
    limits: Limits,
    class_name: str | None = None,
    took_s: Mapping[str, float] | None = None,
    strangers: bool = False,
) -> str:
    """Return the line; "" without devices.

    `class_name` was asked for; `took_s`: seconds of last launches, by name; `strangers`: are others on the devices?
    """
    devices = list(dict.fromkeys(device for slice_ in made.slices for device in slice_.accelerators))
    if not devices:
        return ""
    models = listed_models([device.name for device in devices])
    memory = min(device.memory_bytes for device in devices)
    name = class_name or memory_class(made.device_share_bytes)
    sizes = f"batch sizes of {name}" if name else "no batch sizes for that"
    beside = ", beside processes of others" if strangers else ""
    seconds = sum((took_s or {}).get(start.names[0], _least_s(start, limits)) for start in starts)
    return (
        f"{models} of {gib(memory) if memory else 'unknown memory'}, {sizes}: {_sharing(made.slices)}{beside}; "
        f"{many(len(starts), 'launch', 'es')}, some {max(1, round(seconds / 60))} min"
    )


def listed_models(names: Sequence[str]) -> str:
    """Return `8 x NVIDIA H100, 1 x NVIDIA A100`."""
    return ", ".join(f"{count} x {name}" for name, count in Counter(names).items())


def _sharing(slices: Sequence[Slice]) -> str:
    sharers = max(Counter(device for slice_ in slices for device in slice_.accelerators).values())
    if sharers == 1:
        return "a user each" if len(slices) > 1 else "one user"
    part = slices[0].device_share
    return f"{sharers} users on each {'in turns' if part is None or part.mode.kind == 'time' else f'by {part.mode}'}"


def _least_s(start: Start, limits: Limits) -> float:
    """Return what a launch takes at least: an observation's length is known once its warm-up is."""
    load_s = QUICK_KEPT_S if start.baseline == "quick" else max(limits.at_least_s, limits.budget_s or 0.0)
    if start.takes_turns:
        load_s = limits.budget_s or len(start.specs) * BUDGET_NS / 1e9
    return START_S + limits.settle_s + load_s
