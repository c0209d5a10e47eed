"""Runs a suite in a process of its own: the command `cotenant run`. Its new records are the result."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cotenant.checkout import CHECKOUT, INSTALLED, output_directory
from cotenant.choices import BaselineKind, IsolationKind
from cotenant.errors import EXIT_FAILED, EXIT_NOT_ISOLATED, EXIT_PASSED, EXIT_SLOWER, CotenantError, IsolationError

if TYPE_CHECKING:
    from cotenant.api.records import Tell
    from cotenant.api.result import Result

ENDS_WITH_RECORDS = (EXIT_PASSED, EXIT_FAILED, EXIT_SLOWER)
SAYS = "cotenant: "
"""Begins each sentence that a command prints on standard error."""


def run(
    jobs: str | Path | None = None,
    *,
    name: str | Iterable[str] = (),
    exclude: str | Iterable[str] = (),
    mix: str | None = None,
    pairs: str | None = None,
    pressure: str | Iterable[str] = (),
    users: int | None = None,
    slices: int | None = None,
    share: str | None = None,
    isolation: IsolationKind | None = None,
    baseline: BaselineKind | None = None,
    budget_s: float | None = None,
    uid: int | None = None,
    repetitions: int | None = None,
    outdir: str | Path | None = None,
    arguments: Sequence[object] = (),
    flags: Sequence[str] = (),
    tell: Tell = print,
) -> Result:
    """Launch the jobs of a suite as `cotenant run` does, in a process of its own, and return the result.

    `jobs` is a job file, or the name of a shipped one; all parameters have the names of the command's flags.
    `arguments` go to the benchmarks, and `flags` are further words of the command, as `["--reserve=2G"]`. `outdir` is
    the directory for records, by default the command's. `tell` is called with each line of progress.

    A failed job raises nothing: `Result.verdict` and `Result.losses` say so. Raises CotenantError if the command
    refuses, or ends without a record, IsolationError if slices are not available. A KeyboardInterrupt interrupts the
    run, too, and is raised after its end; records of launches that had ended are kept.

        result = cotenant.run("cpu", name="vae", users=2)
        result.kept, result.kept.interval, result.verdict, result.findings
        result.table("interference")
    """
    given: dict[str, object] = {
        "jobs": jobs,
        "name": _listed(name),
        "exclude": _listed(exclude),
        "mix": mix,
        "pairs": pairs,
        "users": users,
        "slices": slices,
        "share": share,
        "isolation": isolation,
        "baseline": baseline,
        "budget": budget_s,
        "uid": uid,
        "repetitions": repetitions,
        "outdir": outdir,
    }
    words = [f"--{flag}={value}" for flag, value in given.items() if value not in (None, "")]
    words += [f"--pressure={resource}" for resource in ([pressure] if isinstance(pressure, str) else pressure)]
    behind = ["--", *map(str, arguments)] if arguments else []
    output = Path(outdir or output_directory())
    before = _records_in(output)
    last = _follow(["run", "--json", *words, *flags, *behind], tell)
    written = sorted(_records_in(output) - before)
    if not written:
        raise CotenantError(
            "The run wrote no record.", f"Its last line: {last}" if last else "--show and --dry only show."
        )
    from cotenant.api.loading import load  # The import of polars would delay a refusal.

    return load(*written, tell=tell)


def _listed(names: str | Iterable[str]) -> str:
    return names if isinstance(names, str) else ",".join(names)


def _records_in(output: Path) -> set[Path]:
    return set(output.glob("*.json"))


def _program() -> list[str]:
    """Return the words that start this package, and no other of its name, in this interpreter."""
    return [sys.executable, "-P", "-m", "cotenant"] if INSTALLED else [sys.executable, str(CHECKOUT / "run.py")]


def _follow(words: Sequence[str], tell: Tell) -> str:
    """Run a command, tell its lines as they come, and return the last one. Raises CotenantError if it refuses."""
    said: list[str] = []
    last = ""
    with subprocess.Popen(
        [*_program(), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    ) as child:
        assert child.stderr is not None
        try:
            for line in child.stderr:
                last = line.rstrip("\n")
                said.append(last.removeprefix(SAYS)) if last.startswith(SAYS) else tell(last)
            status = child.wait()
        except BaseException:
            # A terminal sends Ctrl-C to both processes; a runner that already has it ignores another.
            child.send_signal(signal.SIGINT)
            child.communicate()
            raise
    if status not in ENDS_WITH_RECORDS or last.startswith(SAYS):
        kind = IsolationError if status == EXIT_NOT_ISOLATED else CotenantError
        raise kind(" ".join(said) or last or f"The run ended with {status}.")
    for sentence in said:
        tell(sentence)
    return last
