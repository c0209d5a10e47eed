"""Settings that tell a tenant how its program is counted: one variable, in JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cotenant.protocol.messages import SOCKET_VARIABLE, TENANT_VARIABLE

EXEC_VARIABLE = "COTENANT_EXEC"
HOOK = Path(__file__).resolve().parent / "hook"
"""The directory that stands first on a tenant's PYTHONPATH."""
MEETING = "cotenant-stepper"
"""The file of the process that counts, in its tenant's own directory; those of others have a number behind it."""
ROW = "row"


@dataclass  # Without slots: programs of Python 3.9 speak this, too.
class Settings:
    """How a program is counted: `item` names what, `items` says how many a step is; `row` counts rows of batches.

    `ready_line` and `count_line` are patterns of its output, `runs` how often a whole command is run. `directory` is
    the tenant's own. What is to `finish` is not ended after STOP; what ends before it is started `again`.
    """

    item: str = ""
    items: float = 1.0
    ready_line: str = ""
    count_line: str = ""
    runs: int = 10
    directory: str = ""
    finish: bool = False
    again: bool = False

    @property
    def counts_rows(self) -> bool:
        return self.item == ROW

    def encoded(self) -> str:
        return json.dumps(vars(self))

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> Settings | None:
        """Return the settings of this tenant; None where it is none of `exec`."""
        return cls(**json.loads(environ[EXEC_VARIABLE])) if EXEC_VARIABLE in environ else None

    def claim(self) -> bool:
        """Whether this process is the first of its tenant to count: one alone does."""
        first, own = Path(self.directory) / MEETING, str(os.getpid())
        try:
            with first.open("x") as file:
                file.write(own)
        except FileExistsError:
            if first.read_text() != own:
                first.with_name(f"{MEETING}.{own}").touch()
            return False
        return True

    def claimed(self) -> bool:
        return (Path(self.directory) / MEETING).exists()

    def forget(self) -> None:
        """Let another process be the first."""
        (Path(self.directory) / MEETING).unlink(missing_ok=True)

    def others(self) -> int:
        """Return how many further processes have stepped."""
        return len(list(Path(self.directory).glob(f"{MEETING}.*")))


def address() -> tuple[str, int]:
    """Return where a runner listens for this tenant, and the tenant's number."""
    return os.environ[SOCKET_VARIABLE], int(os.environ[TENANT_VARIABLE])
