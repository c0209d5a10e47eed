"""Checks before any start whether this host has the packages, data and memory that the chosen jobs need."""

from __future__ import annotations

import ast
import contextlib
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from itertools import accumulate
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
from cotenant.launch.start import Options, Resolver, Start
from cotenant.launch.tenant import signal_name
from cotenant.machine.topology import Machine
from cotenant.suite.cells import labels_of
from cotenant.text import gib, many

SELF_TEST = SOURCE_ROOT / "cotenant/bench/selftest.py"
SELF_TEST_LIMIT_S = 120.0
IMAGE_BYTES = 3 * 224 * 224 * 4
"""The size of one sample of most of the suite's loaders: three channels of 224 x 224 in fp32."""
TORCH_BYTES = 400 << 20
"""A process that imports torch's build for processors and makes one step has 370 MB of memory of its own."""
PREFETCHED = 2
"""torch's DataLoader keeps so many batches per worker ready by default."""
_DECODES_IMAGES = re.compile(rb"^\s*(from|import) (torchvision|PIL|cotenant\.bench\.(images|decoders))\b", re.MULTILINE)
_EXCUSED = {"ImportError", "ModuleNotFoundError", "Exception"}


def needs_of(options: Options, machine: Machine, chosen: Chosen) -> tuple[tuple[JobNeeds, ...], tuple[Start, ...]]:
    """Return the missing needs of every chosen job, and the starts of those that can be started."""
    needs: list[JobNeeds] = []
    every: list[Start] = []
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
        # A container's image has its own packages.
        packages = () if options.image else missing_packages(starts[0].command)
        named = {path for start in starts for path in named_inputs(start, options.paths)}
        missing = tuple(sorted(path for path in named if not path.exists()))
        made = maker_of(starts[0].command) is not None
        needs.append(JobNeeds(job.name, None, packages, missing, len(named), made))
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
    line = [sys.executable, "-P", str(program)]
    try:
        ended = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit_s, check=False)
    except subprocess.TimeoutExpired:
        return SelfTest(died=f"did not end within {limit_s:g} s")
    if ended.returncode != 0:
        last = ended.stderr.decode(errors="replace").strip().rpartition("\n")[2][:200]
        return SelfTest(died=f"ended ({signal_name(ended.returncode)}){f': {last}' if last else ''}")
    try:
        # Packages may have printed before, during their import.
        return msgspec.json.decode(ended.stdout.strip().rpartition(b"\n")[2], type=SelfTest)
    except msgspec.DecodeError:
        return SelfTest(died="printed no report")


def loader_bytes(starts: Iterable[Start]) -> int:
    """Return the most bytes that the loaders of one launch may hold in /dev/shm: workers x PREFETCHED x batch x image.

    It is an estimate from the flags in the commands, and counts only programs that import a decoder of images: the
    batches of others are small.
    """
    return max(map(_prefetched_bytes, starts), default=0)


def _prefetched_bytes(start: Start) -> int:
    tenants = zip(start.programs, start.specs, strict=True)
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


def missing_packages(command: Path) -> tuple[str, ...]:
    """Return the packages that `command`, or the `main.py` beside it, imports although they are not installed.

    Imports of the modules and packages beside it count too; an import whose failure is caught does not.
    """
    return tuple(sorted(name for name in _packages_of(command) if not _installed(name)))


def check_memory(options: Options, machine: Machine, backend: Backend, starts: Iterable[Start]) -> None:
    """Raise CotenantError if a tenant that imports torch has less memory than that takes.

    A script without torch may need less, so that only the plan's own least memory is required for it. If slices do not
    limit memory, each tenant is taken to have an equal part of the machine's.
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
    together = (start for start in starts if not start.solo and start.cell.job.group == "student")
    importing = (start.label for start in together if any("torch" in _packages_of(of.command) for of in start.programs))
    label = next(importing, None)
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


@cache
def _packages_of(command: Path) -> frozenset[str]:
    """Return the top-level packages that a program, the files beside it and the modules of cotenant import.

    Of a script that is not in Python it is the `main.py` beside it.
    """
    program = command if command.suffix == ".py" else command.parent / "main.py"
    packages: set[str] = set()
    waiting, seen = [program], {program}
    while waiting:
        file = waiting.pop()
        # In cotenant only imports at the top of modules count: this program calls few of the functions.
        for name in _imports(file, everywhere=file.parent == program.parent):
            package = name.partition(".")[0]
            ours = _files_of(SOURCE_ROOT if package == "cotenant" else program.parent, name)
            packages |= set() if ours else {package}
            waiting += set(ours) - seen
            seen |= set(ours)
    return frozenset(packages - {"cotenant"} - sys.stdlib_module_names)


@cache
def _files_of(root: Path, dotted: str) -> list[Path]:
    """Return the files of a module below `root` and of its packages; the last word may be a name in a module."""
    paths = list(accumulate(dotted.split("."), Path.joinpath, initial=root))[1:]
    files = [file for place in paths for file in (place / "__init__.py", place.with_suffix(".py"))]
    return [file for file in files if file.is_file()]


@cache
def _imports(file: Path, everywhere: bool) -> tuple[str, ...]:
    """Return the dotted names that a file imports, with `everywhere` also within functions.

    Each file is parsed once, as most programs of a suite import the same files of ours.
    """
    names: list[str] = []
    try:
        waiting: list[ast.AST] = [ast.parse(file.read_bytes())]
    except (OSError, SyntaxError, ValueError):
        return ()
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            names += (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names += (f"{node.module}.{alias.name}" for alias in node.names)
        elif not _optional(node) and (everywhere or not isinstance(node, ast.FunctionDef)):
            waiting += ast.iter_child_nodes(node)
    return tuple(names)


def _optional(node: ast.AST) -> bool:
    """Return whether the imports in a node are optional: only for types, or with a handler if they fail."""
    if isinstance(node, ast.If):
        return ast.unparse(node.test).endswith("TYPE_CHECKING")
    if not isinstance(node, ast.Try):
        return False
    caught = (ast.unparse(handler.type) if handler.type else "Exception" for handler in node.handlers)
    return any(_EXCUSED & set(re.findall(r"\w+", names)) for names in caught)


@cache
def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):
        return False
