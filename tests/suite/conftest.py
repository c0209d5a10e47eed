"""A job file on disk, from text or from objects."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cotenant.suite.jobfile import Suite, load


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str | bytes], Path]:
    """Write `jobs.json` with this content."""

    def write(content: str | bytes) -> Path:
        path = tmp_path / "jobs.json"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def loaded(written: Callable[[str | bytes], Path]) -> Callable[..., Suite]:
    """Load a file of these entries; a job's `name` and `cmd` are added where they are missing."""

    def read(*entries: dict[str, object]) -> Suite:
        return load(written(json.dumps([{"name": "vae", "cmd": "./vae.sh", **entry} for entry in entries])))

    return read
