"""`--dry` names arguments that tasks would refuse, and asks again only after a change; no runner is started."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from commands.calling import Capture, call
from cotenant.commands import answer_cache, refusals
from cotenant.commands.answer_cache import NAME, AnswerCache
from machine.invented import machine
from tenants.suites import ROOT, job, script

TASKS = ROOT / "tasks"
TASK = """from pathlib import Path
from cotenant.bench import Benchmark, main
from cotenant.errors import CotenantError

class Small(Benchmark):
    def __init__(self, **given):
        super().__init__(**given)
        {looks}
        if self.batch_size > LIMIT:
            raise CotenantError("It is too much.")

LIMIT = 8
main(Small)
"""
LOOKS = {"inward": "", "at_a_file": "Path('limit').exists()", "at_a_module": "import beside_the_suite"}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin with an empty cache of benchmarks' answers."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_dry_names_what_tasks_refuse(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """One process asks all tasks: four refuse a choice, a flag, a limit or an unbuilt algorithm, the others nothing."""
    tasks = {
        "lstm": ("time_sequence_prediction/lstm", {"--dtype": "float12"}),
        "typo": ("regression/polynome", {"--batch-sise": 1}),
        "skips": ("regression/polynome", {"--repeat": 3, "--skip": [0, 3]}),
        "acktr": ("reinforcement/atari", {"--algo": "acktr"}),
        "two": ("image_classification/scaling", {"--devices": [1, 2]}),
        "vae": ("variational_auto_encoder/auto_encoding_variational_bayes", {}),
    }
    jobs = [
        {"name": name, "cmd": f"{TASKS}/{task}/pytorch/run.sh", "args": args, "cgroup": "all"}
        for name, (task, args) in tasks.items()
    ]
    monkeypatch.setenv("BASE", str(tmp_path / "base"))
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps([*jobs, job("echo.py", args={"--nonsense": ""})]))
    words = ("run", "--isolation", "none", "--users", 2, "--jobs", path, "--dry")
    status, said, errors = call(capsys, *words)
    assert (status, said.count(": 1 user, ")) == (2, 8)
    assert not (tmp_path / "base").exists()
    of_jobs = dict(line.removeprefix("cotenant: ").split(": ", 1) for line in errors.splitlines())
    assert list(of_jobs) == ["lstm", "typo", "skips.c2", "acktr"]
    for name, words_of_it in {"lstm": "'float12'", "typo": "Did you mean '--batch-size'?", "acktr": "ACKTR"}.items():
        assert words_of_it in of_jobs[name]
    monkeypatch.setattr(refusals, "_child", lambda asked: pytest.fail(f"asked again: {asked}"))
    assert call(capsys, *words)[::2] == (2, errors)
    assert call(capsys, *words, "--name", "vae,two,job")[::2] == (0, "")


def test_an_answer_lasts_until_a_source_changes_and_not_where_a_task_looks_elsewhere(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own/beside_the_suite.py").parent.mkdir()
    (tmp_path / "own/beside_the_suite.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "own"))
    jobs = []
    for name, looks in LOOKS.items():
        command = script(tmp_path / f"{name}/pytorch/run.sh", "exec python main.py")
        command.with_name("main.py").write_text(TASK.format(looks=looks))
        jobs.append({"name": name, "cmd": str(command), "args": {"--batch-size": 9}, "cgroup": "student"})
    path = tmp_path / "jobs.json"
    path.write_text(json.dumps(jobs))
    words = ("run", "--isolation", "none", "--users", 1, "--jobs", path, "--dry")
    child, asked = refusals._child, list[str]()

    def ask(questions: list[list[object]]) -> list[dict[str, object]]:
        asked.extend(Path(str(task)).parents[1].name for task, _ in questions)
        return child(questions)

    monkeypatch.setattr(refusals, "_child", ask)
    refused = "cotenant: inward, at_a_file, at_a_module: It is too much.\n"
    assert call(capsys, *words)[::2] == (2, refused)
    assert asked == [*LOOKS]
    asked.clear()
    source = tmp_path / "inward/pytorch/main.py"
    assert call(capsys, *words)[::2] == (2, refused)
    assert asked == ["at_a_file", "at_a_module"]
    asked.clear()
    source.write_text(source.read_text().replace("LIMIT = 8", "LIMIT = 9"))
    assert call(capsys, *words, "--name", "inward")[::2] == (0, "")
    assert asked == ["inward"]


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "task/main.py"
    path.parent.mkdir()
    path.write_text("pass")
    return path


HOST = machine(cores=4)


def install(task: Path, patch: pytest.MonkeyPatch) -> None:
    packages = task.parents[1] / "packages"
    packages.mkdir()
    patch.syspath_prepend(packages)
    AnswerCache(HOST)
    (packages / "torch-9.dist-info").mkdir()


def change_library(task: Path, patch: pytest.MonkeyPatch) -> None:
    (task.parent / "cotenant").mkdir()
    (task.parent / "cotenant/bench.py").write_text("pass")
    patch.setattr(answer_cache, "SOURCE_ROOT", task.parent)


CHANGES: dict[str, Callable[[Path, pytest.MonkeyPatch], object]] = {
    "source": lambda task, patch: task.with_name("model.py").write_text("pass"),
    "package": install,
    "variable": lambda task, patch: patch.setenv("USE_CUDA", "7"),
    "library": change_library,
    "interpreter": lambda task, patch: patch.setattr(sys, "version", "3.13"),
    "directory": lambda task, patch: patch.chdir(task.parent),
}


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_an_answer_depends_on_makes_another_question(
    task: Path, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = AnswerCache(HOST).key(task, ["--repeat", "5"])
    monkeypatch.setenv("SHLVL", "77")
    assert AnswerCache(HOST).key(task, ["--repeat", "5"]) == before
    assert AnswerCache(HOST).key(task, ["--repeat", "6"]) != before
    assert AnswerCache(replace(HOST, memory_bytes=1)).key(task, ["--repeat", "5"]) != before
    CHANGES[change](task, monkeypatch)
    assert AnswerCache(HOST).key(task, ["--repeat", "5"]) != before


def test_answers_that_another_user_could_have_written_are_not_read() -> None:
    cache = AnswerCache(HOST)
    cache.add({"a": "No.", "b": ""})
    place = answer_cache.cache_place()
    assert place.stat().st_mode & 0o777 == 0o700
    assert (AnswerCache(HOST).get("a"), AnswerCache(HOST).get("b")) == ("No.", "")
    for mode in (0o770, 0o707):
        place.chmod(mode)
        assert AnswerCache(HOST).get("a") is None
        AnswerCache(HOST).add({"c": "No."})
        assert "c" not in (place / NAME).read_text()
    place.chmod(0o700)
    real = place.with_name("real")
    (place / NAME).rename(real)
    (place / NAME).symlink_to(real)
    assert AnswerCache(HOST).get("a") is None
    real.replace(place / NAME)
    assert AnswerCache(HOST).get("a") == "No."
    if os.geteuid() == 0:
        for theirs in (place / NAME, place):
            os.chown(theirs, 12345, 12345)
            assert AnswerCache(HOST).get("a") is None
            os.chown(theirs, 0, 0)
        assert AnswerCache(HOST).get("a") == "No."


@pytest.mark.parametrize("content", [b"", b"[]", b'{"a": 3}', b'{"a": "No."', b"\xff"])
def test_damaged_answers_are_none_and_are_written_anew(content: bytes) -> None:
    AnswerCache(HOST).add({"a": "No."})
    (answer_cache.cache_place() / NAME).write_bytes(content)
    cache = AnswerCache(HOST)
    assert cache.get("a") is None
    cache.add({"b": "No."})
    assert AnswerCache(HOST).get("b") == "No."


def test_the_oldest_answers_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_cache, "MOST_KEPT", 2)
    cache = AnswerCache(HOST)
    cache.add({"a": "1", "b": "2"})
    cache.add({"a": "1"})
    cache.add({"c": "3"})
    kept = AnswerCache(HOST)
    assert [kept.get(key) for key in "abc"] == ["1", None, "3"]


def test_where_nothing_can_be_kept_it_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    AnswerCache(HOST).add({"a": "No."})
    assert AnswerCache(HOST).get("a") is None
