"""Comparisons on disk: a folder of two frames and ``comparison.json``, written atomically."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import msgspec
import polars as pl

from ..atomic import fresh_name, swap, sweep, sync
from ..schemas.errors import ResultError, WriteError
from ..schemas.wording import option
from .storage import plain_options, real_folder, restored_options

COMPARISON_FILE = "comparison.json"
KIND = "evalengine comparison"
FRAMES = ("differences", "flips")
_KEPT = ("task", "dialect", "runs", "adjust", "test", "n", "directions", "notes", "warnings")


def is_comparison(directory: str | Path) -> bool:
    """Return True if a folder contains a comparison."""
    return (Path(directory) / COMPARISON_FILE).is_file()


def save(comparison: Any, directory: str | Path, *, overwrite: bool = False) -> Path:
    """Write a comparison; see :meth:`evalengine.Comparison.save`."""
    target = real_folder(directory)
    sweep(target.parent, [target.name])
    if target.exists() and not target.is_dir():
        raise ResultError(f"cannot write {directory}: there is a file of that name.")
    if target.is_dir() and any(target.iterdir()):
        known = {COMPARISON_FILE, *(f"{name}.parquet" for name in FRAMES)}
        strange = sorted(path.name for path in target.iterdir() if path.name not in known)
        if strange:
            raise ResultError(
                f"cannot write {directory}: {strange[0]} in it is not of a comparison; choose a new"
                " folder."
            )
        if not overwrite:
            raise ResultError(
                f"{directory} already holds a comparison; choose another folder, or replace it with"
                f" {option('overwrite', True)}.",
                code="folder_used",
            )
    fresh = fresh_name(target)
    try:
        fresh.parent.mkdir(parents=True, exist_ok=True)
        fresh.mkdir()
        for name in FRAMES:
            getattr(comparison, name).write_parquet(fresh / f"{name}.parquet")
            sync(fresh / f"{name}.parquet")
        said = {
            "kind": KIND,
            "format": 1,
            "verdict": comparison.verdict,
            "options": plain_options(comparison.options),
            **{name: getattr(comparison, name) for name in (*_KEPT, "names")},
        }
        text = msgspec.json.format(msgspec.json.encode(said, enc_hook=str), indent=2)
        (fresh / COMPARISON_FILE).write_bytes(text + b"\n")
        sync(fresh / COMPARISON_FILE)
        swap(fresh, target)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise WriteError(f"cannot write {directory}: {error}.") from error
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return target


def read_comparison(directory: str | Path) -> dict[str, Any]:
    """Return the constructor arguments of a saved comparison.

    Raises:
        ResultError: the folder contains something else, or the comparison is damaged.
    """
    folder = Path(directory)
    path = folder / COMPARISON_FILE
    try:
        said = msgspec.json.decode(path.read_bytes())
        frames = {name: pl.read_parquet(folder / f"{name}.parquet") for name in FRAMES}
        if said["kind"] != KIND:
            raise KeyError("kind")
        kept = {name: said[name] for name in _KEPT}
        options = said["options"]
    except (OSError, pl.exceptions.PolarsError, msgspec.DecodeError, KeyError, TypeError) as error:
        raise ResultError(f"{folder} is not a whole comparison: {error}.") from error
    kept |= {name: tuple(kept[name]) for name in ("notes", "warnings")}
    names = said.get("names", {})  # none in those of earlier versions
    return {**kept, **frames, "names": names, "options": restored_options(options, folder)}
