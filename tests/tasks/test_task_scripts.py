"""What a task's script starts: a process per device, or the benchmark alone."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from tasks.loading import TASKS, started

CONVNET = TASKS / "image_classification/convnets/pytorch/run_distributed.sh"
DCGAN = TASKS / "generative_adversarial_networks/dcgan/pytorch"
ALL, NGPU, SCALING = (
    DCGAN / "run_distributed.sh",
    DCGAN / "run.sh",
    TASKS / "image_classification/scaling/pytorch/run.sh",
)
FOUR, EIGHT = {"DEVICE_TOTAL": "4"}, {"DEVICE_TOTAL": "8"}
OWNS = FOUR | {"COTENANT_GROUP": "all"}
ALONE = 0
"""No launcher: the benchmark itself."""
STARTS: list[tuple[Path, str, dict[str, str], int | None, int]] = [
    # script, its words, variables, accelerators that torch sees (None: it must not be asked), processes
    (CONVNET, "--half 'a b'", EIGHT, None, 8),
    (CONVNET, "--half", {}, 8, 8),
    (CONVNET, "--half", {}, 0, 1),
    (CONVNET, "--parallel dp", EIGHT, None, ALONE),
    (CONVNET, "--parallel=dp 'a b'", EIGHT, None, ALONE),
    (CONVNET, "--parallel ddp --parallel dp", EIGHT, None, ALONE),
    (CONVNET, "--parallel dp --parallel=ddp", EIGHT, None, 8),
    (CONVNET, "--arch dp", EIGHT, None, 8),
    (ALL, "'a b'", FOUR, None, 4),
    (ALL, "'a b'", {}, 8, 8),
    (ALL, "'a b'", {}, 0, 1),
    (NGPU, "--ngpu 4", OWNS, None, 4),
    (NGPU, "--ngpu=2", OWNS, None, 2),
    (NGPU, "--ngpu 9", OWNS, None, 4),
    (NGPU, "--ngpu 2 --ngpu 3", OWNS, None, 3),
    (NGPU, "--ngpu 2", {}, None, 2),
    (NGPU, "--ngpu 1", OWNS, None, ALONE),
    (NGPU, "--ngpu many", OWNS, None, ALONE),
    (NGPU, "--lr 4", OWNS, None, ALONE),
    (NGPU, "--ngpu 4", FOUR | {"COTENANT_GROUP": "student"}, None, ALONE),
    (NGPU, "--ngpu 4", OWNS | {"DEVICE_TOTAL": "1"}, None, ALONE),
    (SCALING, "", FOUR, None, 4),
    (SCALING, "--devices 0", FOUR, None, 4),
    (SCALING, "--devices 3 'a b'", FOUR, None, 3),
    (SCALING, "--devices=2", FOUR, None, 2),
    (SCALING, "--devices 1 --devices 2", FOUR, None, 2),
    (SCALING, "--devices 4", {}, None, 4),
    (SCALING, "", {}, 8, 8),
    (SCALING, "--devices 0", {}, 8, 8),
    (SCALING, "--devices=0", {}, 0, 1),
    (SCALING, "--devices many", FOUR, None, ALONE),
    (SCALING, "--devices 9", FOUR, None, ALONE),
]


@pytest.mark.parametrize("script", [CONVNET, ALL, NGPU, SCALING], ids=lambda path: f"{path.parts[-3]}-{path.stem}")
def test_a_script_starts_a_process_per_device(script: Path, tmp_path: Path) -> None:
    for number, case in enumerate(case for case in STARTS if case[0] == script):
        _, words, variables, accelerators, processes = case
        meeting = {"MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29512"}
        (folder := tmp_path / str(number)).mkdir()
        said, heard = started(folder, script, *shlex.split(words), accelerators=accelerators, **meeting, **variables)
        launcher = ["-m", "torch.distributed.run", f"--nproc_per_node={processes}"]
        launcher += ["--master_addr=10.0.0.1", "--master_port=29512"]
        start = said[: len(launcher)] if processes else []
        assert start == (launcher if processes else []), case
        program, *rest = said[len(start) :]
        assert Path(program).samefile(script.parent / "main.py"), case
        counted = ["--devices", str(processes)] if script == SCALING and processes else []
        assert rest == [*shlex.split(words), *counted], case
        assert ("those are used" in heard) == (words == "--ngpu 9"), case


def test_without_a_runner_processes_meet_on_this_host(tmp_path: Path) -> None:
    for script in (CONVNET, ALL, SCALING):
        said, _ = started(tmp_path, script, **FOUR)
        assert said[3:5] == ["--master_addr=127.0.0.1", "--master_port=29500"]


def test_scripts_can_be_executed_and_become_the_benchmark() -> None:
    for path in TASKS.rglob("run*.sh"):
        assert os.access(path, os.X_OK), path
        first, *_, last = path.read_text().splitlines()
        assert first == "#!/usr/bin/env bash", path
        assert last.startswith("exec "), path
        assert (path.parent / "main.py").exists(), path
    assert all(os.access(path, os.X_OK) for path in TASKS.rglob("download_dataset.sh"))
    words = TASKS / "natural_language_processing/word_language_model/pytorch/run_fp16.sh"
    assert words.read_text().endswith('/main.py" --fp16 "$@"\n')
