"""Tenants in an image: the words that an engine is called with, definitions of images, and podman where it works."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

import image
import pytest

from cotenant.errors import CotenantError
from cotenant.launch import containers
from cotenant.launch.containers import Image, image_of
from cotenant.machine.accelerators import Accelerator
from golden import check_golden
from patience import HANG_S
from tenants.suites import PLACES as PLACES_OF_ROGUE
from tenants.suites import ROOT, TENANTS, Suites, found, job, script, until

PLACES = {Path("/work"), Path("/data")}
NVIDIA, AMD = (Accelerator(0, vendor, "a device", "GPU-0", "", 0, 0, "") for vendor in ("nvidia", "amd"))
IMAGES = Path(__file__).parent / "golden"


def test_apptainer_binds_places_and_gives_devices() -> None:
    inside = Image("singularity", "/usr/bin/apptainer", "/i.sif")
    assert inside.around(["a.sh", "-x"], [NVIDIA], PLACES, {"A": "1"}) == [
        "/usr/bin/apptainer",
        *("exec", "--nv", "--bind", "/data", "--bind", "/work", "/i.sif", "a.sh", "-x"),
    ]
    assert "--rocm" in inside.around(["a.sh"], [AMD], PLACES, {})


def test_podman_makes_no_cgroups_and_raises_no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(containers.resource, "getrlimit", lambda which: (10, 2000))
    monkeypatch.setattr(containers, "read_text", lambda path: "1000\n")
    inside = Image("podman", "/usr/bin/podman", "image:1")
    environment = {"PATH": "/host/bin", "BASE": "/work", "COTENANT_RUN": "1-2-3", "COTENANT_TENANT": "0"}
    for user, own in ((0, []), (1000, ["--userns=keep-id"])):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        words = inside.around(["a.sh", "-x"], [NVIDIA], PLACES, environment)
        assert words == [
            *("/usr/bin/podman", "run", "--rm", "--cgroups=disabled", "--network=host"),
            *("--volume", "/dev/shm:/dev/shm", "--ulimit=nofile=2000:2000", "--ulimit=nproc=1000:1000", *own),
            *("--replace", "--name=cotenant-1-2-3.t0"),
            *("--device", "nvidia.com/gpu=all", "--volume", "/data:/data", "--volume", "/work:/work"),
            *("--env", "BASE", "--env", "COTENANT_RUN", "--env", "COTENANT_TENANT", "image:1", "a.sh", "-x"),
        ]
    assert "/dev/kfd" in inside.around(["a.sh"], [AMD], PLACES, environment)


def test_an_engine_or_an_image_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert image_of(None, None) is None
    with pytest.raises(CotenantError, match="needs apptainer or singularity"):
        image_of("i.sif", None)
    with pytest.raises(CotenantError, match="needs podman"):
        image_of(None, "i")
    for name in ("podman", "apptainer"):
        (tmp_path / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / name).chmod(0o755)
    with pytest.raises(CotenantError, match="podman knows no image i"):
        image_of(None, "i")
    with pytest.raises(CotenantError, match="there is no image"):
        image_of("i.sif", None)
    (tmp_path / "podman").write_text("#!/bin/sh\necho 'Error: no space left on device' >&2\nexit 125\n")
    with pytest.raises(CotenantError, match="podman does not work here: Error: no space left on device"):
        image_of(None, "i")


@pytest.mark.parametrize("form", image.FORMS)
def test_definitions_of_images(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Builds of torch are told apart by their names alone."""
    made = {}
    for devices in ("cpu", "cuda", "rocm", "ppc64le"):
        base = ["--base", "docker.io/example/torch:ppc64le"] if devices == "ppc64le" else []
        assert image.main([form, devices, *base]) == 0
        made[devices] = capsys.readouterr().out
    for devices in ("cpu", "ppc64le"):
        check_golden(IMAGES / f"{devices}.{form}", made[devices])
    for devices, build in (("cuda", "cu130"), ("rocm", "rocm7.2")):
        assert made[devices] == made["cpu"].replace("TORCH_BUILD=cpu", f"TORCH_BUILD={build}")
    assert image.main([form, "ppc64le"]) == 2
    assert "--base names an image that has torch" in capsys.readouterr().err
    assert all((ROOT / name).exists() for name in image.COPIED)
    bare = [sys.executable, "-I", "-S", str(ROOT / "scripts/image.py"), form, "cpu"]  # No package is at hand.
    assert subprocess.run(bare, capture_output=True, check=True).stdout


def test_what_an_image_has_runs_a_suite(tmp_path: Path) -> None:
    """The line of docs/recipes.md for Kubernetes, in the image's own copy and directory."""
    for name in image.COPIED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy2
        copy(ROOT / name, tmp_path / name)
    line = ["./run.sh", "--jobs", "baselines.json", "--dry"]
    (tmp_path / "venv/bin").mkdir(parents=True)
    script(tmp_path / "venv/bin/python", f'exec {sys.executable} "$@"')
    pins = subprocess.run(["sha256sum", "requirements.txt"], cwd=tmp_path, capture_output=True, text=True, check=True)
    (tmp_path / "venv/.cotenant-run").write_text(pins.stdout)
    environment = {**os.environ, "VENV": str(tmp_path / "venv"), "TORCH_BUILD": ""}
    ended = subprocess.run(line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert f"WORKDIR {image.SOURCE}" in image.dockerfile(image.Image("cpu"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_an_interrupted_or_killed_runner_leaves_no_container(loose: Suites, number: signal.Signals) -> None:
    """An engine that keeps a container until it is removed, as podman does when its own processes are killed."""
    kept = loose.folder / "containers"
    kept.mkdir()
    named = f'case "$1" in --name=*) touch {kept}/"${{1#--name=}}";; esac'
    script(
        loose.folder / "bin/podman",
        '[ "$1" = image ] && exit 0',
        f'[ "$1" = rm ] && {{ cd {kept} && exec rm -f -- $(printf "%s\\n" "$@" | grep ^cotenant-); }}',
        f'while [ "$1" != an:image ]; do {named}; shift; done',
        'shift; exec "$@"',
    )
    path = f"{loose.folder / 'bin'}:{os.environ['PATH']}"
    jobs = [job("rogue.py", "--at", "hello", "--do", "hang", *PLACES_OF_ROGUE)]
    runner = loose.start(jobs, "--users", 2, "--docker", "an:image", PATH=path)
    loose.at_place("hello", 2)
    assert sorted(path.name.rpartition(".")[2] for path in kept.iterdir()) == ["t0", "t1"]
    runner.send_signal(number)
    assert runner.wait(HANG_S) == (-9 if number == signal.SIGKILL else 130)
    until(lambda: not list(kept.iterdir()), "the containers are removed", 20)
    loose.gone(10)


# ---- podman itself, on an image that has nothing: this host's own /usr is mounted


@pytest.fixture
def podman(tmp_path: Path) -> Iterator[dict[str, str]]:
    """The environment in which podman runs an image of this name; skips with the reason where it does not."""
    if shutil.which("podman") is None:
        pytest.skip("there is no podman")
    with tarfile.open(tmp_path / "empty.tar", "w") as tar:
        for name in ("bin", "sbin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(link)
        tar.addfile(tarfile.TarInfo("empty"), io.BytesIO())
    mounted = {"/usr", str(Path(sys.prefix).resolve()), str(Path(sys.base_prefix).resolve().parent)}
    volumes = ", ".join(f'"{place}:{place}:ro"' for place in sorted(mounted))
    (tmp_path / "containers.conf").write_text(f"[containers]\nvolumes = [{volumes}]\n")
    environment = {**os.environ, "CONTAINERS_CONF": str(tmp_path / "containers.conf")}
    name = f"localhost/cotenant-test-{os.getpid()}"
    path = f"ENV PATH={Path(sys.executable).parent}:/usr/bin"

    def ended(*line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(line, env=environment, capture_output=True, text=True, timeout=HANG_S, check=False)

    made = ended("podman", "import", "--change", path, str(tmp_path / "empty.tar"), name)
    if made.returncode:
        pytest.skip(f"podman imports no image here: {made.stderr[-200:]}")
    inside = Image("podman", "podman", name).around(["true"], [], set(), {"COTENANT_RUN": "0", "COTENANT_TENANT": "0"})
    tried = ended(*outside(inside))
    if not tried.returncode:
        yield {"CONTAINERS_CONF": environment["CONTAINERS_CONF"], "IMAGE": name}
    ended("podman", "rmi", "--force", name)
    if tried.returncode:
        pytest.skip(f"podman runs no container here: {tried.stderr[-200:]}")


def outside(words: list[str]) -> list[str]:
    """Return the words that run these where no second hierarchy is mounted: with controllers in both crun refuses."""
    hide = 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"'
    return ["unshare", "--mount", "bash", "-c", hide, "-", *words]


@pytest.mark.slow
def test_podman_runs_tenants_inside_their_slices(v1: Suites, podman: dict[str, str]) -> None:
    words = v1.line([job("sums.py", "--repeat", 3)], "--users", 2, "--docker", podman["IMAGE"])
    v1.typed(outside(words), 120, 0, CONTAINERS_CONF=podman["CONTAINERS_CONF"])
    assert v1.outcomes() == ["completed"] * 2
    for record in v1.records():
        assert "podman" in record["command"][0]
        assert str(TENANTS / "sums.py") in record["command"]
        # Python alone has taken more than this: it is the container's memory that the slice has counted.
        assert record["isolation"]["counters"]["memory_peak_bytes"] > 4 << 20
        assert not found(record, "slice_changed")
