"""Expansion of paths and globs to files, with suggestions for missing ones."""

from __future__ import annotations

import atexit
import difflib
import glob
import os
import re
import shutil
import stat
import sys
import tempfile
from collections.abc import Sequence

from evalengine.ingest.extensions import by_extension
from evalengine.ingest.folders import files_below
from evalengine.ingest.label_map_sets import LISTED, MAPS
from evalengine.schemas.errors import ReadError

from .foreign import foreign

_REMOTE = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+://")
_MASKS = "SegmentationClass"  # of Pascal VOC's layout: one of several folders of PNGs
_WILD = re.compile(r"[*?\[]")


def is_remote(path: str) -> bool:
    """Return whether a path is that of an object store or server: ``s3://``, ``gs://``, ``az://``,
    ...
    """
    return bool(_REMOTE.match(path)) and not path.startswith("file://")


def looks_wild(paths: Sequence[str]) -> bool:
    return any(_WILD.search(path) for path in paths)


def expand(path: str) -> list[str]:
    """Return the local files of a path, folder or glob, sorted by name.

    Raises:
        ReadError: nonexistent, or a folder without a readable file.
    """
    path = os.path.expanduser(path.removeprefix("file://"))
    if path == "-" or _is_stream(path):
        return [_kept(path)]
    if os.path.isfile(path):
        return [path]
    if os.path.isdir(path):
        return _in_folder(path)
    if not _WILD.search(path):
        raise ReadError(f"{path}: no such file.{_near(path)}", code="file_missing", file=str(path))
    found = sorted(name for name in glob.glob(path, recursive=True) if os.path.isfile(name))
    if not found:
        raise ReadError(f"{path}: no file matches.{_near(path)}")
    return found


def _is_stream(path: str) -> bool:
    """Return whether a path is a pipe or a device: standard input, or a shell's ``<(...)``."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode) or stat.S_ISSOCK(mode)


def _kept(path: str) -> str:
    """Copy a stream, which can be read only once, to a temporary file.

    Raises:
        ReadError: the stream is empty.
    """
    folder = tempfile.mkdtemp(prefix="evalengine-stream-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    name = os.path.join(folder, "stdin" if path == "-" else os.path.basename(path))
    stream = sys.stdin.buffer if path == "-" else open(path, "rb")  # noqa: SIM115
    try:
        with open(name, "wb") as file:
            shutil.copyfileobj(stream, file)
    except OSError as error:
        raise ReadError(f"{path}: cannot be read: {error.strerror or error}.") from None
    finally:
        if path != "-":
            stream.close()
    if not os.path.getsize(name):
        raise ReadError(f"{path}: nothing came from it.")
    return name


def _in_folder(path: str) -> list[str]:
    """Return the readable files of a folder; if there are none, those of its subfolders."""
    there = [entry for entry in os.scandir(path) if not entry.name.startswith((".", "_"))]
    found = sorted(entry.path for entry in there if entry.is_file())
    readable = _of_one_kind(found)
    hive = sorted(entry.name for entry in there if entry.is_dir() and "=" in entry.name)
    if readable and hive:
        raise ReadError(
            f"{path}: the folder holds both files ({os.path.basename(readable[0])!r}, ...) and"
            f" partitions ({hive[0]!r}, ...). Name one of them:"
            f" {os.path.join(path, '*' + os.path.splitext(readable[0])[1])!r} or"
            f" {os.path.join(path, '*=*', '**', '*.parquet')!r}."
        )
    readable = readable or _of_one_kind(list(files_below(path, _HIDDEN)))
    kinds = {by_extension(name) for name in readable}
    if len(kinds) == 1:
        return readable
    if not readable:
        raise ReadError(
            _foreign(found)
            or _lossy(path, found)
            or f"{path}: the folder holds no readable file.{_near(path + os.sep)}"
        )
    some = ", ".join(repr(os.path.relpath(name, path)) for name in readable[:5])
    raise ReadError(
        f"{path}: the folder holds several formats ({some}); name the files, e.g."
        f" {os.path.join(path, '*.parquet')!r}."
    )


def _of_one_kind(files: Sequence[str]) -> list[str]:
    """Return the tables among files, or the label maps if there is no table."""
    readable = [name for name in files if by_extension(name) and os.path.basename(name) != LISTED]
    for end in MAPS:  # what a data set has beside them is not a table, nor another map
        maps = [name for name in readable if os.path.splitext(name)[0].endswith(end)]
        if maps:
            return maps
    maps = [name for name in readable if os.path.basename(os.path.dirname(name)) == _MASKS]
    if maps:
        return maps
    tables = [name for name in readable if by_extension(name) != "raster"]
    return tables or readable  # a chart beside tables is not a label map


_HIDDEN = (".", "_")
"""Prefixes of names that are no data, such as bookkeeping."""


def _foreign(files: Sequence[str]) -> str | None:
    """Describe the first XML file of a folder if another tool's format is recognised."""
    for name in files:
        if name.lower().endswith(".xml"):
            with open(name, "rb") as file:
                other = foreign(file.read(4096))
            return f"{name}: {other}" if other else None
    return None


def _lossy(path: str, files: Sequence[str]) -> str | None:
    """That files are JPEG, which no label map can be."""
    found = [name for name in files if name.lower().endswith((".jpg", ".jpeg"))]
    if not found:
        return None
    return (
        f"{path}: the folder holds JPEG files ({os.path.basename(found[0])!r}, ...). They lose"
        " values of pixels: label maps are written as PNG or TIFF."
    )


def _near(path: str) -> str:
    """Return a sentence on existing names similar to a missing path."""
    folder, name = os.path.split(path)
    while _WILD.search(folder) or (folder and not os.path.exists(folder)):
        folder, name = os.path.split(folder)
    if not os.path.isdir(folder or "."):
        return ""
    there = sorted(os.listdir(folder or "."))
    where = f"the folder {folder!r}" if folder else "the working folder"
    if not there:
        return f" {where[0].upper()}{where[1:]} is empty."
    near = difflib.get_close_matches(name, there, n=3, cutoff=0.5) or there[:5]
    more = ", ..." if len(there) > len(near) else ""
    return f" In {where} there are: {', '.join(repr(entry) for entry in near)}{more}."
