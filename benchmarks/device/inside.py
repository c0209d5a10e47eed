"""A part's own process: it finds its function, and writes its verdict down."""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import traceback
from pathlib import Path

from device.book import CHECKS, Book, overall, replace
from device.part import Given, breakdown
from device.processes import adopt_orphans, end_with_parent


def inside(out: Path, part: str, quick: bool, families: tuple[str, ...], seconds: float) -> int:
    """Run one part, which plans with so many seconds, here, and leave its verdict where the run looks for it."""
    # Without this a killed run would leave its part at work.
    end_with_parent(os.getppid())
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    scratch = Path(os.environ["GPU_SCRATCH"])
    work = scratch / "work"
    work.mkdir(exist_ok=True)
    machine = json.loads((out / "machine.json").read_text())
    given = Given(part, Book(out), machine, work, quick, seconds, families)
    try:
        importlib.import_module(f"device.{part}").run(given)
        verdict = overall(given.book.rows(part, CHECKS))
    except Exception as error:
        traceback.print_exc()
        verdict = breakdown(error)
    replace(scratch / "verdict.json", json.dumps({"word": verdict.word, "sentence": verdict.sentence}))
    return 0
