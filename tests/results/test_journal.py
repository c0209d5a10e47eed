"""The journal: appended entries are read back, and changes are noticed."""

from __future__ import annotations

import errno
import fcntl
import os
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.calling import refusal
from cotenant.files import Directory
from cotenant.results import journal as module
from cotenant.results.journal import FILE, Ended, Journal, Launched, Started, append, goes_on, read_journal
from cotenant.results.record import encode_record, restored
from report.making import launch as launch_of
from results.made import refuse


def start(uid: int = 0, resumed: bool = False, host: str = "h") -> Started:
    own = {"launches": ("vae", "cart"), "conditions": {"isolation": "v1"}, "resumed": resumed}
    return Started(suite="s", uid=uid, host=host, time="t", **own)


def launch(label: str, uid: int = 0, host: str = "") -> Launched:
    records = {f"{label}.json": "0"}
    return Launched(suite="s", uid=uid, label=label, time="t", outcomes=("completed",), records=records, host=host)


ENTRIES = [start(), launch("vae"), start(1), launch("vae", 1), start(resumed=True), launch("cart")]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    for entry in [*ENTRIES, Ended(suite="s", uid=0, time="t")]:
        append(tmp_path, entry)
    return tmp_path


def test_entries_are_read_as_they_were_appended(journal: Path, tmp_path: Path) -> None:
    read = read_journal(journal)
    assert read.entries[:-1] == tuple(ENTRIES)
    first = read.last_start("s", 0, "h")
    assert first == ENTRIES[0]
    assert [entry.label for entry in read.launches_since(first)] == ["vae", "cart"]
    assert read.last_start("s", 2, "h") is read.last_start("other", 0, "h") is None
    (tmp_path / "empty").mkdir()
    assert read_journal(tmp_path / "empty") == Journal()


def test_hosts_sharing_a_directory_resume_their_own_launches(tmp_path: Path) -> None:
    for entry in (start(host="a"), start(host="b"), launch("vae", host="a"), launch("cart", host="b"), launch("ssd")):
        append(tmp_path, entry)
    journal = read_journal(tmp_path)
    for host, own, labels in (("a", "a", ["vae", "ssd"]), ("b", "b", ["cart", "ssd"]), ("c", "b", ["cart", "ssd"])):
        begun = journal.last_start("s", 0, host)
        assert (begun.host, [entry.label for entry in journal.launches_since(begun)]) == (own, labels)


def test_a_torn_last_line_is_cut_off_by_the_next_entry(journal: Path) -> None:
    path, whole = journal / FILE, read_journal(journal)
    with path.open("a") as file:
        file.write('{"previous": "00')
    assert read_journal(journal) == whole
    append(journal, ENTRIES[1])
    assert read_journal(journal).entries == (*whole.entries, ENTRIES[1])


@given(st.data())
def test_a_change_is_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """A byte is changed, or a line dropped or swapped with the next."""
    folder = tmp_path_factory.mktemp("journal")
    for entry in ENTRIES:
        append(folder, entry)
    content = (folder / FILE).read_bytes()
    lines = content.splitlines(keepends=True)
    kind = data.draw(st.sampled_from(["byte", "drop", "swap"]))
    # A change of the last line shows only by a line behind it, or by the hash of the head in an archive.
    at = data.draw(st.integers(0, len(lines) - 2))
    if kind == "byte":
        place = data.draw(st.integers(0, len(b"".join(lines[:-1])) - 1))
        bit = data.draw(st.sampled_from([1, 0x80]))  # the higher bit makes invalid UTF-8
        changed = content[:place] + bytes([content[place] ^ bit]) + content[place + 1 :]
    elif kind == "drop":
        changed = b"".join(lines[:at] + lines[at + 1 :])
    else:
        lines[at], lines[at + 1] = lines[at + 1], lines[at]
        changed = b"".join(lines)
    (folder / FILE).write_bytes(changed)
    assert re.search(r"line \d+: .*changed or damaged", refusal(read_journal, folder))
    assert "changed or damaged" in refusal(append, folder, ENTRIES[0])


def test_what_is_no_file_is_neither_read_nor_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FILE)
    for said in (refusal(read_journal, tmp_path), refusal(append, tmp_path, start())):
        assert FILE in said


def test_a_lock_that_somebody_holds_is_waited_for_for_a_moment(journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Anybody who may read the journal may lock it, and a suite that waited for ever would ignore signals."""
    monkeypatch.setattr(module, "LOCK_LIMIT_S", 0.1)
    with (journal / FILE).open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        assert "has been locked for 0.1 s. This shows the process that holds it: fuser -v " in refusal(
            append, journal, start()
        )
    append(journal, start())


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.ENOLCK])
def test_a_file_system_without_locks_is_named(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lustre that is mounted without flock says ENOSYS, NFS without its lock service ENOLCK; both can be written to."""
    refuse(monkeypatch, fcntl, "flock", number)
    said = refusal(append, tmp_path, start())
    assert re.search(rf"{FILE} cannot be locked: {os.strerror(number)}\. .*--outdir", said)


def test_a_journal_goes_on_that_was_only_added_to(journal: Path) -> None:
    with Directory(journal) as place:
        known = (journal / FILE).read_bytes()
        append(place, start())
        assert goes_on(place, known)
        (journal / FILE).write_bytes(known + b"junk\n")
        assert not goes_on(place, known)
        (journal / FILE).write_bytes(known[:-1])
        assert not goes_on(place, known)


def test_a_record_nested_too_deeply_is_not_restored() -> None:
    """The record could be read, but not written again."""
    nested = b'"observed": {"x": ' + b"[" * 600 + b"]" * 600 + b","
    content = encode_record(launch_of("vae")[0]).replace(b'"observed": {', nested)
    with pytest.raises(msgspec.DecodeError, match="nested more than 64 levels deep"):
        restored(content)
