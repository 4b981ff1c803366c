"""Tracks of MOTChallenge and MOTS: reading; of MOTChallenge and KITTI: writing."""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable
from functools import partial
from typing import IO

import numpy as np
import polars as pl

from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ...schemas.wording import option
from ..geometry import CORNER_NAMES
from ..problems import count_of, listing
from .format import (
    Annotations,
    Format,
    Look,
    broken,
    is_number,
    lines_of,
    numbers_in,
    shown,
    stems_or_paths,
    text_of,
    whole_in,
    wrong_fields,
)

# Tracks as text (MOTChallenge): one file per sequence, one line per box and frame.
#
# MOTChallenge has ``frame, id, x, y, width, height, confidence, class, visibility`` (in results
# and in the first benchmark three numbers after the confidence: points in space, unless all are
# whole); ground truths of confidence 0 do not count: https://motchallenge.net/instructions.

MOT_CLASSES = (
    "pedestrian",
    "person_on_vehicle",
    "car",
    "bicycle",
    "motorbike",
    "non_mot_vehicle",
    "static_person",
    "distractor",
    "occluder",
    "occluder_on_ground",
    "occluder_full",
    "reflection",
    "crowd",
)
"""MOTChallenge's classes, from 1."""
_MOT_FIELDS = range(7, 11)
_NAMED = (["frame", "id"], ["frame", "track_id"], ["frame", "object_id"])
_NOWHERE = " -1 -1 -1"  # three unused numbers of results
_SEEN = 9  # fields if the last is the visible share of an object
_WHOLE = (0, 1)
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
        len(fields) in range(_MOT_FIELDS[0] - 1, _MOT_FIELDS[-1] + 1)
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


def without_ids(rows: pl.DataFrame, datums: pl.DataFrame, *, negative: pl.Expr) -> Annotations:
    """Drop rows without a track id, with a note."""
    many = rows.select(negative.sum()).item()
    message = (
        f"{many:,} lines without an id (-1), such as detections, are not tracks and are skipped."
    )
    notes = (("boxes_without_id", message, many),) if many else ()
    return Annotations(rows=rows.filter(~negative), datums=datums, notes=notes)


def _read_mot(look: Look) -> Annotations:
    files = sequence_files(look)
    names = sequences_of(files, look)
    rows = _mot_rows([_mot_numbers(file) for file in files], names)
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
    made = pl.DataFrame({"datum_id": names, "frames": lengths}, schema)
    return made if made["frames"].count() else made.drop("frames")


def _mot_numbers(file: str) -> Array:
    """Parse the numbers of a file, float64 [lines, fields]."""
    text = text_of(file).strip()
    if not text:
        return np.empty((0, _MOT_FIELDS[0]))
    numbers = _sound_numbers(text)
    if numbers is None:  # blank lines, commas at their ends
        lines = (line.strip().rstrip(",") for line in text.splitlines())
        numbers = _sound_numbers("\n".join(line for line in lines if line))
    if numbers is None:
        raise _wrong_line(file)
    return numbers


def _sound_numbers(text: str) -> Array | None:
    """Parse lines to numbers, if all have the same valid number of fields; otherwise None."""
    width = text.split("\n", 1)[0].count(",") + 1
    if width not in _MOT_FIELDS:
        return None
    schema = {f"column_{i}": pl.Float64 for i in range(1, width + 1)}
    try:
        numbers = pl.read_csv(text.encode(), has_header=False, schema=schema).to_numpy()
    except pl.exceptions.PolarsError:
        return None
    whole = numbers[:, [*_WHOLE, *range(7, min(width, 8))] if width < _MOT_FIELDS[-1] else _WHOLE]
    sound = np.isfinite(numbers).all() and (whole == np.floor(whole)).all()
    return numbers if sound and (numbers[:, 4:6] >= 0).all() else None


def _mot_rows(tables: list[Array], names: list[str]) -> pl.DataFrame:
    """Rows of all sequences, from the numbers of each."""
    kinds = []
    for table in tables:
        rest = table[:, 7:]
        classed = rest.shape[1] in (1, 2) or (rest.size and (rest == np.floor(rest)).all())
        kinds.append(rest[:, 0] if classed else np.zeros(len(table)))
    seen = [
        table[:, 8] if table.shape[1] == _SEEN else np.full(len(table), np.nan) for table in tables
    ]
    frame, own, x, y, width, height, score = np.concatenate([table[:, :7] for table in tables]).T
    kind = pl.Series(np.maximum(np.concatenate(kinds), 0).astype(np.int64))
    classes = {0: "pedestrian", **dict(enumerate(MOT_CLASSES, 1))}
    label = kind.replace_strict(classes, default=None, return_dtype=pl.String)
    sequence = pl.Series(names, dtype=pl.String)
    return pl.DataFrame(
        {
            "sequence": sequence.gather(np.repeat(np.arange(len(names)), [*map(len, tables)])),
            "frame": frame.astype(np.int64),
            "object_id": own.astype(np.int64),
            "label_value": label.fill_null(kind.cast(pl.String)),
            "score": score,
            "considered": score.astype(np.int64) != 0,
            "xmin": x,
            "ymin": y,
            "xmax": x + width,
            "ymax": y + height,
            "visibility": pl.Series(np.concatenate(seen), nan_to_null=True),
        }
    )


def _wrong_line(file: str) -> Exception:
    for number, line in enumerate(text_of(file).splitlines(), 1):
        fields = [field.strip() for field in line.strip().rstrip(",").split(",")]
        if not line.strip():
            continue
        if len(fields) == 1 and len(fields[0].split()) in _MOT_FIELDS:
            return broken(
                file,
                number,
                f"blanks between the fields: {shown(fields)}",
                "Write commas between them.",
            )
        if [field.lower() for field in fields[:2]] in _NAMED:
            return broken(
                file,
                number,
                f"a line of names: {shown(fields)}",
                "Remove it, or give a table with a column of the sequence.",
            )
        if len(fields) not in _MOT_FIELDS:
            return wrong_fields(
                file,
                number,
                fields,
                "Expected frame, id, x, y, width, height and confidence, and up to three more.",
            )
        numbers = numbers_in(file, number, fields)
        whole_in(file, number, fields[:2] + (fields[7:8] if len(fields) < 10 else []))
        for name, value in zip(("width", "height"), numbers[4:6], strict=True):
            if value < 0:
                raise broken(
                    file,
                    number,
                    f"{name} {value:g} is negative: {shown(fields)}",
                    "Correct the line, or remove it.",
                )
    return broken(file, None, "lines of different lengths", "Write as many fields on each.")


MOT = Format("mot", (".txt",), _read_mot, _is_mot, datum="sequence")


# Tables of tracks as MOTChallenge's or KITTI's text, a file a sequence.

Writer = Callable[[IO[bytes]], object]

_TRUTHS, _FOUND = "groundtruths", "predictions"
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
    sides = {_TRUTHS: truths, _FOUND: frame}
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
            separator = "," if form == MOT.name else " "
            write = partial(
                own.write_csv, include_header=False, separator=separator, quote_style="never"
            )
            files[path] = (write, own.height)
    if form == MOT.name and truths is not None and datums is not None and "frames" in datums:
        for sequence, frames in datums.select(pl.col("datum_id").cast(pl.String), "frames").rows():
            said = f"[Sequence]\nname={sequence}\nseqLength={frames}\n".encode()
            if frames is not None:
                files[f"{_TRUTHS}/{sequence}/seqinfo.ini"] = (_writer(said), 1)
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
    nowhere = [pl.lit(value).alias(f"space_{i}") for i, value in enumerate(_NOWHERE_WRITTEN)]
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
_NAMES = ("frame", "object_id", "kind", "height", "width")
_FIELDS = len(_NAMES) + 1


def _is_mots(head: bytes) -> bool:
    lines = head.decode("utf-8", "replace").lstrip().split("\n", 1)
    fields = lines[0].split()
    numbers, counts = fields[:-1], fields[-1:]
    return len(fields) == _FIELDS and all(map(str.isdecimal, numbers)) and not is_number(counts[0])


def _rows(file: str) -> pl.DataFrame:
    """All masks of a file; each region is one by itself."""
    text = text_of(file)
    schema = {**dict.fromkeys(_NAMES, pl.Int64), "counts": pl.String}
    if text.strip():
        try:
            table = pl.read_csv(
                text.encode(), has_header=False, separator=" ", quote_char=None, schema=schema
            )
        except pl.exceptions.PolarsError:
            raise _wrong_mots_line(file) from None
    else:
        table = pl.DataFrame(schema=schema)
    if sum(table.null_count().row(0)):
        raise _wrong_mots_line(file)
    region = pl.col("kind") == _REGION
    named = pl.col("kind").replace_strict(_CLASSES, default=None, return_dtype=pl.String)
    return table.select(
        "frame",
        object_id=pl.when(region).then(-region.cast(pl.Int64).cum_sum()).otherwise("object_id"),
        label_value=named.fill_null(pl.col("kind").cast(pl.String)),
        mask=pl.struct(size=pl.concat_list("height", "width"), counts="counts"),
        region=region,
    )


def _wrong_mots_line(file: str) -> Exception:
    for line, fields in lines_of(file):
        if len(fields) != _FIELDS:
            return wrong_fields(
                file,
                line,
                fields,
                "Expected time_frame, id, class_id, height, width and the run-length code, with "
                "one blank between them.",
            )
        whole_in(file, line, fields[:-1])
    return broken(
        file,
        None,
        "lines that are not masks of tracks",
        "Write one blank between fields, and none at the ends of lines.",
    )


def _read(look: Look) -> Annotations:
    files = sequence_files(look)
    names = sequences_of(files, look)
    rows = pl.concat(
        _rows(file).select(pl.lit(name, pl.String).alias("sequence"), pl.all())
        for file, name in zip(files, names, strict=True)
    )
    if not rows["region"].any():
        rows = rows.drop("region")
    return Annotations(rows=rows, datums=with_lengths(files, names))


MOTS = Format("mots", (".txt",), _read, _is_mots, datum="sequence")
