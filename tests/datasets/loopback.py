"""A real HTTP server on the loopback with the faults of servers: it drops, stalls, lies, forgets and changes files."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = Callable[["Handler", bytes], None]


class Handler(BaseHTTPRequestHandler):
    """Gives the next of the server's `answers` for the path, and honest answers once they are used up."""

    protocol_version = "HTTP/1.1"
    server: "Loopback"

    def do_GET(self) -> None:
        self.server.requests.append((self.path, self.headers["Range"]))
        waiting = self.server.answers.get(self.path, [])
        answer = waiting.pop(0) if waiting else honest
        content = self.server.files.get(self.path)
        self.close_connection = True
        if content is None and answer is honest:
            self.send_error(404)
            return
        answer(self, content or b"")

    @property
    def start(self) -> int:
        """The index of the first requested byte."""
        return int((self.headers["Range"] or "bytes=0-").removeprefix("bytes=").removesuffix("-"))

    def head(self, status: int, length: int | None, **headers: str) -> None:
        self.send_response(status)
        if length is not None:
            self.send_header("Content-Length", str(length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Connection", "close")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class Loopback(ThreadingHTTPServer):
    """Serves `files`, after the `answers` listed for a path; `requests` lists the path and range of each request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.answers: dict[str, list[Answer]] = {}
        self.requests: list[tuple[str, str | None]] = []
        self.let_go = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore errors: a client may go away."""

    def url(self, path: str = "") -> str:
        return f"http://127.0.0.1:{self.server_port}{path}"

    def paths(self) -> list[str]:
        return [path for path, _ in self.requests]

    def ranges(self) -> list[str | None]:
        return [wanted for _, wanted in self.requests]


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


def honest(handler: Handler, content: bytes) -> None:
    cut(len(content))(handler, content)


def cut(after: int) -> Answer:
    """Return an answer that promises the whole file, and closes the connection after so many bytes."""

    def answer(handler: Handler, content: bytes) -> None:
        start = handler.start
        if start == 0:
            handler.head(200, len(content))
        elif start < len(content):
            content_range = f"bytes {start}-{len(content) - 1}/{len(content)}"
            handler.head(206, len(content) - start, Content_Range=content_range)
        else:
            handler.head(416, 0, Content_Range=f"bytes */{len(content)}")
            return
        handler.wfile.write(content[start : start + after])

    return answer


def status(code: int, **headers: str) -> Answer:
    return lambda handler, content: handler.head(code, 0, **headers)


def stalled(after: int) -> Answer:
    """Return an answer that sends so many bytes, then no more, and keeps the connection open."""

    def answer(handler: Handler, content: bytes) -> None:
        handler.head(200, len(content))
        handler.wfile.write(content[:after])
        handler.wfile.flush()
        handler.server.let_go.wait(30)

    return answer


def ignoring_ranges(length: int | None = None, after: int | None = None) -> Answer:
    """Return an answer that begins at byte 0 each time; it may promise another length, or end after `after` bytes."""

    def answer(handler: Handler, content: bytes) -> None:
        handler.head(200, len(content) if length is None else length)
        handler.wfile.write(content[:after])

    return answer


def unmeasured(handler: Handler, content: bytes) -> None:
    """Give no length: the file ends when the connection does."""
    handler.head(200, None)
    handler.wfile.write(content)


def endless(handler: Handler, content: bytes) -> None:
    handler.head(200, None)
    while not handler.server.let_go.is_set():
        try:
            handler.wfile.write(bytes(1 << 16))
        except OSError:
            return


def chunked(handler: Handler, content: bytes, end: bytes = b"0\r\n\r\n") -> None:
    handler.head(200, None, Transfer_Encoding="chunked")
    handler.wfile.write(f"{len(content):x}\r\n".encode() + content + b"\r\n" + end)


def chunked_cut(handler: Handler, content: bytes) -> None:
    chunked(handler, content[:1000], b"")


def wrong_range(handler: Handler, content: bytes) -> None:
    """Send other bytes than the requested ones."""
    handler.head(206, len(content) - 1, Content_Range=f"bytes 1-{len(content) - 1}/{len(content)}")
    handler.wfile.write(content[1:])


def reset(handler: Handler, content: bytes) -> None:
    """Reset the connection without an answer."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    handler.connection.close()


def slowly(pause_s: float, pieces: int) -> Answer:
    """Return an honest answer in pieces, with pauses in which a test can look."""

    def answer(handler: Handler, content: bytes) -> None:
        handler.head(200, len(content))
        step = -(-len(content) // pieces)
        for start in range(0, len(content), step):
            handler.wfile.write(content[start : start + step])
            handler.wfile.flush()
            time.sleep(pause_s)

    return answer
