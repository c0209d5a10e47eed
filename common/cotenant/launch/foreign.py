"""Starts a program that is no benchmark of ours: by a process of ours, and with a hook in its Python."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from cotenant.errors import CotenantError
from cotenant.exec import supervise
from cotenant.exec.settings import EXEC_VARIABLE, HOOK, Settings
from cotenant.suite.foreign import Foreign
from cotenant.suite.variables import VARIABLES

MEETING = ("MASTER_ADDR", "MASTER_PORT")
"""The variables of a job that programs of several processes use to find each other."""


def found(foreign: Foreign) -> Path:
    """Return the path of a command's first word, by the caller's PATH. Raises CotenantError."""
    name = foreign.words[0]
    if (path := shutil.which(name)) is None:
        there = os.path.exists(name)  # noqa: PTH110 # It returns False for a word that is too long for a path.
        remedy = f"chmod +x {name}, or name its interpreter before it." if there else "Type it as in a shell."
        raise CotenantError(f"{name!r} is no program that can be run.", remedy)
    return Path(path).absolute()


def supervised(foreign: Foreign, command: Path, tenant: int, uid: int) -> list[str]:
    """Return a tenant's command line: our process, then the program with the arguments of this copy."""
    return [sys.executable, "-I", "-S", supervise.__file__, str(command), *foreign.words_of(tenant, uid)[1:]]


def environment_without_jobs(added: Mapping[str, str], foreign: Foreign, temporary: Path) -> dict[str, str]:
    """Return such a tenant's variables on top of the caller's environment, whose PATH and interpreter it keeps."""
    jobs = {name for name in VARIABLES if name not in MEETING}
    environment = {name: value for name, value in added.items() if name not in jobs and name != "PATH"}
    settings = Settings(**foreign.counting, directory=str(temporary), finish=foreign.finish, again=foreign.again)
    environment["TMPDIR"] = str(temporary)
    environment[EXEC_VARIABLE] = settings.encoded()
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HOOK), os.environ.get("PYTHONPATH")]))
    # All copies would share torchrun's own default.
    environment["PET_MASTER_PORT"] = added["MASTER_PORT"]
    if foreign.count_line:
        environment["PYTHONUNBUFFERED"] = "1"
    return environment
