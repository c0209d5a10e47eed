"""Each task as the reference suite starts it: with all its flags, at small sizes, from another directory."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cotenant.bench import Run
from cotenant.bench.facts import tenant_facts
from cotenant.bench.loop import Loop
from cotenant.errors import CotenantError
from patience import HANG_S
from results.made import check_schema
from tasks.loading import PLACES, ROOT, SMALL, TASKS, benchmark_of, draw_pictures, of
from tenants.suites import Suites

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
    "name", [name if name == "toy_reg" else pytest.param(name, marks=pytest.mark.slow) for name in PLACES]
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
        timeout=HANG_S,
    )
    assert ended.returncode == 0, ended.stderr
    (path,) = (tmp_path / "output").glob("*.json")
    record = check_schema(path.read_bytes())
    assert (record["outcome"], record["seed"], record["unit"]) == ("completed", 100, benchmark_of(name).item)
    assert "Traceback" not in ended.stderr
    assert list(elsewhere.iterdir()) == []


SENTENCES = "natural_language_processing/word_language_model"
BERT, XL = "question_answering/bert", "natural_language_processing/transformer_xl"
TACOTRON, WAVEGLOW = "speech_synthesis/tacotron2", "speech_synthesis/waveglow"
NCF = "recommendation/neural_collaborative_filtering"


@pytest.mark.parametrize(
    ("task", "flags", "sentence"),
    [
        (PLACES["toy_lstm"], {"waves": 3}, "--waves must be at least 4, not 3."),
        (PLACES["toy_lstm"], {"length": 1}, "--length must be at least 2, not 1."),
        (SENTENCES, {"bptt": 0}, "--bptt must be at least 1, not 0."),
        (SENTENCES, {"model": "Transformer", "emsize": 15}, "--emsize 15 is no multiple of --nhead 2."),
        ("reinforcement/atari", {"ppo_epoch": 0}, "--ppo-epoch must be at least 1, not 0."),
        (NCF, {"layers": (7, 4)}, "The first of --layers is 7, and not even: users and items have a half each."),
        (BERT, {"sequence": 513}, "--sequence 513 is more than the model's 512 positions."),
        (BERT, SMALL[BERT] | {"heads": 3}, "A width of 16 cannot be shared by 3 heads"),
        (XL, SMALL[XL] | {"heads": 3}, "--width 16 is no multiple of twice --heads 3"),
        (TACOTRON, {"encoder": 17}, "--encoder 17 is odd"),
        (WAVEGLOW, {"segment": 100}, "--segment 100 is no multiple of 8."),
        (WAVEGLOW, {"steps": 17}, "--steps 17 is more than 16."),
        ("fast_neural_style/neural_style", {"image_size": 18}, "--image-size 18 "),
        (
            "super_resolution/subpixel_convolution",
            {"upscale_factor": 20, "crop": 16},
            "--upscale_factor 20 does not fit",
        ),
    ],
)
def test_sizes_that_no_model_has_are_a_sentence(task: str, flags: dict[str, Any], sentence: str) -> None:
    def built() -> None:
        benchmark = of(task)(cuda=False, **flags)
        benchmark.build(Run(benchmark))

    with pytest.raises(CotenantError) as refused:
        built()
    assert str(refused.value).startswith(sentence)


# ---- `--compile`: the record of a compiled task says so, and its losses are those of the plain form

COMPILERS = ("g++", "clang++", "c++")
STEPS = 9


def ran(folder: Path, *words: str) -> dict[str, Any]:
    """Return the record of a run of toy_reg with these words; compiled code is stored below `folder`."""
    report = folder / f"{len(words)}.json"
    program = TASKS / PLACES["toy_reg"] / "pytorch" / "main.py"
    common = ["--no-cuda", "--repeat", str(STEPS), "--number", "1", "--report", str(report)]
    ended = subprocess.run(
        [sys.executable, str(program), *common, *words],
        env=os.environ | {"PYTHONPATH": str(ROOT / "common"), "TORCHINDUCTOR_CACHE_DIR": str(folder / "compiled")},
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert ended.returncode == 0, ended.stderr
    record: dict[str, Any] = json.loads(report.read_text())
    return record


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="torch.compile needs a C++ compiler: apt install g++")
def test_a_compiled_task_says_so_and_learns_the_same(tmp_path: Path) -> None:
    plain = ran(tmp_path)
    assert not list(tmp_path.glob("compiled/**/*.cpp"))
    compiled = ran(tmp_path, "--compile=reduce-overhead")
    assert list(tmp_path.glob("compiled/**/*.cpp"))
    assert [one["observed"]["compiled"] for one in (plain, compiled)] == [False, "reduce-overhead"]
    assert [one["ignored"] for one in (plain, compiled)] == [[], []]
    audits = [one["observed"]["audit"] for one in (plain, compiled)]
    assert [(audit["eager"], audit["after"], audit["differences"]) for audit in audits] == [
        (False, [STEPS], []),
        (True, [STEPS], []),
    ]
    # The compiled form makes more steps before its first observation: those that compile, and one that does not.
    ahead = [
        more for more in range(STEPS) if plain["batch_loss"][more] == pytest.approx(compiled["batch_loss"][0], rel=1e-4)
    ]
    assert len(ahead) == 1
    assert compiled["batch_loss"][: STEPS - ahead[0]] == pytest.approx(plain["batch_loss"][ahead[0] :], rel=1e-4)


def test_a_task_without_a_model_is_never_compiled(tmp_path: Path) -> None:
    pictures = draw_pictures(tmp_path / "train")
    loading: Any = benchmark_of("loader")
    benchmark = loading(cuda=False, compile=True, data=pictures, batch_size=2, size=8, workers=0, decoder="pil")
    loop = Loop(benchmark, run := Run(benchmark))
    assert tenant_facts(run, loop)["observed"]["compiled"] is False


@pytest.mark.slow
def test_a_runner_passes_on_that_a_device_was_asked_for(loose: Suites) -> None:
    main = TASKS / "regression/polynome/pytorch/run.sh"
    job = {"name": "toy_reg", "cmd": str(main), "args": {"--repeat": 2, "--number": 1}, "cgroup": "student"}
    ended = loose.run([job], "--users", 1, USE_CUDA="1", CUDA_VISIBLE_DEVICES="")
    assert (ended.returncode, loose.outcomes()) == (1, ["unsupported"])
    (record,) = loose.records()
    assert "sees no device, and USE_CUDA=1 asks for one. " in record["message"]
    assert record["message"].endswith("To measure the processor, use --no-cuda.")
