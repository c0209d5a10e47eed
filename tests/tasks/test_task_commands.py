"""Each task as the reference suite starts it: all its flags, sized small, from another directory."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cotenant.bench import Run, session
from cotenant.errors import CotenantError
from cotenant.results.schema import record_schema
from tasks.loading import PLACES, ROOT, TASKS, benchmark_in, benchmark_of, draw_pictures, main_of

SUITE = json.loads((ROOT / "baselines.json").read_text())
JOBS = {job["name"]: job for job in SUITE if job["name"] in PLACES}
SMALLER = {
    "toy_reg": "--repeat 6 --number 2",
    "toy_lstm": "--repeat 3 --number 1 --waves 6 --length 20",
    "vae": "--repeat 3 --number 2 --batch-size 8",
    "loader": "--repeat 3 --number 2 --batch-size 4 --workers 1 --size 32",
    "cart": "--repeat 3 --number 40",
}


def words_of(job: dict[str, Any], **variables: str) -> list[str]:
    words = []
    for flag, value in job["args"].items():
        words += [flag, *shlex.split(str(value))]
    for name, value in variables.items():
        words = [word.replace(f"${name}", value) for word in words]
    return words


@pytest.mark.parametrize(
    "name", [name if name == "loader" else pytest.param(name, marks=pytest.mark.slow) for name in PLACES]
)
def test_a_task_runs_from_any_directory(name: str, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where"
    elsewhere.mkdir()
    draw_pictures(tmp_path / "ImageNet" / "train")
    arguments = words_of(JOBS[name], OUTPUT_DIRECTORY=str(tmp_path / "output"), DATA_DIRECTORY=str(tmp_path))
    search = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ended = subprocess.run(
        [TASKS / PLACES[name] / "pytorch" / "run.sh", *arguments, *shlex.split(SMALLER[name]), "--seed", "100"],
        cwd=elsewhere,
        env=os.environ | {"PATH": search, "PYTHONPATH": str(ROOT / "common"), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, ended.stderr
    (path,) = (tmp_path / "output").glob("*.json")
    record = json.loads(path.read_text())
    jsonschema.validate(record, record_schema())
    assert (record["outcome"], record["seed"], record["unit"]) == ("completed", 100, benchmark_of(name).item)
    assert "Traceback" not in ended.stderr
    assert list(elsewhere.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("generative_adversarial_networks/dcgan", "--dataroot {} --imageSize 32 --ngf 4 --ndf 4 -b 2 --ngpu 1"),
        ("fast_neural_style/neural_style", "--workers 1 --image-size 8 -b 1"),
        ("super_resolution/subpixel_convolution", "--data {} --crop 16 -b 2 --no-checks --testBatchSize 8"),
    ],
)
def test_it_runs_alone(place: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"--no-cuda --repeat 3 --number 1 {words.format(draw_pictures(tmp_path / 'train'))}"
    assert session.main(benchmark_in(main_of(place)), line.split()) == 0
    assert '"outcome": "completed"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("task", "flags", "sentence"),
    [
        ("time_sequence_prediction/lstm", {"waves": 3}, "--waves must be at least 4, not 3."),
        ("time_sequence_prediction/lstm", {"length": 1}, "--length must be at least 2, not 1."),
        ("natural_language_processing/word_language_model", {"bptt": 0}, "--bptt must be at least 1, not 0."),
        (
            "natural_language_processing/word_language_model",
            {"model": "Transformer", "emsize": 15},
            "--emsize 15 is no multiple of --nhead 2.",
        ),
        ("reinforcement/atari", {"ppo_epoch": 0}, "--ppo-epoch must be at least 1, not 0."),
        (
            "recommendation/neural_collaborative_filtering",
            {"layers": (7, 4)},
            "The first of --layers is 7, and not even: users and items have a half each.",
        ),
    ],
)
def test_sizes_that_no_model_has_are_a_sentence(task: str, flags: dict[str, Any], sentence: str) -> None:
    def built() -> None:
        benchmark = benchmark_in(main_of(task))(cuda=False, **flags)
        benchmark.build(Run(benchmark))

    with pytest.raises(CotenantError) as refused:
        built()
    assert str(refused.value) == sentence
