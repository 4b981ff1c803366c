"""Boxes in plain text: one object per line (DOTA, KITTI, VisDrone), or a box with its score.

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

A file per class has lines ``image score xmin ymin xmax ymax``, or four corners of an oriented box
instead of two, as in the development kits of Pascal VOC and DOTA; the class is in the file name
(``comp4_det_test_car.txt``, ``Task1_ship.txt``, ``car.txt``). A file per image has lines ``class
score xmin ymin xmax ymax``, without a score for ground truths, as in Cartucho/mAP and
Object-Detection-Metrics. Both can have six fields, so evidence decides.
"""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...schemas.contract import words
from ...schemas.errors import N_EXAMPLES, ReadError
from ...schemas.wording import option
from ..files import Source
from ..geometry import CORNER_NAMES
from ..problems import Note, count_of, note_of
from .format import (
    FIRST,
    IMAGE_SUFFIXES,
    RINGS,
    Format,
    Layout,
    Look,
    broken,
    image_ids,
    images_of,
    is_number,
    lines_in,
    quoted,
    scored_or_not,
    text_of,
    without_empty,
)
from .titles import BY_SIZE, PER_IMAGE, TITLES
from .tracks import MOT_CLASSES, REGION, sequences_of, with_region_ids, without_ids
from .yolo import may_be_label

# DOTA and KITTI.

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


def _detector(layout: Layout) -> Callable[[bytes], bool]:
    """Return a test whether the first line that is no header has the fields of a layout."""
    tested = msgspec.structs.replace(layout, texts=layout.texts | {"difficult"}, whole=frozenset())
    word = layout.names.index("label_value")

    def detect(head: bytes) -> bool:
        text = head.decode("utf-8", "replace")
        fields = next((fields for _, fields in tested.lines(text)), None)
        if fields is None:
            return text.lower().startswith(layout.headers)
        return not tested.fault(fields) and not is_number(fields[word])

    return detect


def with_corners(table: pl.DataFrame) -> pl.DataFrame:
    """Replace the points of lines by boxes and, of four points each, polygons.

    Two points are the corners of a box, in that order: exchanged ones are an error.
    """
    points = table.select(_POINTS).to_numpy().reshape(-1, 4, 2)
    full = ~np.isnan(points).any(axis=(1, 2))
    rings = [
        [ring] if has_ring else None for ring, has_ring in zip(points.tolist(), full, strict=True)
    ]
    xs, ys = _POINTS[::2], _POINTS[1::2]
    around = (
        pl.min_horizontal(xs),
        pl.min_horizontal(ys),
        pl.max_horizontal(xs),
        pl.max_horizontal(ys),
    )
    whole = pl.lit(pl.Series(full))
    return table.select(
        pl.exclude(*_POINTS, "difficult"),
        *(
            pl.when(whole).then(edge).otherwise(point).alias(name)
            for name, edge, point in zip(CORNER_NAMES, around, _POINTS[:4], strict=True)
        ),
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
    without_id = (pl.col("object_id") < 0) & ~pl.col("region")
    source = without_ids(rows, images_of(names), negative=without_id)
    cut = table.filter(pl.col("score").is_null(), pl.col("truncated") % 1 != 0).height
    if cut:  # of ground truths: nothing depends on that of predictions
        words = "fraction", "fractions", "in 'truncated' read without decimals, as TrackEval does"
        notes = (*source.notes, note_of("truncated_fractions", cut, words))
        source = msgspec.structs.replace(source, notes=notes)
    return source


DOTA = Format("dota", (".txt",), _read_dota, _detector(_DOTA))
KITTI = Format("kitti", (".txt",), _read_kitti, _detector(_KITTI))
KITTI_TRACKS = Format(
    "kitti-tracking", (".txt",), _read_tracks, _detector(_TRACKS), datum="sequence"
)


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


_CLASS = re.compile(r"^(comp\d+_det_[^_]+_|Task\d+_|det_[^_]+_)?(.+)\.txt$", re.IGNORECASE)
_PER_CLASS = Layout(
    ("datum_id", "score", *(f"{axis}{i}" for i in range(1, 5) for axis in "xy")),
    (6, 10),
    "Expected an image, a score, and two or four corners.",
    texts=frozenset({"datum_id"}),
)
_HARD = "difficult"  # behind the corners, as Cartucho/mAP has it
_RUN = "q0"  # the second field of a run of TREC
_SURE = 10  # boxes of which none is inverted: their numbers are corners
_LEAST, _SHARE = 3, 0.1  # inverted boxes, and their share, that show widths and heights
_DIGIT = re.compile(r"[0-9]")
PER_CLASS = "voc-results"


class _Line(msgspec.Struct):
    """The fields of a line: words, numbers behind them, and whether the object is difficult."""

    name: str
    numbers: list[float]
    hard: bool

    @classmethod
    def of(cls, fields: list[str]) -> _Line | None:
        """Parse a line: four, five or nine numbers after the words; None otherwise."""
        hard = fields[-1] == _HARD
        rest = fields[:-1] if hard else fields
        at = 1
        while at < len(rest) and not is_number(rest[at]):
            if rest[at].casefold() == _RUN or is_number(rest[0]):
                return None
            at += 1
        numbers = rest[at:]
        if len(numbers) not in (4, 5, 9) or not all(map(is_number, numbers)):
            return None
        return cls(" ".join(rest[:at]), [float(number) for number in numbers], hard)


class _Reading(msgspec.Struct):
    """Reading of the lines, and the evidence for it."""

    name: str
    why: str


def _detects(name: str) -> Callable[[Look], bool]:
    def detect(look: Look) -> bool:
        reading = _reading(look)
        return reading is not None and reading.name == name

    return detect


def _reading(look: Look) -> _Reading | None:
    """Return the interpretation that the evidence supports; None for other text.

    Raises:
        ReadError: both file per image and file per class are possible.
    """
    lines: dict[str, list[_Line]] = {}
    looked = 0
    for file, head in look.heads(".txt"):
        if not may_be_label(file):
            continue
        looked += 1
        parsed = [_Line.of(line.split()) for line in lines_in(head)]
        if parsed and parsed[0] is not None:
            lines[file] = [line for line in parsed if line is not None]
    if not lines or 2 * len(lines) < looked:
        return None
    # The last four numbers are corners if the first field is a number.
    numbered = [line for some in lines.values() for line in some if is_number(line.name)]
    corners = [line.numbers[-4:] for line in numbered if len(line.numbers) < 9]
    if not _of_kits(lines) and any(box[0] > box[2] or box[1] > box[3] for box in corners):
        return None
    counts = {len(line.numbers) for some in lines.values() for line in some}
    if counts == {9}:
        return _Reading(PER_CLASS, "a line has ten fields")
    if 4 in counts or any(
        line.hard or " " in line.name for some in lines.values() for line in some
    ):
        return _Reading(PER_IMAGE, "a line is a class and four corners")
    return _by_names(look, lines)


def _of_kits(files: Iterable[str]) -> bool:
    """Return whether all file names have the form of VOC's development kits, one per class."""
    parts = [_CLASS.match(os.path.basename(file)) for file in files]
    return all(part is not None and part[1] for part in parts)


def _by_names(look: Look, lines: dict[str, list[_Line]]) -> _Reading:
    """Decide by file names and first fields which of them are images."""
    if _of_kits(lines):
        return _Reading(PER_CLASS, "the files are named as development kits name them")
    files: dict[str, set[str]] = defaultdict(set)
    for file, some in lines.items():
        for line in some:
            files[line.name].add(file)
    stems, firsts = {_stem(file) for file in lines}, {*files}
    if any(name.lower().endswith(IMAGE_SUFFIXES) for name in firsts):
        return _Reading(PER_CLASS, "the first fields are names of images")
    images, labels = look.named()
    for_image = len(stems & images) + len(firsts & labels)
    for_class = len({_stem(name) for name in firsts} & images) + len(stems & labels)
    if for_image > for_class:
        return _Reading(PER_IMAGE, "the other side has images of these files' names")
    if for_class > for_image:
        return _Reading(PER_CLASS, "the other side has images of the first fields' names")
    digits = [sum(bool(_DIGIT.search(name)) for name in names) for names in (stems, firsts)]
    if 2 * digits[0] >= len(stems) and not digits[1]:
        return _Reading(PER_IMAGE, f"names of files are ids ({_some(stems)})")
    if 2 * digits[1] >= len(firsts) and not digits[0]:
        return _Reading(PER_CLASS, f"the first fields are ids ({_some(firsts)})")
    repeated = [name for name, of in files.items() if len(of) > 1]
    if repeated and len(firsts) <= len(stems):
        return _Reading(PER_IMAGE, f"files share their first fields ({_some({*repeated})})")
    raise ReadError(
        f"{look.given}: lines of six fields are boxes of a file per image (class, score, corners)"
        f" or of a file per class (image, score, corners), and the files do not show which: files"
        f" {_some(stems)}, first fields {_some(firsts)}. Rename files of classes to"
        " det_test_CLASS.txt; make tables of files of images first: evalengine convert"
        f" {PER_IMAGE} {look.given} -o FOLDER.",
        code="format_unknown",
        file=look.given,
    )


def _some(names: set[str]) -> str:
    first = sorted(names)[:N_EXAMPLES]
    return ", ".join(map(repr, first)) + (", ..." if len(names) > N_EXAMPLES else "")


def _stem(name: str) -> str:
    base = os.path.basename(name)
    stem, suffix = os.path.splitext(base)
    return stem if suffix.lower() in (".txt", *IMAGE_SUFFIXES) else base


def _why(look: Look, name: str) -> str:
    """Evidence for a reading; empty if the user named the format."""
    try:
        reading = _reading(look)
    except ReadError:
        return ""
    return reading.why if reading is not None and reading.name == name else ""


# A file per class


def _read_classes(look: Look) -> Source:
    pieces: dict[str, pl.DataFrame] = {}
    labels = []
    for file in look.of(".txt"):
        named = _CLASS.match(os.path.basename(file))
        assert named is not None  # a name that ends in .txt
        labels.append(named[2])
        rows = with_corners(_PER_CLASS.rows(file))
        images = [
            os.path.splitext(os.path.basename(one))[0]
            if one.lower().endswith(IMAGE_SUFFIXES)
            else one
            for one in rows["datum_id"]
        ]
        pieces[file] = rows.select(
            pl.Series("datum_id", images, dtype=pl.String),
            pl.lit(named[2], pl.String).alias("label_value"),
            pl.exclude("datum_id"),
        )
    frame = pl.concat(pieces.values())
    if frame["polygon"].null_count():
        frame = frame.drop("polygon")
    return Source(
        frame.lazy(),
        firsts={file: rows.head(FIRST) for file, rows in pieces.items()},
        datums=frame.select(pl.col("datum_id").unique(maintain_order=True)),
        labels=pl.DataFrame({"label_value": labels}, {"label_value": pl.String}).unique(
            maintain_order=True
        ),
        evidence=_why(look, PER_CLASS),
        pixels="as truths",
    )


# A file per image


def _read_images(look: Look) -> Source:
    files = tuple(file for file in look.of(".txt") if may_be_label(file))
    ids = image_ids(look, files)
    rows: list[tuple[Any, ...]] = []
    for file, datum in zip(files, ids, strict=True):
        for number, fields in _PER_CLASS.lines(text_of(file)):
            line = _Line.of(fields)
            if line is None or len(line.numbers) > 5:
                expected = "Expected a class, a score (detections only), xmin, ymin, xmax and ymax."
                fault = f"{count_of(len(fields), 'field')}: {quoted(fields)}"
                raise broken(file, number, fault, expected)
            score, *box = line.numbers if len(line.numbers) > 4 else (None, *line.numbers)
            rows.append((datum, line.name, score, *box, int(line.hard)))
    schema: dict[str, Any] = {"datum_id": pl.String, "label_value": pl.String}
    schema |= dict.fromkeys(("score", *CORNER_NAMES), pl.Float64) | {_HARD: pl.Int64}
    frame = _score_last(pl.DataFrame(rows, schema=schema, orient="row"))
    frame = scored_or_not(frame, look).drop([_HARD] * (not frame[_HARD].sum()))
    if frame.height and frame["label_value"].str.contains("^[0-9]+$").all():
        frame = frame.with_columns(pl.col("label_value").cast(pl.Int64))
    _refuse_shares(frame, look)
    frame, notes = _cornered(frame, look)
    evidence = _why(look, PER_IMAGE)
    return Source(frame.lazy(), datums=images_of(ids), evidence=evidence, notes=notes)


def _refuse_shares(frame: pl.DataFrame, look: Look) -> None:
    """Refuse coordinates from 0 to 1, which may be YOLO's: those have another order."""
    if look.box_format in ("xyxy", "xywh") or not frame.height:
        return
    values = frame.select(CORNER_NAMES).to_numpy()
    if values.min() >= 0 and values.max() <= 1:
        raise ReadError(
            f"{look.given}: coordinates are shares of the image, from 0 to 1, as YOLO's, and the"
            " classes are names. For YOLO write numbers in place of the names (class, cx, cy,"
            " width, height and confidence), and the names in a data.yaml. For corners, or left,"
            f" top, width and height, after the score: {option('box_format', 'xyxy')} or"
            f" {option('box_format', 'xywh')}.",
            code="format_unknown",
            file=look.given,
        )


def _score_last(frame: pl.DataFrame) -> pl.DataFrame:
    """Lines whose score, or a flag of difficult objects, is behind the corners."""
    first, last = frame["score"], frame["ymax"]
    if not frame.height or first.null_count() or first.is_between(0, 1).all():
        return frame
    if not last.is_between(0, 1).all():
        return frame
    numbers = ["score", *CORNER_NAMES]
    moved = dict(zip([*CORNER_NAMES, "score"], numbers, strict=True))
    frame = frame.with_columns(pl.col(old).alias(new) for new, old in moved.items())
    if not last.is_in([0.0, 1.0]).all():
        return frame
    flag = pl.col("score").cast(pl.Int64).alias(_HARD)
    return frame.with_columns(flag, score=pl.lit(None, pl.Float64))


def _cornered(frame: pl.DataFrame, look: Look) -> tuple[pl.DataFrame, tuple[Note, ...]]:
    """Convert boxes to corners; return a note and a warning if they have widths and heights.

    If at least a tenth of the boxes are inverted as corners, they have widths and heights; fewer
    are errors. A few inverted predictions suffice if the ground truths have widths and heights.
    """
    wide = (pl.col("xmax") < pl.col("xmin")) | (pl.col("ymax") < pl.col("ymin"))
    many = frame.select(wide.sum()).item()
    theirs = look.other.box_format if look.other else None
    like_theirs = theirs == "xywh" and frame.height < _SURE
    sized = many >= max(_LEAST, _SHARE * frame.height) or 2 * many > frame.height
    if look.box_format != "xywh" and (look.box_format or not (sized or like_theirs)):
        return frame, ()
    corners = frame.with_columns(
        xmax=pl.col("xmin") + pl.col("xmax"), ymax=pl.col("ymin") + pl.col("ymax")
    )
    message = f"{look.given}: boxes are read as xmin, ymin, width and height"
    if many:
        message += f": as corners {many:,} of {frame.height:,} are inverted."
    else:
        message += "." if look.box_format else ", as those of the other side."
    if theirs != "xyxy" or look.box_format:
        return corners, (Note(BY_SIZE, message, many),)
    message += (
        " Those of the ground truths are read as corners. If both have widths and heights, give"
        f" {option('box_format', 'xywh')}."
    )
    doubt = Note("box_formats_differ", message, many, warning=True)
    return corners, (Note(BY_SIZE, message, many), doubt)


IMAGE_BOXES = Format(PER_IMAGE, (".txt",), _read_images, detects=_detects(PER_IMAGE))
CLASS_RESULTS = Format(PER_CLASS, (".txt",), _read_classes, detects=_detects(PER_CLASS))
