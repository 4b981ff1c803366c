"""Text with one object per line: DOTA, KITTI and VisDrone.

DOTA has one file per image. After lines that begin with ``imagesource:`` and ``gsd:``, a line is
four corners in pixels, a class and a difficulty: https://captain-whu.github.io/DOTA/dataset.html

KITTI has one file per image. A line is a class, truncation, occlusion, angle, the box in pixels
(xmin, ymin, xmax, ymax), seven numbers of a 3-D box, and a score in results. Tracks have one file
per sequence, with frame and id before the class:
https://www.cvlibs.net/datasets/kitti/eval_object.php

VisDrone separates fields by commas: one file of boxes per image, or of tracks per sequence. A box
is ``left, top, width, height, score, category, truncation, occlusion``; a track has frame and id
before them. In ground truths a score of 0 marks objects that need not be found, and category 0
regions without annotations; results have -1 for truncation and occlusion:
https://github.com/VisDrone/VisDrone2018-DET-toolkit
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import numpy as np
import polars as pl

from ...schemas.contract import words
from ..geometry import CORNER_NAMES
from ..problems import Note, count_of, note_of
from ..source import Source
from .format import (
    RINGS,
    Format,
    Layout,
    Look,
    image_ids,
    images_of,
    is_number,
    lines_in,
    scored_or_not,
    without_empty,
)
from .titles import TITLES
from .tracks import MOT_CLASSES, REGION, sequences_of, with_region_ids, without_ids
from .yolo import may_be_label

_POINTS = tuple(f"{axis}{i}" for i in range(1, 5) for axis in "xy")
_DOTA = Layout(
    (*_POINTS, "label_value", "difficult"),
    (9, 10),
    "Expected eight coordinates, a class and, optionally, the difficulty.",
    texts=frozenset({"label_value"}),
    headers=("imagesource:", "gsd:"),
)
_OF_BOX = ("truncated", "occluded", "alpha", *CORNER_NAMES)
_OF_SOLID = ("tall", "wide", "long", "x", "y", "z", "yaw")  # x, y, z: the middle of the bottom
_KITTI = Layout(
    ("label_value", *_OF_BOX, *_OF_SOLID, "score"),
    (15, 16),
    "Expected a class and 14 numbers; detections also a score.",
    texts=_DOTA.texts,
)
_TRACKS = msgspec.structs.replace(
    _KITTI,
    names=("frame", "object_id", *_KITTI.names),
    counts=(17, 18),
    expected="Expected a frame, an id, a class and 14 numbers; results also a score.",
    whole=frozenset({"frame", "object_id"}),
)


def _says(layout: Layout) -> Callable[[bytes], bool]:
    """Return a test whether the first line that is no header has the fields of a layout."""
    tested = msgspec.structs.replace(layout, texts=layout.texts | {"difficult"}, whole=frozenset())
    word = layout.names.index("label_value")

    def says(head: bytes) -> bool:
        text = head.decode("utf-8", "replace")
        fields = next((fields for _, fields in tested.lines(text)), None)
        if fields is None:
            return text.lower().startswith(layout.headers)
        return not tested.fault(fields) and not is_number(fields[word])

    return says


def with_corners(table: pl.DataFrame) -> pl.DataFrame:
    """Replace the points of lines by boxes and, of four points each, polygons."""
    points = table.select(_POINTS).to_numpy().reshape(-1, 4, 2)
    full = ~np.isnan(points).any(axis=(1, 2))
    rings = [
        [ring] if has_ring else None for ring, has_ring in zip(points.tolist(), full, strict=True)
    ]
    xs, ys = _POINTS[::2], _POINTS[1::2]
    return table.select(
        pl.exclude(*_POINTS, "difficult"),
        xmin=pl.min_horizontal(xs),
        ymin=pl.min_horizontal(ys),
        xmax=pl.max_horizontal(xs),
        ymax=pl.max_horizontal(ys),
        polygon=pl.Series(rings, dtype=RINGS),
    )


def _read_dota(look: Look) -> Source:
    files = look.of(".txt")
    ids = image_ids(look, files, below="labelTxt")
    table = _DOTA.of_files(files, ids, "datum_id")
    rows = with_corners(table).with_columns(table["difficult"].cast(pl.Int64))
    return Source(without_empty(rows, ["difficult"]).lazy(), datums=images_of(ids))


def without_regions(
    rows: pl.DataFrame, ids: Sequence[str], why: str
) -> tuple[pl.DataFrame, pl.DataFrame, tuple[Note, ...]]:
    """Move regions without annotations from rows to the table of images; return a note, too."""
    regions, rows = rows.filter("region"), rows.filter(~pl.col("region")).drop("region")
    datums = images_of(ids)
    if not regions.height:
        return rows, datums, ()
    corners = regions.select("datum_id", regions=pl.concat_list(CORNER_NAMES)).explode("regions")
    lists = corners.group_by("datum_id", maintain_order=True).agg("regions")
    datums = datums.join(lists, on="datum_id", how="left", maintain_order="left")
    note = Note("regions_left_out", f"{regions.height:,} regions {why}", regions.height)
    return rows, datums.with_columns(pl.col("regions").fill_null([])), (note,)


def _read_kitti(look: Look) -> Source:
    files = look.of(".txt")
    ids = image_ids(look, files, below="label_2")
    rows = _KITTI.of_files(files, ids, "datum_id").select(
        "datum_id",
        "label_value",
        "score",
        *CORNER_NAMES,
        "truncated",
        "alpha",
        pl.col("occluded").cast(pl.Int64),
        box3d=pl.concat_list("x", "y", "z", "long", "wide", "tall", "yaw"),
        region=pl.col("label_value") == REGION,
    )
    why = (
        f"{REGION!r} are not read by this dialect: detections in them count as false positives."
        " Dialects kitti and standard skip them."
    )
    rows, datums, notes = without_regions(rows, ids, why)
    return Source(scored_or_not(rows, look).lazy(), datums=datums, notes=notes)


def _read_tracks(look: Look) -> Source:
    files = look.of(".txt")
    names = sequences_of(files, look)
    table = _TRACKS.of_files(files, names, "sequence")
    rows = with_region_ids(table.with_columns(region=pl.col("label_value") == REGION)).select(
        *("sequence", "frame", "object_id", "label_value", "score", *CORNER_NAMES),
        pl.col("truncated", "occluded").cast(pl.Int64),
        "region",
    )
    lone = (pl.col("object_id") < 0) & ~pl.col("region")
    source = without_ids(rows, images_of(names), negative=lone)
    cut = table.filter(pl.col("score").is_null(), pl.col("truncated") % 1 != 0).height
    if cut:  # of ground truths: nothing depends on that of predictions
        words = "fraction", "fractions", "in 'truncated' read without decimals, as TrackEval does"
        notes = (*source.notes, note_of("truncated_fractions", cut, words))
        source = msgspec.structs.replace(source, notes=notes)
    return source


DOTA = Format("dota", (".txt",), _read_dota, _says(_DOTA))
KITTI = Format("kitti", (".txt",), _read_kitti, _says(_KITTI))
KITTI_TRACKS = Format("kitti-tracking", (".txt",), _read_tracks, _says(_TRACKS), datum="sequence")


# VisDrone.

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


def _read_frames(look: Look) -> Source:
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
    "visdrone-tracking", (".txt",), _read_frames, detects=_detect_tracks, datum="sequence"
)
