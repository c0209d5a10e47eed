"""Needs of a suite's jobs: data that this host lacks, memory of loaders, and a child's report on torch."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cotenant.errors import CotenantError
from cotenant.findings.facts import JobNeeds, SelfTest
from cotenant.isolation.choose import Chosen
from cotenant.isolation.memory_shares import reserve_of
from cotenant.isolation.unenforced import NoIsolation
from cotenant.launch.command import number_behind
from cotenant.launch.needs import (
    IMAGE_BYTES,
    SELF_TEST,
    check_memory,
    loader_bytes,
    needs_of,
    self_test,
)
from cotenant.launch.planned import PlannedLaunch
from cotenant.launch.prepared import PreparedSuite
from launch.resolving import HOST, options, resolved
from machine.invented import machine
from tenants.suites import ROOT, script


def asked(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *jobs: dict[str, Any]
) -> tuple[tuple[JobNeeds, ...], tuple[PlannedLaunch, ...]]:
    """The needs of these jobs, whose commands stand in `folder`, for two tenants."""
    monkeypatch.setenv("BASE", str(folder / "base"))
    monkeypatch.delenv("DATA_DIRECTORY", raising=False)
    monkeypatch.delenv("OUTPUT_DIRECTORY", raising=False)
    path = folder / "jobs.json"
    path.write_text(json.dumps(list(jobs)))
    of_two = options("--jobs", path, "--users", 2, "--baseline", "none")
    return needs_of(of_two, HOST, Chosen(NoIsolation()))


def job(name: str, **args: Any) -> dict[str, Any]:
    flags = {f"--{key.replace('_', '-')}": value for key, value in args.items()}
    return {"name": name, "cmd": f"{name}/pytorch/run.sh", "args": flags, "cgroup": "student"}


def test_a_job_that_cannot_be_started_hides_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "good/pytorch/run.sh")
    (bad, good), starts = asked(tmp_path, monkeypatch, job("bad"), job("good"))
    assert bad.refusal is not None
    assert (bad.refusal.rule, bad.refusal.severity) == ("job_not_startable", "error")
    assert "bad/pytorch/run.sh" in bad.refusal.sentence
    assert good == JobNeeds("good")
    assert [start.cell.job.name for start in starts] == ["good"]


def test_crowding_is_reported_only_for_users_that_import_torch() -> None:
    def crowd(command: str, sharers: int) -> Any:
        programs = [SimpleNamespace(command=ROOT / command)]
        return SimpleNamespace(sharers=sharers, programs=programs, specs=[])

    ours, others = crowd("tasks/ceilings/product/pytorch/main.py", 3), crowd("tests/tenants/sums.py", 4)
    for starts, words in (([others], ""), ([ours, others], "3 users import torch on each processor: "), ([], "")):
        suite: Any = SimpleNamespace(starts=starts, _slowness=1.0)
        assert PreparedSuite.crowd_words(suite).startswith(words)
        assert bool(PreparedSuite.crowd_words(suite)) == bool(words)


def test_input_that_is_there_or_will_be_made_or_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "base/data"
    (data / "there").mkdir(parents=True)
    for name in ("reads", "makes"):
        script(tmp_path / f"{name}/pytorch/run.sh")
    script(tmp_path / "makes/download_dataset.sh")
    here = {"data": ["$DATA_DIRECTORY/there", "$DATA_DIRECTORY/gone"], "report": "$OUTPUT_DIRECTORY"}
    needs, _ = asked(tmp_path, monkeypatch, job("reads", **here), job("makes", **here), job("reads", number=3))
    assert needs == (
        JobNeeds("reads", missing=(data / "gone",), reads=2),
        JobNeeds("makes", missing=(data / "gone",), reads=2, made=True),
        JobNeeds("reads"),
    )


def test_loaders_of_all_tenants_of_the_hungriest_launch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("eyes", "import torch\nfrom torchvision import io"), ("words", "import torch")):
        script(tmp_path / f"{name}/pytorch/run.sh").with_name("main.py").write_text(text)
    hungry = {"workers": [1, 3], "batch_size": 10}
    _, starts = asked(tmp_path, monkeypatch, job("eyes", **hungry), job("words", workers=100, batch_size=100))
    assert loader_bytes(starts) == 2 * 3 * 2 * 10 * IMAGE_BYTES
    _, starts = asked(tmp_path, monkeypatch, job("eyes", workers=0, batch_size=10), job("eyes", batch_size=10))
    assert loader_bytes(starts) == loader_bytes([]) == 0


class Holding(NoIsolation):
    """Slices that hold memory."""

    unenforced = ()


def test_slices_too_small_for_torch_name_how_many_users_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that is no benchmark of ours may need less."""
    monkeypatch.setenv("BASE", str(tmp_path / "base"))
    there = machine(cores=4, memory_bytes=8 << 30)
    path = tmp_path / "jobs.json"
    for name, text in (("trains", "import cotenant.bench"), ("counts", "import json")):
        script(tmp_path / f"{name}/pytorch/run.sh", "python main.py").with_name("main.py").write_text(text)

    def checked(users: int, name: str, backend: NoIsolation) -> None:
        path.write_text(json.dumps([job(name)]))
        asked = options("--jobs", path, "--users", users, there=there)
        check_memory(asked, there, backend, resolved(asked, there).starts())

    room = there.memory_bytes - reserve_of(there, None)
    most = next(users for users in range(99, 0, -1) if room // users // 4096 * 4096 >= 400 << 20)
    checked(99, "counts", Holding())
    checked(most, "trains", Holding())
    with pytest.raises(CotenantError, match=rf"imports torch, which takes 400 MiB .* --users {most}\.") as refused:
        checked(99, "trains", Holding())
    assert refused.value.exit_status == 2
    with pytest.raises(CotenantError, match=rf"--users {there.memory_bytes // (400 << 20)}\."):
        checked(99, "trains", NoIsolation())


def test_the_number_behind_a_flag() -> None:
    for words, number in [
        (["x", "--workers", "8"], 8),
        (["x", "--workers=8"], 8),
        (["x", "--workers", "2", "-j", "3"], 3),
        (["x", "-j", "3", "--workers=8"], 8),
        (["x", "-j", "3", "--workers", "auto"], 0),
        (["x", "--workers"], 0),
        (["x", "--workers=", "8"], 0),
        (["x", "8"], 0),
    ]:
        assert number_behind(words, "--workers", "-j") == number


WHOLE = {
    "vision": "0.29.2",
    "torch": "2.14.1+cu130",
    "built_for": "cu130",
    "vision_error": "",
    "lapack_error": "",
    "devices": ["", "its product is wrong"],
}


def test_a_report_behind_what_packages_print(tmp_path: Path) -> None:
    path = script(tmp_path / "child.py", f"print('hello')\nprint({json.dumps(WHOLE)!r})")
    assert self_test(path) == SelfTest(**WHOLE | {"devices": ("", "its product is wrong")})


def test_a_child_that_does_not_come_so_far(tmp_path: Path) -> None:
    for text, died in [
        ("import os, signal; os.kill(os.getpid(), signal.SIGILL)", "ended (killed by SIGILL)"),
        ("raise SystemExit('no libc')", "ended (exit status 1): no libc"),
        ("", "printed no report"),
        ("print('[1]')", "printed no report"),
        ("print('{\"devices\": 3}')", "printed no report"),
    ]:
        assert self_test(script(tmp_path / "child.py", text), 30) == SelfTest(died=died)
    slow = script(tmp_path / "child.py", "import time; time.sleep(60)")
    assert self_test(slow, 0.5) == SelfTest(died="did not end within 0.5 s", timed_out=True)


def test_modules_beside_the_program_are_not_taken_for_packages(tmp_path: Path) -> None:
    """The real one stands among files named `device.py` and `loader.py`, which may shadow no package."""
    (tmp_path / "beside.py").write_text("")
    text = "import importlib.util, json\nprint(json.dumps({'torch': str(importlib.util.find_spec('beside'))}))"
    assert self_test(script(tmp_path / "child.py", text)) == SelfTest(torch="None")
    assert SELF_TEST.is_file()
