"""A bucket of an object store on loopback: the few calls of S3 by which tables are read.

Objects are files of a folder. Listing, HEAD, GET and ranges of bytes are as the S3 API reference
has them; nobody checks signatures.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

BUCKET = "tables"


class Store(ThreadingHTTPServer):
    """The server.

    Attributes:
        folder: whose files are the objects.
        asked: method and path of every request.
    """

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.folder = folder
        self.asked: list[tuple[str, str]] = []

    @property
    def options(self) -> dict[str, str]:
        """``storage_options`` by which it is reached."""
        return {
            "aws_endpoint_url": f"http://127.0.0.1:{self.server_address[1]}",
            "aws_access_key_id": "someone",
            "aws_secret_access_key": "something",
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }

    def path(self, pattern: str) -> str:
        """Address of an object, or of several by a glob."""
        return f"s3://{BUCKET}/{pattern}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store

    def log_message(self, *_: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._object(send=False)

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if "list-type" in asked.query:
            self.server.asked.append(("LIST", asked.path))
            self._list(parse_qs(asked.query).get("prefix", [""])[0])
        else:
            self._object(send=True)

    def _list(self, prefix: str) -> None:
        found = sorted(
            (path.relative_to(self.server.folder).as_posix(), path.stat().st_size)
            for path in self.server.folder.rglob("*")
            if path.is_file()
        )
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size>"
            '<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"e"</ETag></Contents>'
            for key, size in found
            if key.startswith(prefix)
        )
        body = (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>'
            f"<Name>{BUCKET}</Name><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
        ).encode()
        self._send(200, body, {"Content-Type": "application/xml"}, send=True)

    def _object(self, *, send: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.asked.append((self.command, path))
        file = self.server.folder / path.removeprefix(f"/{BUCKET}/")
        if not file.is_file():
            body = b"<Error><Code>NoSuchKey</Code></Error>"
            self._send(404, body, {"Content-Type": "application/xml"}, send=send)
            return
        data, status, more = file.read_bytes(), 200, {"ETag": '"e"'}
        more["Last-Modified"] = formatdate(0, usegmt=True)
        wanted = self.headers.get("Range")
        if wanted is not None:
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            begin = int(first) if first else max(0, len(data) - int(last))
            end = min(len(data), int(last) + 1) if first and last else len(data)
            more["Content-Range"] = f"bytes {begin}-{end - 1}/{len(data)}"
            data, status = data[begin:end], 206
        self._send(status, data, more, send=send)

    def _send(self, status: int, body: bytes, headers: dict[str, str], *, send: bool) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if send:
            self.wfile.write(body)


@contextmanager
def object_store(folder: Path) -> Iterator[Store]:
    """The server while it is needed."""
    with Store(folder) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
