"""`pip install -e common`, as the reference suite is installed: what `pip install -e '.[torch]'` in the root does."""

import tomllib
from pathlib import Path

from setuptools import find_packages, setup

project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())["project"]
setup(
    name=project["name"],
    version=project["version"],
    description=project["description"],
    python_requires=project["requires-python"],
    install_requires=project["dependencies"] + project["optional-dependencies"]["torch"],
    entry_points={"console_scripts": [f"{name}={place}" for name, place in project["scripts"].items()]},
    packages=find_packages(),
)
