"""Standard input as a place of records, and the jobs that a score expects."""

from __future__ import annotations

import atexit
import sys
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from cotenant.api.records import no_record
from cotenant.checkout import CHECKOUT
from cotenant.commands.output import warn
from cotenant.errors import CotenantError
from cotenant.suite.cells import expand
from cotenant.suite.jobfile import load, resolve_path

MOST_INPUT_BYTES = 4 << 30


def spooled(places: Sequence[Path]) -> list[Path]:
    """Return the places; `-` becomes a file with standard input, kept to the program's end, as pictures read it again.

    Raises CotenantError for more than MOST_INPUT_BYTES.
    """
    return [_spooled() if place == Path("-") else place for place in places]


def _spooled() -> Path:
    file = tempfile.NamedTemporaryFile(prefix="cotenant-standard-input-")  # removed when it is closed
    atexit.register(file.close)
    try:
        while chunk := sys.stdin.buffer.read(1 << 20):
            file.write(chunk)
            if file.tell() > MOST_INPUT_BYTES:
                raise CotenantError(
                    f"Standard input holds more than {MOST_INPUT_BYTES >> 30} GiB.",
                    "Write it to a file, and name that.",
                )
        if not file.tell():
            raise no_record([Path("-")])
        file.flush()
    except OSError as error:
        raise CotenantError(
            f"Standard input cannot be kept: {error.strerror}.", "TMPDIR names another place."
        ) from None
    return Path(file.name)


def expected_jobs(file: str, targets: Collection[str]) -> dict[str, float]:
    """Return the jobs that a score expects: the weights of a job file's jobs, by the names of their records.

    Warns of jobs without a target. The cells of a job share its weight, unless the job as a whole has a target, as
    `scaling` has. Raises CotenantError for a file that is no job file.
    """
    weights: dict[str, float] = {}
    for job in load(resolve_path(file, [Path.cwd(), CHECKOUT])).jobs:
        names = [job.stem] if job.stem in targets else [cell.label for cell in expand(job)]
        weights |= dict.fromkeys(names, job.weight / len(names))
    if without := [name for name in weights if name not in targets]:
        warn(f"no target for {', '.join(without)}.")
    return weights
