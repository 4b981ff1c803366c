"""VisDrone's comma-separated text: one file of boxes per image, or of tracks per sequence.

A box is ``left, top, width, height, score, category, truncation, occlusion``; a track has frame and
id before them. In ground truths a score of 0 marks objects that need not be found, and category 0
regions without annotations; results have -1 for truncation and occlusion:
https://github.com/VisDrone/VisDrone2018-DET-toolkit
"""

from __future__ import annotations

from functools import partial

import numpy as np
import polars as pl

from ..problems import count_of
from .format import (
    Annotations,
    Format,
    Look,
    Note,
    broken,
    image_ids,
    images_of,
    is_number,
    lines_in,
    shown,
    text_of,
)
from .titles import TITLES
from .tracks import MOT_CLASSES, sequences_of, without_ids
from .yolo import may_be_label

CLASSES = (
    "ignored-regions",
    "pedestrian",
    "people",
    "bicycle",
    "car",
    "van",
    "truck",
    "tricycle",
    "awning-tricycle",
    "bus",
    "motor",
    "others",
)
_OTHERS = len(CLASSES) - 1
_BOX, _TRACK = 8, 10  # fields of a line
_NAMES = ("left", "top", "width", "height", "score", "category", "truncation", "occlusion")
_FIT = 0.9  # share of lines: one that is broken is named by its line
_LINES, _BYTES = 100, 1 << 14  # of a file that are looked at: at least 100 lines of usual length
_WHY = "the last four fields are a score, a category from 0 to 11, truncation and occlusion"


def _detect_tracks(look: Look) -> bool:
    if look.mostly(partial(_fits, width=_TRACK), ".txt"):
        return True
    if look.other is None or not look.mostly(partial(_fits, width=_TRACK, found=True), ".txt"):
        return False
    # The other side must be VisDrone's: results with a class are also MOTChallenge's.
    own = {*CLASSES} - {*MOT_CLASSES}
    known = look.other.title.startswith(TITLES["visdrone-tracking"])
    return known or bool(own & look.named()[1])


def _fits(head: bytes, *, width: int, found: bool = False) -> bool:
    """Check that the last four fields of nearly all lines are those of the format.

    Args:
        found: whether truncation and occlusion may both be -1 everywhere, in a line of a track.
    """
    if 2 * head.count(b",-1,-1,-1,-1") > head.count(b"\n"):  # neither score nor category
        return False
    lines = [line.strip().rstrip(",").split(",") for line in lines_in(head[:_BYTES], _LINES)]
    whole = [line for line in lines if len(line) == width and all(map(is_number, line))]
    if not whole or len(whole) < _FIT * len(lines):
        return False
    score, category, cut, hidden = np.array(whole, np.float64)[:, -4:].T
    results = (cut == -1) & (hidden == -1)
    sound = (
        np.isin(category, range(len(CLASSES)))
        & np.isin(cut, (-1, 0, 1))
        & np.isin(hidden, (-1, 0, 1, 2))
        & (score >= 0)
        & ((score <= 1) | (results & (width == _BOX)))
    )
    if width == _TRACK and not found:
        sound &= cut >= 0
    return bool(sound.mean() >= _FIT)


def _table(file: str, width: int) -> pl.DataFrame:
    """Read a file as a table, boxes as corners."""
    names = [*(("frame", "id") if width == _TRACK else ()), *_NAMES]
    lines = [line.strip().rstrip(",") for line in text_of(file).splitlines()]
    text = "\n".join(line for line in lines if line)
    schema = dict.fromkeys(names, pl.Float64)
    try:
        table = pl.read_csv(text.encode(), has_header=False, schema=schema) if text else None
    except pl.exceptions.PolarsError:
        raise _wrong(file, lines, width) from None
    table = pl.DataFrame(schema=schema) if table is None else table
    numbers = table.to_numpy()
    whole = table.select("category", *names[: width - _BOX]).to_numpy()
    category = table["category"]
    sound = np.isfinite(numbers).all() and (whole == np.floor(whole)).all()
    if not sound or not category.is_between(0, _OTHERS).all():
        raise _wrong(file, lines, width)
    return table


def _wrong(file: str, lines: list[str], width: int) -> Exception:
    for number, line in enumerate(lines, 1):
        fields = [field.strip() for field in line.split(",")]
        whole = (*range(width - _BOX), width - 3)
        if line and (
            len(fields) != width
            or not all(map(is_number, fields))
            or not all(float(fields[at]).is_integer() for at in whole)
            or not 0 <= float(fields[-3]) <= _OTHERS
        ):
            return broken(
                file,
                number,
                f"no line of VisDrone: {shown(fields)}",
                f"Expected {'frame, id, ' * (width == _TRACK)}{', '.join(_NAMES)}, the category "
                f"from 0 to {_OTHERS}.",
            )
    return broken(file, None, "lines that are not VisDrone's", "Write it again.")


def _rows(tables: list[pl.DataFrame], names: list[str], datum: str) -> pl.DataFrame:
    """Objects of all files; ground truths have ``ignored`` for a score, and ``region``."""
    table = pl.concat(
        one.select(pl.lit(name, pl.String).alias(datum), pl.all())
        for one, name in zip(tables, names, strict=True)
    )
    corners = {
        "xmin": pl.col("left"),
        "ymin": pl.col("top"),
        "xmax": pl.col("left") + pl.col("width"),
        "ymax": pl.col("top") + pl.col("height"),
    }
    known = dict(enumerate(CLASSES))
    label = pl.col("category").cast(pl.Int64).replace_strict(known, return_dtype=pl.String)
    rows = table.select(
        datum,
        *(name for name in ("frame", "id") if name in table.columns),
        label_value=label,
        score="score",
        **corners,
        truncated=pl.col("truncation").cast(pl.Int64),
        occluded=pl.col("occlusion").cast(pl.Int64),
        region=pl.col("category") == 0,
    )
    truths = (table["truncation"] >= 0).all() and table["score"].is_in([0.0, 1.0]).all()
    if not truths:
        return rows.drop("truncated", "occluded")
    ignored = (pl.col("score") == 0) & ~pl.col("region")
    return rows.with_columns(ignored=ignored.cast(pl.Int64)).drop("score")


def _others(rows: pl.DataFrame) -> tuple[Note, ...]:
    many = int((rows["label_value"] == CLASSES[_OTHERS]).sum())
    if not many or "score" in rows.columns:
        return ()
    message = (
        f"{count_of(many, 'object')} of class 'others' are scored; VisDrone's evaluation skips "
        "them."
    )
    return (("class_others_counts", message, many),)


def _read_boxes(look: Look) -> Annotations:
    files = tuple(file for file in look.of(".txt") if may_be_label(file))
    ids = image_ids(look, files, below="annotations")
    rows = _rows([_table(file, _BOX) for file in files], ids, "datum_id")
    regions = rows.filter("region")
    rows = rows.filter(~pl.col("region")).drop("region").rename({"ignored": "ignore"}, strict=False)
    datums = images_of(ids)
    notes = _others(rows)
    if regions.height:
        corners = regions.select("datum_id", regions=pl.concat_list("xmin", "ymin", "xmax", "ymax"))
        lists = corners.explode("regions").group_by("datum_id", maintain_order=True).agg("regions")
        datums = datums.join(lists, on="datum_id", how="left", maintain_order="left")
        datums = datums.with_columns(pl.col("regions").fill_null([]))
        message = (
            f"{count_of(regions.height, 'region')} to ignore (category 0) skipped: detections in "
            "them count as false positives; VisDrone's evaluation ignores them."
        )
        notes = (*notes, ("regions_left_out", message, regions.height))
    return Annotations(rows=rows, datums=datums, notes=notes, evidence=_WHY)


def _read_tracks(look: Look) -> Annotations:
    files = tuple(file for file in look.of(".txt") if may_be_label(file))
    names = sequences_of(files, look)
    rows = _rows([_table(file, _TRACK) for file in files], names, "sequence")
    region = pl.col("region")  # each is one by itself
    rows = rows.with_columns(
        pl.col("frame").cast(pl.Int64),
        object_id=pl.when(region).then(-region.cast(pl.Int64).cum_sum()).otherwise("id"),
    ).with_columns(pl.col("object_id").cast(pl.Int64))
    rows = rows.select(
        "sequence", "frame", "object_id", pl.exclude("sequence", "frame", "object_id", "id")
    )
    read = without_ids(rows, images_of(names), negative=(pl.col("object_id") < 0) & ~region)
    if "score" in rows.columns or not rows["region"].any():
        read.rows = read.rows.filter(~region).drop("region")
    read.notes = (*read.notes, *_others(read.rows))
    read.evidence = _WHY
    return read


VISDRONE = Format("visdrone", (".txt",), _read_boxes, partial(_fits, width=_BOX))
VISDRONE_TRACKS = Format(
    "visdrone-tracking", (".txt",), _read_tracks, detects=_detect_tracks, datum="sequence"
)
