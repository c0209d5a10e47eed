"""Fixtures of the tests on a device: a real one, the null device, and a process on the latter that forks jobs."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cotenant.machine.accelerators import visible_variables
from cotenant.machine.topology import accelerators
from cotenant.procfs import numbered, read_text
from device.host import BASE, DRIVERS_SIGN, Host
from device.null.build import PACKAGES, NotBuiltError, built, variables
from device.zygote import Zygote
from patience import HANG_S

EACH_S, ALL_S = 120, 570
"""With `-m gpu` a test is ended after EACH_S, and no test begins after ALL_S."""
_BEGAN_S = time.monotonic()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need a real device, before pytest selects tests by their marks."""
    for item in items:
        if "real" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.gpu)
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("gpu") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(EACH_S))


def pytest_runtest_setup(item: pytest.Item) -> None:
    late = time.monotonic() - _BEGAN_S > ALL_S
    if late and item.config.option.markexpr == "gpu" and not item.config.option.keyword:
        pytest.skip(f"The ten minutes are over: ./test.sh -m gpu -k '{item.name.partition('[')[0]}' runs it.")


@pytest.fixture(scope="session")
def null_device() -> Path:
    """Folder of the null device's libraries, which are built here unless they are in the cache."""
    return built_or_skipped()


def built_or_skipped(packages: Path = PACKAGES) -> Path:
    """Return the folder of the null device's libraries; skip the test where they cannot be built, or in CI fail it."""
    try:
        return built(packages=packages)
    except NotBuiltError as reason:
        if os.environ.get("CI") == "true":
            pytest.fail(f"{reason} CI runs these tests.")
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def zygote(null_device: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Zygote]:
    """The process that forks jobs; it finds the libraries in a folder of its own, from which a test may take one."""
    folder = tmp_path_factory.mktemp("libraries")
    for library in null_device.iterdir():
        (folder / library.name).symlink_to(library)
    made = Zygote(folder)
    yield made
    made.close()


@pytest.fixture(scope="session")
def null(null_device: Path, tmp_path_factory: pytest.TempPathFactory) -> Host:
    """This machine with the null device in place of a real one."""
    if os.geteuid():
        pytest.skip("Only root can pretend that there is a driver, in a mount namespace.")
    return Host(tmp_path_factory.mktemp("device"), True, DRIVERS_SIGN, variables(null_device, os.environ))


@pytest.fixture(scope="session")
def real(pytestconfig: pytest.Config) -> Iterator[Host]:
    """This machine with its first device. Records go to the folder of JUnit's report; cgroups and daemons must end."""
    devices = accelerators(Path("/"), os.environ)
    if not devices:
        pytest.skip("There is no device here that may be used.")
    results = Path(pytestconfig.option.xmlpath or "workspace/gpu/junit.xml").absolute().parent
    results.mkdir(parents=True, exist_ok=True)
    before = _ours()
    if program := shutil.which("nvidia-smi"):
        told = subprocess.run([program, "-q"], capture_output=True, text=True, timeout=HANG_S, check=False)
        (results / "nvidia-smi.txt").write_text(told.stdout)
    yield Host(results, False, variables=visible_variables(devices[:1]))
    assert _ours() == before, "a test has left something behind"


@pytest.fixture(
    params=[
        pytest.param("null", marks=pytest.mark.slow),
        pytest.param("real", marks=[pytest.mark.gpu, pytest.mark.slow]),
    ]
)
def host(request: pytest.FixtureRequest) -> Host:
    """Each of the two machines in turn, `null` and `real`."""
    found: Host = request.getfixturevalue(str(request.param))
    return found


def _ours() -> dict[str, list[str]]:
    """Return the cgroups, daemons of MPS and files in shared memory that a suite or its test leaves."""
    names = (read_text(Path(f"/proc/{pid}/comm")) for pid in numbered(Path("/proc")))
    return {
        "cgroups": sorted(map(str, Path("/sys/fs/cgroup").glob(f"**/{BASE}*"))),
        "daemons": sorted(name for name in names if name.startswith("nvidia-cuda-mps")),
        "shared memory": sorted(path.name for path in Path("/dev/shm").glob("cotenant*")),
    }
