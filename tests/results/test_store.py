"""Files of results are whole or absent, no record replaces another, and room on the disk is held back for them."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands.calling import refusal
from cotenant.results.record import plain_record
from cotenant.results.store import (
    RESERVE_BYTES,
    Reserve,
    append_summary,
    cannot_write,
    file_name,
    keep_record,
    launch_line,
    prepare_directory,
    total_line,
    write_named,
    write_record,
    write_whole,
)
from cotenant.results.superseded import SUPERSEDED
from results.made import NOON, a_record, check_schema, refuse

FORM = re.compile(r"(.*)\.R(\d+)\.D([\d,]+)(\.FAIL)?\.\d{8}-\d{6}-\d{6}\.json")


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_the_name_has_the_originals_form() -> None:
    record, failed = a_record(place={"run_id": 3, "vcd": "0,1"}), a_record(outcome="nan")
    for made, name in ((record, "baselines.vae.R3.D0,1"), (failed, "baselines.vae.R0.D0.FAIL")):
        assert file_name(made, datetime(2026, 1, 2, 3, 4, 5, 67, UTC)) == f"{name}.20260102-030405-000067.json"


def test_odd_names_make_harmless_files(tmp_path: Path) -> None:
    names = {"../../etc": "_._.._etc", "a b": "a_b", ".hidden": "_hidden", "a\nb\x1b": "a_b_", "né-1.c2": "né-1.c2"}
    for name, part in names.items():
        written = write_record(tmp_path, a_record(place={"suite": name, "name": name}), NOON)
        assert written.name.startswith(f"{part}.{part}.R0.D0.")
        assert written.parent == tmp_path
        assert check_schema(written.read_bytes())["suite"] == name
    assert len(names_in(tmp_path)) == len(names)


@given(
    st.text(min_size=1, max_size=300),
    st.text(alphabet=st.characters(codec=None, categories=["Cs", "Cc", "Po", "Zs", "Lo", "So"]), max_size=200),
    st.integers(1, 16),
)
def test_every_name_can_be_a_file(suite: str, name: str, devices: int) -> None:
    vcd = ",".join(map(str, range(devices)))
    text = file_name(a_record(place={"suite": suite, "name": name, "vcd": vcd}), NOON)
    assert FORM.fullmatch(text).group(3) == vcd
    assert len(os.fsencode(text + SUPERSEDED)) <= 255
    assert not text.startswith(".")
    assert not set(text) & set("/\0\n\\")


def test_a_record_is_never_written_over_another(tmp_path: Path) -> None:
    written = [write_record(tmp_path, a_record(place={"tenant": tenant}), NOON) for tenant in range(3)]
    assert names_in(tmp_path) == sorted(path.name for path in written)
    assert [msgspec.json.decode(path.read_bytes())["tenant"] for path in written] == [0, 1, 2]
    assert written[2].name == file_name(a_record(), NOON + timedelta(microseconds=2))


def test_a_record_whose_link_was_made_twice_is_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over NFS the answer to a link may be lost: the kernel asks again, and is told that the name is taken."""
    link = os.link

    def repeated(*names: str, **given: Any) -> None:
        monkeypatch.setattr(os, "link", link)
        link(*names, **given)
        link(*names, **given)

    monkeypatch.setattr(os, "link", repeated)
    written = write_record(tmp_path, a_record(), NOON)
    assert names_in(tmp_path) == [written.name]


def test_without_hard_links_no_record_is_written_over_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, os, "link", errno.EPERM)
    test_a_record_is_never_written_over_another(tmp_path)


def test_a_full_disk_is_a_sentence_and_an_interrupt_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    earlier = write_record(tmp_path, a_record(), NOON)
    before = earlier.read_bytes()
    refuse(monkeypatch, os, "fsync", errno.ENOSPC)
    for said in (refusal(write_record, tmp_path, a_record(), NOON), refusal(write_whole, earlier, b"new")):
        words = f"Nothing can be written to {tmp_path}: No space left on device. Free some space there. "
        assert said.startswith(f"{words}--outdir names another directory")
    said = refusal(write_named, tmp_path / "page", b"page", "--html names another file.")
    assert re.search(r"No space left on device.*--html names another file\.$", said)
    refuse(monkeypatch, os, "fsync", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        write_record(tmp_path, a_record(), NOON)
    assert names_in(tmp_path) == [earlier.name]
    assert earlier.read_bytes() == before


def test_content_and_directory_are_synced_around_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, list[str]]] = []
    fsync = os.fsync

    def watch(descriptor: int) -> None:
        what = Path(f"/proc/self/fd/{descriptor}").readlink()
        finished = [name for name in names_in(tmp_path) if name.endswith(".json")]
        seen.append(("directory" if what == tmp_path else what.suffix, finished))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", watch)
    written = write_record(tmp_path, a_record(), NOON)
    assert seen == [(".tmp", []), ("directory", [written.name])]


def test_a_report_is_a_file_or_a_directory_that_others_may_read(tmp_path: Path) -> None:
    record, mask = a_record(), os.umask(0o022)
    exact, folder = tmp_path / "new" / "mine.json", tmp_path / "deep" / "folder"
    try:
        for _ in range(2):
            assert keep_record(exact, record, NOON) == exact
        kept = keep_record(folder, record, NOON)
    finally:
        os.umask(mask)
    assert kept == folder / file_name(record, NOON)
    assert kept.stat().st_mode & 0o777 == 0o644
    assert names_in(exact.parent) == ["mine.json"]
    assert check_schema(exact.read_bytes()) == plain_record(record)


def test_a_place_where_nothing_can_be_kept_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    occupied = tmp_path / "file"
    occupied.write_text("")
    for directory in (occupied, occupied / "below"):
        said = refusal(prepare_directory, directory)
        assert re.match(r"Nothing can be written to .*: [\w ]+\. --outdir names another directory", said)
    folder = tmp_path / "folder.json"
    folder.mkdir()
    assert "Is a directory" in refusal(keep_record, folder, a_record(), NOON)
    prepare_directory(tmp_path / "a" / "b")
    assert names_in(tmp_path / "a" / "b") == []
    refuse(monkeypatch, os, "fsync", errno.EDQUOT)
    assert "Free some space" in refusal(prepare_directory, tmp_path)


def test_a_directory_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    for name in ("", ".", "/", "folder"):
        said = refusal(write_named, Path(name), b"page", "--html names another file.")
        assert f"written to {Path(name)}: Is a directory" in said
    assert names_in(tmp_path) == ["folder"]


def test_a_pipe_is_written_to_and_stays_one(tmp_path: Path) -> None:
    """So do /dev/stdout and /dev/null, which root could replace."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_named(pipe, b"page", "--html names another file.")
        assert os.read(reader, 100) == b"page"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert names_in(tmp_path) == ["pipe"]


def test_only_a_link_named_by_the_user_is_followed(tmp_path: Path) -> None:
    """Anybody who may write to the directory of records could otherwise make us write anywhere else."""
    link, precious = tmp_path / "link", tmp_path / "precious"
    link.symlink_to("precious")
    for content in (b"new", b"precious"):
        write_named(link, content, "--html names another file.")
        assert link.is_symlink()
        assert precious.read_bytes() == content
    write_whole(link, b"suite")
    assert (link.is_symlink(), link.read_bytes(), precious.read_bytes()) == (False, b"suite", b"precious")


@pytest.fixture
def held(tmp_path: Path) -> Iterator[Reserve]:
    with closing(Reserve(tmp_path)) as held:
        yield held


def test_the_room_is_really_taken_by_a_file_without_a_name(tmp_path: Path, held: Reserve) -> None:
    descriptor = held._held.fileno()
    assert os.fstat(descriptor).st_blocks * 512 >= RESERVE_BYTES
    assert held.write(lambda: "written") == "written"
    assert os.fstat(descriptor).st_blocks * 512 >= RESERVE_BYTES
    held.give_back()
    assert os.fstat(descriptor).st_blocks == 0
    assert "Nothing can be written to" in refusal(Reserve, tmp_path / "absent")


def test_a_full_disk_releases_the_reserved_space(tmp_path: Path, held: Reserve) -> None:
    descriptor = held._held.fileno()
    numbers = errno.ENOSPC, errno.EFBIG
    full, too_large = (cannot_write(tmp_path, OSError(number, os.strerror(number))) for number in numbers)

    def write() -> str:
        if os.fstat(descriptor).st_blocks:
            raise full
        return "written"

    def write_more() -> None:
        raise too_large

    assert held.write(write) == "written"
    assert held.refused is full
    assert "File too large" in refusal(held.write, write_more)
    assert held.refused is full


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
def test_no_suite_begins_without_space_for_records(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refuse(monkeypatch, os, "posix_fallocate", number)
    if number == errno.EFBIG:
        Reserve(tmp_path).close()
        return
    sentence = r"has \d+\.\d MiB free, and the records of a launch may need 16 MiB\. Free some space there\. --outdir"
    assert re.search(sentence, refusal(Reserve, tmp_path))


def test_summary_lines_match_those_of_the_original(tmp_path: Path) -> None:
    for line in (
        launch_line(1, 19, ["completed"] * 4, 0.268, "./regression/polynome/pytorch/run.sh"),
        launch_line(2, 19, ["completed", "failed", *["interrupted"] * 2], 0.931, "./lstm/pytorch/run.sh"),
        launch_line(1, 2, ["interrupted", "completed"], 0.5, "./cut.sh"),
        launch_line(1, 2, ["nan"] * 12 + ["completed"] * 4, 123456.789, "a  b\nTotal Time\x850 s \udcff"),
        total_line(2817.8249),
    ):
        append_summary(tmp_path, line)
    assert (tmp_path / "summary.txt").read_text(encoding="utf-8") == (
        "[ 1/19][  /  ] PASSED |     0.27 MIN | ./regression/polynome/pytorch/run.sh\n"
        "[ 2/19][ 1/ 4] FAILED |     0.93 MIN | ./lstm/pytorch/run.sh\n"
        "[ 1/ 2][  /  ] interrupted |     0.50 MIN | ./cut.sh\n"
        "[ 1/ 2][12/16] FAILED | 123456.79 MIN | a  b Total Time 0 s \\udcff\n"
        "Total Time  2817.82 s\n"
    )
    said = refusal(append_summary, tmp_path / "gone", "x")
    assert re.search(r"Nothing can be written to .*gone: No such file or directory\.", said)
