"""The history: a file of launches, to which any number of writers append lines at once, and which only grows."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, BinaryIO, Literal

import msgspec
import polars as pl

from cotenant.checkout import PROGRAM
from cotenant.decoding import decoded
from cotenant.errors import CotenantError
from cotenant.results.columns import TOGETHER
from cotenant.results.decoded import Skipped
from cotenant.results.drawn import setting_of
from cotenant.results.launches import LaunchRecords, launches_in
from cotenant.results.newest import launch_key, newest_of_tenants, with_lone, without_copies
from cotenant.results.read import again
from cotenant.results.record import Positive, portable
from cotenant.results.table import AT, Rows, Table

COMPLETED = "completed"
FIRST_WORDS = ("benchmark", "batch_size", "precision", "devices", "tenants", "isolation", "software")
"""Words on the work in lines of every version, if they are known; older lines lack the later words."""
DEVICE = "device"
"""The word on the device, which an entry has beside its work."""

Identity = tuple[str, str, str, int, datetime]


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the history, on one launch.

    `rate` is that of the node, in `unit` per second; without one `outcome` says why. `device` is its device's name,
    `work` all other values that must be equal where rates are compared, `setting` the versions in its record.
    """

    schema: Literal["cotenant-history-1"] = "cotenant-history-1"
    suite: str
    job: str
    run_id: int
    host: str
    start: Annotated[datetime, msgspec.Meta(tz=True)]
    device: str
    group: str
    unit: str
    outcome: str
    rate: Positive | None
    work: dict[str, str | int | float | bool | None]
    setting: dict[str, str]

    def __post_init__(self) -> None:
        """Raises ValueError for a launch that has a rate and did not complete, or completed without a rate."""
        if (self.rate is None) == (self.outcome == COMPLETED):
            raise ValueError(f"{self.outcome} with a rate of {self.rate}")

    @property
    def identity(self) -> Identity:
        """The values that tell launches apart."""
        return (self.host, self.suite, self.job, self.run_id, self.start.astimezone(UTC))


_DECODER = msgspec.json.Decoder(HistoryEntry)
_BEGAN = pl.when("ours").then("start_time").otherwise(pl.lit(""))
"""The start, by which launches of ours are told apart; each of the original's tenants has its own start."""


def entries_of(table: Table) -> tuple[list[HistoryEntry], list[str]]:
    """Return an entry for each launch, in order of their starts, and a sentence on each launch that cannot be kept.

    A launch that still runs, or whose runner died, has fewer records than tenants. It gets no line yet, since a launch
    has only one. A copy of a launch under another number gets none.
    """
    shared = table.frame.with_row_index(AT).filter(TOGETHER).with_columns(began=_BEGAN)
    once, copies = without_copies(with_lone(shared))
    newest, _ = newest_of_tenants(once, launch_key("began"))
    launches = launches_in(newest, "began")
    firsts = again(Rows(table, [launch.at[0] for launch in launches]))
    settings = {(row["path"], row["in_file"]): setting_of(record.mapping_at("machine")) for row, record in firsts}
    made = [_entry(launch, table.frame, settings) for launch in launches]
    entries = sorted((entry for entry in made if isinstance(entry, HistoryEntry)), key=lambda entry: entry.start)
    return entries, [*(sentence for sentence in made if isinstance(sentence, str)), *copies]


def _entry(
    launch: LaunchRecords, frame: pl.DataFrame, settings: dict[tuple[str, int], dict[str, str]]
) -> HistoryEntry | str:
    """Return a launch's entry, or a sentence on why it has none."""
    name, work = f"{launch.job}, repetition {launch.run_id}", dict(launch.work)
    first = frame.row(launch.at[0], named=True)
    start = _start(frame["start_time"].gather(launch.at).to_list())
    outcome = launch.failure or (COMPLETED if launch.rate is not None else None)
    if start is None:
        return f"{name}: its records do not say when it started."
    if outcome is None:
        return f"{name}: {launch.flaw}"
    # In a launch without a rate, lost tenants have only their slices' names for the device.
    device = work.pop(DEVICE)
    fields = {
        "suite": launch.suite,
        "job": launch.job,
        "run_id": launch.run_id,
        "host": launch.host,
        "start": start,
        "device": device if launch.rate is not None else first["gpu"],
        "group": launch.group,
        "unit": launch.unit,
        "outcome": outcome,
        "rate": launch.rate,
        "work": {word: value for word, value in work.items() if value not in ("", None)},
        "setting": settings.get((first["path"], first["in_file"]), {}),
    }
    try:
        return msgspec.convert(portable(fields), HistoryEntry)
    except (ValueError, OverflowError) as error:
        return f"{name}: its records cannot be kept: {error}."


def _start(texts: Sequence[str]) -> datetime | None:
    """Return the start of the first tenant; a time without a zone is taken as UTC."""
    try:
        times = [datetime.fromisoformat(text) for text in texts]
    except ValueError:
        return None
    return min(time if time.tzinfo else time.replace(tzinfo=UTC) for time in times)


def entry_of(line: bytes) -> HistoryEntry:
    """Return the entry in a line. Raises ValueError, which names the line's fault."""
    return decoded(_DECODER, line)


@dataclass(slots=True)
class History:
    """Every launch once, in the order of the file, and its damaged lines, numbered from 1."""

    entries: list[HistoryEntry] = field(default_factory=list)
    damaged: list[Skipped] = field(default_factory=list)


def read_history(path: Path) -> History:
    """Read a history. Raises CotenantError if there is no such file, or it cannot be read."""
    with _opened(path, "rb", fcntl.LOCK_SH) as file:
        return _read(file, path)


def add_to_history(path: Path, entries: Sequence[HistoryEntry]) -> tuple[int, History]:
    """Append the entries that are not yet in the history; return their number, and the history before.

    A missing file is made. Lines are written under a lock and synced; if that fails, as on a full disk, the written
    part is removed. A last line that its writer left unfinished is ended, so that it does not damage the next one.
    Raises CotenantError.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot("made", path, error) from None
    with _opened(path, "a+b", fcntl.LOCK_EX) as file:
        history = _read(file, path)
        known = {entry.identity for entry in history.entries}
        new = {entry.identity: entry for entry in reversed(entries) if entry.identity not in known}
        if new:
            try:
                _append(file.fileno(), [msgspec.json.encode(entry) for entry in reversed(new.values())])
            except OSError as error:
                raise _cannot("written", path, error) from None
    return len(new), history


def _read(file: BinaryIO, path: Path) -> History:
    history, known = History(), set[Identity]()
    for number, line in enumerate(file, 1):
        try:
            entry = entry_of(line)
        except ValueError as error:
            history.damaged.append(Skipped(f"{path}:{number}", str(error)))
        else:
            if entry.identity not in known:
                known.add(entry.identity)
                history.entries.append(entry)
    return history


def _append(descriptor: int, lines: Sequence[bytes]) -> None:
    """Append all lines and sync them. Raises OSError, and then appends none."""
    before = os.fstat(descriptor).st_size
    torn = before > 0 and os.pread(descriptor, 1, before - 1) != b"\n"
    content = memoryview((b"\n" if torn else b"") + b"".join(line + b"\n" for line in lines))
    try:
        while content:
            content = content[os.write(descriptor, content) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, before)
        raise


@contextlib.contextmanager
def _opened(path: Path, mode: Literal["rb", "a+b"], lock: int) -> Iterator[BinaryIO]:
    """Open a history and lock it; closing the file ends the lock. Raises CotenantError."""
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            raise OSError(errno.EINVAL, "it is no regular file")
        file = path.open(mode)
    except FileNotFoundError:
        raise CotenantError(f"There is no history {path}.", f"`{PROGRAM} history add DIR` begins one.") from None
    except OSError as error:
        raise _cannot("opened", path, error) from None
    with file:
        try:
            fcntl.flock(file, lock)
        except OSError as error:  # as of a mount of Lustre without flock
            raise _cannot("locked", path, error) from None
        file.seek(0)
        yield file


def _cannot(what: str, path: Path, error: OSError) -> CotenantError:
    return CotenantError(
        f"The history {path} cannot be {what}: {error.strerror}.",
        "Free some space, or name another file: --store FILE.",
    )
