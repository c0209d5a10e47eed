"""Checks before any start whether this host has the data and memory that the chosen jobs need."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path

import msgspec

from cotenant.checkout import SOURCE_ROOT
from cotenant.errors import CotenantError
from cotenant.finding import Finding
from cotenant.findings.facts import Isolation, JobNeeds, SelfTest
from cotenant.isolation.backend import Backend
from cotenant.isolation.choose import Chosen
from cotenant.isolation.entry import own_shm_can_be_had
from cotenant.isolation.plan import Plan
from cotenant.launch.command import BATCH_FLAGS, WORKERS_FLAGS, number_behind
from cotenant.launch.data import maker_of, named_inputs
from cotenant.launch.environment import own_python
from cotenant.launch.planned import PlannedLaunch
from cotenant.launch.start import Options, Resolver
from cotenant.launch.tenant import signal_name
from cotenant.machine.topology import Machine
from cotenant.suite.cells import labels_of
from cotenant.suite.task_source import task_of
from cotenant.text import gib, many

SELF_TEST = SOURCE_ROOT / "cotenant/bench/selftest.py"
SELF_TEST_LIMIT_S = 120.0
IMAGE_BYTES = 3 * 224 * 224 * 4
"""The size of one sample of most of the suite's loaders: three channels of 224 x 224 in fp32."""
TORCH_BYTES = 400 << 20
"""A process that imports torch's build for processors and makes one step has 370 MB of memory of its own."""
PREFETCHED = 2
"""The number of batches per worker that torch's DataLoader keeps ready by default."""
_DECODES_IMAGES = re.compile(rb"^\s*(from|import) (torchvision|PIL|cotenant\.bench\.(images|decoders))\b", re.MULTILINE)


def needs_of(
    options: Options, machine: Machine, chosen: Chosen
) -> tuple[tuple[JobNeeds, ...], tuple[PlannedLaunch, ...]]:
    """Return the needs of every chosen job, with the missing ones, and the launches that can be started."""
    needs: list[JobNeeds] = []
    every: list[PlannedLaunch] = []
    mixed = {label for mix in options.mixes for label in mix.labels}
    of_mixes = (job for job in options.suite.jobs if mixed.intersection(labels_of(job)))
    for job in dict.fromkeys((*options.jobs, *of_mixes)):
        try:
            starts = Resolver(replace(options, jobs=(job,), mixes=()), machine, chosen).starts()
        except CotenantError as error:
            refusal = Finding("job_not_startable", "error", error.sentence, error.remedy)
            needs.append(JobNeeds(job.name, refusal))
            continue
        every += starts
        named = {path for launch in starts for path in named_inputs(launch, options.paths)}
        missing = tuple(sorted(path for path in named if not path.exists()))
        made = maker_of(starts[0].command) is not None
        needs.append(JobNeeds(job.name, None, missing, len(named), made))
    return tuple(needs), tuple(every)


def isolation_of(backend: Backend, findings: tuple[Finding, ...] = ()) -> Isolation:
    """Return the facts on the backend for checks, with the `findings` on it."""
    own_shm = backend.name != "none" and own_shm_can_be_had()
    return Isolation(backend.name, backend.unenforced, findings, backend.elsewhere(), own_shm)


def self_test(program: Path = SELF_TEST, limit_s: float = SELF_TEST_LIMIT_S) -> SelfTest:
    """Test in a child process whether torch works, as the runner itself never imports it.

    It takes about 3 s on a processor; initialising accelerators takes longer.
    """
    # -P: the program's directory must not be on the path of its imports.
    line, environment = [sys.executable, "-P", str(program)], os.environ | own_python()
    try:
        ended = subprocess.run(
            line, env=environment, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit_s, check=False
        )
    except subprocess.TimeoutExpired:
        return SelfTest(died=f"did not end within {limit_s:g} s", timed_out=True)
    if ended.returncode != 0:
        last = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2][:200]
        return SelfTest(died=f"ended ({signal_name(ended.returncode)}){f': {last}' if last else ''}")
    try:
        # Packages may have printed before, during their import.
        return msgspec.json.decode(ended.stdout.strip().rpartition(b"\n")[2], type=SelfTest)
    except msgspec.DecodeError:
        return SelfTest(died="printed no report")


def loader_bytes(starts: Iterable[PlannedLaunch]) -> int:
    """Return the most bytes that the loaders of one launch may hold in /dev/shm: workers x PREFETCHED x batch x image.

    It is an estimate from the flags in the commands, and counts only programs that import a decoder of images: the
    batches of others are small.
    """
    return max(map(_prefetched_bytes, starts), default=0)


def _prefetched_bytes(launch: PlannedLaunch) -> int:
    tenants = zip(launch.programs, launch.specs, strict=True)
    decoding = (spec.command for program, spec in tenants if _decodes_images(program.command.parent))
    batches = (number_behind(words, *WORKERS_FLAGS) * number_behind(words, *BATCH_FLAGS) for words in decoding)
    return sum(batches) * PREFETCHED * IMAGE_BYTES


@cache
def _decodes_images(folder: Path) -> bool:
    for file in folder.glob("*.py"):
        with contextlib.suppress(OSError):
            if _DECODES_IMAGES.search(file.read_bytes()):
                return True
    return False


def imports_torch(launch: PlannedLaunch) -> bool:
    """Return whether one of a launch's programs is a benchmark of ours; other programs' imports are unknown."""
    return any(task_of(program.command) for program in launch.programs)


def check_memory(options: Options, machine: Machine, backend: Backend, starts: Iterable[PlannedLaunch]) -> None:
    """Raise CotenantError if a tenant that is a benchmark of ours has less memory than torch takes.

    Another program may need less, so only the plan's own least memory is required for it. If slices do not limit
    memory, each tenant is assumed to have an equal part of the machine's.
    """

    def least(plan: Plan) -> int:
        held = "memory" not in backend.unenforced
        return min(part.memory_bytes for part in plan.slices) if held else machine.memory_bytes // len(plan.slices)

    def fits(users: int) -> bool:
        try:
            return least(replace(options, users=users).plan(machine)) >= TORCH_BYTES
        except CotenantError:
            return False

    planned = options.plan(machine)
    if least(planned) >= TORCH_BYTES:
        return
    together = (launch for launch in starts if not launch.solo and launch.cell.job.group == "student")
    label = next((launch.label for launch in together if imports_torch(launch)), None)
    if label is None:
        return
    most = next(filter(fits, range(len(planned.slices) - 1, 0, -1)), 0)
    raise CotenantError(
        f"{many(len(planned.slices), 'user')} have {gib(least(planned))} of memory each, and {label} imports torch, "
        f"which takes {gib(TORCH_BYTES)} before a first batch.",
        f"At most {most} fit here: --users {most}."
        if most
        else "Use a smaller --reserve, or a machine of more memory.",
    )
