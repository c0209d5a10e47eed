"""Runs `versus.py` in one fresh process after the other, with a time limit; a failure becomes a sentence."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

VERSUS = Path(__file__).resolve().with_name("versus.py")
RAISED = re.compile(r"^(?:\[rank\d+\]: )?((?:\w+\.)*\w*(?:Error|Exception)\b.*)$", re.MULTILINE)
LONGEST_REASON = 300


class StartError(Exception):
    """A start gave no numbers; the message is the reason."""


def start(*arguments: str, ranks: int = 1, limit_s: float) -> dict[str, Any]:
    """Return the result of one `versus.py`. Raises StartError if it fails or takes longer than `limit_s`."""
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"] if ranks > 1 else []
    with TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        command = [sys.executable, *launcher, str(VERSUS), *arguments, "--to", str(result)]
        # An empty cache, so that each start compiles its own code. All measurements are of one thread per process.
        environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": folder, "OMP_NUM_THREADS": "1"}
        with subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                said, _ = process.communicate(timeout=limit_s)
            except subprocess.TimeoutExpired:
                raise StartError(f"It took longer than {limit_s:.0f} s.") from None
            finally:
                # The group has its ranks and compilers too; once the process has ended, none of them is left.
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
        if process.returncode or not result.exists():
            raise StartError(reason(said) or f"It ended with status {process.returncode}.")
        return json.loads(result.read_text())


def end_starts_with_this() -> None:
    """Let SIGTERM raise SystemExit in this process, so that the running `versus.py` is killed too."""
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))


def reason(said: str) -> str:
    """Return the first error that a process has named, or its last line."""
    raised = RAISED.search(said)
    lines = said.strip().splitlines() or [""]
    return (raised[1] if raised else lines[-1])[:LONGEST_REASON]
