"""A real HTTP server on the loopback that does to a file what servers do: drop, stall, lie, forget, change."""

import hashlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[["Handler", bytes], None]


class Handler(BaseHTTPRequestHandler):
    """Answers by the next of its server's `answers` for the path, and honestly once they are used up."""

    protocol_version = "HTTP/1.1"
    server: "Loopback"

    def do_GET(self) -> None:
        asked = {name: self.headers[name] for name in ("Range", "If-Range") if name in self.headers}
        self.server.requests.append((self.path, asked))
        waiting = self.server.answers.get(self.path, [])
        answer = waiting.pop(0) if waiting else honest
        content = self.server.files.get(self.path)
        self.close_connection = True
        if content is None and answer is honest:
            self.send_error(404)
            return
        answer(self, content or b"")

    def head(self, status: int, length: int | None, **headers: str) -> None:
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class Loopback(ThreadingHTTPServer):
    """Serves `files`; `answers` are what it does first, request by request; `requests` is what was asked."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.let_go = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no error."""

    def url(self, path: str = "") -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"


@contextmanager
def serving() -> Iterator[Loopback]:
    server = Loopback()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.let_go.set()
        server.shutdown()
        server.server_close()
        thread.join()


def tag(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'


def honest(handler: Handler, content: bytes) -> None:
    """Ranges, and an ETag that is that of the content."""
    rest = handler.headers.get("Range")
    if rest is None or handler.headers.get("If-Range", tag(content)) != tag(content):
        handler.head(200, len(content), ETag=tag(content))
        handler.wfile.write(content)
        return
    start = int(rest.removeprefix("bytes=").removesuffix("-"))
    if start >= len(content):
        handler.head(416, 0, Content_Range=f"bytes */{len(content)}")
        return
    handler.head(206, len(content) - start, ETag=tag(content), Content_Range=content_range(start, content))
    handler.wfile.write(content[start:])


def content_range(start: int, content: bytes) -> str:
    return f"bytes {start}-{len(content) - 1}/{len(content)}"


def status(code: int, **headers: str) -> Answer:
    return lambda handler, content: handler.head(code, 0, **headers)


def cut(after: int) -> Answer:
    """Promises all, and closes the connection after so many bytes."""

    def answer(handler: Handler, content: bytes) -> None:
        rest = handler.headers.get("Range")
        start = int(rest.removeprefix("bytes=").removesuffix("-")) if rest else 0
        extra = {"Content_Range": content_range(start, content)} if rest else {}
        handler.head(206 if rest else 200, len(content) - start, ETag=tag(content), **extra)
        handler.wfile.write(content[start : start + after])

    return answer


def stalled(after: int) -> Answer:
    """Sends so many bytes, and then nothing, while the connection stands."""

    def answer(handler: Handler, content: bytes) -> None:
        handler.head(200, len(content), ETag=tag(content))
        handler.wfile.write(content[:after])
        handler.wfile.flush()
        handler.server.let_go.wait(30)

    return answer


def dripping(handler: Handler, content: bytes) -> None:
    """Sends a byte now and then, so that no read ever times out."""
    handler.head(200, len(content), ETag=tag(content))
    for byte in content:
        handler.wfile.write(bytes([byte]))
        if handler.server.let_go.wait(0.02):
            return


def declaring(length: int) -> Answer:
    """Says another length than it sends."""

    def answer(handler: Handler, content: bytes) -> None:
        handler.head(200, length, ETag=tag(content))
        handler.wfile.write(content)

    return answer


def ignoring_ranges(handler: Handler, content: bytes) -> None:
    handler.head(200, len(content))
    handler.wfile.write(content)


def ignoring_ranges_cut(after: int) -> Answer:
    """Starts from the beginning each time, and closes the connection after so many bytes."""

    def answer(handler: Handler, content: bytes) -> None:
        handler.head(200, len(content))
        handler.wfile.write(content[:after])

    return answer


def unmeasured(handler: Handler, content: bytes) -> None:
    """Says no length: the end of the connection is the end of the file."""
    handler.head(200, None)
    handler.wfile.write(content)


def endless(handler: Handler, content: bytes) -> None:
    handler.head(200, None)
    while not handler.server.let_go.is_set():
        try:
            handler.wfile.write(bytes(1 << 16))
        except OSError:
            return


def chunked(handler: Handler, content: bytes) -> None:
    handler.head(200, None, Transfer_Encoding="chunked", ETag=tag(content))
    half = len(content) // 2
    for piece in (content[:half], content[half:], b""):
        handler.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")


def chunked_cut(handler: Handler, content: bytes) -> None:
    handler.head(200, None, Transfer_Encoding="chunked", ETag=tag(content))
    handler.wfile.write(f"{len(content):x}\r\n".encode() + content[:1000])


def wrong_range(handler: Handler, content: bytes) -> None:
    """Sends other bytes than were asked for."""
    handler.head(206, len(content) - 1, Content_Range=content_range(1, content))
    handler.wfile.write(content[1:])


def reset(handler: Handler, content: bytes) -> None:
    """Breaks the connection off without an answer."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    handler.connection.close()


def slowly(pause_s: float, pieces: int) -> Answer:
    """Honest, in pieces with pauses: time to be killed in."""

    def answer(handler: Handler, content: bytes) -> None:
        handler.head(200, len(content), ETag=tag(content))
        step = -(-len(content) // pieces)
        for start in range(0, len(content), step):
            handler.wfile.write(content[start : start + step])
            handler.wfile.flush()
            time.sleep(pause_s)

    return answer
