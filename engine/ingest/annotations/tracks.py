"""Tracks in text: MOTChallenge's and KITTI's, a file a sequence, a box of one frame a line.

MOTChallenge has ``frame, id, x, y, width, height, confidence, class, visibility`` (in results and
in the first benchmark three numbers behind the confidence: points in space, unless all are whole); ground truths of
confidence 0 do not count: https://motchallenge.net/instructions. KITTI has frame, id, class,
truncation, occlusion, angle, the box (xmin, ymin, xmax, ymax) and seven numbers of 3-D boxes, and
of results a score: https://www.cvlibs.net/datasets/kitti/eval_tracking.php
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Callable, Iterable
from typing import Any

import polars as pl

from .format import Annotations, Format, Look, broken, stems_or_paths, text_of
from .text_lines import is_number, lines_of, numbers_in, shown, whole_in

MOT_CLASSES = (
    "pedestrian", "person_on_vehicle", "car", "bicycle", "motorbike", "non_mot_vehicle",
    "static_person", "distractor", "occluder", "occluder_on_ground", "occluder_full", "reflection",
    "crowd",
)  # fmt: skip
"""MOTChallenge's classes, from 1."""
_MOT_FIELDS = range(7, 11)
_KITTI_FIELDS = (17, 18)
_REGION = "DontCare"
_CORNERS = ("xmin", "ymin", "xmax", "ymax")


def _first_fields(head: bytes, separator: str | None) -> list[str]:
    line = head.decode("utf-8", "replace").lstrip().split("\n", 1)[0].strip().rstrip(",")
    return [field.strip() for field in line.split(separator)]


def _is_mot(head: bytes) -> bool:
    fields = _first_fields(head, ",")
    return (
        len(fields) in _MOT_FIELDS
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


def _mot_files(look: Look) -> tuple[str, ...]:
    """Of a folder of sequences the ground truths in ``gt``, else detections; or all files."""
    files = look.of(".txt")
    for name in ("gt.txt", "det.txt"):
        chosen = tuple(file for file in files if os.path.basename(file) == name)
        if chosen:
            return chosen
    return files


def _sequences(files: tuple[str, ...], look: Look) -> list[str]:
    """The sequence of each file: the folder above ``gt`` or ``det``, else the name of the file."""
    names = []
    for file in files:
        folder, name = os.path.split(os.path.abspath(file))
        above, last = os.path.split(folder)
        within = last in ("gt", "det") and name in ("gt.txt", "det.txt")
        names.append(os.path.basename(above) if within else look.relative(file))
    return stems_or_paths(names)


def _annotations(
    files: Iterable[tuple[str, str]],
    read: Callable[[str], pl.DataFrame],
    datums: pl.DataFrame,
    notes: Callable[[pl.DataFrame], tuple[tuple[str, str, int | None], ...]],
) -> Annotations:
    frames = [
        read(file).select(pl.lit(name, pl.String).alias("sequence"), pl.all())
        for file, name in files
    ]
    rows = pl.concat(frames)
    told = notes(rows)
    negative = pl.col("object_id") < 0
    if "region" in rows.columns:
        negative = negative & ~pl.col("region")
    return Annotations(
        rows=rows.filter(~negative),
        datums=datums,
        notes=told,
    )


def _unnamed(rows: pl.DataFrame, negative: pl.Expr) -> tuple[tuple[str, str, int | None], ...]:
    many = rows.select(negative.sum()).item()
    if not many:
        return ()
    said = f"{many:,} lines without an id (-1), such as detections, are no tracks and left out."
    return (("boxes_without_id", said, many),)


def _read_mot(look: Look) -> Annotations:
    files = _mot_files(look)
    names = _sequences(files, look)
    return _annotations(
        zip(files, names, strict=True),
        _mot_rows,
        _sequences_with_lengths(files, names),
        lambda rows: _unnamed(rows, pl.col("object_id") < 0),
    )


def _sequences_with_lengths(files: tuple[str, ...], names: list[str]) -> pl.DataFrame:
    """Sequences, and how long they are where a ``seqinfo.ini`` above their folder says so.

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


def _mot_rows(file: str) -> pl.DataFrame:
    text = text_of(file).strip()
    if "\n\n" in text or ",\n" in text or text.endswith(","):  # blank lines, commas at their ends
        lines = (line.strip().rstrip(",") for line in text.splitlines())
        text = "\n".join(line for line in lines if line)
    width = text.split("\n", 1)[0].count(",") + 1
    names = [f"column_{i}" for i in range(1, max(width, 7) + 1)]
    whole = not text
    table = pl.DataFrame(schema=dict.fromkeys(names, pl.Float64))
    if text:
        try:
            table = pl.read_csv(text.encode(), has_header=False, schema=table.schema)
            whole = _is_sound(table, names)
        except pl.exceptions.PolarsError:
            whole = False
    if not whole or (text and width not in _MOT_FIELDS):
        raise _wrong_line(file)
    rest = table.select(names[7:])
    classed = len(names) < 10 or all((one == one.floor()).all() for one in rest)
    none = pl.Series([0.0]).new_from_index(0, table.height)
    kind = rest["column_8"] if classed and rest.width else none
    classes = dict(enumerate(MOT_CLASSES, 1))
    made = table.select(
        frame=pl.col("column_1").cast(pl.Int64),
        object_id=pl.col("column_2").cast(pl.Int64),
        label_value=kind.fill_null(0)
        .cast(pl.Int64)
        .clip(0)
        .replace_strict({0: "pedestrian", **classes}, default=None, return_dtype=pl.String)
        .fill_null(kind.cast(pl.Int64).cast(pl.String)),
        score=pl.col("column_7"),
        considered=pl.col("column_7").cast(pl.Int64) != 0,
        xmin=pl.col("column_3"),
        ymin=pl.col("column_4"),
        xmax=pl.col("column_3") + pl.col("column_5"),
        ymax=pl.col("column_4") + pl.col("column_6"),
    )
    if table.width == 9:
        made = made.with_columns(visibility=table["column_9"])
    else:
        made = made.with_columns(visibility=pl.lit(None, pl.Float64))
    return made


def _is_sound(table: pl.DataFrame, names: list[str]) -> bool:
    """Whether every field is there and finite, and frames, ids and classes are whole.

    Of ten fields the last three may be points in space.
    """
    finite = all(table[name].is_finite().all() and not table[name].null_count() for name in names)
    whole = (table[name] for name in (*names[:2], *(names[7:8] if len(names) < 10 else ())))
    return finite and all((one == one.floor()).all() for one in whole)


def _wrong_line(file: str) -> Exception:
    for number, line in enumerate(text_of(file).splitlines(), 1):
        fields = [field.strip() for field in line.strip().rstrip(",").split(",")]
        if not line.strip():
            continue
        if len(fields) not in _MOT_FIELDS:
            return broken(
                file, number, f"{len(fields)} fields: {shown(fields)}",
                "Needed are frame, id, x, y, width, height and confidence, and up to three more.",
            )  # fmt: skip
        numbers_in(file, number, fields)
        whole_in(file, number, fields[:2] + (fields[7:8] if len(fields) < 10 else []))
    return broken(file, None, "lines of different lengths", "Write as many fields on each.")


def _read_kitti(look: Look) -> Annotations:
    files = look.of(".txt")
    names = _sequences(files, look)
    return _annotations(
        zip(files, names, strict=True),
        _kitti_rows,
        pl.DataFrame({"datum_id": names}, {"datum_id": pl.String}),
        lambda rows: _unnamed(rows, (pl.col("object_id") < 0) & ~pl.col("region")),
    )


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
        region = fields[2] == _REGION
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
