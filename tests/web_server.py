"""Web server on loopback for the files of a folder, with optional faults."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

from loopback import FileHandler, FileServer, part_of, served


class WebServer(FileServer):
    """Server that redirects requests below ``/old`` to the same name elsewhere.

    Attributes:
        ranges: whether it sends ranges of files.
        cut: bytes of each body that it sends before it disconnects; by default all.
        asked: method, path and requested range of every request.
    """

    def __init__(self, folder: Path, certificate: tuple[str, str] | None = None) -> None:
        super().__init__(folder, _Handler)
        self.ranges = True
        self.cut: int | None = None
        self.asked: list[tuple[str, str, str | None]] = []
        self.scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self.socket = context.wrap_socket(self.socket, server_side=True)
            self.scheme = "https"

    def address(self, name: str) -> str:
        """Return the address of a file."""
        return f"{self.scheme}://{self.at}/{name}"


class _Handler(FileHandler):
    server: WebServer

    def answer(self, *, send: bool) -> None:
        path = unquote(urlsplit(self.path).path).removeprefix("/")
        wanted = self.headers.get("Range")
        self.server.asked.append((self.command, path, wanted))
        file = self.server.folder / path
        status, body, headers = 200, b"", {"Accept-Ranges": "bytes"} if self.server.ranges else {}
        if path.startswith("old/"):
            status = 302
            headers["Location"] = self.server.address(path.removeprefix("old/"))
        elif not file.is_file():
            status, body = 404, b"not here"
        else:
            body = file.read_bytes()
            if wanted is not None and self.server.ranges:
                status = 206
                body, content_range = part_of(body, wanted)
                headers.update(content_range)
        self.send(status, headers, body, body[: self.server.cut] if send else b"")
        if send and self.server.cut is not None:
            self.close_connection = True


@contextmanager
def web_server(folder: Path, certificate: tuple[str, str] | None = None) -> Iterator[WebServer]:
    """Run the server during a ``with`` block."""
    with served(WebServer(folder, certificate)) as server:
        yield server
