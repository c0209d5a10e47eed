"""The caller's environment: commands of `exec` run in it, and the runner and its benchmarks do not."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cotenant.launch.command import callers_path
from exec.test_hook import TORCH
from tenants.suites import ROOT, Suites, job, script

TRAIN = """
import json, os, sys, time
import only_here, torch
names = ("PATH", "VIRTUAL_ENV", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "VENV")
open(sys.argv[1], "w").write(json.dumps({name: os.environ.get(name) for name in names}))
optimizer = torch.optim.optimizer.Optimizer()
while True:
    time.sleep(0.002)
    optimizer.step()
    print("step", flush=True)
"""


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a virtual environment with a module that only it has, and a torch of a few lines."""
    place = tmp_path_factory.mktemp("callers") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    (site,) = place.glob("lib/python*/site-packages")
    texts = {f"torch/{name}": text for name, text in TORCH.items()}
    texts |= {"only_here.py": "", "torch-9.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 9\n"}
    for name, text in texts.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text)
    return place


def by_run_sh(suites: Suites) -> list[str]:
    """Return run.sh as a command line, in whose environment is an interpreter with our packages."""
    place = suites.folder / "ours"
    script(place / "bin/python", f'exec {sys.executable} "$@"')
    pins = subprocess.check_output(["sha256sum", "requirements.txt"], cwd=ROOT, text=True)
    (place / ".cotenant-run").write_text(pins)
    suites.environment["VENV"] = str(place)
    return [str(ROOT / "run.sh")]


def activate(suites: Suites, venv: Path) -> None:
    inherited = suites.environment
    inherited.pop("PYTHONPATH", None)
    path = f"{venv / 'bin'}:{inherited['PATH']}"
    suites.environment = inherited | {"VIRTUAL_ENV": str(venv), "PATH": path}


@pytest.mark.parametrize(
    ("flags", "words", "threads"),
    [
        pytest.param("--baseline none --budget 1", "python train.py seen", "", marks=pytest.mark.slow),
        ("--baseline none --budget 1 --count-line ^step", "env python train.py seen", "77"),
        pytest.param(
            *("--duet --budget 5 --repetitions 2", "python train.py seen --- env python train.py seen", ""),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["direct", "env, lines and threads", "duet"],
)
def test_a_command_runs_in_the_callers_environment(
    loose: Suites, venv: Path, flags: str, words: str, threads: str
) -> None:
    """With as many threads as the caller set, or as fit."""
    line = [*by_run_sh(loose), "exec", "--isolation", "affinity", "--users", "1", *flags.split()]
    activate(loose, venv)
    loose.environment |= {"OMP_NUM_THREADS": threads} if threads else {}
    (loose.folder / "train.py").write_text(TRAIN)
    ended = loose.typed([*line, "--", *shlex.split(words)], 120, None if "--duet" in flags else 0)
    records = loose.records()
    assert {record["outcome"] for record in records} == {"completed"}, [record["message"] for record in records]
    python, number = str(venv / "bin/python"), ".".join(map(str, sys.version_info[:3]))
    where = "" if words.startswith("python") else " on PATH"
    assert f"python{where}: {python} ({number}, torch 9)\n" in ended.stdout
    for record in records:
        torch, software = record["machine"]["torch"], record["machine"]["software"]
        assert torch == {"interpreter": python, "python": number, "version": "9"}
        assert software["packages"] == {"torch": "9"}
    seen = json.loads((loose.folder / "seen").read_text())
    assert (seen["PATH"], seen["VIRTUAL_ENV"]) == (loose.environment["PATH"], str(venv))
    if threads:
        assert (seen["OMP_NUM_THREADS"], seen["MKL_NUM_THREADS"]) == (threads, None)
    assert (f"OMP_NUM_THREADS={seen['OMP_NUM_THREADS']} in each copy" in ended.stdout) == (not threads)
    assert ("OMP_NUM_THREADS" in ended.stdout) == (not threads)


BROKEN = "raise SystemError('the module of the caller')"


@pytest.mark.parametrize("start", [[str(ROOT / "run.py")], ["-P", "-m", "cotenant"]], ids=["run.py", "-m cotenant"])
def test_modules_on_the_callers_pythonpath_are_not_the_runners(loose: Suites, start: list[str]) -> None:
    for name in ("msgspec", "numpy", "polars"):
        (loose.folder / f"{name}.py").write_text(BROKEN)
    path = f"{loose.folder}:{loose.environment.get('PYTHONPATH', '')}"
    line = [sys.executable, *start, "--dry", "--name", "vae", "--isolation", "none"]
    loose.typed(line, 60, 0, PYTHONPATH=path)


def test_run_sh_ignores_the_callers_python_variables(loose: Suites) -> None:
    """So do its benchmarks."""
    line, path = by_run_sh(loose), loose.jobs([job("echo.py", "--repeat", 4)])
    inherited = {"PYTHONPATH": str(loose.folder), "PYTHONHOME": "/nowhere", "LD_LIBRARY_PATH": "/x"}
    for name in ("msgspec", "numpy", "polars", "random"):
        (loose.folder / f"{name}.py").write_text(BROKEN)
    line += ["--jobs", str(path), "--isolation", "affinity", "--users", "1", "--baseline", "none"]
    loose.typed(line, 60, 0, **inherited)
    told = json.loads(loose.log().splitlines()[0])["env"]
    assert (told["PYTHONPATH"], told["PYTHONHOME"]) == (str(ROOT / "common"), "")
    assert told["PATH"].startswith(str(Path(sys.executable).parent))
    assert told["LD_LIBRARY_PATH"] == "/x"
    (record,) = loose.records()
    assert not [found for found in record["findings"] if "LD_" in found["sentence"] or "PYTHON" in found["sentence"]]


@pytest.mark.parametrize(
    ("variables", "is_left_out"),
    [({}, False), ({"UV": "/uv"}, True), ({"UV": "/uv", "VIRTUAL_ENV": sys.prefix}, False)],
    ids=["no uv", "uvx", "uv run"],
)
def test_the_environment_of_uvx_hides_no_python_of_the_callers(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], is_left_out: bool
) -> None:
    for name in ("UV", "VIRTUAL_ENV"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    path = f"{sys.prefix}/bin:/opt/venv/bin:/usr/bin"
    monkeypatch.setenv("PATH", path)
    assert callers_path() == ("/opt/venv/bin:/usr/bin" if is_left_out else path)
    monkeypatch.setenv("PATH", "/opt/venv/bin:/usr/bin")
    assert callers_path() == "/opt/venv/bin:/usr/bin"
