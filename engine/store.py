"""Scorecards on disk: a folder of Parquet files and ``run.json``, written all or nothing.

The folder is made beside its target under another name and takes its place once every byte is on
disk, so a reader sees the old result or the new one, never a half. ``run.json`` lists every file
with its size, so that a folder that was copied in part is refused by name.
"""

from __future__ import annotations

import math
import os
import secrets
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from glob import escape
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from .exchange import exchange
from .exports import makers
from .schemas.embedder import Encoder
from .schemas.errors import OptionError, ResultError
from .schemas.option_values import make_options
from .schemas.options import FIELDS, Options
from .schemas.results import FRAMES
from .schemas.wording import option
from .scorecard import Scorecard

RUN_FILE = "run.json"
LABELS_FILE = "labels.parquet"
KIND = "evalengine result"
NEW, OLD = ".new", ".old"
FORMAT = 1
"""Raised when a reader of the older layout could no longer read the newer."""

_OWN = ("kind", "format", "task", "dialect", "options", "notes", "primary", "directions", "files")


def check_target(directory: str | Path, *, overwrite: bool = False) -> Path:
    """Where a result would be written, once it is known that it may be.

    Called before the work too, so that a long run does not end on this.

    Args:
        directory: the folder to make; an empty one may exist already.
        overwrite: whether an earlier result there may be replaced.

    Raises:
        ResultError: something else stands there, or an earlier result that is to be kept.
    """
    target = Path(directory).resolve()
    if not target.exists():
        near = next(parent for parent in target.parents if parent.exists())
        if not near.is_dir() or not os.access(near, os.W_OK | os.X_OK):
            raise ResultError(f"cannot write {directory}: {near} is no writable folder.")
        return target
    if not target.is_dir():
        raise ResultError(f"cannot write {directory}: a file of that name stands there.")
    if not any(target.iterdir()):
        return target
    if not _is_result(target):
        raise ResultError(
            f"cannot write {directory}: the folder holds something else than an evalengine"
            " result; choose a new folder."
        )
    if not overwrite:
        raise ResultError(
            f"{directory} already holds a result; choose another folder, or replace it with"
            f" {option('overwrite', True)}."
        )
    return target


def save(card: Scorecard, directory: str | Path, *, overwrite: bool = False) -> Path:
    """Write a scorecard's frames as Parquet and its ``run.json`` into a folder, all or nothing.

    Args:
        card: what to write; frames not yet made are made now.
        directory: the folder to make.
        overwrite: replace an earlier result that stands there.

    Returns:
        the folder's absolute path.

    Raises:
        ResultError: see :func:`check_target`; or the disk refused.
    """
    target = check_target(directory, overwrite=overwrite)
    fresh = fresh_name(target)
    card.make()
    try:
        write_into(card, fresh)
        swap(fresh, target)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ResultError(f"cannot write {directory}: {error}.") from error
    finally:
        # Gone after a rename; still there after any failure, an interruption included.
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def fresh_name(target: Path) -> Path:
    """A new name beside a folder, under which its successor is made."""
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}{NEW}")


def write_into(card: Scorecard, folder: Path) -> None:
    """Make a folder and write a scorecard into it; every file is on disk on return.

    Raises:
        OSError: the folder exists, or the disk refuses.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    _fill(card, folder)


def load(directory: str | Path) -> Scorecard:
    """The scorecard that :func:`save` wrote; its frames are read when they are asked for.

    Raises:
        ResultError: no result stands there, or parts of it are missing or cut short.

    Example:
        >>> import evalengine as ee
        >>> ee.load("runs/monday").value("mAP", iou_threshold=0.5)
    """
    folder = Path(directory)
    run = _read_run(folder)
    for name, size in run["files"].items():
        path = folder / name
        if not path.is_file():
            raise ResultError(f"{folder} is a half-written result: {name} is missing.")
        if path.stat().st_size != size:
            raise ResultError(
                f"{folder} is a half-written result: {name} has {path.stat().st_size} bytes"
                f" instead of {size}."
            )
    return Scorecard(
        task=run["task"],
        dialect=run["dialect"],
        options=_restored(run["options"], folder),
        frames={
            name: partial(_read, folder / f"{name}.parquet")
            for name in FRAMES
            if f"{name}.parquet" in run["files"]
        },
        labels=_read(folder / LABELS_FILE),
        run={name: value for name, value in run.items() if name not in (*_OWN, "warnings", "read")},
        notes=tuple(run["notes"]),
        warnings=tuple(run.get("warnings", ())),
        exports=makers(run["task"], run["dialect"]),
        primary=tuple(run["primary"]),
        directions=run["directions"],
        read=run.get("read", {}),
    )


def _is_result(folder: Path) -> bool:
    try:
        found = msgspec.json.decode((folder / RUN_FILE).read_bytes())
    except (OSError, msgspec.DecodeError):
        return False
    return isinstance(found, dict) and found.get("kind") == KIND


def _read_run(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise ResultError(
            f"{folder} is {'a file, not' if folder.exists() else 'not there, so no'} folder of"
            " results."
        )
    path = folder / RUN_FILE
    if not path.is_file():
        raise ResultError(f"{folder} is no evalengine result: it has no {RUN_FILE}.")
    try:
        run = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError) as error:
        raise ResultError(f"{path} cannot be read: {error}.") from error
    if not isinstance(run, dict) or run.get("kind") != KIND:
        raise ResultError(f"{folder} is no evalengine result: {RUN_FILE} is another program's.")
    if run.get("format") != FORMAT:
        raise ResultError(
            f"{folder} was written in result format {run.get('format')!r}; this version reads"
            f" {FORMAT}."
        )
    missing = [name for name in _OWN if name not in run]
    if missing:
        raise ResultError(f"{path} is incomplete: it has no {', '.join(missing)}.")
    return run


def _read(path: Path) -> pl.DataFrame:
    try:
        return pl.read_parquet(path, glob=False)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ResultError(f"{path} cannot be read: {error}.") from error


def _fill(card: Scorecard, folder: Path) -> None:
    """Write every file of a result and see it to the disk, ``run.json`` last."""
    files: dict[str, int] = {}

    def keep(name: str, write: Callable[[Path], Any]) -> None:
        write(folder / name)
        sync(folder / name)
        files[name] = (folder / name).stat().st_size

    for name in card.frames:
        file = card.in_file(name)
        write = card.frame(name).write_parquet if file is None else file.copy_to
        keep(f"{name}.parquet", write)
    keep(LABELS_FILE, card.labels.write_parquet)
    run = {
        **card.run,
        "kind": KIND,
        "format": FORMAT,
        "task": card.task,
        "dialect": card.dialect,
        "options": _plain_options(card.options),
        "notes": card.notes,
        "warnings": card.warnings,
        "primary": card.primary,
        "directions": card.directions,
        "read": card.read,
        "files": dict(files),
    }
    text = msgspec.json.format(msgspec.json.encode(run, enc_hook=str), indent=2)
    keep(RUN_FILE, lambda path: path.write_bytes(text + b"\n"))
    sync(folder)


def sync(path: Path) -> None:
    """See a file or folder to the disk."""
    # Windows cannot open a folder, and wants write access to flush a file.
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def swap(fresh: Path, target: Path) -> None:
    """Put a finished folder in the place of another, in one step where the system has one.

    Without such a step there is a moment without a folder of that name; the earlier one comes back
    if the second rename fails, and :func:`mend` brings it back if the process died there.

    Raises:
        OSError: the folder could not be renamed; the target is as it was.
    """
    old = fresh.with_suffix(OLD)
    replaced = target.exists()
    if replaced and exchange(fresh, target):
        old = fresh
    else:
        if replaced:
            target.rename(old)
        try:
            fresh.rename(target)
        except OSError:
            if replaced:
                old.rename(target)
            raise
    with suppress(OSError):  # the result stands; its folder's entry reaches the disk in time
        sync(target.parent)
    if replaced:
        shutil.rmtree(old, ignore_errors=True)


def mend(target: Path) -> int:
    """Clear away what runs that died left beside a folder; nobody else may be writing to it.

    Returns:
        how many folders were left behind.
    """
    if not target.parent.is_dir():
        return 0
    left = [
        path
        for path in target.parent.glob(f".{escape(target.name)}.*")
        if path.suffix in (NEW, OLD) and path.is_dir()
    ]
    for path in left:
        if path.suffix == OLD and not target.exists():
            path.rename(target)
        else:
            shutil.rmtree(path, ignore_errors=True)
    return len(left)


def _plain_options(options: Options) -> dict[str, Any]:
    """Options as JSON can hold them."""
    plain = {field: getattr(options, field) for field in FIELDS}
    given = plain["label_map"]
    if isinstance(given, Mapping):
        # JSON has no keys but strings; a list of pairs is as good a label map.
        plain["label_map"] = [list(pair) for pair in given.items()]
    elif given is not None and not isinstance(given, (str, list, tuple)):
        plain["label_map"] = pl.DataFrame(given).to_dicts()
    if isinstance(options.embedder, Encoder):
        plain["embedder"] = {"object": options.embedder.name}
    if options.area_ranges:
        # JSON has no infinity, the usual upper end of the last range.
        plain["area_ranges"] = {
            name: [str(end) if math.isinf(end) else end for end in ends]
            for name, ends in options.area_ranges.items()
        }
    return plain


def _restored(plain: dict[str, Any], folder: Path) -> Options:
    given = dict(plain)
    mapped = given.get("label_map")
    if mapped and isinstance(mapped, list):
        if all(isinstance(pair, list) for pair in mapped):
            given["label_map"] = {_hashable(old): _hashable(new) for old, new in mapped}
        elif all(isinstance(row, dict) for row in mapped):
            given["label_map"] = pl.DataFrame(mapped)
    try:
        return make_options(**given)
    except OptionError as error:
        raise ResultError(f"{folder / RUN_FILE}: {error}") from error


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value
