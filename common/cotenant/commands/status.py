"""`status`: which suite runs on this machine, and how far the one is whose records lie in a directory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from cotenant.checkout import output_directory
from cotenant.commands.flags import Parser, place
from cotenant.commands.output import tell
from cotenant.errors import EXIT_FAILED, EXIT_PASSED
from cotenant.isolation.lock import described_holder, lock_holder, lock_path
from cotenant.results.journal import Ended, Entry, Launched, Started, read_journal
from cotenant.results.record import SOLO
from cotenant.text import many, sender_of


def main(argv: Sequence[str]) -> int:
    """Print what runs. Returns 0, or 1 where no suite does; raises CotenantError for a journal that was changed."""
    given = parser().parse_words(argv)
    output: Path = given.outdir or output_directory()
    holder = lock_holder(lock_path())
    if holder is None:
        tell("No suite runs on this machine.")
    else:
        tell(f"A suite runs: {described_holder(holder) if holder else 'its process cannot be seen from here'}.")
    runs = holder is not None and writes_to(holder, output)
    tell("\n".join(progress_lines(read_journal(output).entries, output, datetime.now(UTC), runs)))
    return EXIT_FAILED if holder is None else EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `status`."""
    parser = Parser("status", "Show which suite runs on this machine, and how far it is. Exit status 1: none runs.")
    where = "the directory of its records (default: the workspace's output)"
    parser.add_argument("--outdir", type=place, metavar="DIR", help=where)
    return parser


def writes_to(holder: int, output: Path) -> bool:
    """Tell whether a suite keeps its records in a directory: it holds room there (`Reserve`).

    Also where that cannot be seen from here, of another user's suite for one.
    """
    try:
        held = list(Path(f"/proc/{holder}/fd").iterdir())
    except OSError:
        return True
    return any(each.resolve().parent == output.resolve() for each in held)


def progress_lines(entries: Sequence[Entry], output: Path, now: datetime, runs: bool) -> Iterator[str]:
    """Yield how far the suite is that began last in a directory; `runs`: it still does."""
    at = max((i for i, entry in enumerate(entries) if isinstance(entry, Started)), default=None)
    if at is None:
        yield f"No suite has begun in {output}."
        return
    start = entries[at]
    assert isinstance(start, Started)
    same = [(i, entry) for i, entry in enumerate(entries) if (entry.suite, entry.uid) == (start.suite, start.uid)]
    # What an earlier run of it launched, before it was begun anew, is not done.
    begun = max((i for i, entry in same if isinstance(entry, Started) and not entry.resumed), default=at)
    launches = [entry for i, entry in same if i >= begun and isinstance(entry, Launched)]
    labels = {launch.label for launch in launches if launch.finished}
    done = sum(label in labels for label in start.launches)
    of = many(len(start.launches), "launch", "es")
    yield f"{start.suite}, repetition {start.uid}, in {output}: {done} of {of} done."
    _, last = same[-1]
    if isinstance(last, Ended):
        how = f"was stopped by {sender_of(last.interrupted)}" if last.interrupted else "ended"
        yield f"It {how} at {last.time[:19]}Z."
    elif done < len(start.launches):
        to_come = _words(next(label for label in start.launches if label not in labels))
        seconds = (now - datetime.fromisoformat(last.time)).total_seconds()
        yield (
            f"For {seconds:.0f} s: {to_come}." if runs else f"It was cut off. With --resume it goes on with {to_come}."
        )


def _words(key: str) -> str:
    """Return a launch in words by its key in the journal: `vae`, or `vae.solo T1`."""
    label, alone, tenant = key.partition(f"{SOLO} T")
    return f"{label}, tenant {tenant} alone" if alone else label
