"""VisDrone's comma-separated text: one file of boxes per image, or of tracks per sequence.

A box is ``left, top, width, height, score, category, truncation, occlusion``; a track has frame and
id before them. In ground truths a score of 0 marks objects that need not be found, and category 0
regions without annotations; results have -1 for truncation and occlusion:
https://github.com/VisDrone/VisDrone2018-DET-toolkit
"""

from __future__ import annotations

from functools import partial

import msgspec
import numpy as np
import polars as pl

from ...schemas.contract import words
from ..problems import Note, count_of
from ..source import Source
from .format import Format, Layout, Look, image_ids, images_of, is_number, lines_in
from .lines import without_regions
from .titles import TITLES
from .tracks import MOT_CLASSES, sequences_of, with_region_ids, without_ids
from .yolo import may_be_label

CLASSES = words(
    "ignored-regions pedestrian people bicycle car van truck tricycle awning-tricycle bus motor"
    " others"
)
_OTHERS = len(CLASSES) - 1
_BOX = Layout(
    ("left", "top", "width", "height", "score", "category", "truncation", "occlusion"),
    (8,),
    f"Expected left, top, width, height, score, category (0 to {_OTHERS}), truncation, occlusion.",
    ",",
    whole=frozenset({"category"}),
    ranges={"category": (0, _OTHERS)},
)
_TRACK = msgspec.structs.replace(
    _BOX,
    names=("frame", "object_id", *_BOX.names),
    counts=(10,),
    expected=_BOX.expected.replace("Expected", "Expected frame, id,"),
    whole=_BOX.whole | {"frame", "object_id"},
)
_FIT = 0.9  # share of lines: one that is broken is named by its line
_LINES, _BYTES = 100, 1 << 14  # of a file that are looked at: at least 100 lines of usual length
_WHY = "the last four fields are a score, a category from 0 to 11, truncation and occlusion"


def _detect_tracks(look: Look) -> bool:
    if look.mostly(lambda name, head: _fits(head, layout=_TRACK), ".txt"):
        return True
    if look.other is None or not look.mostly(
        lambda name, head: _fits(head, layout=_TRACK, predicted=True), ".txt"
    ):
        return False
    # The other side must be VisDrone's: results with a class are also MOTChallenge's.
    classes = {*CLASSES} - {*MOT_CLASSES}
    same_format = look.other.title.startswith(TITLES["visdrone-tracking"])
    return same_format or bool(classes & look.named()[1])


def _fits(head: bytes, *, layout: Layout, predicted: bool = False) -> bool:
    """Check that the last four fields of nearly all lines are those of the format.

    Args:
        predicted: whether truncation and occlusion may both be -1 everywhere, in a line of a track.
    """
    if 2 * head.count(b",-1,-1,-1") > head.count(b"\n"):  # no category
        return False
    lines = [line.strip().rstrip(",").split(",") for line in lines_in(head[:_BYTES], _LINES)]
    complete = [line for line in lines if len(line) in layout.counts and all(map(is_number, line))]
    if not complete or len(complete) < _FIT * len(lines):
        return False
    score, category, cut, hidden = np.array(complete, np.float64)[:, -4:].T
    results = (cut == -1) & (hidden == -1)
    sound = (
        np.isin(category, range(len(CLASSES)))
        & np.isin(cut, (-1, 0, 1))
        & np.isin(hidden, (-1, 0, 1, 2))
        & (score >= 0)
        & ((score <= 1) | (results & (layout is _BOX)))
    )
    if layout is _TRACK and not predicted:
        sound &= cut >= 0
    return bool(sound.mean() >= _FIT)


def _rows(look: Look, layout: Layout, ids: list[str], datum: str) -> pl.DataFrame:
    """Objects of all files; ground truths have ``ignored`` for a score, and ``region``."""
    table = layout.of_files(_files(look), ids, datum)
    corners = {
        "xmin": pl.col("left"),
        "ymin": pl.col("top"),
        "xmax": pl.col("left") + pl.col("width"),
        "ymax": pl.col("top") + pl.col("height"),
    }
    names = dict(enumerate(CLASSES))
    label = pl.col("category").cast(pl.Int64).replace_strict(names, return_dtype=pl.String)
    rows = table.select(
        datum,
        *(name for name in ("frame", "object_id") if name in table.columns),
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
    return (Note("class_others_counts", message, many),)


def _files(look: Look) -> tuple[str, ...]:
    return tuple(file for file in look.of(".txt") if may_be_label(file))


def _read_boxes(look: Look) -> Source:
    ids = image_ids(look, _files(look), below="annotations")
    rows = _rows(look, _BOX, ids, "datum_id").rename({"ignored": "ignore"}, strict=False)
    why = (
        "to ignore (category 0) are not read by this dialect: detections in them count as false"
        " positives. Dialects visdrone and standard skip them."
    )
    rows, datums, regions = without_regions(rows, ids, why)
    return Source(rows.lazy(), datums=datums, notes=(*_others(rows), *regions), evidence=_WHY)


def _read_tracks(look: Look) -> Source:
    names = sequences_of(_files(look), look)
    rows = with_region_ids(_rows(look, _TRACK, names, "sequence"))
    region = pl.col("region")
    read = without_ids(rows, images_of(names), negative=(pl.col("object_id") < 0) & ~region)
    if "score" in rows.columns or not rows["region"].any():
        read.frame = read.frame.filter(~region).drop("region")
    read.notes += _others(read.frame.collect())
    read.evidence = _WHY
    return read


VISDRONE = Format("visdrone", (".txt",), _read_boxes, partial(_fits, layout=_BOX))
VISDRONE_TRACKS = Format(
    "visdrone-tracking", (".txt",), _read_tracks, detects=_detect_tracks, datum="sequence"
)
