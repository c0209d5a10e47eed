"""`pip install -e common`, as the reference suite is installed: what `pip install -e '.[torch]'` in the root does."""

import tomllib
from pathlib import Path
from typing import NoReturn

from setuptools import find_packages, setup
from setuptools.command.bdist_wheel import bdist_wheel


class RefusedWheel(bdist_wheel):
    """Refuses a wheel of this folder, which would lack the benchmarks and job files beside it."""

    def run(self) -> NoReturn:
        raise SystemExit(
            "A wheel of common would lack the benchmarks: pip install '.[torch]' in the checkout, "
            "or pip install -e common."
        )


project = tomllib.loads((Path(__file__).resolve().parents[1] / "pyproject.toml").read_text())["project"]
setup(
    name=project["name"],
    version=project["version"],
    description=project["description"],
    python_requires=project["requires-python"],
    install_requires=project["dependencies"] + project["optional-dependencies"]["torch"],
    entry_points={"console_scripts": [f"{name}={place}" for name, place in project["scripts"].items()]},
    packages=find_packages(),
    cmdclass={"bdist_wheel": RefusedWheel},
)
