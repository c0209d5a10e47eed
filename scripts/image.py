"""Makes the definition of an image with the pinned environment, for Docker and Podman or for Apptainer:

python scripts/image.py docker cuda > Dockerfile && podman build -t cotenant .
python scripts/image.py apptainer rocm > cotenant.def && apptainer build cotenant.sif cotenant.def

Both run the same steps in the checkout: the script of ./run.sh makes the same environment.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

# This script also runs without an environment.
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))

from cotenant.errors import EXIT_PASSED, EXIT_USAGE
from cotenant.machine.wheels import PINNED, ROCM

BUILDS = {"cpu": "cpu", "cuda": PINNED, "rocm": ROCM}
BASE = "docker.io/library/python:3.12-slim-bookworm"
"""A base without CUDA or ROCm: wheels of torch bring their libraries, and the host has the driver."""
SYSTEM = ("ca-certificates", "curl", "libgomp1")
ENVIRONMENT = ("requirements.txt", "pyproject.toml", "setup.py", "README.md", "LICENSE", "scripts", "common")
PROGRAMS = ("run.sh", "run.py", "cgroup_setup.sh", "download_datasets.sh")
SUITE = (*PROGRAMS, "baselines.json", "tasks", "profiles", "targets")
COPIED = ENVIRONMENT + SUITE
SOURCE, VENV = "/opt/cotenant/source", "/opt/cotenant/venv"


@dataclass(frozen=True, slots=True)
class Image:
    """The parts of an image. With `keeps_torch` the interpreter is the base's own Python, which has torch.

    Machines for which torch has no wheels need that, for example ppc64le.
    """

    build: str
    base: str = BASE
    keeps_torch: bool = False

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables of the image, by which run.sh finds its environment and installs nothing."""
        own = {"TORCH_BUILD": self.build, "VENV": VENV, "PATH": f"{VENV}/bin:$PATH"}
        return {"PYTHONPATH": f"{SOURCE}/common"} if self.keeps_torch else own

    @property
    def program(self) -> str:
        return f"python3 {SOURCE}/run.py" if self.keeps_torch else f"{SOURCE}/run.sh"

    @property
    def steps(self) -> list[str]:
        """Return the shell commands that fill the image, in order."""
        system = f"apt-get update && apt-get install -y --no-install-recommends {' '.join(SYSTEM)}"
        return [f"{system} && rm -rf /var/lib/apt/lists/*", self._packages]

    @property
    def _packages(self) -> str:
        if self.keeps_torch:
            return f"grep -v -e '^#' -e '^torch' {SOURCE}/requirements.txt | python3 -m pip install -r /dev/stdin"
        make = f"source {SOURCE}/scripts/environment.sh && ensure_environment run requirements.txt"
        return f"TORCH_BUILD={self.build} VENV={VENV} bash -euc '{make}'"


def dockerfile(image: Image) -> str:
    """Return the file that `docker build` and `podman build` read; the build's context is the checkout."""
    lines = [
        f"FROM {image.base}",
        *(f"COPY {name} {SOURCE}/{name}" for name in ENVIRONMENT),
        *(f"RUN {step}" for step in image.steps),
        *(f"ENV {name}={value}" for name, value in image.environment.items()),
        *(f"COPY {name} {SOURCE}/{name}" for name in SUITE),
        f"WORKDIR {SOURCE}",
    ]
    return "\n".join(lines) + "\n"


def apptainer(image: Image) -> str:
    """Return the file that `apptainer build` and `singularity build` read, called in the checkout."""
    lines = [
        "Bootstrap: docker",
        f"From: {image.base}",
        "",
        "%files",
        *(f"    {name} {SOURCE}/{name}" for name in COPIED),
        "",
        "%post",
        *(f"    {step}" for step in image.steps),
        "",
        "%environment",
        *(f"    export {name}={value}" for name, value in image.environment.items()),
        "",
        "%runscript",
        f'    exec {image.program} "$@"',
    ]
    return "\n".join(lines) + "\n"


FORMS = {"docker": dockerfile, "apptainer": apptainer}


def main(argv: Sequence[str]) -> int:
    """Print a definition. Returns 0, or 2 if the base has to bring torch and none is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("form", choices=FORMS)
    parser.add_argument("devices", choices=(*BUILDS, "ppc64le"), help="what torch is built for")
    parser.add_argument("--base", help=f"the image to begin from (default {BASE}); of ppc64le one that has torch")
    given = parser.parse_args(argv)
    if given.devices == "ppc64le" and given.base is None:
        print("There are no wheels of torch for ppc64le: --base names an image that has torch.", file=sys.stderr)
        return EXIT_USAGE
    image = Image(BUILDS.get(given.devices, ""), given.base or BASE, keeps_torch=given.devices == "ppc64le")
    print(FORMS[given.form](image), end="")
    return EXIT_PASSED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
