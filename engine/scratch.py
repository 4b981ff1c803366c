"""Scratch files of bounded runs: in a folder, or in an object store.

The functions here take paths of scratch files, and callers do not know where these are. A path in a
run's place in an object store begins with the place's address; it is no path of this machine.
"""

from __future__ import annotations

import errno
import io
import logging
import mmap
import os
import re
import shutil
import socket
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property, partial, update_wrapper
from pathlib import Path, PurePosixPath
from threading import RLock
from typing import IO, Any
from weakref import finalize

import numpy as np

from .schemas.arrays import Array
from .schemas.errors import OptionError, ScratchError, not_installed
from .schemas.wording import option

# Scratch files, wherever they are.

Name = str | Path


def exists(path: Name) -> bool:
    """Return whether a file exists."""
    remote = _place_of(path)
    return os.path.exists(path) if remote is None else remote[0].size(remote[1]) is not None


def size(path: Name) -> int:
    """Return the bytes of a file.

    Raises:
        FileNotFoundError: no such file.
    """
    remote = _place_of(path)
    return os.path.getsize(path) if remote is None else remote[0].size_of(remote[1])


def readable(path: Name) -> Any:
    """Return something that readers of files accept: the path, or an open object."""
    remote = _place_of(path)
    return path if remote is None else _Reader(remote[0].copy(remote[1]))


def read(path: Name) -> bytes:
    """Return the content of a file."""
    remote = _place_of(path)
    return (
        Path(path).read_bytes() if remote is None else _Reader(remote[0].copy(remote[1])).readall()
    )


def opened(path: Name) -> IO[bytes]:
    """Open a file to read it."""
    source = readable(path)
    return open(source, "rb") if source is path else source


def arrow_file(path: Name) -> Any:
    """Open a file for Arrow, without mapping it."""
    import pyarrow as pa

    source = readable(path)
    return pa.OSFile(str(path)) if source is path else pa.PythonFile(source)


def mapped(path: Name) -> Mapped:
    """Map a file into memory."""
    remote = _place_of(path)
    return Mapped(path, None if remote is None else remote[0].copy(remote[1]))


def write(path: Name, content: bytes) -> None:
    """Write a file."""
    remote = _place_of(path)
    if remote is None:
        Path(path).write_bytes(content)
    else:
        remote[0].put({remote[1]: content})


def delete(paths: Iterable[Name]) -> None:
    """Delete files; those that are gone are skipped."""
    for path in paths:
        remote = _place_of(path)
        if remote is None:
            Path(path).unlink(missing_ok=True)
        else:
            remote[0].delete([remote[1]])


def make_folder(path: Path, *, parents: bool = False) -> None:
    """Create a folder. Object stores have none."""
    if _place_of(path) is None:
        path.mkdir(parents=parents)


def delete_folder(path: Path) -> None:
    """Delete a folder with its files."""
    remote = _place_of(path)
    if remote is None:
        shutil.rmtree(path)
    else:
        remote[0].delete(remote[0].names(remote[1]))


def list_sizes(path: Path) -> None:
    """Ask for the sizes of all files in a folder at once, if each would be a request."""
    remote = _place_of(path)
    if remote is not None:
        remote[0].names(remote[1])


def writing(path: Name) -> Any:
    """Return a context with a file to write an object, or None for a path of this machine."""
    remote = _place_of(path)
    return None if remote is None else remote[0].writing(remote[1])


def put_folder(draft: Path, target: Path, last: str) -> None:
    """Move a finished folder of this machine to its place.

    Args:
        target: its path; another worker may have been faster.
        last: the file without which the folder does not count.
    """
    remote = _place_of(target)
    if remote is not None:
        files = sorted(os.listdir(draft), key=lambda name: name == last)
        remote[0].put({f"{remote[1]}/{name}": draft / name for name in files})
        return
    try:
        os.rename(draft, target)
    except OSError:
        if not target.exists():
            raise
        shutil.rmtree(draft)


def delete_place(path: Path) -> bool:
    """Delete all files of a place; False for a folder of this machine."""
    remote = _place_of(path)
    if remote is not None:
        remote[0].delete_all()
    return remote is not None


def local(path: str | None) -> str | None:
    """Return a folder on this machine; None for an address of an object store."""
    return None if path is None or "://" in path or _place_of(path) is not None else path


class Mapped:
    """A file that is mapped into memory; of an object, those parts that were asked for.

    Attributes:
        buffer: the whole file.
    """

    def __init__(self, path: Name, copy: _Copy | None) -> None:
        import pyarrow as pa

        self._copy = copy
        if copy is None:
            with open(path, "rb") as file:
                self._map = _bytes_of(file)
        else:
            self._map = copy.mapped()
        self.buffer = pa.py_buffer(self._map)

    def scatter(self) -> None:
        """Turn off reading ahead: ranges are fetched before they are read, and the system would
        read far more of each file than the rows of a label.
        """
        self._advise("MADV_RANDOM")

    def release(self) -> None:
        """Remove the pages of a file from the resident memory of this process; they are read again
        when they are used.
        """
        self._advise("MADV_DONTNEED")

    def _advise(self, name: str, *place: int) -> None:
        if self._copy is None and hasattr(mmap, name):  # not on every system
            self._map.madvise(getattr(mmap, name), *place)

    def part(self, begin: int, length: int, margin: int | None = None) -> Any:
        """Return some bytes.

        Args:
            margin: of an object, only so many bytes at both ends are needed now.
        """
        if self._copy is not None:
            end = begin + length
            cut = length if margin is None else min(margin, length)
            self._copy.fetch([(begin, begin + cut), (end - cut, end)])
        return self.buffer.slice(begin, length)

    def fetch(self, arrays: Iterable[Array]) -> bool:
        """Fetch the content of arrays over the mapped file; False if one is not over it."""
        ranges = []
        for array in arrays:
            for row in np.ndindex(array.shape[:-1]) if array.size else ():
                values = array[row]
                begin = values.__array_interface__["data"][0] - self.buffer.address
                if not 0 <= begin <= self.buffer.size - values.nbytes:
                    return False
                ranges.append((begin, begin + values.nbytes))
        if self._copy is not None:
            self._copy.fetch(ranges)
            return True
        for begin, end in ranges:
            first = begin - begin % mmap.PAGESIZE
            self._advise("MADV_WILLNEED", first, end - first)
        return True


# Places in object stores.

_PLACES: dict[str, tuple[ObjectPlace, int]] = {}
"""Places that this process works in by the address as a path, and by how many calls."""
_LOCK = RLock()


def _place_of(path: Name) -> tuple[ObjectPlace, str] | None:
    """Return the place of a file in an object store, and its name there."""
    if not _PLACES:
        return None
    text = PurePosixPath(path).as_posix()
    for place, _ in list(_PLACES.values()):
        if text.startswith(place.path):
            return place, text.removeprefix(place.path).removeprefix("/")
    return None


@contextmanager
def attached(place: ObjectPlace) -> Iterator[None]:
    """Make a place known to this process; copies of its objects are dropped at the end."""
    with _LOCK:
        registered, calls = _PLACES.get(place.path, (place, 0))
        _PLACES[place.path] = registered, calls + 1
    try:
        yield
    finally:
        with _LOCK:
            registered, calls = _PLACES.pop(place.path)
            if calls > 1:
                _PLACES[place.path] = registered, calls - 1


def _attached(place: ObjectPlace, function: Callable[..., None], *call: Any) -> None:
    """Run a stage on files of a place."""
    with attached(place):
        function(*call)


class AttachedPool:
    """A pool whose stages work on files of a place."""

    def __init__(self, pool: Any, place: ObjectPlace) -> None:
        self._pool, self._place = pool, place

    def run(self, function: Callable[..., None], calls: Sequence[Any]) -> Any:
        call = update_wrapper(partial(_attached, self._place, function), function)
        return self._pool.run(call, calls)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pool, name)


OWNER = "owner.json"
"""Name of the object without which a run is over."""
_BLOCK = 1 << 20  # bytes fetched at a time; a small object is fetched as a whole
_SMALL, _AT_ONCE = 4, 32  # blocks
_COPIES = 128  # open at once


class ObjectPlace:
    """Files of one run in an object store.

    Objects are written as a whole, only if there is none of the name, and never changed. There are
    no multipart uploads. Processes keep copies of what they read in files without names.

    Args:
        url: address of the run's files.
        options: of the store, as ``storage_options``.
        room: bytes of copies in a process at a time, beyond those in use.

    Raises:
        OptionError: the package is missing, or the store does not know an option, on first use.
    """

    def __init__(self, url: str, options: dict[str, str] | None, room: int) -> None:
        self.url, self.room = url, room
        self._options = options
        self.path = PurePosixPath(url).as_posix()
        self._copies: OrderedDict[str, _Copy] = OrderedDict()
        self._sizes: dict[str, int] = {}
        self._lock = RLock()

    def __repr__(self) -> str:  # Dask logs it; options may be secrets
        return f"ObjectPlace({self.url!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ObjectPlace, (self.url, self._options, self.room)

    @cached_property
    def _store(self) -> Any:
        try:
            import obstore
            from obstore.store import from_url
        except ImportError as error:
            raise OptionError(
                f"{option('scratch', self.url.rpartition('/')[0])} needs"
                f" {not_installed('obstore', 'objects')} on {socket.gethostname()}.",
                code="package_missing",
                package="obstore",
            ) from error
        config: Any = {}
        client: Any = {}
        for key, value in (self._options or {}).items():
            name = re.sub("^(aws|azure|google)_", "", key.lower())
            if name in _OF_POLARS:
                continue
            if name in _OF_CLIENT:
                client[name] = value
            else:
                config[key] = value
        try:
            return from_url(self.url, config=config, client_options=client)
        except (obstore.exceptions.BaseError, ValueError, TypeError) as error:
            raise OptionError(
                f"{option('scratch', self.url.rpartition('/')[0])}: {_plain(error)}",
                code="scratch_unusable",
            ) from error

    @contextmanager
    def _asking(self, name: str = "") -> Iterator[Any]:
        """Yield the package; errors of the store become errors of files.

        Raises:
            FileNotFoundError: there is no such object.
            FileExistsError: there is one.
            ScratchError: the store fails or refuses.
        """
        store = self._store
        import obstore

        try:
            yield partial(_call, obstore, store)
        except (FileNotFoundError, obstore.exceptions.NotFoundError) as error:
            raise FileNotFoundError(
                errno.ENOENT, os.strerror(errno.ENOENT), f"{self.url}/{name}"
            ) from error
        except obstore.exceptions.AlreadyExistsError as error:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name) from error
        except obstore.exceptions.BaseError as error:
            raise ScratchError(
                f"{self.url}: the object store failed or refused: {_plain(error)} Check the address"
                " and the storage options; workers need the same rights.",
                code="scratch_unusable",
                file=self.url,
            ) from None

    def size(self, name: str) -> int | None:
        """Return the bytes of an object; None if there is none."""
        try:
            with self._asking(name) as ask:
                return int(ask("head", name)["size"])
        except FileNotFoundError:
            return None

    def size_of(self, name: str) -> int:
        """Return the bytes of an object that exists; asked for once after :meth:`names`.

        Raises:
            FileNotFoundError: no such object.
        """
        n_bytes = self._sizes.get(name) or self.size(name)
        if n_bytes is None:
            path = f"{self.url}/{name}"
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return n_bytes

    def names(self, folder: str | None = None) -> list[str]:
        """Return the names of all objects, or of those in a folder."""
        sizes: dict[str, int] = {}
        with self._asking() as ask:
            for some in ask("list", folder):
                sizes |= {one["path"]: one["size"] for one in some}
        self._sizes = sizes
        return list(sizes)

    def copy(self, name: str) -> _Copy:
        """Return the copy of an object, whose bytes are fetched when they are needed.

        Raises:
            FileNotFoundError: no such object.
        """
        with self._lock:
            if name not in self._copies:
                self._copies[name] = _Copy(self, name, self.size_of(name))
            self._copies.move_to_end(name)
            # Drop the copies that were not used for longest; those in use stay until they are not.
            total = sum(copy.cached for copy in self._copies.values())
            while len(self._copies) > 1 and (total > self.room or len(self._copies) > _COPIES):
                total -= self._copies.popitem(last=False)[1].cached
            return self._copies[name]

    def ranges(self, name: str, starts: list[int], stops: list[int]) -> list[Any]:
        """Fetch ranges of an object."""
        with self._asking(name) as ask:
            return list(ask("get_ranges", name, starts=starts, ends=stops))

    def put(self, contents: dict[str, Any]) -> None:
        """Write objects that do not exist yet; others are complete already.

        Args:
            contents: bytes, or a file of this machine, by name.

        Raises:
            ScratchError: the run is over. Nothing remains of what was written.
        """
        for name, content in contents.items():
            with suppress(FileExistsError), self._asking(name) as ask:
                if isinstance(content, Path):
                    with open(content, "rb") as file:
                        ask("put", name, _bytes_of(file), mode="create")
                    content.unlink()
                else:
                    ask("put", name, content, mode="create")
        if OWNER not in contents and self.size(OWNER) is None:
            self.delete(contents)
            raise self.deleted()

    def deleted(self) -> ScratchError:
        """Return the error of a run whose objects were deleted by another process."""
        return ScratchError(
            f"{self.url}: files of this run were deleted during the run. Run it again, and do not"
            " touch its scratch; the run deletes it at its end.",
            code="scratch_deleted",
        )

    @contextmanager
    def writing(self, name: str) -> Iterator[IO[bytes]]:
        """Open a file of this machine that becomes an object when it is complete."""
        with tempfile.TemporaryFile() as file:
            yield file
            file.flush()
            self.put({name: _bytes_of(file)})

    def delete(self, names: Iterable[str]) -> None:
        """Delete objects; those that are gone are skipped."""
        chosen = list(names)
        with self._lock:
            for name in chosen:
                self._copies.pop(name, None)
        if not chosen:
            return
        try:
            with self._asking() as ask:
                ask("delete", chosen)
        except FileNotFoundError:
            return

    def delete_all(self) -> None:
        """Delete all objects of the run, its mark first: late workers delete what they write."""
        try:
            self.delete([OWNER])
            while names := self.names():
                self.delete(names)
        except (ScratchError, OptionError) as error:
            logging.getLogger("evalengine").warning(
                "note: scratch at %s could not be deleted, delete it: %s", self.url, error
            )


_OF_CLIENT = frozenset(
    {
        *("allow_http", "allow_invalid_certificates", "connect_timeout", "http1_only"),
        *("http2_only", "pool_idle_timeout", "pool_max_idle_per_host", "proxy_ca_certificate"),
        *("proxy_excludes", "proxy_url", "timeout", "user_agent"),
    }
)
"""Options of the connection, which the package takes apart from those of the store."""
_OF_POLARS = ("file_cache_ttl", "max_retries", "retry_timeout_ms", "retry_init_backoff_ms")
"""Options that only tables read."""


def _call(package: Any, store: Any, name: str, *values: Any, **named: Any) -> Any:
    return getattr(package, name)(store, *values, **named)


def _plain(error: BaseException) -> str:
    """Return the first line of an error without queries of addresses, which may be signed."""
    line = next(iter(str(error).splitlines()), type(error).__name__)
    return f"{re.sub(r'[?][^ ]*', '', line).rstrip('.')}."


def _bytes_of(file: Any) -> Any:
    """Return the content of a file, mapped."""
    if not os.fstat(file.fileno()).st_size:
        return b""
    return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


class _Copy:
    """A copy of an object, as far as it was needed, in a file without a name.

    Attributes:
        size: bytes of the object.
        cached: bytes that were fetched.
    """

    def __init__(self, place: ObjectPlace, name: str, size: int) -> None:
        self._place, self._name, self.size, self.cached = place, name, size, 0
        self._file: Any = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115, closed with this
        finalize(self, self._file.close)
        self._file.truncate(size)
        self._missing = np.ones(-(-size // _BLOCK), np.bool_)
        self._lock = RLock()

    def fetch(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Fetch the missing bytes of ranges."""
        with self._lock:
            requested = np.zeros(self._missing.size, np.bool_)
            for begin, end in ranges:
                requested[begin // _BLOCK : -(-end // _BLOCK)] = begin < end
            if requested.any() and requested.size <= _SMALL:
                requested[:] = True
            blocks = np.flatnonzero(requested & self._missing).tolist()
            for at in range(0, len(blocks), _AT_ONCE):
                some = blocks[at : at + _AT_ONCE]
                starts = [block * _BLOCK for block in some]
                stops = [min(start + _BLOCK, self.size) for start in starts]
                parts = self._place.ranges(self._name, starts, stops)
                for block, start, part in zip(some, starts, parts, strict=True):
                    self._file.seek(start)
                    self._file.write(part)
                    self._missing[block] = False
                    self.cached += len(part)

    def read(self, begin: int, end: int) -> bytes:
        """Return a range."""
        with self._lock:
            self.fetch([(begin, end)])
            self._file.seek(begin)
            content: bytes = self._file.read(end - begin)
            return content

    def mapped(self) -> Any:
        """Map the file; bytes that were not fetched are zeros until they are."""
        return _bytes_of(self._file)


class _Reader(io.RawIOBase):
    """An object as a file."""

    def __init__(self, copy: _Copy) -> None:
        super().__init__()
        self._copy, self._at = copy, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        self._at = offset + {0: 0, 1: self._at, 2: self._copy.size}[whence]
        return self._at

    def read(self, size: int = -1) -> bytes:
        end = self._copy.size if size < 0 else min(self._at + size, self._copy.size)
        content = self._copy.read(self._at, max(end, self._at))
        self._at += len(content)
        return content

    def readall(self) -> bytes:
        return self.read()
