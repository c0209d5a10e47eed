"""`status`: shows the suite that runs on this machine, and the progress of the one with records in a directory."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from cotenant.checkout import output_directory
from cotenant.commands.flags import Parser, add_format, given_path
from cotenant.commands.output import tell, tell_document
from cotenant.errors import EXIT_FAILED, EXIT_PASSED
from cotenant.isolation.lock import described_holder, lock_holder, lock_path
from cotenant.results.journal import Ended, Entry, Launched, Started, read_journal
from cotenant.results.record import SOLO
from cotenant.text import many, sender_of


class SuiteProgress(msgspec.Struct, frozen=True):
    """The progress of a suite with records in a directory: `done` of its `launches` have ended.

    `since` is the time of its last journal entry; `next` the launch that runs, or would run. `ended` is the time of its
    end, None while it runs, and if it was killed; `interrupted` is the signal that ended it, if one did. `elsewhere` is
    the other host on which it began, None for this one.
    """

    suite: str
    uid: int
    launches: int
    done: int
    next: str | None
    since: str
    runs: bool
    ended: str | None = None
    interrupted: str | None = None
    elsewhere: str | None = None


def main(argv: Sequence[str]) -> int:
    """Print the running suite, and the last one's progress. Returns 0, or 1 if none runs.

    Raises CotenantError for a journal that was changed.
    """
    given = parser().parse_words(argv)
    output: Path = given.outdir or output_directory()
    holder = lock_holder(lock_path())
    runs = holder is not None and writes_to(holder, output)
    suite = suite_of(read_journal(output).entries, runs, os.uname().nodename)
    if given.format == "json":
        progress = None if suite is None else msgspec.to_builtins(suite)
        running = {"running": holder is not None, "pid": holder or None}
        tell_document({"schema": "cotenant-status-1", **running, "output": str(output), "suite": progress})
    else:
        if holder is None:
            tell("No suite runs on this machine.")
        else:
            tell(f"A suite runs: {described_holder(holder) if holder else 'its process cannot be seen from here'}.")
        tell("\n".join(progress_lines(suite, output, datetime.now(UTC))))
    return EXIT_FAILED if holder is None else EXIT_PASSED


def parser() -> Parser:
    """Return the parser of `status`."""
    parser = Parser("status", "Show which suite runs on this machine, and how far it is. Exit status 1: none runs.")
    where = "the directory of its records (default: the workspace's output)"
    parser.add_argument("--outdir", type=given_path, metavar="DIR", help=where)
    add_format(parser)
    return parser


def writes_to(holder: int, output: Path) -> bool:
    """Return whether a suite writes its records to a directory: then it holds a file open there (`Reserve`).

    True also if its files cannot be seen from here, as for another user's suite.
    """
    try:
        held = list(Path(f"/proc/{holder}/fd").iterdir())
    except OSError:
        return True
    return any(link.resolve().parent == output.resolve() for link in held)


def suite_of(entries: Sequence[Entry], runs: bool, host: str) -> SuiteProgress | None:
    """Return the progress of the suite that began last, or None; `runs`: a suite of this `host` is still running.

    Other hosts may write into the same directory: while a suite of this host runs, it is this host's last one.
    """
    starts = [entry for entry in entries if isinstance(entry, Started)]
    if not starts:
        return None
    of_host = [start for start in starts if start.host == host] if runs else []
    start, labels = (of_host or starts)[-1], set[str]()
    last: Entry = start
    for entry in entries:
        if (entry.suite, entry.uid) != (start.suite, start.uid) or entry.host not in ("", start.host):
            continue
        last = entry
        if isinstance(entry, Launched) and entry.finished:
            labels.add(entry.label)
        elif isinstance(entry, Started) and not entry.resumed:
            labels.clear()  # Launches before the suite began again do not count as done.
    end = last if isinstance(last, Ended) else None
    return SuiteProgress(
        suite=start.suite,
        uid=start.uid,
        launches=len(start.launches),
        done=sum(label in labels for label in start.launches),
        next=next((label for label in start.launches if label not in labels), None),
        since=last.time,
        runs=runs and end is None and start.host == host,
        ended=None if end is None else end.time,
        interrupted=None if end is None else end.interrupted,
        elsewhere=None if start.host == host else start.host,
    )


def progress_lines(suite: SuiteProgress | None, output: Path, now: datetime) -> Iterator[str]:
    """Yield lines on the progress of the suite that began last in a directory."""
    if suite is None:
        yield f"No suite has begun in {output}."
        return
    launches = many(suite.launches, "launch")
    yield f"{suite.suite}, repetition {suite.uid}, in {output}: {suite.done} of {launches} done."
    if suite.ended is not None:
        how = f"was stopped by {sender_of(suite.interrupted)}" if suite.interrupted else "ended"
        yield f"It {how} at {suite.ended[:19]}Z."
    elif suite.elsewhere is not None:
        yield f"It began on {suite.elsewhere}, where `status` says whether it still runs."
    elif suite.next is not None:
        to_come = _words(suite.next)
        seconds = (now - datetime.fromisoformat(suite.since)).total_seconds()
        line = f"For {seconds:.0f} s: {to_come}."
        yield line if suite.runs else f"It was cut off. With --resume it goes on with {to_come}."


def _words(key: str) -> str:
    """Return a launch in words, by its key in the journal: `vae`, or `vae.solo T1`."""
    label, alone, tenant = key.partition(f"{SOLO} T")
    return f"{label}, user {tenant} alone" if alone else label
