"""The package for the guest is complete, as the guest is offline; and the docs name rows that there are."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tenants.suites import ROOT
from vm.pack import pack


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packed")
    pack(folder)
    return folder


@pytest.mark.parametrize("program", ["vm/matrix.py", "vm/witness.py", "isolation/v2_checks.py"])
def test_guest_programs_are_packed_with_their_imports(program: str, packed: Path) -> None:
    path, packages = packed / "cotenant/tests" / program, sysconfig.get_path("purelib")
    paths = [str(path.parent), str(packed / "cotenant/common"), packages]
    lines = f"import sys, runpy; sys.path[:0] = {paths!r}; runpy.run_path({str(path)!r})"
    # -S: without the checkout that the environment has installed.
    ended = subprocess.run([sys.executable, "-I", "-S", "-c", lines], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def test_a_packed_checkout_runs_its_commands(packed: Path) -> None:
    line = [sys.executable, str(packed / "cotenant/run.py"), "--dry", "--name", "toy_reg", "--isolation", "none"]
    ended = subprocess.run(line, capture_output=True, text=True, env={"BASE": str(packed), "PATH": os.environ["PATH"]})
    assert ended.returncode == 0, ended.stderr
    assert str(packed / "cotenant/tasks") in ended.stdout


def test_rows_that_the_docs_name_are_rows_of_the_guest() -> None:
    table = (ROOT / "docs/isolation.md").read_text().partition("## What holds where")[2].partition("##")[0]
    named = set(re.findall(r"(?<!\*)\*([^*|]+)\*(?!\*)", table))
    rows = set(re.findall(r"Row\(\s*\"([^\"]+)\"", (ROOT / "tests/vm/matrix.py").read_text()))
    assert len(named) > 10
    assert named <= rows, named - rows
