"""Getting one file: the faults of servers, the order in which they are asked, the waits, and the parts kept."""

import hashlib

import pytest

from cotenant.datasets import fetch as fetching
from cotenant.datasets import progress
from cotenant.datasets.dataset import Archive, Received
from cotenant.datasets.fetch import check_mirror, fetch
from cotenant.errors import CotenantError
from datasets import loopback
from datasets.conftest import tree
from datasets.loopback import cut, ignoring_ranges, stalled, status

CONTENT = bytes(range(256)) * 400  # 102,400 bytes, more than a socket sends at once
OTHER = bytes(reversed(CONTENT))
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def any_byte_is_progress(monkeypatch):
    monkeypatch.setattr(fetching, "TRIES", 3)
    monkeypatch.setattr(fetching, "PROGRESS_BYTES", 1)


@pytest.fixture
def server(server):
    server.files["/file"] = CONTENT
    return server


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "arriving").mkdir()
    return tmp_path / "arriving"


def archive(digest: str | None = SHA256) -> Archive:
    return Archive("file", (), len(CONTENT), digest, "a library")


def get(folder, *urls: str, wanted: Archive | None = None) -> Received:
    """Fetch the file, which has to be the whole one."""
    received = fetch(wanted or archive(), urls, folder / "file")
    assert (folder / "file").read_bytes() == CONTENT
    return received


def forget(folder) -> None:
    (folder / "file").unlink(missing_ok=True)


def test_a_file_arrives_once(server, folder):
    received = get(folder, server.url("/file"))
    assert received == Received("file", server.url("/file"), len(CONTENT), SHA256, "the sha256 recorded by a library")
    assert tree(folder) == ["file"]
    assert get(folder, server.url("/file")) == received
    assert server.ranges() == [None]
    (folder / "file").write_bytes(OTHER)
    assert get(folder, server.url("/file")) == received
    assert server.ranges() == [None, None]


def test_a_connection_that_breaks_is_taken_up_where_it_broke(server, folder):
    server.answers["/file"] = [cut(40_000), cut(20_000)]
    received = get(folder, server.url("/file"), wanted=archive(None))
    assert (received.sha256, received.verified_by) == (SHA256, None)
    assert server.ranges() == [None, "bytes=40000-", "bytes=60000-"]


def test_progress_is_what_comes_farther_than_before(server, folder, monkeypatch):
    server.answers["/file"] = [cut(10_000) for _ in range(9)]
    get(folder, server.url("/file"))
    assert len(server.requests) == 10 > fetching.TRIES
    forget(folder)
    server.answers["/file"] = [cut(10_000) for _ in range(9)]
    monkeypatch.setattr(fetching, "PROGRESS_BYTES", 20_000)
    server.requests.clear()
    with pytest.raises(CotenantError, match=r"file could not be fetched from any source: .*\(18\)"):
        get(folder, server.url("/file"))
    assert len(server.requests) == 3
    assert (folder / "file").stat().st_size == 30_000
    # A server that begins at byte 0 each time makes no progress.
    monkeypatch.setattr(fetching, "PROGRESS_BYTES", 1)
    server.requests.clear()
    server.answers["/file"] = [ignoring_ranges(after=after) for after in (50_000, 20_000, 40_000, 30_000) * 2]
    with pytest.raises(CotenantError):
        get(folder, server.url("/file"))
    assert server.ranges() == ["bytes=30000-", None, "bytes=20000-", None, "bytes=30000-", None]


@pytest.mark.slow
def test_a_stalled_server_is_left_and_asked_again(server, folder, monkeypatch, capsys):
    monkeypatch.setattr(fetching, "STALL_S", 1)
    server.answers["/file"] = [stalled(500)]
    get(folder, server.url("/file"))
    assert server.ranges() == [None, "bytes=500-"]
    assert "Operation too slow" in capsys.readouterr().err


def test_what_passes_is_waited_for(server, folder):
    for answers in (
        [status(500)],
        [status(429), status(408)],
        [status(425)],
        [loopback.reset],
        [loopback.chunked_cut],
        [cut(1000), loopback.wrong_range],
        [loopback.chunked],
        [loopback.unmeasured],
        [cut(40_000), ignoring_ranges()],
        [ignoring_ranges(length=200_000)],
    ):
        server.answers["/file"] = answers
        get(folder, server.url("/file"))
        forget(folder)


def test_the_next_source_is_asked(server, folder, capsys):
    server.files["/bad"] = CONTENT
    for answers, reason in (
        ([status(404)], "error: 404"),
        ([status(400)], "error: 400"),
        ([status(410)], "error: 410"),
        ([status(204)], "it has 0 bytes, and file has 102,400"),
        ([ignoring_ranges(length=1000)], "it has 1,000 bytes, and file has 102,400"),
        ([loopback.endless], "it sends more than the 102,400 bytes of file"),
        ([status(302, Location="ftp://127.0.0.1/x")], r"\(1\)"),
        ([status(302, Location="file:///etc/passwd")], r"\(1\)"),
        ([status(302, Location="/bad")] * 6, r"\(47\)"),
        ([status(500)] * 3, "error: 500"),
        ([loopback.reset] * 3, r"\(56\)|\(52\)"),
        ([lambda handler, _: cut(10**9)(handler, OTHER)], f"its sha256 is .*, and the sha256 .* library is {SHA256}"),
    ):
        server.requests.clear()
        server.answers["/bad"] = list(answers)
        received = get(folder, server.url("/bad"), server.url("/file"))
        assert received.source == server.url("/file")
        assert server.paths().count("/bad") == len(answers), reason
        assert "given up" in capsys.readouterr().err
        forget(folder)
        server.answers["/bad"] = list(answers)
        with pytest.raises(CotenantError, match=reason):
            get(folder, server.url("/bad"))
        forget(folder)


def test_all_sources_fail_in_one_sentence(server, folder):
    with pytest.raises(CotenantError) as caught:
        get(folder, server.url("/none"), server.url("/nothing"))
    reasons = [f"{server.url(path)}: (22) The requested URL returned error: 404" for path in ("/none", "/nothing")]
    sentence = f"file could not be fetched from any source: {'; '.join(reasons)}."
    assert str(caught.value) == f"{sentence} {fetching.REMEDY}"


def test_redirects_are_followed_and_no_name_comes_from_a_server(server, folder):
    def naming(handler, content):
        handler.head(200, len(content), Content_Disposition='attachment; filename="../../evil"')
        handler.wfile.write(content)

    server.answers["/old"] = [status(301, Location="/older")]
    server.answers["/older"] = [status(307, Location=server.url("/file"))]
    server.answers["/file"] = [naming]
    assert get(folder, server.url("/old")).source == server.url("/old")
    assert tree(folder.parent) == ["arriving/file"]


def test_what_curl_is_told():
    """From https it follows no redirect to http, which others can read and change; it ignores a person's .curlrc."""
    secure, plain = (fetching._command(f"{scheme}://host/file", 5) for scheme in ("https", "http"))
    assert secure[secure.index("--proto-redir") + 1] == "=https"
    assert plain[plain.index("--proto-redir") + 1] == "=http,https"
    assert secure[secure.index("--continue-at") + 1] == "5"
    assert secure[1] == "--disable"
    assert secure[-1] == "https://host/file"


def test_a_part_that_is_wrong_complete_or_too_long(server, folder):
    (folder / "file").write_bytes(OTHER[:50_000])
    get(folder, server.url("/file"))
    assert server.ranges() == ["bytes=50000-", None]
    server.requests.clear()
    (folder / "file").write_bytes(CONTENT)
    get(folder, server.url("/file"))
    assert server.requests == []
    forget(folder)
    (folder / "file").write_bytes(CONTENT + b"more")
    get(folder, server.url("/file"))
    assert server.ranges() == [None]
    # Only the server knows the length.
    wanted = archive(hashlib.md5(CONTENT).hexdigest())
    for kept, requests in ((CONTENT, 1), (CONTENT + b"more", 2)):
        forget(folder)
        server.requests.clear()
        (folder / "file").write_bytes(kept)
        assert get(folder, server.url("/file"), wanted=wanted).verified_by == "the md5 recorded by a library"
        assert server.ranges()[0] == f"bytes={len(kept)}-"
        assert len(server.requests) == requests
    # An unknown length has a limit, too.
    forget(folder)
    server.answers["/file"] = [loopback.endless]
    with pytest.raises(CotenantError, match="it sends more than the 204,800 bytes"):
        get(folder, server.url("/file"), wanted=archive(None))
    assert tree(folder) == []


def test_a_file_url(folder, tmp_path):
    (tmp_path / "a file").write_bytes(CONTENT)
    url = f"file://{tmp_path}/a%20file"
    with pytest.raises(CotenantError, match=r"\(37\) Couldn't open file .*/none"):
        get(folder, f"file://{tmp_path}/none")
    (folder / "file").write_bytes(CONTENT[:1000])
    assert get(folder, url).source == url


def test_off_a_terminal_there_are_lines(server, folder, capsys, monkeypatch):
    monkeypatch.setattr(progress, "SECONDS_PER_LINE", 0.0)
    get(folder, server.url("/file"))
    lines = capsys.readouterr().err.splitlines()
    assert "file: 102 kB of 102 kB" in lines
    assert lines[-1] == "checking file: 102 kB of 102 kB"


def test_a_mirror_that_cannot_be_used():
    bad = "ftp://host/data host/data https:///data file://host/data https://me:secret@host/ https://h/?x=1 https://h/#x"
    for url in bad.split():
        with pytest.raises(CotenantError, match="is no plain base URL: http, https or") as caught:
            check_mirror(url)
        assert "secret" not in str(caught.value)
    assert check_mirror("file:///mnt/data/") == "file:///mnt/data"
    assert check_mirror("https://mirror/my data/") == "https://mirror/my%20data"
