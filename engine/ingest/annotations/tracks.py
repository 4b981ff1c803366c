"""Tracks as text (MOTChallenge, KITTI): one file per sequence, one line per box and frame.

MOTChallenge has ``frame, id, x, y, width, height, confidence, class, visibility`` (in results and
in the first benchmark three numbers after the confidence: points in space, unless all are whole);
ground truths of confidence 0 do not count: https://motchallenge.net/instructions. KITTI has frame,
id, class, truncation, occlusion, angle, the box (xmin, ymin, xmax, ymax) and seven numbers of 3-D
boxes, and a score in results: https://www.cvlibs.net/datasets/kitti/eval_tracking.php
"""

from __future__ import annotations

import configparser
import os
from typing import Any

import numpy as np
import polars as pl

from ...schemas.arrays import Array
from .format import Annotations, Format, Look, broken, stems_or_paths, text_of
from .text_lines import is_number, lines_of, numbers_in, shown, whole_in

MOT_CLASSES = (
    "pedestrian", "person_on_vehicle", "car", "bicycle", "motorbike", "non_mot_vehicle",
    "static_person", "distractor", "occluder", "occluder_on_ground", "occluder_full", "reflection",
    "crowd",
)  # fmt: skip
"""MOTChallenge's classes, from 1."""
_MOT_FIELDS = range(7, 11)
_NAMED = (["frame", "id"], ["frame", "track_id"], ["frame", "object_id"])
_NOWHERE = " -1 -1 -1"  # three numbers that say nothing, as results have
_SEEN = 9  # fields, of which the last says how much of an object is seen
_WHOLE = (0, 1)
_KITTI_FIELDS = (17, 18)
REGION = "DontCare"
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


def _first_fields(head: bytes, separator: str | None) -> list[str]:
    line = head.decode("utf-8", "replace").lstrip().split("\n", 1)[0].strip().rstrip(",")
    return [field.strip() for field in line.split(separator)]


def _is_mot(head: bytes) -> bool:
    """Detect MOT text, tolerating errors that the reader reports: a header, the separator, the
    confidence.
    """
    fields = _first_fields(head, ",")
    if [field.lower() for field in fields[:2]] in _NAMED:
        fields = _first_fields(head.lstrip().partition(b"\n")[2], ",")
    elif len(fields) == 1 and fields[0].endswith(_NOWHERE):
        fields = fields[0].split()
    return (
        len(fields) in range(_MOT_FIELDS[0] - 1, _MOT_FIELDS[-1] + 1)
        and all(map(is_number, fields))
        and all(float(field).is_integer() for field in fields[:2])
    )


def _is_kitti(head: bytes) -> bool:
    fields = _first_fields(head, None)
    return (
        len(fields) in _KITTI_FIELDS
        and not is_number(fields[2])
        and all(map(is_number, fields[:2] + fields[3:]))
    )


def sequence_files(look: Look) -> tuple[str, ...]:
    """Return the ``gt`` files of a folder of sequences, otherwise ``det`` files; otherwise all
    files.
    """
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
    said = f"{many:,} lines without an id (-1), such as detections, are not tracks and left out."
    notes = (("boxes_without_id", said, many),) if many else ()
    return Annotations(rows=rows.filter(~negative), datums=datums, notes=notes)


def _read_mot(look: Look) -> Annotations:
    files = sequence_files(look)
    names = sequences_of(files, look)
    rows = _mot_rows([_mot_numbers(file) for file in files], names)
    return without_ids(rows, with_lengths(files, names), negative=pl.col("object_id") < 0)


def with_lengths(files: tuple[str, ...], names: list[str]) -> pl.DataFrame:
    """Return the sequences, with lengths from a ``seqinfo.ini`` above their folder if present.

    Raises:
        ReadError: such a file cannot be read.
    """
    lengths: list[int | None] = []
    for file in files:
        told = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(file))), "seqinfo.ini")
        parser = configparser.ConfigParser()
        try:
            parser.read_string(text_of(told) if os.path.isfile(told) else "")
            lengths.append(parser.getint("Sequence", "seqLength", fallback=None))
        except (configparser.Error, ValueError):
            raise broken(
                told, None, "no seqLength in [Sequence]", "Write it, or remove the file."
            ) from None
    schema = {"datum_id": pl.String, "frames": pl.Int64}
    made = pl.DataFrame({"datum_id": names, "frames": lengths}, schema)
    return made if made["frames"].count() else made.drop("frames")


def _mot_numbers(file: str) -> Array:
    """Parse the numbers of a file, float64 [lines, fields].

    Raises:
        ReadError: a line contains another value; names file and line.
    """
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
                file, number, f"blanks between the fields: {shown(fields)}",
                "Write commas between them.",
            )  # fmt: skip
        if [field.lower() for field in fields[:2]] in _NAMED:
            return broken(
                file, number, f"a line of names: {shown(fields)}",
                "Remove it, or give a table with a column of the sequence.",
            )  # fmt: skip
        if len(fields) not in _MOT_FIELDS:
            return broken(
                file, number, f"{len(fields)} fields: {shown(fields)}",
                "Needed are frame, id, x, y, width, height and confidence, and up to three more.",
            )  # fmt: skip
        numbers = numbers_in(file, number, fields)
        whole_in(file, number, fields[:2] + (fields[7:8] if len(fields) < 10 else []))
        for name, value in zip(("width", "height"), numbers[4:6], strict=True):
            if value < 0:
                raise broken(
                    file, number, f"{name} {value:g} is negative: {shown(fields)}",
                    "Correct the line, or remove it.",
                )  # fmt: skip
    return broken(file, None, "lines of different lengths", "Write as many fields on each.")


def _read_kitti(look: Look) -> Annotations:
    files = look.of(".txt")
    names = sequences_of(files, look)
    rows = pl.concat(
        _kitti_rows(file).select(pl.lit(name, pl.String).alias("sequence"), pl.all())
        for file, name in zip(files, names, strict=True)
    )
    datums = pl.DataFrame({"datum_id": names}, {"datum_id": pl.String})
    return without_ids(rows, datums, negative=(pl.col("object_id") < 0) & ~pl.col("region"))


def _kitti_rows(file: str) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    regions = 0
    for line, fields in lines_of(file):
        if len(fields) not in _KITTI_FIELDS:
            raise broken(
                file, line, f"{len(fields)} fields: {shown(fields)}",
                "Needed are a frame, an id, a class and 14 numbers, and a score of results.",
            )  # fmt: skip
        frame, own = whole_in(file, line, fields[:2])
        numbers = numbers_in(file, line, fields[3:])
        region = fields[2] == REGION
        regions += region
        rows.append(
            {
                "frame": frame,
                "object_id": -regions if region else own,  # each region is one by itself
                "label_value": fields[2],
                "score": numbers[14] if len(numbers) > 14 else None,
                **dict(zip(_CORNERS, numbers[3:7], strict=True)),
                "truncated": int(numbers[0]),
                "occluded": int(numbers[1]),
                "region": region,
            }
        )
    schema: dict[str, Any] = {"frame": pl.Int64, "object_id": pl.Int64, "label_value": pl.String}
    schema |= dict.fromkeys(("score", *_CORNERS), pl.Float64)
    schema |= {"truncated": pl.Int64, "occluded": pl.Int64, "region": pl.Boolean}
    return pl.DataFrame(rows, schema=schema)


def _mot(look: Look) -> bool:
    return look.mostly(_is_mot, ".txt")


def _kitti(look: Look) -> bool:
    return look.mostly(_is_kitti, ".txt")


MOT = Format("mot", (".txt",), _mot, _read_mot, datum="sequence")
KITTI_TRACKS = Format("kitti-tracking", (".txt",), _kitti, _read_kitti, datum="sequence")
