"""Tracks of MOTChallenge and MOTS: reading; of MOTChallenge and KITTI: writing."""

from __future__ import annotations

import configparser
import math
import os
from collections.abc import Callable
from functools import partial
from typing import IO

import msgspec
import numpy as np
import polars as pl

from ...schemas.contract import words
from ...schemas.errors import InputError
from ...schemas.wording import option
from ..files import Source
from ..geometry import CORNER_NAMES
from ..problems import count_of, listing, note_of
from .format import (
    Format,
    Layout,
    Look,
    broken,
    head_of,
    is_number,
    lines_in,
    stems_or_paths,
    text_of,
)

# Tracks as text (MOTChallenge): one file per sequence, one line per box and frame.
#
# MOTChallenge has ``frame, id, x, y, width, height, confidence, class, visibility`` (in results
# and in the first benchmark three numbers after the confidence: points in space, unless all are
# whole); ground truths of confidence 0 do not count: https://motchallenge.net/instructions.

MOT_CLASSES = words(
    "pedestrian person_on_vehicle car bicycle motorbike non_mot_vehicle static_person distractor"
    " occluder occluder_on_ground occluder_full reflection crowd"
)
"""MOTChallenge's classes, from 1."""
_MOT = Layout(
    ("frame", "object_id", "x", "y", "width", "height", "score", "kind", "visibility", "last"),
    (7, 8, 9, 10),
    "Expected frame, id, x, y, width, height and confidence, and up to three more, with commas"
    " between them and no line of names.",
    ",",
    whole=frozenset({"frame", "object_id"}),
    ranges=dict.fromkeys(("width", "height"), (0.0, math.inf)),
)
_NAMED = (["frame", "id"], ["frame", "track_id"], ["frame", "object_id"])
_NOWHERE = " -1 -1 -1"  # three unused numbers of results
REGION = "DontCare"
"""Class of KITTI's regions without annotations."""


def _first_fields(head: bytes) -> list[str]:
    line = head.decode("utf-8", "replace").lstrip().split("\n", 1)[0].strip().rstrip(",")
    return [field.strip() for field in line.split(",")]


def _is_mot(head: bytes) -> bool:
    """Detect MOT text, also with a header or separators that the reader refuses."""
    fields = _first_fields(head)
    if [field.lower() for field in fields[:2]] in _NAMED:
        fields = _first_fields(head.lstrip().partition(b"\n")[2])
    elif len(fields) == 1 and fields[0].endswith(_NOWHERE):
        fields = fields[0].split()
    return (
        6 <= len(fields) <= 10
        and all(map(is_number, fields))
        and all(float(field).is_integer() for field in fields[:2])
    )


def sequence_files(look: Look) -> tuple[str, ...]:
    """Return the ``gt`` files of a folder of sequences, else ``det`` files, else all files."""
    files = look.of(".txt")
    for name in ("gt.txt", "det.txt"):
        chosen = tuple(file for file in files if os.path.basename(file) == name)
        if chosen:
            return chosen
    return files


def sequences_of(files: tuple[str, ...], look: Look) -> list[str]:
    """The sequence of each file: the folder above ``gt`` or ``det``, else the name of the file."""
    names = []
    for file in files:
        folder, name = os.path.split(os.path.abspath(file))
        above, last = os.path.split(folder)
        within = last in ("gt", "det") and name in ("gt.txt", "det.txt")
        names.append(os.path.basename(above) if within else look.relative(file))
    return stems_or_paths(names)


def without_ids(rows: pl.DataFrame, datums: pl.DataFrame, *, negative: pl.Expr) -> Source:
    """Drop rows without a track id, with a note."""
    many = rows.select(negative.sum()).item()
    words = "line", "lines", "without an id (-1), as of detections, skipped"
    notes = (note_of("boxes_without_id", many, words),) if many else ()
    return Source(rows.filter(~negative).lazy(), datums=datums, notes=notes)


def with_region_ids(rows: pl.DataFrame) -> pl.DataFrame:
    """Give each region a negative id, as it is an object by itself; frames and ids are whole."""
    region = pl.col("region").cast(pl.Int64)
    ids = pl.when("region").then(-region.cum_sum().over("sequence")).otherwise("object_id")
    return rows.with_columns(pl.col("frame").cast(pl.Int64), object_id=ids.cast(pl.Int64))


def _read_mot(look: Look) -> Source:
    files = sequence_files(look)
    names = sequences_of(files, look)
    lines = pl.concat(_mot_rows(file, name) for file, name in zip(files, names, strict=True))
    classes = {0: "pedestrian", **dict(enumerate(MOT_CLASSES, 1))}
    label = pl.col("kind").replace_strict(classes, default=None, return_dtype=pl.String)
    rows = lines.select(
        "sequence",
        "frame",
        "object_id",
        label_value=label.fill_null(pl.col("kind").cast(pl.String)),
        score="score",
        considered=pl.col("score").abs() >= 1,
        xmin="x",
        ymin="y",
        xmax=pl.col("x") + pl.col("width"),
        ymax=pl.col("y") + pl.col("height"),
        visibility="visibility",
    ).collect()
    return without_ids(rows, with_lengths(files, names), negative=pl.col("object_id") < 0)


def with_lengths(files: tuple[str, ...], names: list[str]) -> pl.DataFrame:
    """Return the sequences, with lengths from a ``seqinfo.ini`` above their folder if present."""
    lengths: list[int | None] = []
    for file in files:
        message = os.path.join(
            os.path.dirname(os.path.dirname(os.path.abspath(file))), "seqinfo.ini"
        )
        parser = configparser.ConfigParser()
        try:
            parser.read_string(text_of(message) if os.path.isfile(message) else "")
            lengths.append(parser.getint("Sequence", "seqLength", fallback=None))
        except (configparser.Error, ValueError):
            raise broken(
                message, None, "no seqLength in [Sequence]", "Write it, or remove the file."
            ) from None
    schema = {"datum_id": pl.String, "frames": pl.Int64}
    sequences = pl.DataFrame({"datum_id": names, "frames": lengths}, schema)
    return sequences if sequences["frames"].count() else sequences.drop("frames")


def _mot_rows(file: str, name: str) -> pl.LazyFrame:
    """Rows of a sequence, all lines of as many fields as the first."""
    width = len(_first_fields(head_of(file)))
    integral = _MOT.whole | {"kind"} if width < len(_MOT.names) else _MOT.whole
    counts = (width,) if width in _MOT.counts else _MOT.counts
    rows = msgspec.structs.replace(_MOT, counts=counts, whole=integral).rows(file)
    rest = rows[["kind", "visibility", "last"]].to_numpy()
    place = width == len(_MOT.names) and bool((rest > np.floor(rest)).any())
    kind = (pl.lit(0) if place else pl.col("kind").fill_null(0).clip(0)).cast(pl.Int64)
    return rows.lazy().select(
        pl.lit(name, pl.String).alias("sequence"),
        pl.col("frame", "object_id").cast(pl.Int64),
        kind.alias("kind"),
        pl.col("score", "x", "y", "width", "height"),
        visibility=pl.col("visibility") if width == _SEEN else pl.lit(None, pl.Float64),
    )


_SEEN = 9  # fields if the last is the visible share of an object
MOT = Format("mot", (".txt",), _read_mot, _is_mot, datum="sequence")


# Tables of tracks as MOTChallenge's or KITTI's text, a file a sequence.

Writer = Callable[[IO[bytes]], object]

_TRUTHS, _PREDICTIONS = "groundtruths", "predictions"
_MARKED = (
    pl.col("ignored").cast(pl.Boolean),
    pl.col("region").cast(pl.Boolean),
    ~pl.col("considered").cast(pl.Boolean),
)
_KITTI = "kitti-tracking"
_UNSAID = {MOT.name: _MARKED[:2], _KITTI: _MARKED[::2]}
"""Marks on rows that the format cannot represent."""


def track_files(
    form: str,
    truths: pl.DataFrame | None,
    frame: pl.DataFrame | None,
    datums: pl.DataFrame | None,
    warn: Callable[[str], object],
) -> dict[str, tuple[Writer, int]]:
    """Return writers of all files, with their numbers of lines.

    Ids that are not whole numbers are numbered from 1 in their order. MOTChallenge's ground truths
    are written to ``groundtruths/SEQUENCE/gt/gt.txt``, all else to ``SIDE/SEQUENCE.txt``.

    Args:
        warn: receives messages on information that the format cannot represent.

    Raises:
        InputError: rows without boxes, labels that the format has no class for, frames that it does
            not have, or sequences that are no valid file names.
    """
    sides = {_TRUTHS: truths, _PREDICTIONS: frame}
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
        if form == _KITTI:
            _warn_of_kitti(side, name, warn)
        for sequence in sequences:
            rows = lines.filter(side["sequence"].cast(pl.String) == sequence)
            nested = form == MOT.name and name == _TRUTHS
            path = f"{name}/{sequence}/gt/gt.txt" if nested else f"{name}/{sequence}.txt"
            separator = "," if form == MOT.name else " "
            write = partial(
                rows.write_csv, include_header=False, separator=separator, quote_style="never"
            )
            files[path] = (write, rows.height)
    if form == MOT.name and truths is not None and datums is not None and "frames" in datums:
        for sequence, frames in datums.select(pl.col("datum_id").cast(pl.String), "frames").rows():
            content = f"[Sequence]\nname={sequence}\nseqLength={frames}\n".encode()
            if frames is not None:
                files[f"{_TRUTHS}/{sequence}/seqinfo.ini"] = (_writer(content), 1)
    return files


def _from_one(
    sides: dict[str, pl.DataFrame | None], warn: Callable[[str], object]
) -> dict[str, pl.DataFrame | None]:
    """Shift frame numbers of both sides together so that they count from 1."""
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


def _warn_of_kitti(side: pl.DataFrame, name: str, warn: Callable[[str], object]) -> None:
    """Warn of labels and truncations that KITTI's tools read otherwise, or not at all.

    The tools ignore case.
    """
    labels = side["label_value"].cast(pl.String).unique().sort()
    classes = [one.lower() for one in _KITTI_CLASSES]
    if odd := labels.filter(~labels.str.to_lowercase().is_in(classes)).drop_nulls().to_list():
        warn(
            f"{name}: KITTI has no class for the labels {listing(odd[:5], len(odd))}, which are"
            f" written unchanged. It has {', '.join(_KITTI_CLASSES)};"
            f" {option('label_map', {odd[0]: 'Car'})} renames one."
        )
    if "truncated" in side.columns:
        cut = side.filter(pl.col("truncated").cast(pl.Float64) % 1 != 0).height
        if cut:
            warn(
                f"{name}: {count_of(cut, 'fraction')} in 'truncated' written without decimals:"
                " KITTI's tracks have whole numbers."
            )


_KITTI_CLASSES = words("Car Van Truck Pedestrian Person Person_sitting Cyclist Tram Misc DontCare")


def _writer(text: bytes) -> Writer:
    return lambda file: file.write(text)


def _sayable(
    side: pl.DataFrame, form: str, name: str, warn: Callable[[str], object]
) -> pl.DataFrame:
    """A side without rows whose marks the format does not have."""
    for marked in _UNSAID[form]:
        (column,) = marked.meta.root_names()
        gone = side.filter(marked).height if column in side.columns else 0
        if gone:
            warn(
                f"{name}: {count_of(gone, 'row')} marked in {column!r} skipped: the format has "
                "no place for them, and predictions there will count as wrong."
            )
            side = side.filter(~marked)
    shapes = [one for one in ("mask", "polygon") if one in side.columns]
    if shapes:
        warn(f"{name}: {listing(shapes)} not written: the format has only boxes.")
    return side


def _boxed(side: pl.DataFrame, name: str) -> pl.DataFrame:
    """A side whose ids are whole numbers, as ``id``."""
    n_rows = side.height
    if {*CORNER_NAMES} <= {*side.columns}:
        n_rows = side.select(pl.any_horizontal(pl.col(CORNER_NAMES).is_null()).sum()).item()
    if n_rows:
        raise InputError(
            f"{name}: {count_of(n_rows, 'row')} without a box, which the format needs.",
            code="geometry_missing",
            count=n_rows,
        )
    ids = side["object_id" if "object_id" in side.columns else "track_id"]
    if not ids.dtype.is_integer() or (ids < 0).any():
        ids = ids.rank("dense")
    return side.with_columns(id=ids.cast(pl.Int64))


def _column_or_default(side: pl.DataFrame, name: str, otherwise: float) -> pl.Expr:
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
        counted = _column_or_default(side, "considered", 1).cast(pl.Int8).alias("considered")
        seen = _column_or_default(side, "visibility", 1.0).alias("visibility")
        return side.select("frame", "id", *box, counted, kind, seen)
    nothing = [pl.lit(-1).alias(f"nothing_{i}") for i in range(2)]
    return side.select(
        "frame", "id", *box, _column_or_default(side, "score", 1.0).alias("score"), kind, *nothing
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
            f"{name}: MOTChallenge has no class for the labels {listing(odd[:5], len(odd))}; it "
            f"has {', '.join(MOT_CLASSES)}. Map each to one of them: "
            f"{option('label_map', {odd[0]: MOT_CLASSES[0]})}.",
            code="unknown_label",
            value=odd[0],
        )
    return kind.alias("class")


def _as_kitti(side: pl.DataFrame, name: str) -> pl.DataFrame:
    if "label_value" not in side.columns:
        raise InputError(
            f"{name}: KITTI has a class per box: give a column label_value.",
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
    region = _column_or_default(side, "region", 0).cast(pl.Boolean)
    nowhere = [pl.lit(value).alias(f"space_{i}") for i, value in enumerate(_NOWHERE_WRITTEN)]
    has_scores = name == _PREDICTIONS and "score" in side.columns and side["score"].count()
    scored = ["score"] if has_scores else []
    return side.select(
        "frame",
        pl.when(region).then(-1).otherwise("id").alias("id"),
        pl.when(region).then(pl.lit(REGION)).otherwise(label).alias("label"),
        _column_or_default(side, "truncated", 0).cast(pl.Int64).alias("truncated"),
        _column_or_default(side, "occluded", 0).cast(pl.Int64).alias("occluded"),
        pl.lit(-10).alias("angle"),
        *CORNER_NAMES,
        *nowhere,
        *scored,
    )


_NOWHERE_WRITTEN = (-1, -1, -1, -1000, -1000, -1000, -10)
"""Size, place and turn in space, unknown."""
FORMS = {MOT.name: _as_mot, _KITTI: _as_kitti}
"""Formats that are written."""
KIND = "tracks"
"""Format name of track sources."""


# MOTS text: masks of tracks, one file per sequence, one line per mask and frame.
#
# ``time_frame id class_id height width rle`` separated by blanks, the last in COCO's compressed
# form; class 10 marks regions of objects that are not annotated individually:
# https://www.vision.rwth-aachen.de/page/mots

_CLASSES = {1: "car", 2: "pedestrian", 10: "ignore"}
_REGION = 10
_MOTS = Layout(
    ("frame", "object_id", "kind", "height", "width", "counts"),
    (6,),
    "Expected time_frame, id, class_id, height, width and the run-length code, with blanks between"
    " them.",
    texts=frozenset({"counts"}),
    whole=frozenset({"frame", "object_id", "kind", "height", "width"}),
)


def _is_mots(head: bytes) -> bool:
    """Detect MOTS text; codes of few pixels may consist of digits only."""
    lines = [line.split() for line in lines_in(head)]
    return not _MOTS.fault(lines[0] if lines else ()) and not all(
        is_number(fields[-1]) for fields in lines
    )


def _read(look: Look) -> Source:
    files = sequence_files(look)
    names = sequences_of(files, look)
    table = _MOTS.of_files(files, names, "sequence")
    kind = pl.col("kind").cast(pl.Int64)
    label = kind.replace_strict(_CLASSES, default=None, return_dtype=pl.String)
    rows = with_region_ids(table.with_columns(region=kind == _REGION)).select(
        *("sequence", "frame", "object_id"),
        label_value=label.fill_null(kind.cast(pl.String)),
        mask=pl.struct(
            size=pl.concat_list(pl.col("height", "width").cast(pl.Int64)), counts="counts"
        ),
        region="region",
    )
    if not rows["region"].any():
        rows = rows.drop("region")
    return Source(rows.lazy(), datums=with_lengths(files, names))


MOTS = Format("mots", (".txt",), _read, _is_mots, datum="sequence")
