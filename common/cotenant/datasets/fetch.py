"""Gets archives: curl brings them, from the first of several sources that gives the right bytes.

`curl` knows proxies, redirects, certificates, stalled connections and ranges. We keep the bytes that have arrived when
a connection breaks or a run ends, ask again for the rest, and compare the whole with its known size and checksum.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from cotenant.datasets.dataset import Archive, Received
from cotenant.datasets.disk import file_size
from cotenant.datasets.progress import say, shown_progress
from cotenant.errors import CotenantError

TRIES = 5
"""The number of times in a row that a source is asked without bringing PROGRESS_BYTES beyond the farthest byte."""
FIRST_WAIT_S = 1.0
PROGRESS_BYTES = 1 << 20
STALL_S = 30
SLOWEST_BYTES_S = 1000
REMEDY = (
    "Start again to go on from what has arrived, give another place with --mirror URL (COTENANT_MIRROR),"
    " or put the file into a folder and name that with --from DIR (COTENANT_DATA_FROM)."
)
_PIECE_BYTES = 1 << 18
# Exit statuses of curl (its manual's last section). _NO_RANGE: the server serves no range. _FINAL: asking again does
# not help, after a forbidden protocol, a malformed URL, an unreadable file, endless redirects or a wrong certificate.
_NO_RANGE = (33, 36)
_FINAL = (1, 3, 37, 47, 60)
# A server's statuses that mean "later", among 400 to 499.
_LATER = (408, 425, 429)


class SourceError(Exception):
    """One source did not give the file; `final` if asking it again is of no use."""

    def __init__(self, reason: str, *, final: bool) -> None:
        super().__init__(reason)
        self.final = final


class WrongBytesError(Exception):
    """A file is not the one it should be; the message continues "it is not the file:"."""


def check_mirror(url: str) -> str:
    """Return a mirror's base URL without a slash at its end; raises CotenantError for one that cannot be used."""
    if re.fullmatch(r"(https?://[^/?#@]|file:///)[^?#@]*", url) is None:
        raise CotenantError(
            "The mirror (--mirror, COTENANT_MIRROR) is no plain base URL: http, https or file, and no '?', '#' or"
            " password.",
            "Give one such as https://mirror.example/data or file:///mnt/data.",
        )
    return url.rstrip("/").replace(" ", "%20")


def sources(archive: Archive, set_name: str, mirror: str | None) -> tuple[str, ...]:
    """Return the URLs of `archive` in the order of trial: the mirror's folder of the set, the mirror, the publisher."""
    if mirror is None:
        return archive.urls
    name = quote(archive.name)
    return (f"{mirror}/{quote(set_name)}/{name}", f"{mirror}/{name}", *archive.urls)


def refuse_no_curl(archives: Sequence[Archive]) -> None:
    """Raise CotenantError if these have to be fetched and curl is not installed."""
    if archives and shutil.which("curl") is None:
        names = ", ".join(archive.name for archive in archives)
        raise CotenantError(
            "Real sets are fetched by curl, which is not installed here.",
            f"Install it (apt install curl), or put {names} into a folder and name that with --from DIR"
            " (COTENANT_DATA_FROM).",
        )


def fetch(archive: Archive, urls: Sequence[str], path: Path) -> Received:
    """Complete `archive` at `path`, which an earlier run may have begun, and return its facts.

    Sources are tried in order; each is asked again, with growing waits, while that may help. Raises CotenantError if
    none gave the file, and OSError for errors of our own disk; bytes that have arrived are kept.
    """
    reasons = []
    for url in urls:
        try:
            return _fetch_from(url, archive, path)
        except SourceError as error:
            reasons.append(f"{url}: {error}")
            say(f"{archive.name}: given up {reasons[-1]}")
    raise CotenantError(f"{archive.name} could not be fetched from any source: {'; '.join(reasons)}.", REMEDY)


def _fetch_from(url: str, archive: Archive, path: Path) -> Received:
    """Bring the whole file from this source and compare it; raises SourceError if it cannot be had here."""
    failures = farthest = 0
    while True:
        start = file_size(path)
        try:
            _receive(url, archive, path, start)
            return verified(archive, path, url)
        except WrongBytesError as error:
            path.unlink()
            # A file put together from two answers may be wrong though each was right: it deserves one whole answer.
            problem = SourceError(f"what it sent is not the file: {error}", final=start == 0)
        except SourceError as error:
            problem = error
        size = file_size(path)
        failures = 1 if size - farthest >= PROGRESS_BYTES else failures + 1
        farthest = max(farthest, size)
        if problem.final or failures >= TRIES:
            raise problem
        wait_s = FIRST_WAIT_S * 2 ** (failures - 1)
        say(f"{archive.name}: {url}: {problem}; again in {wait_s:.0f} s")
        time.sleep(wait_s)


def _receive(url: str, archive: Archive, path: Path, start: int) -> None:
    """Add the answer of `url` to the `start` bytes at `path`; raises SourceError if it is not the rest.

    The bytes pass through this process, so that curl ends with it in any case, and no other process writes here.
    """
    if archive.exact and start >= archive.size_bytes:
        return
    # If the exact size is unknown, a file of twice the size cannot be the right one.
    most_bytes = archive.size_bytes * (1 if archive.exact else 2)
    with (
        path.open("ab") as file,
        shown_progress(archive.name, archive.size_bytes, in_bytes=True) as reach,
        subprocess.Popen(
            _command(url, start), bufsize=0, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as curl,
    ):
        assert curl.stdout is not None
        assert curl.stderr is not None
        try:
            while piece := curl.stdout.read(_PIECE_BYTES):
                file.write(piece)
                reach(file.tell())
                if file.tell() > most_bytes:
                    path.unlink()
                    raise SourceError(f"it sends more than the {most_bytes:,} bytes of {archive.name}", final=True)
        except BaseException:
            curl.kill()
            raise
        problem = curl.stderr.read().decode(errors="replace")
    # 416: the server has no byte from there on, so all may be here.
    if curl.returncode != 0 and not (start and "error: 416" in problem):
        raise _source_error(curl.returncode, problem, path)


def _command(url: str, start: int) -> list[str]:
    # Redirects lead from https to no protocol that others can read and change, and to no file of this machine.
    redirects = "=https" if url.startswith("https:") else "=http,https"
    return [
        "curl", "--disable", "--globoff", "--silent", "--show-error", "--fail", "--user-agent", "cotenant",
        "--location", "--max-redirs", "5", "--proto", "=http,https,file", "--proto-redir", redirects,
        "--connect-timeout", str(STALL_S), "--speed-time", str(STALL_S), "--speed-limit", str(SLOWEST_BYTES_S),
        "--continue-at", str(start), url,
    ]  # fmt: skip


def _source_error(status: int, problem: str, path: Path) -> SourceError:
    """Return the meaning of curl's exit status and message; remove the file if its rest cannot be sent."""
    if status in _NO_RANGE:
        path.unlink(missing_ok=True)
        return SourceError("it cannot send only the rest, so the download starts again", final=False)
    answer = re.search(r"returned error: (\d+)", problem)
    refused = answer is not None and 400 <= int(answer[1]) < 500 and int(answer[1]) not in _LATER
    reason = problem.strip().removeprefix("curl: ") or f"curl ended with status {status}"
    return SourceError(reason, final=refused or status in _FINAL)


def verified(archive: Archive, path: Path, source: str) -> Received:
    """Compare the file at `path` with the size and checksum of `archive`; raises WrongBytesError."""
    size_bytes = path.stat().st_size
    if archive.exact and size_bytes != archive.size_bytes:
        recorded = f"{archive.name} has {archive.size_bytes:,}, recorded by {archive.recorded_by}"
        raise WrongBytesError(f"it has {size_bytes:,} bytes, and {recorded}")
    sha256, md5 = hashlib.sha256(), hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file, shown_progress(f"checking {archive.name}", size_bytes, in_bytes=True) as reach:
        while piece := file.read(_PIECE_BYTES):
            sha256.update(piece)
            if not archive.exact:
                md5.update(piece)
            reach(file.tell())
    verified_by = None
    if archive.digest is not None:
        digest = sha256 if archive.exact else md5
        verified_by = f"the {digest.name} recorded by {archive.recorded_by}"
        if digest.hexdigest() != archive.digest:
            raise WrongBytesError(f"its {digest.name} is {digest.hexdigest()}, and {verified_by} is {archive.digest}")
    return Received(archive.name, source, size_bytes, sha256.hexdigest(), verified_by)
