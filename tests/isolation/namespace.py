"""A process in a PID namespace of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from isolation.entering import eventually


@contextmanager
def in_its_own_namespace(noted: Path, variables: Mapping[str, str] | None = None) -> Iterator[int]:
    """Yield the pid outside of a sleeper, whose number inside is 1. `noted` is a file that says that it is there."""
    line = ["unshare", "--pid", "--fork", "--kill-child", "env", *[f"{k}={v}" for k, v in (variables or {}).items()]]
    with subprocess.Popen([*line, "sh", "-c", f"echo up > {noted}; exec sleep 1000"]) as outer:
        try:
            eventually(lambda: noted.exists() or outer.poll() is not None, "a namespace")
            if outer.poll() is not None:
                pytest.skip("PID namespaces cannot be made here")
            children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children").read_text()
            (inner,) = (int(word) for word in children.split())
            yield inner
        finally:
            outer.kill()
