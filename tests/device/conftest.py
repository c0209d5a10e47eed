"""What tests on a device share: the null device, and a process from which jobs on it are forked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from device.null.build import NoCompilerError, NotBuiltError, built
from device.zygote import Zygote


@pytest.fixture(scope="session")
def null_device() -> Path:
    """The folder of the null device's libraries."""
    try:
        return built()
    except NotBuiltError as reason:
        if isinstance(reason, NoCompilerError) and os.environ.get("CI") == "true":
            pytest.fail(f"{reason} CI runs these tests: test.sh installs it.")
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def zygote(null_device: Path) -> Iterator[Zygote]:
    made = Zygote(null_device)
    yield made
    made.close()
