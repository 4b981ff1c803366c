"""What servers on loopback have in common."""

from __future__ import annotations

import ssl
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar


class Loopback(ThreadingHTTPServer):
    """A server at a free port.

    Args:
        handler: of one connection.

    Attributes:
        at: its host and port.
        failed: what went wrong in handlers, but that clients hung up.
    """

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.at = f"127.0.0.1:{self.server_address[1]}"
        self.failed: list[BaseException] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that hang up, be it because they do not know the certificate."""
        error = sys.exception()
        if error is not None and not isinstance(error, (ConnectionError, ssl.SSLError)):
            self.failed.append(error)
            super().handle_error(request, client_address)


class FileServer(Loopback):
    """One that has the files of a folder."""

    def __init__(self, folder: Path, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(handler)
        self.folder = folder


class Handler(BaseHTTPRequestHandler):
    """One that keeps connections and prints nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def send(
        self, status: int, headers: dict[str, str], body: bytes, sent: bytes | None = None
    ) -> None:
        """Send an answer.

        Args:
            status: of HTTP.
            headers: beside the body's length.
            body: all of it.
            sent: what of it is sent; all unless given.
        """
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body if sent is None else sent)


class FileHandler(Handler):
    """Answers GET and HEAD; what is there and what headers it has, a server of each kind says."""

    def do_HEAD(self) -> None:
        self.answer(send=False)

    def do_GET(self) -> None:
        self.answer(send=True)

    def answer(self, *, send: bool) -> None:
        """Answer a request for a file, with its body or without."""
        raise NotImplementedError


def part_of(data: bytes, wanted: str) -> tuple[bytes, dict[str, str]]:
    """What a ``Range`` header of one range asks for, and the header that tells which part it is."""
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    begin = int(first) if first else max(0, len(data) - int(last))
    end = min(len(data), int(last) + 1) if first and last else len(data)
    return data[begin:end], {"Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"}


S = TypeVar("S", bound=Loopback)


@contextmanager
def served(server: S) -> Iterator[S]:
    """A server while it is needed, on a thread of its own.

    Raises:
        BaseException: what went wrong in a handler, where nothing else did.
    """
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.005})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
    if server.failed:
        raise server.failed[0]
