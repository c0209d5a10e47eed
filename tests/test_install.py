"""The reference suite's installation commands work here: `pip install -e common`, `apt install $(cat apt_packages)`."""

import json
import os
import pty
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import zipfile
from email import message_from_bytes, message_from_string
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import pytest
import setuptools
from packaging.requirements import Requirement

from cotenant.commands import COMMANDS
from cotenant.machine.wheels import SIZES, device_host, wheel_for
from patience import HANG_S
from tenants.suites import ROOT, script
from workplace import make_workplace


def test_common_installs_as_the_checkout_does(tmp_path: Path) -> None:
    build = (
        f"from setuptools.build_meta import prepare_metadata_for_build_editable as made; print(made({str(tmp_path)!r}))"
    )
    ended = subprocess.run([sys.executable, "-c", build], cwd=ROOT / "common", capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    place = tmp_path / ended.stdout.split()[-1]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    metadata = message_from_string((place / "METADATA").read_text())
    assert (metadata["Name"], metadata["Version"]) == (project["name"], project["version"])
    required = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    wanted = project["dependencies"] + project["optional-dependencies"]["torch"]
    assert set(map(str, required)) == {str(Requirement(text)) for text in wanted}
    scripts = (place / "entry_points.txt").read_text()
    assert all(f"{name} = {target}" in scripts for name, target in project["scripts"].items())


def test_a_wheel_without_the_suite_is_refused(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "common", tmp_path / "common", ignore=lambda *_: {"cotenant"})
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    build = "from setuptools.build_meta import build_wheel; build_wheel('out')"
    ended = subprocess.run([sys.executable, "-c", build], cwd=tmp_path / "common", capture_output=True, text=True)
    assert ended.returncode == 1
    assert "would lack the benchmarks: pip install '.[torch]' in the checkout" in ended.stderr


def test_a_wheel_carries_the_suite(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Every file of the tasks, profiles and targets is shipped; a slow test builds the wheel itself."""
    given: dict[str, Any] = {}
    monkeypatch.setattr(setuptools, "setup", given.update)
    runpy.run_path(str(ROOT / "setup.py"))
    build = given["cmdclass"]["build_py"](setuptools.Distribution())
    build.build_lib = str(tmp_path)
    folders = [ROOT / name for name in ("tasks", "profiles", "targets")]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    place = tmp_path / "cotenant/shipped"
    shipped = {str(path): str(place / path.relative_to(ROOT)) for path in (ROOT / "baselines.json", *files)}
    assert build._shipped() == shipped


def test_carried_packages_are_installed_without_a_network(tmp_path: Path) -> None:
    """This is the case of a borrowed machine (`make gpu-wheels`), which keeps the packages that it has."""
    checkout, python = tmp_path / "checkout", f"python3.{sys.version_info.minor}"
    packages = tmp_path / f".local/lib/{python}/site-packages"
    (checkout / "gpu-wheels").mkdir(parents=True)
    shutil.copytree(ROOT / "scripts", checkout / "scripts")
    for name, version in (("torch", "2.11.0"), ("packaging", "26.3")):
        _wheel(packages, name, version)
        with zipfile.ZipFile(next(packages.glob(f"{name}-*.whl"))) as made:
            made.extractall(packages)
    for name, version in (("carried", "1.0"), ("packaging", "1.0")):
        _wheel(checkout / "gpu-wheels", name, version)
    line = (
        'source scripts/environment.sh && ensure_environment test scripts/environment.sh && "$VENV/bin/python" -c "$0"'
    )
    shown = "import carried, packaging, torch; print(carried.VERSION, packaging.VERSION, torch.VERSION)"
    environ = os.environ | {
        "PYTHON": sys.executable,
        "HOME": str(tmp_path),
        "PIP_INDEX_URL": "http://127.0.0.1:9",
    }
    environ |= {"VENV": str(tmp_path / "venv"), "PYTHONPATH": str(tmp_path / "others")}
    ended = subprocess.run(["bash", "-c", line, shown], cwd=checkout, env=environ, capture_output=True, text=True)
    assert ended.stdout.split() == ["1.0", "26.3", "2.11.0"], ended.stderr


def _wheel(folder: Path, name: str, version: str) -> None:
    """Write a wheel of one module that holds its version."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(folder / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{name}.py", f"VERSION = {version!r}\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/RECORD", "")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make a source distribution of this checkout and a wheel from it; return the wheel, then the distribution."""
    folder = tmp_path_factory.mktemp("built")
    kept = shutil.ignore_patterns(".git", "workspace", "build", "*.egg-info", "__pycache__", ".venv")
    source = shutil.copytree(ROOT, folder / "source", ignore=kept)

    def build(kind: str) -> None:
        program = f"from setuptools.build_meta import build_{kind} as made; print(made({str(folder)!r}))"
        subprocess.run([sys.executable, "-c", program], cwd=source, check=True, capture_output=True)

    build("sdist")
    shutil.rmtree(source)
    (archive,) = folder.glob("*.tar.gz")
    shutil.unpack_archive(archive, folder / "source", filter="data")
    (source,) = (folder / "source").iterdir()
    build("wheel")
    shutil.rmtree(folder / "source")
    (wheel,) = folder.glob("*.whl")
    return wheel, archive


def _environment(folder: Path, wheel: Path) -> Path:
    """Make an environment with a wheel alone; return the folder of its packages."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    python = folder / "venv/bin/python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, capture_output=True)
    (packages,) = folder.glob("venv/lib/python3.*/site-packages")
    return packages


def _link_required(requirements: list[str], packages: Path) -> None:
    """Link these packages and their own requirements, recursively, into an environment, and no others."""
    known, left = set[str](), [Requirement(text) for text in requirements]
    while left:
        requirement = left.pop()
        if requirement.name in known or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        known.add(requirement.name)
        there = distribution(requirement.name)
        left += map(Requirement, there.requires or [])
        for top in {Path(str(file)).parts[0] for file in there.files or []} - {"..", "__pycache__"}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(there.locate_file(top))))


FROM_PYTHON = """
import cotenant
print(len(cotenant.plan(users=1, isolation="none").slices))
result = cotenant.load("A")
print("<svg" in result._repr_html_())
line = next(line for line in cotenant.compare(result, "B").lines if line.job == "convnet")
print(line.job, line.verdict)
try:
    cotenant.run("cpu", name="vae", isolation="none", flags=["--show"])
except cotenant.CotenantError as error:
    print(error.sentence)
"""
"""A program that uses an installed package: `run` starts that package, not this checkout."""


@pytest.mark.slow
def test_without_torch_the_commands_that_read_are_served(tmp_path: Path, built: tuple[Path, Path]) -> None:
    """An environment of its own, with the core from the source distribution, has each command's help, and reads
    records."""
    wheel, archive = built
    packages = _environment(tmp_path, wheel)
    metadata = message_from_bytes(next(packages.glob("cotenant-*.dist-info/METADATA")).read_bytes())
    _link_required([text for text in metadata.get_all("Requires-Dist", []) if "extra ==" not in text], packages)
    assert (packages / "cotenant/py.typed").exists()
    with tarfile.open(archive) as packed:
        names = {name.partition("/")[2] for name in packed.getnames()}
    assert {"LICENSE", "CITATION.cff", "baselines.json", "targets/published/ray.csv"} <= names
    assert not any(name.startswith("tests/") for name in names)
    make_workplace(tmp_path)
    environ = {"PATH": "/usr/bin:/bin", "COTENANT_LOCK": str(tmp_path / "lock"), "HOME": str(tmp_path)}

    def cotenant(*words: str, status: int = 0) -> str:
        line = [tmp_path / "venv/bin/cotenant", *words]
        ended = subprocess.run(line, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=HANG_S)
        assert ended.returncode == status, (words, ended.stderr)
        return ended.stdout + ended.stderr

    python = [tmp_path / "venv/bin/python", "-c"]
    assert subprocess.run([*python, "import torch"], capture_output=True).returncode == 1
    for command in COMMANDS:
        assert re.match(r"usage: cotenant", cotenant("help", command)), command
    assert "torch is not installed: " in cotenant("doctor")
    assert "with 1 processor" in cotenant("plan", "--users", str(os.cpu_count()))
    failed = cotenant("--name", "vae", "--isolation", "none", "--outdir", "own", status=1)
    assert "missing_package: The package 'torch' is missing." in failed
    for words, said in {
        ("report",): "convnet",
        ("report", "--html", "page.html"): "page.html is written.",
        ("report", "--table", "interference"): "0.900",
        ("compare", "A", "B"): "UNCLEAR",
        ("archive", "own", "-o", "run.tar.zst"): "run.tar.zst: ",
        ("verify", "run.tar.zst"): "All checks passed.",
        ("export", "--out", "rows.parquet"): "rows in rows.parquet.",
        ("mlbench-report", "--gpu-model", "V100"): "Score",
    }.items():
        assert said in cotenant(*words), words
    ended = subprocess.run([*python, FROM_PYTHON], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert ended.stdout.split() == ["1", "True", "convnet", "UNCLEAR", "The", "run", "wrote", "no", "record."], ended


@pytest.mark.slow
def test_an_installed_wheel_runs_in_an_empty_directory(tmp_path: Path, built: tuple[Path, Path]) -> None:
    """Its environment takes all other packages from this one, and is outside of any checkout."""
    packages = _environment(tmp_path, built[0])
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    folder = tmp_path / "empty"
    folder.mkdir()
    environ = {"PATH": "/usr/bin:/bin", "COTENANT_LOCK": str(tmp_path / "lock"), "HOME": str(tmp_path)}

    def cotenant(*words: str) -> str:
        line = [tmp_path / "venv/bin/cotenant", *words]
        ended = subprocess.run(line, cwd=folder, env=environ, capture_output=True, text=True, timeout=HANG_S)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    said = cotenant("--name", "toy_reg", "--users", "1", "--isolation", "none", "--", "--repeat", "3")
    assert "As a page, with pictures: cotenant report --html page.html" in said
    (record,) = folder.glob("workspace/output/*.json")
    found = json.loads(record.read_text())
    assert (found["outcome"], found["machine"]["git"]) == ("completed", None)
    assert found["command"][0].startswith(str(packages / "cotenant/shipped/tasks"))
    assert "toy_reg" in cotenant("report")
    cotenant("mlbench-report", "--gpu-model", "V100")


def test_the_citation_is_of_this_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    lines = dict(line.split(": ", 1) for line in (ROOT / "CITATION.cff").read_text().splitlines() if ": " in line[1:])
    assert lines["version"] == project["version"]
    assert lines["license"] == project["license"]["text"]
    assert {"cff-version", "message", "title", "type"} <= lines.keys()


def test_debian_packages_are_one_name_a_line() -> None:
    lines = (ROOT / "apt_packages").read_text().splitlines()
    assert {"python3", "python3-venv", "curl"} <= set(lines)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", line) for line in lines)


SET_UP = "ensure_environment run requirements.txt"
PYTHON = """#!/bin/bash
case "$*" in
*wheels.py*) exec {python} "$@" ;;
*freeze*) cat "$VENV/there" 2>/dev/null ;;
"-m pip --version") ;;
-I*) [ ! -e "$VENV/lib/broken" ] ;;
*--index-url*) echo "$*" >>"$VENV/asked"; [ -e "$VENV/index" ] ;;
*) echo "$*" >>"$VENV/asked" ;;
esac
"""


@pytest.fixture
def venv(tmp_path: Path) -> Path:
    """Make an environment whose Python only lists the packages that it is to install; return its folder."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").write_text(PYTHON.replace("{python}", sys.executable))
    (tmp_path / "bin/python").chmod(0o755)
    return tmp_path


def in_bash(
    commands: str, environ: dict[str, str], checkout: Path = ROOT, **how: Any
) -> subprocess.CompletedProcess[str]:
    """Run commands behind those of a checkout's environment.sh."""
    line = ["bash", "-c", f'set -euo pipefail; source "$1/scripts/environment.sh"; {commands}', "run.sh", str(checkout)]
    return subprocess.run(line, env={"PATH": "/usr/bin:/bin"} | environ, text=True, timeout=HANG_S, **how)


def set_up(venv: Path, place: Path = ROOT, **environ: str) -> tuple[str, list[str]]:
    """Return the set-up's messages to a person in the folder `place`, and the words of each call of pip."""
    (venv / "asked").unlink(missing_ok=True)
    ended = in_bash(SET_UP, {"VENV": str(venv)} | environ, cwd=place, capture_output=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stderr, (venv / "asked").read_text().splitlines() if (venv / "asked").exists() else []


PINS = {
    line.split("==")[0]: line.split("==")[1] for line in (ROOT / "requirements.txt").read_text().split() if "==" in line
}


def test_the_set_up_installs_the_torch_build_asked_for(venv: Path) -> None:
    (venv / "there").write_text("NumPy==0.1\nrich==" + PINS["rich"] + "\n")
    (venv / "index").touch()
    said, asked = set_up(venv, TORCH_BUILD="cu126")
    assert "once: 1 of them are there." in said
    assert "torch for cu126: TORCH_BUILD asks for it." in said
    assert "GB" not in said, "that build's size was not measured"
    others, torch, rest, ours = asked
    assert f" rich=={PINS['rich']} " in others
    assert "torch" not in others
    wanted = f"torch=={PINS['torch']}+cu126 torchvision=={PINS['torchvision']}+cu126"
    assert torch.endswith(f"--index-url https://download.pytorch.org/whl/cu126 {wanted}")
    assert rest.endswith("-r requirements.txt")
    assert ours.endswith(f"-e {ROOT}")
    assert all(" --quiet " in words for words in asked)
    assert set_up(venv, TORCH_BUILD="cu126") == ("", [])
    (venv / "index").unlink()
    said, asked = set_up(venv, TORCH_BUILD="cu999")
    assert "for cu999 cannot be had from https://download.pytorch.org/whl/cu999: the pinned pair is installed" in said
    assert f"torch for cu130: it is the pinned one. All packages are {SIZES['cu130']}." in said
    assert asked[2].endswith("-r requirements.txt")
    said, asked = set_up(venv, TORCH_BUILD="cu130")
    assert f"All packages are {SIZES['cu130']}." in said
    assert len(asked) == 2


def test_an_installed_torch_is_kept_for_a_cpu_build(venv: Path) -> None:
    (venv / "there").write_text(f"torch=={PINS['torch']}\n")
    said, asked = set_up(venv, venv.parent, VENV=venv.name, TORCH_BUILD="cpu")
    assert f"torch for cpu: TORCH_BUILD asks for it. All packages are {SIZES['cpu']}." in said
    assert len(asked) == 2


def test_the_tests_replace_a_cpu_build_for_their_null_device(venv: Path) -> None:
    """To pip the requirement `torch==2` is met by `2+cpu`, with which the null device cannot be built."""
    (venv / "there").write_text(f"torch=={PINS['torch']}+cpu\n")
    environ = {"VENV": str(venv), "PATH": f"{script(venv / 'nvidia-smi', 'exit 1').parent}:/usr/bin:/bin"}
    ended = in_bash(SET_UP.replace("run", "test"), environ, capture_output=True)
    wheel = wheel_for(device_host())
    if wheel.build == "cpu":
        assert "torch for cu130: there is no device, and the null device of the tests needs CUDA's." in ended.stderr
        replaced, *_ = (venv / "asked").read_text().splitlines()
        pair = f"torch=={PINS['torch']} torchvision=={PINS['torchvision']}"
        assert replaced.endswith(f"--force-reinstall --no-deps {pair}")
    else:
        assert f"torch for {wheel.build}: {wheel.reason}." in ended.stderr


def test_an_environment_without_pip_is_made_anew(venv: Path) -> None:
    """Debian's venv leaves one behind where python3-venv is missing, and a Ctrl-C at the wrong moment, too."""
    maker = script(venv / "maker", f'[ "$1 $2" != "-m venv" ] || cp {venv}/whole "$3/bin/python"')
    (venv / "bin/python").rename(venv / "whole")
    script(venv / "bin/python", "exit 1")
    _, asked = set_up(venv, PYTHON=str(maker), TORCH_BUILD="cu130")
    assert len(asked) == 2


@pytest.mark.parametrize("fault", ["gone", "of another version"])
def test_an_environment_with_a_broken_interpreter_is_remade(venv: Path, fault: str) -> None:
    """A distribution's upgrade removes the interpreter, or puts one of a later version in its place."""
    set_up(venv, TORCH_BUILD="cu130")
    assert set_up(venv, TORCH_BUILD="cu130") == ("", [])
    (venv / "bin/python").rename(venv / "whole")
    maker = script(
        venv / "maker", f'[ "$1 $2" != "-m venv" ] || {{ mkdir "$3/bin"; cp {venv}/whole "$3/bin/python"; }}'
    )
    (venv / "pyvenv.cfg").touch()
    (venv / "lib").mkdir()
    if fault == "gone":
        (venv / "bin/python").symlink_to("/usr/bin/python3.1")
    else:
        shutil.copy(venv / "whole", venv / "bin/python")
        (venv / "lib/broken").touch()
    said, asked = set_up(venv, PYTHON=str(maker), TORCH_BUILD="cu130")
    assert f"the Python of {venv} is gone, or of another version than its packages" in said
    assert not (venv / "lib").exists()
    assert len(asked) == 2
    assert set_up(venv, TORCH_BUILD="cu130") == ("", [])


def test_a_real_environment_fails_once_its_python_changes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path], check=True)
    asked = "if works; then echo yes; else echo no; fi"
    assert in_bash(asked, {"VENV": str(tmp_path)}, capture_output=True).stdout == "yes\n"
    (packages,) = tmp_path.glob("lib/python3.*")
    packages.rename(packages.with_name("python3.1"))
    assert in_bash(asked, {"VENV": str(tmp_path)}, capture_output=True).stdout == "no\n"


def test_checkouts_with_different_pins_share_no_environment(venv: Path, tmp_path: Path) -> None:
    """That is said as long as the other checkout stands and has other pins; else its packages are replaced."""
    set_up(venv, TORCH_BUILD="cu130")
    other = tmp_path / "other"
    shutil.copytree(ROOT / "scripts", other / "scripts")
    wheels = "common/cotenant/machine/wheels.py"
    (other / wheels).parent.mkdir(parents=True)
    for name in (wheels, "requirements.txt", "requirements-test.txt"):
        shutil.copy(ROOT / name, other / name)
    environ = {"VENV": str(venv), "TORCH_BUILD": "cu130"}
    assert in_bash(SET_UP, environ, other, capture_output=True).returncode == 0, "with equal pins they may"
    with (other / "requirements.txt").open("a") as file:
        file.write("one-more==1\n")
    (venv / "asked").unlink()
    ended = in_bash(SET_UP, environ, other, capture_output=True)
    told = f"run.sh: {venv} has the packages that {ROOT} pins, and {other} pins others (requirements.txt). "
    assert ended.stderr == f"{told}Give one of them another VENV=DIR.\n"
    assert (ended.returncode, (venv / "asked").exists()) == (2, False)
    (venv / ".cotenant-checkout").write_text(f"{tmp_path / 'removed'}\n")
    (venv / ".cotenant-test").touch()
    assert in_bash(SET_UP, environ, other, capture_output=True).returncode == 0
    assert (venv / ".cotenant-checkout").read_text() == f"{other}\n"
    assert not (venv / ".cotenant-test").exists(), "the tests' packages are no longer those"
    ended = in_bash(SET_UP, environ, capture_output=True)
    assert f"has the packages that {other} pins, and {ROOT} pins others" in ended.stderr


def test_an_interpreter_may_lie_in_a_folder_with_a_space(tmp_path: Path) -> None:
    python = tmp_path / "my python"
    python.symlink_to(sys.executable)
    assert in_bash("find_python", {"PYTHON": str(python)}, capture_output=True).stdout == f"{python}\n"


def test_on_a_terminal_packages_arrive_with_their_progress(venv: Path) -> None:
    ours, theirs = pty.openpty()
    in_bash(SET_UP, {"VENV": str(venv), "TORCH_BUILD": "cu130"}, stderr=theirs, check=True)
    os.close(theirs)
    assert b"installing the pinned packages" in os.read(ours, 4096)
    os.close(ours)
    assert "--quiet" not in (venv / "asked").read_text()
