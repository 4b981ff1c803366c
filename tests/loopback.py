"""Common parts of the test servers on loopback."""

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
    """Server on a free port.

    Args:
        handler: handler of one connection.

    Attributes:
        at: host and port.
        failed: errors raised in handlers, except disconnected clients.
    """

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.at = f"127.0.0.1:{self.server_address[1]}"
        self.failed: list[BaseException] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that disconnect, also those that reject the certificate."""
        error = sys.exception()
        if error is not None and not isinstance(error, (ConnectionError, ssl.SSLError)):
            self.failed.append(error)
            super().handle_error(request, client_address)


class FileServer(Loopback):
    """Server of the files of a folder."""

    def __init__(self, folder: Path, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(handler)
        self.folder = folder


class Handler(BaseHTTPRequestHandler):
    """Handler that keeps connections open and prints nothing."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def send(
        self, status: int, headers: dict[str, str], body: bytes, sent: bytes | None = None
    ) -> None:
        """Send an answer.

        Args:
            status: status code of HTTP.
            headers: headers in addition to the length of the body.
            body: complete body.
            sent: bytes that are sent; by default the complete body.
        """
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body if sent is None else sent)


class FileHandler(Handler):
    """Handler of GET and HEAD; subclasses decide which files exist and which headers they have."""

    def do_HEAD(self) -> None:
        self.answer(send=False)

    def do_GET(self) -> None:
        self.answer(send=True)

    def answer(self, *, send: bool) -> None:
        """Answer a request for a file, with or without its body."""
        raise NotImplementedError


def part_of(data: bytes, wanted: str) -> tuple[bytes, dict[str, str]]:
    """Return the bytes that a ``Range`` header requests, and the ``Content-Range`` header."""
    first, _, last = wanted.removeprefix("bytes=").partition("-")
    begin = int(first) if first else max(0, len(data) - int(last))
    end = min(len(data), int(last) + 1) if first and last else len(data)
    return data[begin:end], {"Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"}


S = TypeVar("S", bound=Loopback)


@contextmanager
def served(server: S) -> Iterator[S]:
    """Run a server on its own thread during a ``with`` block.

    Raises:
        BaseException: an error of a handler, unless the block raises one.
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
