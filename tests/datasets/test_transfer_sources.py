"""Getting one file: what servers do to it, which of them are asked, and for how long."""

import hashlib
import io
import socket
import ssl
import urllib.error
import urllib.request
from contextlib import suppress
from http.client import HTTPMessage

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cotenant.datasets.transfer import fetch as fetching
from cotenant.datasets.transfer import reply
from cotenant.datasets.transfer.part import Part
from cotenant.datasets.transfer.source import SourceError, check_mirror, sources
from cotenant.errors import CotenantError
from datasets import loopback
from datasets.loopback import cut, declaring, status
from datasets.transferring import CONTENT, OTHER, SHA256, archive, get, leave, names


@pytest.fixture
def server(server):
    server.files["/file"] = CONTENT
    return server


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
