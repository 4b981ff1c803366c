"""A bucket of an object store on loopback: the few calls of S3 by which tables are read.

Objects are files of a folder. Listing, HEAD, GET and ranges of bytes are as the S3 API reference
has them; nobody checks signatures.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

from loopback import FileHandler, FileServer, part_of, served

BUCKET = "tables"


class Store(FileServer):
    """The server; files of its folder are the objects.

    Attributes:
        asked: method and path of every request.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, _Handler)
        self.asked: list[tuple[str, str]] = []

    @property
    def options(self) -> dict[str, str]:
        """``storage_options`` by which it is reached."""
        return {
            "aws_endpoint_url": f"http://{self.at}",
            "aws_access_key_id": "someone",
            "aws_secret_access_key": "something",
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }

    def path(self, pattern: str) -> str:
        """Address of an object, or of several by a glob."""
        return f"s3://{BUCKET}/{pattern}"


class _Handler(FileHandler):
    server: Store

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if "list-type" in asked.query:
            self.server.asked.append(("LIST", asked.path))
            self._list(parse_qs(asked.query).get("prefix", [""])[0])
        else:
            super().do_GET()

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
        self.send(200, {"Content-Type": "application/xml"}, body)

    def answer(self, *, send: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        self.server.asked.append((self.command, path))
        file = self.server.folder / path.removeprefix(f"/{BUCKET}/")
        wanted = self.headers.get("Range")
        if not file.is_file():
            status, headers = 404, {"Content-Type": "application/xml"}
            body = b"<Error><Code>NoSuchKey</Code></Error>"
        else:
            status, body = 200, file.read_bytes()
            headers = {"ETag": '"e"', "Last-Modified": formatdate(0, usegmt=True)}
            if wanted is not None:
                status = 206
                body, told = part_of(body, wanted)
                headers.update(told)
        self.send(status, headers, body, body if send else b"")


@contextmanager
def object_store(folder: Path) -> Iterator[Store]:
    """The server while it is needed."""
    with served(Store(folder)) as server:
        yield server
