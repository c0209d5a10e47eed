"""The settings by which a tenant's program is counted, passed to it in one variable as JSON."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cotenant.protocol.messages import SOCKET_VARIABLE, TENANT_VARIABLE

EXEC_VARIABLE = "COTENANT_EXEC"
HOOK = Path(__file__).resolve().parent / "hook"
"""The directory that stands first on a tenant's PYTHONPATH."""
MEETING = "cotenant-stepper"
"""The file of the process that counts, in its tenant's own directory; other processes' files have a number added."""
FINISHED = "cotenant-finished"
"""The file that says that a program is not to be started again."""
INTERPRETER = "cotenant-interpreter"
"""The file in which the first process that imports torch describes its interpreter."""
ROW = "row"


@dataclass  # Without slots, which Python 3.9 and older lack: programs that run in them use this, too.
class Settings:
    """The settings of a count: its unit is `item`, `items` of them a step; the item `row` counts rows of batches.

    `ready_line` and `count_line` are patterns of its output, `runs` is the number of runs that measure a whole command.
    `directory` is the tenant's own. With `again` a program that ends early is restarted; `start` counts from 1.
    """

    item: str = ""
    items: float = 1.0
    ready_line: str = ""
    count_line: str = ""
    runs: int = 10
    directory: str = ""
    again: bool = False
    start: int = 1

    @property
    def counts_rows(self) -> bool:
        return self.item == ROW

    def encoded(self) -> str:
        return json.dumps(vars(self))

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings | None:
        """Return the settings of this tenant; None if it is no tenant of `exec`."""
        return cls(**json.loads(environ[EXEC_VARIABLE])) if EXEC_VARIABLE in environ else None

    def claim(self) -> bool:
        """Return whether this is the tenant's first claim, whose process alone counts; note claims of others."""
        first, pid = Path(self.directory) / MEETING, str(os.getpid())
        try:
            with first.open("x") as file:
                file.write(pid)
        except FileExistsError:
            if first.read_text() != pid:
                first.with_name(f"{MEETING}.{pid}").touch()
            return False
        return True

    def claimed(self) -> bool:
        return (Path(self.directory) / MEETING).exists()

    def finish(self) -> None:
        """Note that the program needs no further start: it is measured, or cannot be."""
        if self.again:
            (Path(self.directory) / FINISHED).touch()

    def starts_again(self) -> bool:
        """Return whether an ended program is to be started again; if so, count that start and lift the claim."""
        counted = self.claimed() or self.start > 1
        if not self.again or not counted or (Path(self.directory) / FINISHED).exists():
            return False
        (Path(self.directory) / MEETING).unlink(missing_ok=True)
        self.start += 1
        return True

    @property
    def starts(self) -> dict[str, int]:
        """The part of a record on the program's starts."""
        return {"starts": self.start} if self.again else {}

    def others(self) -> int:
        """Return the number of further processes that have made steps."""
        return len(list(Path(self.directory).glob(f"{MEETING}.*")))

    def note_interpreter(self) -> None:
        with contextlib.suppress(OSError), (Path(self.directory) / INTERPRETER).open("x") as file:
            json.dump(this_interpreter(), file)

    def noted_interpreter(self) -> dict[str, Any]:
        """Return the interpreter of the first process that imported torch; empty without one."""
        with contextlib.suppress(OSError, ValueError):
            return dict(json.loads((Path(self.directory) / INTERPRETER).read_text()))
        return {}


def this_interpreter() -> dict[str, Any]:
    """Return this interpreter's path and version, and torch's version if it is imported."""
    torch = sys.modules.get("torch")
    version = {} if torch is None else {"version": str(torch.__version__)}
    return {"interpreter": sys.executable, "python": ".".join(map(str, sys.version_info[:3])), **version}


def address() -> tuple[str, int]:
    """Return the address at which the runner listens for this tenant, and the tenant's number."""
    return os.environ[SOCKET_VARIABLE], int(os.environ[TENANT_VARIABLE])
