"""What all tests share."""

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# A property is no benchmark: how long an example takes says nothing on a machine that is busy with others.
settings.register_profile("long", deadline=None)
settings.register_profile("fast", deadline=None, max_examples=50)

# As a benchmark's run sets it; MKL reads it once in a process, and a test may multiply before its run.
os.environ.setdefault("MKL_CBWR", "AUTO")
# Threads of torch that wait for each other spin by default: where two processes share the processors, a step of 0.3 s
# takes 5 s.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Under nohup and in the background, too, what tests start sees a terminal go, and Ctrl-C.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)

HERE = Path(__file__).parent
OF_THE_MACHINE = ("launch", "isolation", "meters", "protocol", "vm")
"""Rooms whose tests start runners, or look at cgroups, ports, processes or clocks of the whole machine."""
TORCH_FIRST = ("tasks", "bench", "benchmarks", "datasets", "findings")
"""Rooms with long tests: they begin early, so that no process waits for another at the end."""


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("fast" if config.option.markexpr == "not slow" else "long")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where several processes share the tests (`-n 2 --dist loadgroup`), keep those of the machine to one of them."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=_rank)


def _group(item: pytest.Item) -> str:
    path = item.path.relative_to(HERE)
    starts_runners = {"v1", "loose"} & set(getattr(item, "fixturenames", ()))
    if path.parts[0] in OF_THE_MACHINE or starts_runners or item.get_closest_marker("v1"):
        return "machine"
    # What a file's tests share is made once.
    return str(path)


def _rank(item: pytest.Item) -> int:
    if _group(item) == "machine":
        return 0
    return 1 if item.path.relative_to(HERE).parts[0] in TORCH_FIRST else 2
