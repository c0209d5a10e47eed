"""One request for a file, or for its rest: what the server says it sends, and the bytes.

Ranges, validators and status codes: RFC 9110, sections 13.1.5, 14 and 15.
"""

from __future__ import annotations

import http.client
import os
import re
import socket
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from email.message import Message
from http import HTTPStatus
from typing import IO, BinaryIO
from urllib.parse import unquote, urlsplit

from cotenant.datasets.transfer.source import SourceError

PIECE_BYTES = 1 << 18
_CONTENT_RANGE = re.compile(r"bytes (?:(\d+)-\d+|\*)/(\d+|\*)")
_LATER = (408, 425, 429)


@dataclass(frozen=True)
class Reply:
    """What a source sends: bytes from `start` on, of `total` in all (None: it does not say).

    `validator` changes with the file (a strong ETag, else a date); `read` returns the next bytes, none at the end,
    and raises SourceError.
    """

    start: int
    total: int | None
    validator: str | None
    read: Callable[[], bytes]


class NothingLeftError(Exception):
    """The server knows no byte from there on; `total` is what the file has, where it says so."""

    def __init__(self, total: int | None) -> None:
        super().__init__(total)
        self.total = total


@contextmanager
def asked(url: str, start: int, validator: str | None, timeout_s: float) -> Iterator[Reply]:
    """Ask for the file at `url` from byte `start` on, if it is still the one of `validator`.

    Raises SourceError, and NothingLeftError where the file ends at `start` or before it.
    """
    if urlsplit(url).scheme == "file":
        with _opened(url) as file:
            yield _file_reply(file, start, validator)
        return
    headers = {"User-Agent": "cotenant", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
    if start and validator:
        headers["If-Range"] = validator
    request = urllib.request.Request(url, headers=headers)
    opener = urllib.request.build_opener(_Redirects)
    try:
        response = opener.open(request, timeout=timeout_s)
    except urllib.error.HTTPError as error:
        with error:
            raise _refusal(error) from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise SourceError(_words(error), final=_is_final(error)) from None
    with closing(response):
        yield _http_reply(response, start)


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects, but never from https to what can be read and changed on its way."""

    max_redirections = 5

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        allowed = ("https",) if req.type == "https" else ("http", "https")
        if urlsplit(newurl).scheme not in allowed:
            fp.close()
            raise SourceError(f"it redirects to {newurl}, which is not followed from {req.type}", final=True)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _refusal(error: urllib.error.HTTPError) -> SourceError | NothingLeftError:
    """Return what a status other than success says."""
    if error.code == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        _, total = _content_range(error.headers)
        return NothingLeftError(total)
    later = error.code in _LATER or error.code >= 500
    asked_wait = error.headers.get("Retry-After", "")
    wait_s = float(asked_wait) if asked_wait.isdecimal() else 0.0
    return SourceError(f"it answers {error.code} {error.reason}", final=not later, wait_s=wait_s)


def _http_reply(response: http.client.HTTPResponse, start: int) -> Reply:
    """Return what a successful answer says; one that ignores the range begins at 0."""
    tag = response.headers.get("ETag", "")
    validator = tag if tag.startswith('"') else response.headers.get("Last-Modified")
    length = response.headers.get("Content-Length", "")
    total = int(length) if length.isdecimal() else None
    if response.status == HTTPStatus.PARTIAL_CONTENT:
        first, total = _content_range(response.headers)
        if first != start:
            raise SourceError(f"it was asked for the bytes from {start} on and sends those from {first}", final=False)
    elif response.status == HTTPStatus.OK:
        start = 0
    else:
        raise SourceError(f"it answers {response.status} {response.reason}", final=True)

    def read() -> bytes:
        try:
            # What has arrived, not what fills the piece: a slow server is seen to be slow.
            return response.read1(PIECE_BYTES)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise SourceError(_words(error), final=False) from None

    return Reply(start, total, validator, read)


def _content_range(headers: Message) -> tuple[int | None, int | None]:
    """Return the first byte and the total of a Content-Range, None for what it does not say."""
    found = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
    if found is None:
        return None, None
    first, total = found.groups()
    return (int(first) if first else None), (int(total) if total != "*" else None)


def _file_reply(file: BinaryIO, start: int, validator: str | None) -> Reply:
    """Return what a file of this machine holds; it is another one where its size or its date has changed."""
    status = os.fstat(file.fileno())
    current = f"{status.st_size}-{status.st_mtime_ns}"
    if start and validator not in (None, current):
        start = 0
    if start > status.st_size:
        raise NothingLeftError(status.st_size)
    file.seek(start)

    def read() -> bytes:
        with _local(file.name):
            return file.read(PIECE_BYTES)

    return Reply(start, status.st_size, current, read)


@contextmanager
def _opened(url: str) -> Iterator[BinaryIO]:
    path = unquote(urlsplit(url).path)
    with _local(path):
        file = open(path, "rb")
    with file:
        yield file


@contextmanager
def _local(path: str) -> Iterator[None]:
    """Turn what the system says of a local source into a SourceError: it is no fault of the set's own disk."""
    try:
        yield
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}", final=True) from None


def _is_final(error: Exception) -> bool:
    """Tell whether asking again is of no use: another host answers, or none has that name."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, socket.gaierror):
        return reason.errno == socket.EAI_NONAME
    return isinstance(reason, ssl.SSLCertVerificationError | http.client.InvalidURL)


def _words(error: Exception) -> str:
    """Return why a connection was not made or ended, as a person says it."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    if isinstance(reason, TimeoutError):
        return "it said nothing for too long"
    if isinstance(reason, socket.gaierror):
        return "its name is not known here"
    if isinstance(reason, http.client.IncompleteRead | http.client.RemoteDisconnected):
        return "the connection ended early"
    return f"{type(reason).__name__}: {reason}" if not isinstance(reason, str) else reason
