"""The shell scripts: which of them run, with which words, how they fail, and that Ctrl-C ends them."""

import os
import pty
import shutil
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from cotenant.datasets.dataset import read_manifest
from cotenant.datasets.sets import NAMES, find_dataset
from datasets.conftest import tree
from datasets.miniature import bsds500
from patience import HANG_S

CHECKOUT = Path(__file__).parents[2]
WALKER = CHECKOUT / "download_datasets.sh"
VAE = CHECKOUT / "tasks/variational_auto_encoder/auto_encoding_variational_bayes/download_dataset.sh"
LOADER = CHECKOUT / "tasks/image_loading/loader/download_dataset.sh"


@pytest.fixture
def run(tmp_path, environment):
    """Return a function that runs a program to its end, with more variables."""

    def ended(*line, **extra):
        return subprocess.run(
            line, env=environment | extra, cwd=tmp_path, capture_output=True, text=True, timeout=HANG_S
        )

    return ended


@pytest.fixture
def walker(tmp_path):
    """Return a copy of the walker, in a checkout whose tasks have the scripts that `script` writes."""
    (tmp_path / "check out").mkdir()
    return Path(shutil.copy(WALKER, tmp_path / "check out"))


@pytest.fixture
def walk(run, walker):
    """Return a function that runs a copy of the walker over three tasks."""
    models = ("image_loading/loader", "image_classification/convnets", "broken/model")
    script(walker, 'echo "$0 got $*"; [[ $0 != */broken/* ]]', *models)
    return partial(run, walker)


def script(walker: Path, body: str, *models: str) -> None:
    for model in models:
        path = walker.parent / "tasks" / model / "download_dataset.sh"
        path.parent.mkdir(parents=True)
        path.write_text(f"#!/usr/bin/env bash\n{body}\n")
        path.chmod(0o755)


def run_of(stderr: str) -> set[str]:
    return {line.partition("]")[0][1:] for line in stderr.splitlines() if line.startswith("[")}


def test_names_choose_and_flags_go_to_every_script(walk):
    both = {"image_loading/loader", "image_classification/convnets"}
    for names, models in (
        (["loader"], {"image_loading/loader"}),
        (["image_*", "--size", "full", "--root", "a b"], both),
        (["convnets", "image_loading"], both),
        (["image_loading/loader", "load*"], {"image_loading/loader"}),
    ):
        done = walk(*names)
        assert done.returncode == 0, done.stderr
        assert run_of(done.stderr) == models
        flags = "--size full --root a b" if "--size" in names else ""
        assert [line.partition(" got ")[2] for line in done.stderr.splitlines()] == [flags] * len(models)


def test_one_after_the_other(tmp_path, run, walker):
    """Each script counts the scripts that run while it waits."""
    body = f'touch {tmp_path}/$$.on; sleep 0.1; set -- {tmp_path}/*.on; echo "$#"; rm {tmp_path}/$$.on'
    script(walker, body, "a/first", "b/second")
    done = run(walker, "--sequential")
    assert (done.returncode, done.stderr.splitlines()) == (0, ["[a/first] 1", "[b/second] 1"])


def test_what_is_wrong_is_named(walk):
    done = walk()
    assert done.returncode == 1
    assert run_of(done.stderr) == {"image_loading/loader", "image_classification/convnets", "broken/model"}
    assert "error: The data could not be made for: broken/model. The lines above say why." in done.stderr
    done = walk("loader", "loadr")
    assert done.returncode == 2
    assert run_of(done.stderr) == set()
    assert "'loadr'. The tasks: broken/model image_classification/convnets image_loading/loader." in done.stderr
    done = walk("--help")
    assert done.returncode == 0
    assert "./download_datasets.sh [NAME-glob...]" in done.stdout
    assert "set -e" not in done.stdout


def test_an_interrupt_ends_every_script(walker, environment):
    body = "trap 'echo bye; exit 130' INT; echo $$ > \"$0.pid\"; echo up; while :; do sleep 0.02; done"
    script(walker, body, "a/first", "b/second")
    walking = subprocess.Popen([walker], env=environment, stderr=subprocess.PIPE, text=True)
    # By then all traps are set, also that of the process that prints the scripts' lines.
    assert {walking.stderr.readline() for _ in range(2)} == {"[a/first] up\n", "[b/second] up\n"}
    walking.send_signal(signal.SIGINT)
    _, said = walking.communicate(timeout=HANG_S)
    assert walking.returncode == 130
    assert "[a/first] bye" in said
    assert "[b/second] bye" in said
    pids = [path.read_text().strip() for path in walker.parent.rglob("*.pid")]
    assert [Path("/proc", pid).exists() for pid in pids] == [False, False]


def test_a_tasks_script_finds_its_python(tmp_path, environment, run):
    (tmp_path / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / "python").chmod(0o755)
    del environment["PYTHONPATH"]
    for path, name, extra in (
        (VAE, "mnist", {"VENV": sys.prefix}),
        (LOADER, "imagenet", {"VENV": str(tmp_path / "none"), "PATH": f"{tmp_path}:/usr/bin:/bin"}),
    ):
        done = run(path, "--list", **extra)
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[1].startswith(name)


def test_every_tasks_script_is_one_text():
    scripts = sorted(CHECKOUT.glob("tasks/*/*/download_dataset.sh"))
    sets = set()
    for path in scripts:
        assert os.access(path, os.X_OK)
        *_, line = path.read_text().splitlines()
        name = line.removeprefix('exec "$python" -m cotenant.datasets ').removesuffix(' "$@"')
        assert path.read_text().splitlines()[2:-1] == VAE.read_text().splitlines()[2:-1]
        assert find_dataset(name).name == name
        sets.add(name)
    # Every set has a task that reads it.
    assert sets == set(NAMES)
    assert os.access(WALKER, os.X_OK)


def test_on_a_terminal_each_script_has_it_for_its_bar(walker, tmp_path, environment):
    busy = tmp_path / "busy"
    body = f"[[ -t 2 && ! -e {busy} ]] && touch {busy} && sleep 0.1 && echo here >&2 && rm {busy}"
    script(walker, body, "a/first", "b/second")
    outer, inner = pty.openpty()
    done = subprocess.run([walker, "a", "b"], env=environment, stderr=inner, timeout=HANG_S, check=False)
    os.close(inner)
    said = os.read(outer, 10_000).decode().splitlines()
    os.close(outer)
    assert (done.returncode, said) == (0, ["[a/first]", "here", "[b/second]", "here"])


def test_without_an_environment_it_is_said_what_makes_one(tmp_path, walker):
    script(walker, 'exec "$python" -m cotenant.datasets mnist "$@"', "a/first")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "sed", "sort"):
        (tools / name).symlink_to(str(shutil.which(name)))
    done = subprocess.run([walker], env={"PATH": str(tools)}, capture_output=True, text=True, check=False)
    expected = "error: There is no environment yet: ./run.sh --version makes it.\n"
    assert (done.returncode, done.stderr) == (2, expected)


@pytest.fixture
def plain(tmp_path):
    """Return the variables that name this environment, and a folder for sets."""
    return {"VENV": sys.prefix, "DATA_DIRECTORY": str(tmp_path / "data")}


def test_sets_that_only_together_find_no_room(tmp_path, run, plain):
    """The disk has room for either of the sets, and not for both."""
    sizes = [find_dataset(name).sizes["full"].estimated_bytes for name in ("imagenet", "coco")]
    preset = f"import shutil, types\nshutil.disk_usage = lambda path: types.SimpleNamespace(free={max(sizes)})\n"
    (tmp_path / "sitecustomize.py").write_text(preset)
    extra = plain | {"PYTHONPATH": str(tmp_path), "DATASET_SIZE": "full"}
    done = run(WALKER, "loader", "single_stage_detector", **extra)
    assert done.returncode == 2
    assert done.stderr.startswith("error: What is missing of coco, imagenet needs ")
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "data").exists()


def test_the_real_walk_makes_fake_sets_and_gets_real_ones(tmp_path, server, environment, run, plain):
    del environment["PYTHONPATH"]
    done = run(WALKER, "word_language_model", **plain)
    assert done.returncode == 0, done.stderr
    texts = [f"wiki.{split}.tokens" for split in ("test", "train", "valid")]
    assert tree(tmp_path / "data" / "wikitext-2") == ["manifest.json", *texts]
    server.files["/BSR_bsds500.tgz"] = bsds500()["BSR_bsds500.tgz"]
    real = plain | {"FAKE_DATASET": "0", "COTENANT_MIRROR": server.url(), "USE_VALIDATION": "1"}
    done = run(WALKER, "super_resolution", "image_loading", **real)
    assert done.returncode == 1
    assert "[image_loading/loader] error: imagenet is never downloaded" in done.stderr
    assert "[super_resolution/subpixel_convolution] bsds500 (real, validation): complete in" in done.stderr
    assert "error: The data could not be made for: image_loading/loader." in done.stderr
    manifest = read_manifest(tmp_path / "data" / "BSDS500")
    assert (manifest.kind, manifest.half) == ("real", "validation")
    assert (tmp_path / "data" / "BSDS500" / "data" / "images" / "train" / "1.jpg").exists()
