"""Whether this host can compile the C that Triton writes around each of its kernels, also around torch's own."""

from __future__ import annotations

import os
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path


def compiler_lacks(environ: Mapping[str, str] | None = None, headers: Path | None = None) -> str:
    """Return the missing part: a compiler, the headers of this Python, or "" where none is missing.

    `headers`: where Python.h lies. The compiler is found as Triton finds it.
    """
    environ = os.environ if environ is None else environ
    compilers = [environ["CC"]] if environ.get("CC") else ["gcc", "clang"]
    if not any(shutil.which(name, path=environ.get("PATH", "")) for name in compilers):
        return "C compiler"
    headers = headers or Path(sysconfig.get_path("include"))
    return "" if (headers / "Python.h").exists() else "Python.h"
