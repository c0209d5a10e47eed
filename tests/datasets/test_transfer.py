"""Getting one file: what servers do to it, and what becomes of it."""

import errno
import hashlib
import io
import os
import socket
import ssl
import urllib.error
import urllib.request
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.client import HTTPMessage
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cotenant.datasets import progress
from cotenant.datasets.archive import Archive, Checksum, Received
from cotenant.datasets.transfer import fetch as fetching
from cotenant.datasets.transfer import reply
from cotenant.datasets.transfer.attempt import Patience
from cotenant.datasets.transfer.fetch import fetch
from cotenant.datasets.transfer.part import Note, Part
from cotenant.datasets.transfer.source import SourceError, check_mirror, sources
from cotenant.errors import CotenantError
from datasets import loopback
from datasets.loopback import cut, declaring, stalled, status, tag

CONTENT = bytes(range(256)) * 400  # 102,400 bytes, more than one piece of a socket
OTHER = bytes(reversed(CONTENT))
SHA256 = hashlib.sha256(CONTENT).hexdigest()
PUBLISHED = Checksum("sha256", SHA256, "a library")
# A loaded machine may take long to answer; only those who test stalling wait less.
IMPATIENT = Patience(timeout_s=20, tries=3, first_wait_s=0.001, longest_wait_s=0.01, progress_bytes=1)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server():
    with loopback.serving() as server:
        server.files["/file"] = CONTENT
        yield server


@pytest.fixture
def part(tmp_path) -> Part:
    (tmp_path / "arriving").mkdir()
    return Part(tmp_path / "arriving", "file")


def archive(*urls: str, checksum: Checksum | None = PUBLISHED, exact: bool = True) -> Archive:
    return Archive("file", urls, len(CONTENT), exact, checksum)


def get(wanted: Archive, part: Part, first: str | None = None, patience: Patience = IMPATIENT) -> Received:
    return fetch(wanted, wanted.urls, part, first, patience, lambda size: None)


def leave(part: Part, content: bytes, url: str, validator: str | None = None) -> None:
    """Leave a part as a run that ended does."""
    with part.going_on(0, Note(url, validator, None)) as file:
        file.write(content)


def ranges(server) -> list[str | None]:
    return [asked.get("Range") for _, asked in server.requests]


def names(part: Part) -> list[str]:
    return sorted(path.name for path in part.folder.iterdir())


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


@pytest.mark.parametrize(
    ("answers", "reason"),
    [
        ([status(404)], "it answers 404 Not Found"),
        ([status(410)], "it answers 410 Gone"),
        ([status(204)], "it answers 204 No Content"),
        ([declaring(1000)], "it says that the file has 1,000 bytes, and file has 102,400"),
        ([declaring(200_000)], "it says that the file has 200,000 bytes, and file has 102,400"),
        ([loopback.endless], "it sends more than the 102,400 bytes of file"),
        ([status(302, Location="ftp://127.0.0.1/x")], "it redirects to ftp://127.0.0.1/x"),
        ([status(302, Location="file:///etc/passwd")], "file:///etc/passwd"),
        ([status(500)] * 3, "it answers 500 Internal Server Error"),
        ([loopback.reset] * 3, "the connection ended early|ConnectionResetError"),
    ],
)
def test_the_next_source_is_asked(server, part, answers, reason, capsys):
    server.files["/bad"] = CONTENT
    server.answers["/bad"] = list(answers)
    received = get(archive(server.url("/bad"), server.url("/file")), part)
    assert received.source == server.url("/file")
    assert part.whole.read_bytes() == CONTENT
    assert [path for path, _ in server.requests] == ["/bad"] * len(answers) + ["/file"]
    part.reject()
    server.answers["/bad"] = list(answers)
    with pytest.raises(CotenantError, match=reason):
        get(archive(server.url("/bad")), part)
    assert "given up" in capsys.readouterr().err


@pytest.mark.parametrize(
    "answers",
    [
        [status(500)],
        [status(503, Retry_After="0")],
        [status(429), status(408)],
        [loopback.reset],
        [loopback.chunked_cut],
        [cut(1000), loopback.wrong_range],
        [loopback.chunked],
        [loopback.unmeasured],
    ],
    ids=lambda answers: "+".join(getattr(one, "__name__", "?") for one in answers),
)
def test_what_passes_is_waited_for(server, part, answers):
    server.answers["/file"] = answers
    get(archive(server.url("/file")), part)
    assert part.whole.read_bytes() == CONTENT


def test_wrong_bytes_are_no_file(server, part, capsys):
    server.files["/bad"] = OTHER
    received = get(archive(server.url("/bad"), server.url("/file")), part)
    assert received.source == server.url("/file")
    assert f"its sha256 is {hashlib.sha256(OTHER).hexdigest()}, and the sha256 recorded by a library is {SHA256}" in (
        capsys.readouterr().err
    )


def test_all_sources_fail_in_one_sentence(server, part):
    with pytest.raises(CotenantError) as caught:
        get(archive(server.url("/none"), server.url("/nothing")), part)
    assert str(caught.value) == (
        f"file could not be had from any source: {server.url('/none')}: it answers 404 Not Found;"
        f" {server.url('/nothing')}: it answers 404 Not Found. {fetching.REMEDY}"
    )


def test_nobody_listens(part):
    with loopback.serving() as server:
        url = server.url("/file")
    with pytest.raises(CotenantError, match="ConnectionRefusedError"):
        get(archive(url), part)


def test_a_redirect_is_followed(server, part):
    server.answers["/old"] = [status(301, Location="/older"), status(301, Location="/older")]
    server.answers["/older"] = [status(307, Location=server.url("/file"))]
    assert get(archive(server.url("/old")), part).source == server.url("/old")
    assert part.whole.read_bytes() == CONTENT


def test_redirects_in_a_circle_end(server, part):
    server.answers["/file"] = [status(302, Location="/file") for _ in range(50)]
    with pytest.raises(CotenantError, match="it answers 302"):
        get(archive(server.url("/file")), part)
    assert len(server.requests) < 10


@pytest.mark.parametrize("target", ["http://127.0.0.1/x", "ftp://127.0.0.1/x", "file:///etc/passwd"])
def test_https_never_leads_to_what_can_be_read_on_its_way(target):
    request = urllib.request.Request("https://host/file")
    with pytest.raises(SourceError, match="not followed from https"):
        reply._Redirects().redirect_request(request, io.BytesIO(), 302, "Found", HTTPMessage(), target)
    followed = reply._Redirects().redirect_request(
        request, io.BytesIO(), 302, "Found", HTTPMessage(), "https://other/file"
    )
    assert followed is not None
    assert followed.full_url == "https://other/file"


def test_a_name_never_comes_from_the_server(server, part):
    def naming(handler, content):
        handler.head(200, len(content), Content_Disposition='attachment; filename="../../evil"')
        handler.wfile.write(content)

    server.answers["/file"] = [naming]
    get(archive(server.url("/file")), part)
    assert names(part) == ["file", "file.received.json"]
    assert [path.name for path in part.folder.parent.iterdir()] == ["arriving"]


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


def test_a_file_url(part, tmp_path):
    (tmp_path / "a file").write_bytes(CONTENT)
    url = f"file://{tmp_path}/a%20file"
    assert get(archive(url), part).source == url
    part.whole.unlink()
    leave(part, CONTENT[:1000], url)
    with pytest.raises(CotenantError, match="none cannot be read: No such file or directory"):
        get(archive(f"file://{tmp_path}/none"), part)
    get(archive(url), part)
    assert part.whole.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("ftp://host/data", "--mirror is 'ftp://host/data': only http, https, file can be read."),
        ("host/data", "only http, https, file can be read."),
        ("https:///data", "which names no host."),
        ("file://host/data", "a file URL names no host."),
        ("https://me:secret@host/", "it has a '?', a '#' or a password."),
        ("https://host/?x=1", "it has a '?'"),
        ("http://[::1", "which is no URL"),
    ],
)
def test_a_mirror_that_cannot_be_used(url, sentence):
    with pytest.raises(CotenantError) as caught:
        check_mirror(url, "--mirror")
    assert sentence in str(caught.value)
    assert "secret" not in str(caught.value)


def test_the_mirror_comes_first():
    mirror = check_mirror("https://mirror/data/", "--mirror")
    assert sources(archive("https://publisher/file"), "mnist", mirror) == (
        "https://mirror/data/mnist/file",
        "https://mirror/data/file",
        "https://publisher/file",
    )
    assert sources(archive("https://publisher/file"), "mnist", None) == ("https://publisher/file",)


MOODS = (
    loopback.honest,
    loopback.ignoring_ranges,
    loopback.unmeasured,
    loopback.chunked,
    loopback.chunked_cut,
    loopback.wrong_range,
    cut(1),
    cut(40_000),
    declaring(len(CONTENT) - 1),
    status(500),
    status(404),
    lambda handler, _: loopback.honest(handler, OTHER),
    lambda handler, _: loopback.ignoring_ranges(handler, CONTENT[:-1]),
    lambda handler, _: loopback.unmeasured(handler, CONTENT + b"more"),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=st.lists(st.sampled_from(MOODS), max_size=5), second=st.lists(st.sampled_from(MOODS), max_size=5))
def test_whatever_servers_do_only_the_right_file_gets_its_name(server, tmp_path_factory, first, second):
    part = Part(tmp_path_factory.mktemp("arriving"), "file")
    server.files["/second"] = CONTENT
    wanted = archive(server.url("/file"), server.url("/second"))
    server.answers = {"/file": list(first), "/second": list(second)}
    with suppress(CotenantError):
        get(wanted, part)
        assert part.whole.read_bytes() == CONTENT
    server.answers = {}
    get(wanted, part)
    assert part.whole.read_bytes() == CONTENT


def test_off_a_terminal_there_are_lines(server, part, capsys, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_PER_LINE", 0.0)
    server.answers["/file"] = [loopback.slowly(0.0, 4)]
    get(archive(server.url("/file")), part)
    said = capsys.readouterr().err.splitlines()
    assert "file: 102 kB of 102 kB" in said
    assert said[-1] == "checking file.arriving: 102 kB of 102 kB"


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (urllib.error.URLError(socket.gaierror(socket.EAI_NONAME, "unknown")), 1),
        (urllib.error.URLError(socket.gaierror(socket.EAI_AGAIN, "not now")), 3),
        (urllib.error.URLError(ssl.SSLCertVerificationError("expired")), 1),
        (urllib.error.URLError(ssl.SSLError("broken")), 3),
        (TimeoutError(), 3),
    ],
)
def test_what_cannot_get_better_is_not_tried_again(part, monkeypatch, error, tries, capsys):
    asked = []

    def opened(self, *_, **__):
        asked.append(1)
        raise error

    monkeypatch.setattr(urllib.request.OpenerDirector, "open", opened)
    with pytest.raises(CotenantError, match="could not be had from any source"):
        get(archive("https://127.0.0.1/file"), part)
    assert len(asked) == tries


def test_the_receipt_of_another_file_is_none(server, part, tmp_path):
    get(archive(server.url("/file")), part)
    part.whole.write_bytes(CONTENT[:-1])
    assert part.receipt() is None
    Path(part.folder / "file.received.json").write_text("[]")
    assert part.receipt() is None
