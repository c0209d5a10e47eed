"""Settings of every test, and the order in which several processes run them."""

import ast
import functools
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

# Examples have no deadline: on a machine that is busy with other tests, the time of one says nothing.
settings.register_profile("long", deadline=None)
settings.register_profile("fast", deadline=None, max_examples=50)

# A benchmark's run sets this too, but MKL reads it only once in a process, and a test may multiply before its run.
os.environ.setdefault("MKL_CBWR", "AUTO")
# torch's threads spin by default while they wait for each other: if two processes share the processors, a step of
# 0.3 s then takes 5 s.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# nohup and the background ignore these signals, and children inherit that: tests' children have to see them.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = Path(__file__).parent
OF_THE_MACHINE = ("launch", "isolation", "meters", "protocol", "vm")
"""Rooms whose tests start runners, or read cgroups, ports, processes or clocks of the whole machine."""
TORCH_FIRST = ("tasks", "bench", "benchmarks", "datasets", "device", "findings")
"""Rooms with long tests: they begin early, so that no process waits for another at the end."""

COMPUTED = {
    "isolation": "choose device_modes faults plan plan_fleet plan_laws refusals v1_place",
    "launch": "capacity conductor device_sharing duration fitting memory_outcomes sizing",
    "meters": "packages pacing series sources",
    "protocol": "codec",
    "vm": "pack",
}
"""Files of these rooms whose tests only compute, or look at invented machines: nothing of this one."""
ANY_TIME = {
    "commands": "doctor output_encoding run_command status_and_stop wrong_usage",
    "launch": "callers_environment hostile_output own_data refused_words repetitions resume",
}
"""Files whose runners may take any time: their tests ask for the end of a suite, its sentences and its files."""
WITHOUT_CLOCKS = tuple(
    f"{room}/test_{name}.py"
    for rooms in (COMPUTED, ANY_TIME)
    for room, names in rooms.items()
    for name in names.split()
)
"""Files that need no quiet machine."""
STARTS_RUNNERS = {"loose", "null: Host", "v1", "v1_mounts"}
"""Fixtures whose tests start runners, or own cgroups."""
FAST_TIER = "not slow"


DEVICE_RESULTS = HERE.parent / "workspace/gpu/junit.xml"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("fast" if config.option.markexpr == FAST_TIER else "long")
    if config.option.markexpr == "gpu":
        config.option.xmlpath = config.option.xmlpath or str(DEVICE_RESULTS)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With `-m gpu` leave out all rooms but `device`, as a machine that has only torch lacks their imports."""
    elsewhere = collection_path.parent == HERE and collection_path.name != "device"
    return True if config.option.markexpr == "gpu" and elsewhere else None


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """If several processes share the tests, give one of them those of the machine, and keep a file's tests together.

    xdist's own `loadgroup` writes groups into a field that pytest 9.2 no longer has.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByGroup(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return _group(nodeid.partition("::")[0], self.config.option.markexpr == FAST_TIER)

    return ByGroup(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Sort the machine's tests, the longest group, to the front."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        is_fast = config.option.markexpr == FAST_TIER
        items.sort(key=lambda item: _rank(item.nodeid.partition("::")[0], is_fast))


@functools.cache
def _group(file: str, is_fast: bool) -> str:
    """Return `machine` for files that start runners or own cgroups, else the file: its fixtures are made once."""
    path = HERE.parent / file
    room = path.relative_to(HERE).parts[0]
    if path.relative_to(HERE).as_posix() in WITHOUT_CLOCKS:
        return file
    return "machine" if room in OF_THE_MACHINE or _starts_runners(path, is_fast) else file


def _starts_runners(file: Path, is_fast: bool) -> bool:
    """Return whether a test of a file starts runners; the fast tier has no slow ones."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.FunctionDef):
            marks = {ast.unparse(mark) for mark in node.decorator_list}
            asked = {word for one in node.args.args for word in (one.arg, ast.unparse(one))}
            if not (is_fast and "pytest.mark.slow" in marks) and (asked & STARTS_RUNNERS or "pytest.mark.v1" in marks):
                return True
    return False


def _rank(file: str, is_fast: bool) -> int:
    if _group(file, is_fast) == "machine":
        return 0
    return 1 if (HERE.parent / file).relative_to(HERE).parts[0] in TORCH_FIRST else 2
