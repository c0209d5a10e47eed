"""A benchmark from outside the tree: written, tested, launched in slices."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from commands.calling import Capture, call, check_refusals
from cotenant.errors import CotenantError
from cotenant.launch.command import interpreter, resolve_command
from tenants.suites import ROOT, Suites


@pytest.mark.slow
@pytest.mark.v1
def test_the_skeleton_passes_its_test_and_runs_in_slices(v1: Suites, capsys: Capture) -> None:
    folder = v1.folder / "elsewhere"
    status, printed, _ = call(capsys, "new", "my_field/small_net", "--into", folder)
    assert status == 0
    assert printed.splitlines()[-1].endswith(f"--jobs {folder / 'small_net.json'}")
    main = folder / "my_field/small_net/pytorch/main.py"
    assert len(main.read_text().splitlines()) <= 40
    line = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(main.with_name("test_main.py"))]
    tested = subprocess.run(line, capture_output=True, text=True, cwd=folder)
    assert tested.returncode == 0, tested.stdout
    suite = json.loads((folder / "small_net.json").read_text())
    suite[0]["cmd"] = str(main.with_name("run.sh"))
    ended = v1.run(suite, "--users", 2, "--strict", "--", "--repeat", 8)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert [(record["outcome"], record["isolation"]["backend"]) for record in v1.records()] == [("completed", "v1")] * 2


def installed(folder: Path) -> Path:
    """Write the package of the docs as pip installs it: a module, and metadata beside it."""
    page = (ROOT / "docs/writing-a-benchmark.md").read_text()
    section = page[page.index("## In a package of its own") :]
    project, module = (re.findall(rf"^```{kind}\n(.*?)^```", section, re.M | re.S)[0] for kind in ("toml", "python"))
    assert len(f"{project}{module}".splitlines()) <= 40
    ((group, names),) = tomllib.loads(project)["project"]["entry-points"].items()
    metadata = folder / "sorting-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "sorting.py").write_text(module)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: sorting\nVersion: 1.0\n")
    lines = [f"[{group}]", *(f"{name} = {target}" for name, target in names.items())]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    return folder


@pytest.mark.slow
@pytest.mark.v1
def test_a_benchmark_of_another_package_runs_in_slices(v1: Suites) -> None:
    suite = [{"name": "sorting", "cmd": "sorting", "cgroup": "student", "args": {"--repeat": 8, "--no-cuda": ""}}]
    ended = v1.run(suite, "--users", 2, "--strict", PYTHONPATH=str(installed(v1.folder / "site")))
    assert ended.returncode == 0, ended.stdout + ended.stderr
    records = v1.records()
    assert [(record["outcome"], record["isolation"]["backend"]) for record in records] == [("completed", "v1")] * 2
    assert all(record["rendezvous"]["overlap"] > 0.9 for record in records)
    assert len({record["version"] for record in records}) == 1


def test_a_name_of_a_package_is_looked_up_without_an_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(installed(tmp_path / "site")))
    program = resolve_command("sorting", "job", tmp_path / "jobs.json", ROOT)
    assert program == tmp_path / "site/sorting.py"
    assert interpreter(program) == [sys.executable]
    assert "sorting" not in sys.modules
    with pytest.raises(CotenantError, match=r"there is no 'sortin'.*Did you mean 'sorting'"):
        resolve_command("sortin", "job", tmp_path / "jobs.json", ROOT)
    program.unlink()
    with pytest.raises(CotenantError, match="which is not there"):
        resolve_command("sorting", "job", tmp_path / "jobs.json", ROOT)


def test_names_that_are_none_and_files_that_are_there(tmp_path: Path, capsys: Capture) -> None:
    assert call(capsys, "new", "a/b", "--into", tmp_path)[0] == 0
    sentences = {
        "a/b": "is there already.",
        "ab": "'ab' is no name of a benchmark.",
        "a/../b": "is no name",
        "a/B": "in small letters",
    }
    check_refusals(capsys, "new", sentences, "--into", tmp_path)
