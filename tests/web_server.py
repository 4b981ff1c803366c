"""A web server on loopback with the files of a folder, as good or as bad as a test needs it."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit


class WebServer(ThreadingHTTPServer):
    """The server.

    Attributes:
        folder: whose files it has.
        ranges: whether it gives parts of files.
        cut: bytes of each answer's body that it sends before it hangs up; all unless set.
        moved: whether it sends everyone who asks below ``/old`` to the same name elsewhere.
        asked: method, path and wanted range of every request.
    """

    daemon_threads = True

    def __init__(self, folder: Path, certificate: tuple[str, str] | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.ranges = True
        self.cut: int | None = None
        self.asked: list[tuple[str, str, str | None]] = []
        self.scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self.scheme = "https"

    def handle_error(self, *_: Any) -> None:
        """Say nothing of clients that hang up."""

    def address(self, name: str) -> str:
        """Address of a file."""
        return f"{self.scheme}://127.0.0.1:{self.server_address[1]}/{name}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: WebServer

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._file(send=False)

    def do_GET(self) -> None:
        self._file(send=True)

    def _file(self, *, send: bool) -> None:
        path = unquote(urlsplit(self.path).path).removeprefix("/")
        wanted = self.headers.get("Range")
        self.server.asked.append((self.command, path, wanted))
        if path.startswith("old/"):
            self._send(302, b"", {"Location": self.server.address(path.removeprefix("old/"))}, send)
            return
        file = self.server.folder / path
        if not file.is_file():
            self._send(404, b"not here", {}, send)
            return
        data = file.read_bytes()
        if wanted is None or not self.server.ranges:
            self._send(200, data, {}, send)
            return
        first, _, last = wanted.removeprefix("bytes=").partition("-")
        begin = int(first) if first else max(0, len(data) - int(last))
        end = min(len(data), int(last) + 1) if first and last else len(data)
        more = {"Content-Range": f"bytes {begin}-{end - 1}/{len(data)}"}
        self._send(206, data[begin:end], more, send)

    def _send(self, status: int, body: bytes, headers: dict[str, str], send: bool) -> None:
        self.send_response(status)
        named = {"Content-Length": str(len(body)), **headers}
        if self.server.ranges:
            named["Accept-Ranges"] = "bytes"
        for name, value in named.items():
            self.send_header(name, value)
        self.end_headers()
        if send:
            self.wfile.write(body[: self.server.cut])
            self.close_connection = self.server.cut is not None


@contextmanager
def web_server(folder: Path, certificate: tuple[str, str] | None = None) -> Iterator[WebServer]:
    """The server while it is needed."""
    with WebServer(folder, certificate) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
