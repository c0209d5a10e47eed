"""The package for the guest is complete: the guest is offline."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from vm.pack import pack


def test_the_runner_imports_nothing_that_is_not_packed(tmp_path: Path) -> None:
    pack(tmp_path)
    modules = ("cotenant.commands.run", "cotenant.launch.records", "cotenant.report.live", "cotenant.machine.facts")
    path = f"import sys; sys.path[:0] = {[str(tmp_path / 'packages'), str(tmp_path / 'cotenant/common')]}"
    program = f"{path}; import {', '.join(modules)}; print(sys.modules['rich'].__file__)"
    # -S: without the environment's own packages.
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(str(tmp_path))
