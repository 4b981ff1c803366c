"""Scorecards and comparisons on disk."""

from __future__ import annotations

import hashlib
import math
import os
import shutil
import weakref
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from ..atomic import fresh_name, reads, refuse_remote, swap, sweep, sync
from ..exports import makers
from ..forked import refuse_cut_off
from ..report.provenance import command
from ..schemas.errors import OptionError, ResultError, ScratchError, WriteError
from ..schemas.option_values import Encoder, TableObject, make_options
from ..schemas.options import FIELDS, Options
from ..schemas.results import FRAMES as results_FRAMES
from ..schemas.results import Finding, Schema
from ..schemas.tuning import tuning
from ..schemas.wording import option
from ..tallies import stored

if TYPE_CHECKING:
    from .card import Scorecard

# Frames stored in files until they are requested.


class Paged(msgspec.Struct, frozen=True):
    """Frames for the report.

    Attributes:
        makers: frame -> provider.
        missing: frame -> why it is missing, and how to get it.
    """

    makers: dict[str, Callable[[], pl.DataFrame]] = {}
    missing: dict[str, str] = {}


class FrameFile:
    """A frame in a Parquet file that is deleted with this object."""

    def __init__(self, path: Path, height: int, let_go: Callable[[], object]) -> None:
        """Take ownership of the file.

        Args:
            height: number of rows.
            let_go: deletes the file; called once, at the latest when the process ends.
        """
        self.path = path
        self.height = height
        weakref.finalize(self, let_go)

    def __call__(self) -> pl.DataFrame:
        """Read the frame.

        Raises:
            ScratchError: the file was deleted from outside.
        """
        try:
            return pl.read_parquet(self.path, glob=False)
        except FileNotFoundError as error:
            raise ScratchError(
                f"{self.path}: the file of this frame, which was too large for memory, was"
                " deleted. Save results before scratch folders are emptied, or run again."
            ) from error

    def copy_to(self, target: Path) -> None:
        """Copy the file.

        A hard link would not do: a change to the saved result would also change this frame and
        every other result saved from it.

        Args:
            target: path that does not exist yet.

        Raises:
            OSError: it cannot be written.
        """
        shutil.copyfile(self.path, target)


# Scorecards on disk: a folder of Parquet files and ``run.json``, written atomically.
#
# The folder is written under a temporary name and renamed once all bytes are on disk.
# ``run.json`` lists every file with its size, so that an incomplete copy is detected.

RUN_FILE = "run.json"
TALLY_FILE = "tally.zip"
OWN_FILE = "own.tally.zip"
"""Tally of the values of own metrics."""
"""Tally of a run, for comparisons and searches; omitted if larger than ``Tuning.tally_bytes``."""
LABELS_FILE = "labels.parquet"
PAGE = "page_"
"""Prefix of the files with the report's frames."""
_PARQUET = ".parquet"
KIND = "evalengine result"
FORMAT = 1
"""Raised when a reader of the older layout could no longer read the newer."""


class _Run(msgspec.Struct):
    """Fields of ``run.json`` that describe the result; the rest describes the run."""

    kind: str
    format: int
    task: str
    dialect: str
    options: dict[str, Any]
    notes: list[str]
    primary: list[str]
    directions: dict[str, str]
    files: dict[str, int]
    digests: dict[str, str] = {}  # none in results of earlier versions
    warnings: list[str] = []
    findings: list[Finding] = []
    read: dict[str, int] = {}
    read_files: dict[str, int] = {}
    lacking: dict[str, str] = {}
    command: str = ""
    cite: str = ""


class _Account(msgspec.Struct):
    """Parts of the run's own account that are read again."""

    inputs: dict[str, dict[str, Any]] = {}
    datums: int = 0
    recognised: dict[str, dict[str, str]] = {}
    columns: dict[str, dict[str, Any]] = {}
    seconds: dict[str, float] = {}
    buckets: int | None = None
    findings: list[Any] = []
    content: dict[str, str] = {}
    fingerprint: str = ""
    evalengine: str = ""
    scored: str = ""


_LABELS: Schema = {"label_key": pl.String, "label_value": None, "label_name": pl.String}
_NEVER_NULL = ("metric", "curve")


def check_target(directory: str | Path, *, overwrite: bool = False) -> Path:
    """Return the path of a result to write, after checking that it may be written.

    Also called before scoring, so that a long run does not fail at the end.

    Args:
        directory: the folder to create; may exist if empty.
        overwrite: an earlier result there may be replaced.

    Raises:
        ResultError: the path is occupied, or has an earlier result and ``overwrite`` is False.
    """
    target = real_folder(directory)
    sweep(target.parent, [target.name])
    if not target.exists():
        parent_folder = next(parent for parent in target.parents if parent.exists())
        if not parent_folder.is_dir() or not os.access(parent_folder, os.W_OK | os.X_OK):
            raise ResultError(
                f"cannot write {directory}: {parent_folder} is not a writable folder.",
                code="write_failed",
            )
        return target
    if not target.is_dir():
        raise ResultError(f"cannot write {directory}: there is a file of that name.")
    if not any(target.iterdir()):
        return target
    if not _is_result(target):
        raise ResultError(
            f"cannot write {directory}: the folder contains something other than an evalengine"
            " result; choose a new folder.",
            code="folder_used",
        )
    strange = _strangers(target)
    if overwrite and strange:
        more = f" and {len(strange) - 3} more" if strange[3:] else ""
        raise ResultError(
            f"cannot replace {directory}: {', '.join(strange[:3])}{more} in it is not of the result"
            " and would be lost; move it away, or choose another folder.",
            code="write_failed",
            files=strange,
        )
    if not overwrite:
        raise ResultError(
            f"{directory} already contains a result; choose another folder, or replace it with"
            f" {option('overwrite', True)}."
        )
    return target


def real_folder(directory: str | Path) -> Path:
    """Return the absolute path of a folder without links; it need not exist.

    Raises:
        ResultError: the links form a cycle.
        OptionError: an address.
    """
    refuse_remote(directory)
    why: object = "its links lead back to themselves"
    try:
        target = Path(directory).resolve()
        if not any(path.is_symlink() for path in (target, *target.parents)):
            return target
    except RuntimeError:  # of such links, in Pythons before 3.13; later ones keep the links
        pass
    except OSError as error:
        why = error
    raise ResultError(f"cannot write {directory}: {why}.", code="write_failed")


def save(card: Scorecard, directory: str | Path, *, overwrite: bool = False) -> Path:
    """Write a scorecard's frames as Parquet and its ``run.json`` into a folder, atomically.

    Args:
        card: frames not computed yet are computed now.
        directory: the folder to create.
        overwrite: replace an earlier result there.

    Returns:
        absolute path of the folder.

    Raises:
        ResultError: see :func:`check_target`.
        WriteError: the folder cannot be written.
    """
    refuse_cut_off()
    target = check_target(directory, overwrite=overwrite)
    card.make()
    return _replaced(directory, target, partial(_fill, card))


def _replaced(directory: str | Path, target: Path, fill: Callable[[Path], None]) -> Path:
    """Fill a new folder and put it in the place of another.

    Raises:
        WriteError: the folder cannot be written.
    """
    fresh = fresh_name(target)
    try:
        fresh.parent.mkdir(parents=True, exist_ok=True)
        fresh.mkdir()
        fill(fresh)
        swap(fresh, target)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise WriteError(f"cannot write {directory}: {error}.") from error
    finally:
        # Gone after a rename; still there after any failure, an interruption included.
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def write_into(card: Scorecard, folder: Path) -> None:
    """Create a folder and write a scorecard into it; all files are synced on return.

    Raises:
        OSError: the folder exists, or cannot be written.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    _fill(card, folder)


def _as_json(renames: Mapping[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(renames, enc_hook=str), indent=2) + b"\n"


def read(directory: str | Path) -> dict[str, Any]:
    """Return the constructor arguments of a saved scorecard; frames are read on first access.

    Raises:
        ResultError: the folder has no result, or parts of it are missing or truncated.
    """
    folder = Path(directory)
    run, account = _read_run(folder)
    reads([folder / name for name in (RUN_FILE, *run.files)])
    for name, size in run.files.items():
        path = folder / name
        if not path.is_file():
            raise _damaged(f"{folder} is a half-written result: {name} is missing.", name)
        if (actual := path.stat().st_size) != size:
            odd = f"{name} has {actual} bytes instead of {size}."
            raise _damaged(f"{folder} is a half-written result: {odd}", name)
    frames = {
        name: partial(_read, folder / f"{name}.parquet", run, columns)
        for name, columns in results_FRAMES.items()
        if f"{name}.parquet" in run.files
    }
    page = partial(
        Paged,
        {
            name[len(PAGE) : -len(_PARQUET)]: partial(_read, folder / name, run, {})
            for name in run.files
            if name.startswith(PAGE) and name.endswith(_PARQUET)
        },
        run.lacking,
    )
    return {
        "task": run.task,
        "dialect": run.dialect,
        "options": restored_options(run.options, folder),
        "frames": frames,
        "labels": _read(folder / LABELS_FILE, run, _LABELS),
        "run": account,
        "notes": tuple(run.notes),
        "warnings": tuple(run.warnings),
        "findings": tuple(run.findings),
        "exports": partial(makers, run.task, run.dialect),
        "primary": tuple(run.primary),
        "directions": run.directions,
        "read": run.read,
        "files": run.read_files,
        "folder": folder,
        "page": page,
        "content": dict(account.get("content", {})).copy,
    }


def tally_bytes(directory: str | Path) -> int:
    """Size of the tally that a result keeps for comparing; 0 without one."""
    path = Path(directory) / TALLY_FILE
    return path.stat().st_size if path.is_file() else 0


REPORT_FILE = "report.html"
EXTRA_FILES = (
    "_SUCCESS",
    "_SUCCESS.new",
    "job.json",
    "nights.json",
    "baseline.parquet",
    "baseline",
    REPORT_FILE,
)
"""Additional files that a job writes into a result's folder."""


def _strangers(folder: Path) -> list[str]:
    """Names in a result's folder that are not of the result."""
    files = msgspec.json.decode((folder / RUN_FILE).read_bytes()).get("files")
    expected = {
        RUN_FILE,
        LABELS_FILE,
        TALLY_FILE,
        OWN_FILE,
        *EXTRA_FILES,
        *(f"{name}.parquet" for name in results_FRAMES),
    }
    expected |= {*files} if isinstance(files, dict) else set()
    return sorted(path.name for path in folder.iterdir() if path.name not in expected)


def _is_result(folder: Path) -> bool:
    try:
        content = msgspec.json.decode((folder / RUN_FILE).read_bytes())
    except (OSError, msgspec.DecodeError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("kind") == KIND


def _damaged(message: str, file: str, **facts: Any) -> ResultError:
    return ResultError(message, code="result_damaged", file=file, **facts)


def _read_run(folder: Path) -> tuple[_Run, dict[str, Any]]:
    """Split ``run.json`` into the description of the result and the rest."""
    if not folder.is_dir():
        why = "a file, not a folder of results" if folder.exists() else "no such folder"
        raise ResultError(f"{folder}: {why}.", code="file_missing")
    path = folder / RUN_FILE
    if not path.is_file():
        raise ResultError(
            f"{folder} is not an evalengine result: it has no {RUN_FILE}.", code="not_a_result"
        )
    try:
        content = msgspec.json.decode(path.read_bytes())
    except (OSError, msgspec.DecodeError, RecursionError) as error:
        raise _damaged(f"{path} cannot be read: {error}.", path.name) from error
    if not isinstance(content, dict) or content.get("kind") != KIND:
        raise ResultError(f"{folder} is not an evalengine result: {RUN_FILE} is another program's.")
    if content.get("format") != FORMAT:
        raise ResultError(
            f"{folder} was written in result format {content.get('format')!r}; this version reads"
            f" {FORMAT}."
        )
    missing = [
        field.name
        for field in msgspec.structs.fields(_Run)
        if field.required and field.name not in content
    ]
    if missing:
        raise ResultError(f"{path} is incomplete: it has no {', '.join(missing)}.")
    try:
        run = msgspec.convert(content, _Run)
        msgspec.convert(content, _Account)
        if odd := [name for name in run.files if os.path.basename(name) != name]:
            raise ResultError(f"{path} lists {odd[0]!r}, which is not in its folder.")
    except (msgspec.ValidationError, RecursionError) as error:
        raise _damaged(f"{path} is not as evalengine wrote it: {error}.", path.name) from error
    return run, {
        name: value for name, value in content.items() if name not in _Run.__struct_fields__
    }


def _read(path: Path, run: _Run, columns: Schema) -> pl.DataFrame:
    """Read a frame of a result and check that it belongs to this result.

    The file is opened once, so that a concurrent replacement of the result cannot mix two versions.
    """
    digest = run.digests.get(path.name)
    try:
        with open(path, "rb") as file:
            if digest is not None and hashlib.file_digest(file, "sha256").hexdigest() != digest:
                raise _damaged(
                    f"{path} is not the file that {RUN_FILE} lists: it is damaged, or another"
                    " result has taken its place since this one was loaded. Load it again.",
                    path.name,
                )
            file.seek(0)
            frame = pl.read_parquet(file)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise ResultError(f"{path} cannot be read: {error}.") from error
    missing = [name for name in columns if name not in frame.columns]
    if missing:
        message = f"{path} is not a frame of a result: it has no column {missing[0]!r}."
        raise _damaged(message, path.name, column=missing[0])
    for name, expected in columns.items():
        dtype = frame.schema[name]
        if not _fits(dtype, expected) or (name in _NEVER_NULL and frame[name].null_count()):
            raise ResultError(
                f"{path} is not a frame of a result: its column {name!r} is {dtype}"
                f"{' with nulls' if _fits(dtype, expected) else ''}."
            )
    return frame.cast(
        {name: pl.Float64 for name, expected in columns.items() if expected == pl.Float64}
    )


def _fits(dtype: pl.DataType, expected: pl.DataType | type[pl.DataType] | None) -> bool:
    """Return True if a column's dtype fits the contract; ids and labels keep the input's dtype."""
    if expected is None:
        return not dtype.is_nested() and dtype != pl.Null
    return dtype.is_numeric() if expected in (pl.Int64, pl.Float64) else dtype == expected


def _fill(card: Scorecard, folder: Path) -> None:
    """Write every file of a result and see it to the disk, ``run.json`` last."""
    files: dict[str, int] = {}
    digests: dict[str, str] = {}

    def keep(name: str, write: Callable[[Path], Any]) -> None:
        write(folder / name)
        sync(folder / name)
        files[name] = (folder / name).stat().st_size
        with open(folder / name, "rb") as file:
            digests[name] = hashlib.file_digest(file, "sha256").hexdigest()

    for name in card.frames:
        file = card.in_file(name)
        write = card.frame(name).write_parquet if file is None else file.copy_to
        keep(f"{name}.parquet", write)
    keep(LABELS_FILE, card.labels.write_parquet)
    for name in card.paged:
        frame = card.page_frame(name)
        if frame is not None:
            keep(f"{PAGE}{name}{_PARQUET}", frame.write_parquet)
    if card.tallied is not None:
        tally = folder / TALLY_FILE
        stored.save(card.tallied.tallies, tally, fingerprint=card.tallied.plan.fingerprint)
        if tally.stat().st_size > tuning().tally_bytes:
            tally.unlink()
        else:
            keep(TALLY_FILE, lambda path: None)
        if card.tallied.own is not None:
            own_run = card.tallied.own
            keep(
                OWN_FILE,
                partial(stored.save, own_run.tallies, fingerprint=own_run.plan.fingerprint),
            )
    elif card.folder is not None and tally_bytes(card.folder):
        for name in (TALLY_FILE, OWN_FILE):
            if (card.folder / name).is_file():
                shutil.copyfile(card.folder / name, folder / name)
                keep(name, lambda path: None)
    run = {
        **card.run,
        "kind": KIND,
        "format": FORMAT,
        "task": card.task,
        "dialect": card.dialect,
        "options": plain_options(card.options),
        "notes": card.notes,
        "warnings": card.warnings,
        "findings": card.findings,
        "primary": card.primary,
        "directions": card.directions,
        "read": card.read,
        "read_files": card.files,
        "lacking": card.missing,
        "cite": card.cite,
        "command": command(card.task, card.options, card.run.get("inputs", {})),
        "files": dict(files),
        "digests": dict(digests),
    }
    keep(RUN_FILE, lambda path: path.write_bytes(_as_json(run)))
    sync(folder)


def plain_options(options: Options) -> dict[str, Any]:
    """Return options as JSON-compatible values."""
    plain = {field: getattr(options, field) for field in FIELDS}
    label_map = plain["label_map"]
    if isinstance(label_map, Mapping):
        # JSON has no keys but strings; a list of pairs is as good a label map.
        plain["label_map"] = [list(pair) for pair in label_map.items()]
    elif label_map is not None and not isinstance(label_map, (str, list, tuple)):
        plain["label_map"] = pl.DataFrame(label_map).to_dicts()
    if isinstance(options.embedder, Encoder):
        plain["embedder"] = {"object": options.embedder.name}
    for name in ("training", "human"):
        if isinstance(table := plain[name], TableObject):
            plain[name] = {"object": table.name, "sha256": table.digest}
    # JSON has neither NaN nor infinity, the usual upper end of the last range.
    if options.zero_division is not None and math.isnan(options.zero_division):
        plain["zero_division"] = str(options.zero_division)
    if options.area_ranges:
        plain["area_ranges"] = {
            name: [str(end) if math.isinf(end) else end for end in bounds]
            for name, bounds in options.area_ranges.items()
        }
    return plain


def restored_options(plain: dict[str, Any], folder: Path) -> Options:
    values = dict(plain)
    mapped = values.get("label_map")
    try:
        if mapped and isinstance(mapped, list):
            if all(isinstance(pair, list) for pair in mapped):
                values["label_map"] = {_hashable(old): _hashable(new) for old, new in mapped}
            elif all(isinstance(row, dict) for row in mapped):
                values["label_map"] = pl.DataFrame(mapped)
    except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
        message = f"{folder / RUN_FILE}: options: label_map: {error}."
        raise _damaged(message, RUN_FILE, option="label_map") from error
    try:
        return make_options(**values)
    except OptionError as error:
        message = f"{folder / RUN_FILE}: {error}"
        raise ResultError(message, code="result_damaged", **error.facts) from error


def _hashable(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


# Comparisons on disk: a folder of two frames and ``comparison.json``, written atomically.

COMPARISON_FILE = "comparison.json"
COMPARISON = "evalengine comparison"
FRAMES = ("differences", "flips")
_FIELDS = ("task", "dialect", "runs", "adjust", "test", "n", "directions", "notes", "warnings")


def is_comparison(directory: str | Path) -> bool:
    """Return True if a folder contains a comparison."""
    return (Path(directory) / COMPARISON_FILE).is_file()


def save_comparison(comparison: Any, directory: str | Path, *, overwrite: bool = False) -> Path:
    """Write a comparison; see :meth:`evalengine.Comparison.save`."""
    target = real_folder(directory)
    sweep(target.parent, [target.name])
    if target.exists() and not target.is_dir():
        raise ResultError(f"cannot write {directory}: there is a file of that name.")
    if target.is_dir() and any(target.iterdir()):
        expected = {COMPARISON_FILE, *(f"{name}.parquet" for name in FRAMES)}
        strange = sorted(path.name for path in target.iterdir() if path.name not in expected)
        if strange:
            raise ResultError(
                f"cannot write {directory}: {strange[0]} in it is not of a comparison; choose a new"
                " folder."
            )
        if not overwrite:
            raise ResultError(
                f"{directory} already contains a comparison; choose another folder, or replace it"
                f" with {option('overwrite', True)}.",
                code="folder_used",
            )
    record = {
        "kind": COMPARISON,
        "format": 1,
        "verdict": comparison.verdict,
        "options": plain_options(comparison.options),
        **{name: getattr(comparison, name) for name in (*_FIELDS, "names", "cites")},
    }

    def fill(fresh: Path) -> None:
        for name in FRAMES:
            getattr(comparison, name).write_parquet(fresh / f"{name}.parquet")
            sync(fresh / f"{name}.parquet")
        (fresh / COMPARISON_FILE).write_bytes(_as_json(record))
        sync(fresh / COMPARISON_FILE)

    return _replaced(directory, target, fill)


def read_comparison(directory: str | Path) -> dict[str, Any]:
    """Return the constructor arguments of a saved comparison.

    Raises:
        ResultError: the folder contains something else, or the comparison is damaged.
    """
    folder = Path(directory)
    path = folder / COMPARISON_FILE
    try:
        record = msgspec.json.decode(path.read_bytes())
        frames = {name: pl.read_parquet(folder / f"{name}.parquet") for name in FRAMES}
        if record["kind"] != COMPARISON:
            raise KeyError("kind")
        loaded = {name: record[name] for name in _FIELDS}
        options = record["options"]
    except (OSError, pl.exceptions.PolarsError, msgspec.DecodeError, KeyError, TypeError) as error:
        raise ResultError(f"{folder} is not a whole comparison: {error}.") from error
    loaded |= {name: tuple(loaded[name]) for name in ("notes", "warnings")}
    late = {name: record.get(name, {}) for name in ("names", "cites")}  # not in earlier versions
    return {**loaded, **frames, **late, "options": restored_options(options, folder)}
