"""Finds what this host lacks to compile the C that Triton writes around each of its kernels and torch's own."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path


def compiler_lacks() -> str:
    """Return the missing part: a compiler, the headers of this Python, or "" if none is missing.

    The compiler is found as Triton finds it.
    """
    compilers = [os.environ["CC"]] if os.environ.get("CC") else ["gcc", "clang"]
    if not any(map(shutil.which, compilers)):
        return "C compiler"
    return "" if Path(sysconfig.get_path("include"), "Python.h").exists() else "Python.h"
