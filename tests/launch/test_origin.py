"""Code that runs before a tenant's program: the runner sees it, and names who set it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from cotenant.bench.facts import startup_files
from cotenant.checkout import SOURCE_ROOT
from cotenant.exec.settings import HOOK
from cotenant.launch.origin import OWN, origin_of
from cotenant.suite import task_source
from cotenant.suite.task_source import harness_version
from tenants.suites import SUMS, Suites, found, job, script, until


def origin(**variables: str) -> dict[str, dict[str, dict[str, str]]]:
    """The origin of a process with these variables."""
    with subprocess.Popen(["sleep", "60"], env={"PATH": os.environ["PATH"], **variables}) as process:
        there = Path(f"/proc/{process.pid}")
        # The kernel gives a program its name first, and its variables a moment later.
        until(lambda: (there / "comm").read_text() == "sleep\n", "it has become another program")
        until((there / "environ").read_bytes, "it has its variables")
        seen = origin_of(process.pid)
        process.kill()
    assert seen["harness"] == harness_version()
    return seen


def test_variables_and_startup_files_are_named_with_their_hash_and_who_set_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {tmp_path / "sitecustomize.py": b"import time\n", tmp_path / "usercustomize/__init__.py": b""}
    (tmp_path / "usercustomize").mkdir()
    for file, text in files.items():
        file.write_bytes(text)
    path = f"{SOURCE_ROOT}:{tmp_path}"
    for caller, by in (("/nothing", "program"), (path, "caller"), (str(tmp_path), "caller")):
        monkeypatch.setenv("PYTHONPATH", caller)
        seen = origin(PYTHONPATH=path, LD_PRELOAD="", HOME="/", PYTHONX="y")
        set_by = {name: of["set_by"] for name, of in seen["variables"].items()}
        assert set_by == {"PYTHONPATH": by, "LD_PRELOAD": "program", "PYTHONX": "program"}
        assert seen["variables"]["PYTHONX"]["sha256"] == hashlib.sha256(b"y").hexdigest()
        assert seen["startup"] == {
            str(file): {"sha256": hashlib.sha256(text).hexdigest(), "set_by": by, "ours": ""}
            for file, text in files.items()
        }
    (tmp_path / "link").symlink_to(SOURCE_ROOT)
    linked = origin(PYTHONPATH=f"{SOURCE_ROOT}:{tmp_path}/link")
    assert linked == {"harness": harness_version(), "variables": {}, "startup": {}}
    monkeypatch.delenv("PYTHONPATH")
    hooked = origin(PYTHONPATH=str(HOOK))
    assert (hooked["variables"], [*hooked["startup"]]) == ({}, [str(OWN)])
    assert hooked["startup"][str(OWN)]["ours"] == "cotenant/exec/hook/sitecustomize.py"
    assert origin_of(2**22 + 1)["variables"] == {}


def test_the_harness_is_known_by_every_file_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = shutil.copytree(task_source.HARNESS, tmp_path / "bench", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(task_source, "HARNESS", copy)
    assert task_source.harness_version.__wrapped__() == harness_version()
    (copy / "chrono.py").write_text("# another clock")
    assert task_source.harness_version.__wrapped__() != harness_version()


def test_a_program_names_the_files_of_its_user(tmp_path: Path) -> None:
    packages = tmp_path / f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    packages.mkdir(parents=True)
    (packages / "more.pth").write_text("import os\n")
    customize = tmp_path / "sitecustomize.py"
    customize.write_text("")
    code = "from cotenant.bench.facts import startup_files\nimport json\nprint(json.dumps(startup_files()))"
    assert startup_files().keys().isdisjoint({str(customize)})
    line = [sys.executable, "-c", f"import site; site.ENABLE_USER_SITE = True\n{code}"]
    environment = os.environ | {"PYTHONUSERBASE": str(tmp_path), "PYTHONPATH": f"{SOURCE_ROOT}:{tmp_path}"}
    printed = subprocess.run(line, env=environment, capture_output=True, text=True, check=True).stdout
    assert json.loads(printed) == {
        str(packages / "more.pth"): hashlib.sha256(b"import os\n").hexdigest(),
        str(customize): hashlib.sha256(b"").hexdigest(),
    }


@pytest.mark.slow
def test_a_script_that_puts_code_before_its_program_is_invalid(loose: Suites) -> None:
    """Its start-up file stops the clock: the job file says nothing of it."""
    (loose.folder / "site").mkdir()
    (loose.folder / "site" / "sitecustomize.py").write_text("import time\n")
    script(loose.folder / "run.sh", f'export PYTHONPATH="{loose.folder}/site:$PYTHONPATH"', SUMS)
    hidden = job(name="hidden") | {"cmd": str(loose.folder / "run.sh")}
    loose.run([hidden, job(name="plain")], "--users", 2)
    severities = {
        name: {one["severity"] for record in records for one in found(record, "code_before_program")}
        for name, records in loose.by_job().items()
    }
    assert severities == {"hidden": {"error"}, "plain": set()}
