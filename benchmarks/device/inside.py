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
from device.plan import EVERY
from device.processes import adopt_orphans, end_with_parent


def inside(out: Path, part: str, quick: bool, families: tuple[str, ...]) -> int:
    """Run one part here, and leave its verdict where the run looks for it."""
    # Without this a killed run would leave its part at work.
    end_with_parent(os.getppid())
    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    scratch = Path(os.environ["GPU_SCRATCH"])
    work = scratch / "work"
    work.mkdir(exist_ok=True)
    plan, machine = EVERY[part], json.loads((out / "machine.json").read_text())
    seconds = plan.quick_s if quick else plan.seconds
    given = Given(part, Book(out), machine, work, quick, seconds, families)
    try:
        importlib.import_module(f"device.{part}").run(given)
        verdict = overall(given.book.rows(part, CHECKS))
    except Exception as error:
        traceback.print_exc()
        verdict = breakdown(error)
    replace(scratch / "verdict.json", json.dumps({"word": verdict.word, "sentence": verdict.sentence}))
    return 0
