"""The lines printed before a run: devices, launches and their comparisons, users and slices, the gravest findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from cotenant.isolation.plan import Plan
from cotenant.isolation.slice import Slice
from cotenant.isolation.unenforced import NoIsolation
from cotenant.launch.alone import QUICK_KEPT_S
from cotenant.launch.command import callers_python
from cotenant.launch.environment import OMP
from cotenant.launch.prepared import PreparedSuite
from cotenant.procfs import format_list
from cotenant.suite.sizes import memory_class
from cotenant.text import gib, many


def heading(suite: PreparedSuite) -> list[str]:
    """Describe the run to come, in a few lines."""
    machine, options = suite.machine, suite.options
    grave = [finding for finding in suite.before if finding.severity != "info"]
    strangers = any(finding.rule == "device_in_use" for finding in suite.before)
    on_devices = device_line(suite.plan, len(suite.starts), options.memory_class, strangers)
    launches = _launches(suite)
    return [
        *([on_devices] if on_devices else []),
        f"{options.suite.name} on {machine.hostname}: {launches}, {many(len(machine.accelerators), 'accelerator')}",
        tenancy(suite),
        *callers_part(suite),
        f"records: {suite.paths.output}",
        *suite.left_out,
        *(f"{finding.severity}: {finding.sentence} {finding.remedy}".rstrip() for finding in grave),
    ]


def tenancy(suite: PreparedSuite) -> str:
    """Return the number of users, their slices, and the backend that enforces them, in words."""
    plan, backend, asked = suite.plan, suite.backend, suite.options.isolation
    if backend.name == NoIsolation.name:
        return f"{many(len(plan.slices), 'user')} without slices, as if each just started (isolation none)"
    if "memory" in backend.unenforced:
        why = "no cgroups here" if asked == "auto" else f"isolation {asked}"
        return f"{plan.processors_words}; memory NOT limited ({why}; --isolation require says what it takes)"
    return f"{plan}, by {backend.name}"


def callers_part(suite: PreparedSuite) -> list[str]:
    """Return the Python that copies of a command find, and their number of threads, unless the caller sets it."""
    commands = [program.cell.job.foreign for launch in suite.starts for program in launch.programs]
    names = dict.fromkeys(foreign.words[0] for foreign in commands if foreign is not None)
    if not names or suite.options.image is not None:
        return []
    pythons = [line for line in dict.fromkeys(map(callers_python, names)) if line]
    environments = [spec.environment for launch in suite.starts for spec in launch.specs]
    threads = sorted({int(environment[OMP]) for environment in environments if OMP in environment})
    ours = f"{OMP}={format_list(threads)} in each copy, as many as its slice has processors; a value of yours stays"
    return [*pythons, *([ours] if threads else [])]


def _launches(suite: PreparedSuite) -> str:
    alone = sum(launch.solo for launch in suite.starts)
    launches, kind = many(len(suite.starts), "launch"), suite.options.baseline
    if suite.options.repetitions > 1:
        launches = f"{many(suite.options.repetitions, 'repetition')} of {launches}"
    if kind == "none":
        return launches
    if any(launch.design.takes_turns for launch in suite.starts):
        by_turns = "the rate each keeps is measured within them, by turns"
        return f"{launches} (baseline blocks: {by_turns})"
    if refusals := [launch.design.refusal for launch in suite.starts if launch.goes_on]:
        kinds = f"a user of each job and kind of slice goes on alone for {QUICK_KEPT_S:.0f} s at a launch's end"
        return f"{launches} (baseline quick: {kinds}; no blocks, as {refusals[0]})"
    if not alone:
        return f"{launches} (--baseline {kind} adds none: no job here has several users)"
    unsliced = suite.backend.name == NoIsolation.name
    where = "on the whole machine, without slices" if unsliced else "in its slice"
    return f"{launches} ({alone} of one user alone {where}; baseline {kind})"


def device_line(made: Plan, launches: int, class_name: str | None = None, strangers: bool = False) -> str:
    """Return the line on devices: their models, their memory class, and the users that share them; "" without devices.

    `class_name`: the requested one; `strangers`: other processes use the devices.
    """
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
        f"{many(launches, 'launch')}"
    )


def _sharing(slices: Sequence[Slice]) -> str:
    sharers = max(Counter(device for slice_ in slices for device in slice_.accelerators).values())
    if sharers == 1:
        return "a user each" if len(slices) > 1 else "one user"
    part = slices[0].device_share
    return f"{sharers} users on each {'in turns' if part is None or part.mode.kind == 'time' else f'by {part.mode}'}"
