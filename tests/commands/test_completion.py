"""`completion` as bash runs it, and the scripts for fish and zsh."""

from __future__ import annotations

import subprocess
import sys

import pytest

from commands.calling import Capture, call
from cotenant.commands import COMMANDS

LINES: dict[str, list[str]] = {
    "./run.sh re": ["report"],
    "cotenant ": ["help", *COMMANDS],
    "cotenant help do": ["doctor"],
    "cotenant --iso": ["--isolation"],
    "cotenant --isolation v": ["v2", "v1"],
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
    "cotenant report --h": ["--help", "--html"],
    "cotenant --name vae -- --re": [],
}
ASK = """
for line in "$@"; do
    read -ra COMP_WORDS <<<"$line"
    case "$line" in *" ") COMP_WORDS+=("") ;; esac
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _shtab_run_sh run.sh "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"
    echo "${COMPREPLY[*]}"
done
"""


def test_bash_completes_commands_flags_choices_and_jobs(capsys: Capture) -> None:
    status, script, errors = call(capsys, "completion", "bash")
    assert (status, errors) == (0, "")
    ended = subprocess.run(["bash", "-c", script + ASK, "bash", *LINES], capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    assert dict(zip(LINES, map(str.split, ended.stdout.splitlines()), strict=True)) == LINES


@pytest.mark.parametrize(("shell", "line"), [("zsh", "#compdef run.sh"), ("fish", "complete -c run.sh -f")])
def test_other_shells_have_a_script(shell: str, line: str, capsys: Capture) -> None:
    status, script, errors = call(capsys, "completion", shell)
    assert (status, errors) == (0, "")
    assert line in script.splitlines()


def test_without_shtab_a_sentence_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    status, script, errors = call(capsys, "completion", "bash")
    assert (status, script) == (2, "")
    assert errors.startswith("cotenant: The package 'shtab' is missing. pip install ")
