"""What `--dry` says that tasks would refuse; no runner is started."""

import json
from pathlib import Path

import pytest

from commands.calling import Capture, call
from tenants.suites import ROOT, job

TASKS = ROOT / "tasks"


def test_dry_names_what_tasks_refuse(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one process for all: a task's own flags, choices, limits, what is never built. Others say nothing."""
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
    assert (status, said.count(": 1 tenant, ")) == (2, 8)
    assert not (tmp_path / "base").exists()
    refusals = dict(line.removeprefix("cotenant: ").split(": ", 1) for line in errors.splitlines())
    assert list(refusals) == ["lstm", "typo", "skips.c2", "acktr"]
    for name, words_of_it in {"lstm": "'float12'", "typo": "Did you mean '--batch-size'?", "acktr": "ACKTR"}.items():
        assert words_of_it in refusals[name]
    assert call(capsys, *words, "--name", "vae,two,job")[::2] == (0, "")
