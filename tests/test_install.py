"""What people type who know the reference suite: `pip install -e common`, `apt install $(cat apt_packages)`."""

import re
import subprocess
import sys
import tomllib
from email import message_from_string
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]


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
    assert set(map(str, required)) == {str(Requirement(text)) for text in project["dependencies"]}
    scripts = (place / "entry_points.txt").read_text()
    assert all(f"{name} = {target}" in scripts for name, target in project["scripts"].items())


def test_debian_packages_are_one_name_a_line() -> None:
    lines = (ROOT / "apt_packages").read_text().splitlines()
    assert {"python3", "python3-venv", "curl"} <= set(lines)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9+.-]+", line) for line in lines)
