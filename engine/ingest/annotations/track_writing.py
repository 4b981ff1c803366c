"""Tables of tracks as MOTChallenge's or KITTI's text, a file a sequence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import IO

import polars as pl

from evalengine.ingest.boxes import CORNER_NAMES
from evalengine.ingest.problems import count_of, listing
from evalengine.schemas.errors import InputError
from evalengine.schemas.wording import option

from .tracks import KITTI_TRACKS, MOT, MOT_CLASSES, REGION

Writer = Callable[[IO[bytes]], object]

_TRUTHS, _FOUND = "groundtruths", "predictions"
_MARKED = (pl.col("ignored").cast(pl.Boolean), pl.col("region").cast(pl.Boolean),
           ~pl.col("considered").cast(pl.Boolean))  # fmt: skip
_UNSAID = {MOT.name: _MARKED[:2], KITTI_TRACKS.name: _MARKED[::2]}
"""Marks on rows that the format cannot represent."""


def track_files(
    form: str,
    truths: pl.DataFrame | None,
    found: pl.DataFrame | None,
    datums: pl.DataFrame | None,
    warn: Callable[[str], object],
) -> dict[str, tuple[Writer, int]]:
    """Return writers of all files, with their numbers of lines.

    Ids that are not whole numbers are numbered from 1 in their order. MOTChallenge's ground truths
    are written to ``groundtruths/SEQUENCE/gt/gt.txt``, all else to ``SIDE/SEQUENCE.txt``.

    Args:
        truths: canonical columns, or None.
        found: the predictions, in canonical columns, or None.
        datums: ``datum_id`` and, if known, ``frames``; or None.
        warn: receives messages on information that the format cannot represent.

    Raises:
        InputError: rows without boxes, labels that the format has no class for, frames that it does
            not have, or sequences that are no valid file names.
    """
    sides = {_TRUTHS: truths, _FOUND: found}
    if form == MOT.name:
        sides = _from_one(sides, warn)
    named = [] if datums is None else [datums["datum_id"].cast(pl.String)]
    named += [side["sequence"].cast(pl.String) for side in sides.values() if side is not None]
    sequences = pl.concat(named).unique().sort()
    odd = sequences.filter(sequences.str.contains(r"[/\\\x00]|^\.|^$")).to_list()
    if odd:
        raise InputError(
            f"sequences are names of files here, and {listing(odd[:3])} cannot be.",
            code="not_a_file_name",
            column="sequence",
            value=odd[0],
        )
    files: dict[str, tuple[Writer, int]] = {}
    for name, side in sides.items():
        if side is None:
            continue
        side = _sayable(side, form, name, warn)
        lines = FORMS[form](_boxed(side, name), name)
        for sequence in sequences:
            own = lines.filter(side["sequence"].cast(pl.String) == sequence)
            nested = form == MOT.name and name == _TRUTHS
            path = f"{name}/{sequence}/gt/gt.txt" if nested else f"{name}/{sequence}.txt"
            files[path] = (partial(_write, own, "," if form == MOT.name else " "), own.height)
    if form == MOT.name and truths is not None and datums is not None and "frames" in datums:
        for sequence, frames in datums.select(pl.col("datum_id").cast(pl.String), "frames").rows():
            said = f"[Sequence]\nname={sequence}\nseqLength={frames}\n".encode()
            if frames is not None:
                files[f"{_TRUTHS}/{sequence}/seqinfo.ini"] = (partial(_put, said), 1)
    return files


def _from_one(
    sides: dict[str, pl.DataFrame | None], warn: Callable[[str], object]
) -> dict[str, pl.DataFrame | None]:
    """Shift frame numbers of both sides together so that they count from 1.

    Raises:
        InputError: frames below 0.
    """
    from_zero = False
    for name, side in sides.items():
        early = 0 if side is None else side.filter(pl.col("frame") < 0).height
        if early:
            raise InputError(
                f"{name}: {count_of(early, 'row')} of frames below 0, and MOTChallenge counts"
                " frames from 1. Renumber those of both sides.",
                code="too_low",
                column="frame",
                count=early,
            )
        from_zero |= side is not None and bool((side["frame"] == 0).any())
    if not from_zero:
        return sides
    warn("frames count from 0 here and from 1 in MOTChallenge's text: 1 is added to all of them.")
    return {
        name: None if side is None else side.with_columns(pl.col("frame") + 1)
        for name, side in sides.items()
    }


def _write(lines: pl.DataFrame, separator: str, file: IO[bytes]) -> None:
    lines.write_csv(file, include_header=False, separator=separator, quote_style="never")


def _put(text: bytes, file: IO[bytes]) -> None:
    file.write(text)


def _sayable(
    side: pl.DataFrame, form: str, name: str, warn: Callable[[str], object]
) -> pl.DataFrame:
    """A side without rows whose marks the format does not have."""
    for marked in _UNSAID[form]:
        (column,) = marked.meta.root_names()
        gone = side.filter(marked).height if column in side.columns else 0
        if gone:
            warn(
                f"{name}: {count_of(gone, 'row')} marked in {column!r} left out: the format has no"
                " place for that, and predictions that lie there will count as wrong."
            )
            side = side.filter(~marked)
    shapes = [one for one in ("mask", "polygon") if one in side.columns]
    if shapes:
        warn(f"{name}: {listing(shapes)} not written: the format has boxes alone.")
    return side


def _boxed(side: pl.DataFrame, name: str) -> pl.DataFrame:
    """A side whose ids are whole numbers, as ``id``."""
    lone = side.height
    if {*CORNER_NAMES} <= {*side.columns}:
        lone = side.select(pl.any_horizontal(pl.col(CORNER_NAMES).is_null()).sum()).item()
    if lone:
        raise InputError(
            f"{name}: {count_of(lone, 'row')} without a box, which the format needs.",
            code="geometry_missing",
            count=lone,
        )
    ids = side["object_id" if "object_id" in side.columns else "track_id"]
    if not ids.dtype.is_integer() or (ids < 0).any():
        ids = ids.rank("dense")
    return side.with_columns(id=ids.cast(pl.Int64))


def _given(side: pl.DataFrame, name: str, otherwise: float) -> pl.Expr:
    return pl.col(name).fill_null(otherwise) if name in side.columns else pl.lit(otherwise)


def _as_mot(side: pl.DataFrame, name: str) -> pl.DataFrame:
    box = (
        "xmin",
        "ymin",
        (pl.col("xmax") - pl.col("xmin")).alias("width"),
        (pl.col("ymax") - pl.col("ymin")).alias("height"),
    )
    kind = _classes(side, name)
    if name == _TRUTHS:
        counted = _given(side, "considered", 1).cast(pl.Int8).alias("considered")
        seen = _given(side, "visibility", 1.0).alias("visibility")
        return side.select("frame", "id", *box, counted, kind, seen)
    nothing = [pl.lit(-1).alias(f"nothing_{i}") for i in range(2)]
    return side.select(
        "frame", "id", *box, _given(side, "score", 1.0).alias("score"), kind, *nothing
    )


def _classes(side: pl.DataFrame, name: str) -> pl.Series:
    """Return MOTChallenge's class numbers; pedestrians by default."""
    if "label_value" not in side.columns:
        return pl.Series("class", [1], pl.Int64).new_from_index(0, side.height)
    numbers = {one: i for i, one in enumerate(MOT_CLASSES, 1)}
    words = side["label_value"].cast(pl.String)
    kind = words.str.to_lowercase().replace_strict(numbers, default=None, return_dtype=pl.Int64)
    kind = kind.fill_null(words.cast(pl.Int64, strict=False))
    odd = side["label_value"].filter(kind.is_null()).unique().sort().to_list()
    if odd:
        raise InputError(
            f"{name}: MOTChallenge has no class for the labels {listing(odd[:5], len(odd))}; it has"
            f" {', '.join(MOT_CLASSES)}. Say which of them each is:"
            f" {option('label_map', {odd[0]: MOT_CLASSES[0]})}.",
            code="unknown_label",
            value=odd[0],
        )
    return kind.alias("class")


def _as_kitti(side: pl.DataFrame, name: str) -> pl.DataFrame:
    if "label_value" not in side.columns:
        raise InputError(
            f"{name}: KITTI has a class a box: give a column label_value.",
            code="column_missing",
            column="label_value",
        )
    label = pl.col("label_value").cast(pl.String)
    odd = side.filter(label.str.contains(r"\s") | (label == ""))["label_value"].unique().to_list()
    if odd:
        raise InputError(
            f"{name}: labels with blanks in KITTI's text: {listing(odd[:5])}.",
            code="label_unwritable",
            value=odd[0],
        )
    region = _given(side, "region", 0).cast(pl.Boolean)
    nowhere = [pl.lit(value).alias(f"space_{i}") for i, value in enumerate(_NOWHERE)]
    known = name == _FOUND and "score" in side.columns and side["score"].count()
    scored = ["score"] if known else []
    return side.select(
        "frame",
        pl.when(region).then(-1).otherwise("id").alias("id"),
        pl.when(region).then(pl.lit(REGION)).otherwise(label).alias("label"),
        _given(side, "truncated", 0).cast(pl.Int64).alias("truncated"),
        _given(side, "occluded", 0).cast(pl.Int64).alias("occluded"),
        pl.lit(-10).alias("angle"),
        *CORNER_NAMES,
        *nowhere,
        *scored,
    )


_NOWHERE = (-1, -1, -1, -1000, -1000, -1000, -10)
"""Size, place and turn in space, unknown."""
FORMS = {MOT.name: _as_mot, KITTI_TRACKS.name: _as_kitti}
"""Formats that are written."""
KIND = "tracks"
"""Format name of track sources."""
