"""Object store on loopback, with the few S3 calls that tables and scratch folders need.

Objects are files of a folder. Listing, HEAD, GET, byte ranges, PUT of new objects and deletion
follow the S3 API reference; signatures are not checked.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.utils import formatdate
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape, unescape

from loopback import FileHandler, FileServer, part_of, served

BUCKET = "tables"


class Store(FileServer):
    """Server whose objects are the files of its folder.

    Attributes:
        asked: method and path of every request.
        sent: bytes of objects that were sent.
        failing: predicate of keys whose PUT is refused.
        lock: lock that is acquired while an object is created.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, _Handler)
        self.asked: list[tuple[str, str]] = []
        self.failing: Callable[[str], bool] = lambda key: False
        self.sent = 0
        self.lock = threading.Lock()

    @property
    def options(self) -> dict[str, str]:
        """``storage_options`` for access to the store."""
        return {
            "aws_endpoint_url": f"http://{self.at}",
            "aws_access_key_id": "someone",
            "aws_secret_access_key": "something",
            "aws_region": "us-east-1",
            "aws_allow_http": "true",
        }

    def path(self, pattern: str) -> str:
        """Return the address of an object, or a glob of several."""
        return f"s3://{BUCKET}/{pattern}"


class _Handler(FileHandler):
    server: Store
    disable_nagle_algorithm = True  # an answer is two writes, and the client's receipt takes 40 ms

    def do_GET(self) -> None:
        asked = urlsplit(self.path)
        if "list-type" in asked.query:
            self.server.asked.append(("LIST", asked.path))
            self._list(parse_qs(asked.query).get("prefix", [""])[0])
        else:
            super().do_GET()

    def do_PUT(self) -> None:
        """Write an object atomically; refuse to overwrite one if the client asks for that."""
        key = self._key("PUT")
        file = self.server.folder / key
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.failing(key):
            self.send(403, {}, b"<Error><Code>AccessDenied</Code></Error>")
            return
        draft = self.server.folder.with_name(f"draft-{threading.get_ident()}")
        draft.write_bytes(content)
        with self.server.lock:
            file.parent.mkdir(parents=True, exist_ok=True)
            if self.headers.get("If-None-Match") == "*" and file.exists():
                draft.unlink()
                self.send(412, {}, b"<Error><Code>PreconditionFailed</Code></Error>")
                return
            draft.replace(file)
        self.send(200, {"ETag": '"e"'}, b"")

    def do_DELETE(self) -> None:
        (self.server.folder / self._key("DELETE")).unlink(missing_ok=True)
        self.send(204, {}, b"")

    def do_POST(self) -> None:
        """Delete several objects; multipart uploads are refused."""
        self._key("POST")
        content = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if urlsplit(self.path).query.partition("=")[0] != "delete":
            self.send(501, {}, b"<Error><Code>NotImplemented</Code></Error>")
            return
        keys = [unescape(key) for key in re.findall("<Key>(.*?)</Key>", content)]
        for key in keys:
            (self.server.folder / key).unlink(missing_ok=True)
        rows = "".join(f"<Deleted><Key>{escape(key)}</Key></Deleted>" for key in keys)
        body = f'<?xml version="1.0"?><DeleteResult>{rows}</DeleteResult>'.encode()
        self.send(200, {"Content-Type": "application/xml"}, body)

    def _key(self, method: str) -> str:
        path = unquote(urlsplit(self.path).path)
        self.server.asked.append((method, path))
        return path.removeprefix(f"/{BUCKET}/")

    def _list(self, prefix: str) -> None:
        sizes = {}
        for path in self.server.folder.rglob("*"):
            with suppress(FileNotFoundError):  # deleted by another request in the meantime
                if path.is_file():
                    sizes[path.relative_to(self.server.folder).as_posix()] = path.stat().st_size
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{size}</Size>"
            '<LastModified>2026-01-01T00:00:00.000Z</LastModified><ETag>"e"</ETag></Contents>'
            for key, size in sorted(sizes.items())
            if key.startswith(prefix)
        )
        body = (
            '<?xml version="1.0" encoding="UTF-8"?><ListBucketResult>'
            f"<Name>{BUCKET}</Name><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
        ).encode()
        self.send(200, {"Content-Type": "application/xml"}, body)

    def answer(self, *, send: bool) -> None:
        file = self.server.folder / self._key(self.command)
        wanted = self.headers.get("Range")
        if not file.is_file():
            status, headers = 404, {"Content-Type": "application/xml"}
            body = b"<Error><Code>NoSuchKey</Code></Error>"
        else:
            status, body = 200, file.read_bytes()
            headers = {"ETag": '"e"', "Last-Modified": formatdate(0, usegmt=True)}
            if wanted is not None:
                status = 206
                body, content_range = part_of(body, wanted)
                headers.update(content_range)
        self.server.sent += len(body) if send else 0
        self.send(status, headers, body, body if send else b"")


@contextmanager
def object_store(folder: Path) -> Iterator[Store]:
    """Run the server during a ``with`` block."""
    with served(Store(folder)) as server:
        yield server
