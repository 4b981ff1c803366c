"""Text with one object per line and blanks between fields.

DOTA has one file per image. After lines that begin with ``imagesource:`` and ``gsd:``, a line is
four corners in pixels, a class and a difficulty: https://captain-whu.github.io/DOTA/dataset.html

KITTI has one file per image. A line is a class, truncation, occlusion, angle, the box in pixels
(xmin, ymin, xmax, ymax), seven numbers of a 3-D box, and a score in results. Tracks have one file
per sequence, with frame and id before the class:
https://www.cvlibs.net/datasets/kitti/eval_object.php
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import polars as pl

from ..geometry import CORNER_NAMES
from ..problems import Note, note_of
from ..source import Source
from .format import (
    RINGS,
    Format,
    Layout,
    Look,
    image_ids,
    images_of,
    is_number,
    scored_or_not,
    without_empty,
)
from .tracks import REGION, sequences_of, with_region_ids, without_ids

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
