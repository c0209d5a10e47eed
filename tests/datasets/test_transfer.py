"""Getting one file: what becomes of it when connections break and disks fill up."""

import errno
import hashlib
import os
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cotenant.datasets import progress
from cotenant.datasets.archive import Checksum, Received
from cotenant.datasets.transfer.fetch import fetch
from cotenant.datasets.transfer.part import Part
from cotenant.errors import CotenantError
from datasets import loopback
from datasets.loopback import cut, declaring, ignoring_ranges_cut, stalled, tag
from datasets.transferring import CONTENT, IMPATIENT, OTHER, PUBLISHED, SHA256, archive, get, leave, names, ranges


@pytest.fixture
def server(server):
    server.files["/file"] = CONTENT
    return server


def test_a_file_arrives(server, part):
    received = get(archive(server.url("/file")), part)
    assert received == Received("file", server.url("/file"), len(CONTENT), SHA256, "the sha256 recorded by a library")
    assert part.whole.read_bytes() == CONTENT
    assert names(part) == ["file", "file.received.json"]


def test_a_second_run_asks_for_nothing(server, part):
    first = get(archive(server.url("/file")), part)
    server.requests.clear()
    assert get(archive(server.url("/file")), part) == first
    assert server.requests == []


@pytest.mark.parametrize("published", [True, False])
def test_a_connection_that_breaks_is_taken_up_where_it_broke(server, part, published):
    server.answers["/file"] = [cut(40_000), cut(20_000)]
    wanted = archive(server.url("/file"), checksum=PUBLISHED if published else None, exact=published)
    get(wanted, part)
    assert part.whole.read_bytes() == CONTENT
    assert ranges(server) == [None, "bytes=40000-", "bytes=60000-"]
    assert server.requests[1][1]["If-Range"] == tag(CONTENT)


def test_progress_is_no_failure(server, part):
    server.answers["/file"] = [cut(10_000) for _ in range(9)]
    get(archive(server.url("/file")), part)
    assert len(server.requests) == 10 > IMPATIENT.tries
    server.requests.clear()
    part.reject()
    server.answers["/file"] = [cut(10_000) for _ in range(9)]
    with pytest.raises(CotenantError, match="it ended after 30,000 of 102,400 bytes"):
        get(archive(server.url("/file")), part, patience=replace(IMPATIENT, progress_bytes=20_000))


@pytest.mark.parametrize("answer", [stalled(30_000), loopback.dripping], ids=["silent", "dripping"])
def test_a_stalled_server_is_left_and_asked_again(server, part, answer, capsys):
    server.answers["/file"] = [answer]
    get(archive(server.url("/file")), part, patience=replace(IMPATIENT, timeout_s=0.3, tries=20))
    assert part.whole.read_bytes() == CONTENT
    said = capsys.readouterr().err
    assert "it said nothing for too long" in said or "it has become too slow" in said
    assert ranges(server)[1] is not None


def test_a_server_that_ignores_ranges_starts_over(server, part):
    server.answers["/file"] = [cut(40_000), loopback.ignoring_ranges]
    get(archive(server.url("/file")), part)
    assert part.whole.read_bytes() == CONTENT
    assert ranges(server) == [None, "bytes=40000-"]


def test_progress_is_what_comes_farther_than_before(server, part):
    server.answers["/file"] = [ignoring_ranges_cut(after) for after in range(10_000, 100_000, 10_000)]
    get(archive(server.url("/file")), part)
    assert len(server.requests) == 10 > IMPATIENT.tries
    server.requests.clear()
    part.reject()
    server.answers["/file"] = [ignoring_ranges_cut(after) for after in (50_000, 20_000, 40_000, 30_000)]
    with pytest.raises(CotenantError, match="it ended after 40,000 of 102,400 bytes"):
        get(archive(server.url("/file")), part)
    assert len(server.requests) == IMPATIENT.tries


def test_a_file_that_changes_between_two_tries_starts_over(server, part):
    server.answers["/file"] = [cut(40_000)]
    wanted = archive(server.url("/file"), checksum=None, exact=False)
    with pytest.raises(CotenantError):
        get(wanted, part, patience=replace(IMPATIENT, tries=1, progress_bytes=10**9))
    assert part.size() == 40_000
    server.files["/file"] = OTHER
    get(wanted, part)
    assert part.whole.read_bytes() == OTHER
    assert ranges(server) == [None, "bytes=40000-"]  # Its If-Range did not hold.


def test_a_server_that_heeds_no_if_range_is_seen_by_its_tag(server, part):
    def careless(handler, content):
        handler.head(206, 62_400, ETag=tag(OTHER), Content_Range=loopback.content_range(40_000, OTHER))
        handler.wfile.write(OTHER[40_000:])

    server.answers["/file"] = [cut(40_000), careless]
    get(archive(server.url("/file"), checksum=None, exact=False), part)
    assert part.whole.read_bytes() == CONTENT
    assert ranges(server) == [None, "bytes=40000-", None]


def test_a_part_that_was_put_together_wrong_gets_one_whole_answer(server, part):
    leave(part, OTHER[:50_000], "http://elsewhere/")
    get(archive(server.url("/file")), part)
    assert part.whole.read_bytes() == CONTENT
    assert ranges(server) == ["bytes=50000-", None]


def test_without_a_checksum_no_other_source_continues_a_part(server, part):
    leave(part, OTHER[:50_000], "http://elsewhere/", tag(OTHER))
    get(archive(server.url("/file"), checksum=None, exact=False), part)
    assert part.whole.read_bytes() == CONTENT
    assert ranges(server) == [None]


@pytest.mark.parametrize("note", ["", "{", "[]", "null", '{"url": 1}', "\x00"])
def test_a_part_without_a_note_starts_over(server, part, note):
    part.path.write_bytes(OTHER[:50_000])
    (part.folder / "file.arriving.json").write_text(note)
    get(archive(server.url("/file")), part)
    assert ranges(server) == [None]


def test_a_part_that_is_complete_needs_no_request(server, part):
    leave(part, CONTENT, server.url("/file"))
    get(archive(server.url("/file")), part)
    assert server.requests == []


@pytest.mark.parametrize("kept", [len(CONTENT), len(CONTENT) + 5], ids=["complete", "too long"])
def test_a_416_is_understood(server, part, kept):
    leave(part, (CONTENT + bytes(5))[:kept], server.url("/file"), tag(CONTENT))
    wanted = archive(server.url("/file"), checksum=Checksum("md5", hashlib.md5(CONTENT).hexdigest(), "x"), exact=False)
    get(wanted, part)
    assert part.whole.read_bytes() == CONTENT
    assert ranges(server)[0] == f"bytes={kept}-"
    assert len(server.requests) == (1 if kept == len(CONTENT) else 2)


def test_trust_on_first_use(server, part, capsys):
    wanted = archive(server.url("/file"), checksum=None, exact=False)
    first = get(wanted, part)
    assert (first.sha256, first.verified_by) == (SHA256, None)
    part.reject()
    again = get(wanted, part, first.sha256)
    assert again.verified_by == "the sha256 of what was first received"
    part.reject()
    server.files["/file"] = OTHER
    with pytest.raises(CotenantError, match=f"and the sha256 of what was first received is {SHA256}"):
        get(wanted, part, first.sha256)
    assert names(part) == []


def test_an_unknown_length_has_a_limit(server, part):
    server.answers["/file"] = [loopback.endless]
    with pytest.raises(CotenantError, match="it sends more than the 204,800 bytes"):
        get(archive(server.url("/file"), checksum=None, exact=False), part)
    server.answers["/file"] = [declaring(10**12)]
    with pytest.raises(CotenantError, match="far more than the 102,400 known"):
        get(archive(server.url("/file"), checksum=None, exact=False), part)


def test_room_is_asked_for_before_a_byte_is_written(server, part):
    told = []

    def expected(size):
        told.append(size)
        assert names(part) == []
        raise CotenantError("No room.")

    wanted = archive(server.url("/file"), checksum=None, exact=False)
    with pytest.raises(CotenantError, match="No room"):
        fetch(wanted, wanted.urls, part, None, IMPATIENT, expected)
    assert told == [len(CONTENT)]


def test_a_full_disk_keeps_what_arrived(server, part, monkeypatch):
    real = Part.going_on

    class Full:
        def __init__(self, file):
            self.file = file

        def write(self, piece):
            if self.file.tell() + len(piece) > 50_000:
                self.file.write(piece[: 50_000 - self.file.tell()])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return self.file.write(piece)

    @contextmanager
    def going_on(self, start, note):
        with real(self, start, note) as file:
            yield Full(file)

    monkeypatch.setattr(Part, "going_on", going_on)
    with pytest.raises(OSError) as caught:
        get(archive(server.url("/file")), part)
    assert caught.value.errno == errno.ENOSPC
    assert part.path.read_bytes() == CONTENT[:50_000]
    monkeypatch.setattr(Part, "going_on", real)
    server.requests.clear()
    get(archive(server.url("/file")), part)
    assert ranges(server) == ["bytes=50000-"]
    assert part.whole.read_bytes() == CONTENT


def test_off_a_terminal_there_are_lines(server, part, capsys, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_PER_LINE", 0.0)
    server.answers["/file"] = [loopback.slowly(0.0, 4)]
    get(archive(server.url("/file")), part)
    said = capsys.readouterr().err.splitlines()
    assert "file: 102 kB of 102 kB" in said
    assert said[-1] == "checking file.arriving: 102 kB of 102 kB"


def test_the_receipt_of_another_file_is_none(server, part, tmp_path):
    get(archive(server.url("/file")), part)
    part.whole.write_bytes(CONTENT[:-1])
    assert part.receipt() is None
    Path(part.folder / "file.received.json").write_text("[]")
    assert part.receipt() is None
