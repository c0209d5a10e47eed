"""`completion` as bash runs it, and, where they are, fish and zsh."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from commands.calling import Capture, call
from cotenant.commands import COMMANDS

LINES: dict[str, list[str]] = {
    "./run.sh re": ["report"],
    "cotenant ": [*(name for name in COMMANDS if name != "run"), "help"],
    "cotenant help do": ["doctor"],
    "cotenant --iso": ["--isolation"],
    "cotenant --isolation v": ["v1", "v2"],
    "cotenant --name toy_": ["toy_reg", "toy_lstm", "toy_lstm_layers"],
    "cotenant --users 2 --exclude convnet_d": ["convnet_distributed", "convnet_distributed_fp16"],
    "cotenant --jobs sc": ["scaling"],
    "cotenant list --format m": ["md"],
    "cotenant report --format c": ["csv"],
    "cotenant report --name toy_r": ["toy_reg"],
    "cotenant mlbench-report --name toy_": [],
    "cotenant report --table b": ["batch-size"],
    "cotenant report out": [],
    "cotenant compare A B --fail-on s": ["slower"],
    "cotenant completion z": ["zsh"],
    "cotenant completion f": ["fish"],
    "cotenant --name vae -- --re": [],
}
ASK = """
for line in "$@"; do
    read -ra COMP_WORDS <<<"$line"
    case "$line" in *" ") COMP_WORDS+=("") ;; esac
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _cotenant
    echo "${COMPREPLY[*]}"
done
"""


def test_bash_completes_commands_flags_choices_and_jobs(capsys: Capture) -> None:
    status, script, errors = call(capsys, "completion", "bash")
    assert (status, errors) == (0, "")
    ended = subprocess.run(["bash", "-eu", "-c", script + ASK, "bash", *LINES], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert dict(zip(LINES, map(str.split, ended.stdout.splitlines()), strict=True)) == LINES


@pytest.mark.skipif(shutil.which("fish") is None, reason="there is no fish")
def test_fish_completes_the_same(tmp_path: Path, capsys: Capture) -> None:
    status, script, errors = call(capsys, "completion", "fish")
    assert (status, errors) == (0, "")
    ask = "\nfor line in $argv\n    echo (complete -C $line)\nend\n"
    ended = subprocess.run(
        ["fish", "--no-config", "-c", script + ask, *LINES], capture_output=True, text=True, cwd=tmp_path
    )
    assert ended.returncode == 0, ended.stderr
    assert dict(zip(LINES, map(str.split, ended.stdout.splitlines()), strict=True)) == {
        line: sorted(words) for line, words in LINES.items()
    }
    (tmp_path / "vae.json").touch()
    for line, words in {"cotenant report v": "vae.json", "cotenant --name va": "vae"}.items():
        ended = subprocess.run(
            ["fish", "--no-config", "-c", script + ask, line], capture_output=True, text=True, cwd=tmp_path
        )
        assert ended.stdout == f"{words}\n"


@pytest.mark.skipif(shutil.which("zsh") is None, reason="there is no zsh")
def test_zsh_takes_the_script(capsys: Capture) -> None:
    script = call(capsys, "completion", "zsh")[1]
    ended = subprocess.run(
        ["zsh", "-f", "-c", script + "echo ${_comps[cotenant]} ${_comps[run.sh]}"], capture_output=True, text=True
    )
    assert ended.stdout.count("_bash_complete -o default -F _cotenant") == 2, ended.stderr
