"""Contents of datums, for display."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ..ingest.frames import Frames
from ..ingest.problems import Note
from ..schemas.arrays import Array
from .encoding import Workers

# Coarse outlines of regions for display: rings of few points.

Ring = tuple[tuple[float, float], ...]
"""x and y of points in pixels of the image, the last of them the first."""

MOST_POINTS = 200
"""Points of all rings of a region."""
CELLS = 256
"""Pixels across that a mask is seen at."""
_TRIES = 8


def of_geometry(geometry: Any, most: int = MOST_POINTS) -> tuple[Ring, ...]:
    """Return the rings of a shapely polygon or multipolygon, for the even-odd fill rule.

    Args:
        most: maximum points of all rings; if simplified rings have more, the smallest parts are
            dropped.
    """
    import shapely

    if geometry.is_empty:
        return ()
    xmin, ymin, xmax, ymax = geometry.bounds
    coarse = max(xmax - xmin, ymax - ymin) / 400
    for _ in range(_TRIES):
        if shapely.get_num_coordinates(geometry) <= most:
            break
        geometry = shapely.simplify(geometry, coarse)
        coarse *= 2
    parts = sorted(shapely.get_parts(geometry), key=lambda part: -part.area)
    rings: list[Ring] = []
    left = most
    for part in parts:
        for ring in (part.exterior, *part.interiors):
            xy = np.round(shapely.get_coordinates(ring), 1).tolist()
            left -= len(xy)
            if left < 0:
                return tuple(rings)
            rings.append(tuple((x, y) for x, y in xy))
    return tuple(rings)


def of_pixels(
    pixels: Array, left: float = 0.0, top: float = 0.0, most: int = MOST_POINTS, cells: int = CELLS
) -> tuple[Ring, ...]:
    """Return the rings around the pixels that are set; large masks are subsampled.

    Args:
        pixels: bool or uint8 [height, width].
        left: image coordinate of its first column.
        top: image coordinate of its first row.
        most: maximum points of all rings.
    """
    import shapely
    from rasterio.features import shapes

    step = max(1, math.ceil(max(pixels.shape) / cells))
    seen = np.ascontiguousarray(pixels[::step, ::step] != 0)
    regions = [
        shapely.geometry.shape(region) for region, _ in shapes(seen.astype(np.uint8), mask=seen)
    ]
    if not regions:
        return ()
    placed = shapely.transform(
        shapely.MultiPolygon(regions), lambda xy: xy * step + np.array([left, top])
    )
    return of_geometry(placed, most)


# Contents of single datums for display: plain structs, capped in size, without markup.

CHARACTERS = 2_000
"""Characters of a text that are shown."""
DOCUMENTS = 20
"""Maximum number of displayed documents of a ranked list, and of missing relevant ones."""
MOST_BOXES = 50
"""Boxes of an image that are shown."""
LABELS = 20
"""Labels of a datum that are shown."""
ROWS = 20
"""Rows of a table that are shown."""
_REFERENCES = 20
_LINE = 120  # characters of a row shown on one line


class Piece(msgspec.Struct, frozen=True):
    """Piece of a word diff of two texts.

    Attributes:
        side: ``both``, ``prediction`` or ``reference``: the text that contains the words.
        text: the words and the space after them, unchanged; for shared words the longer space.
    """

    side: str
    text: str


class Texts(msgspec.Struct, frozen=True, kw_only=True):
    """Word diff of a prediction and the closest of its references.

    Attributes:
        pieces: of both texts, in order.
        references: number of references.
        cut: omitted characters, of the prediction and of the reference.
    """

    pieces: tuple[Piece, ...]
    references: int
    cut: tuple[int, int] = (0, 0)


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Document of a ranked list, or one missing from it.

    Attributes:
        document: its id, or its text.
        rank: from 1; None if not retrieved.
        score: score of the ranking, if any.
        relevance: judged relevance; None if not judged.
        relevant: counts as relevant.
        cut: omitted characters of the text.
    """

    document: str
    rank: int | None = None
    score: float | None = None
    relevance: float | None = None
    relevant: bool = False
    cut: int = 0


class Ranking(msgspec.Struct, frozen=True, kw_only=True):
    """A ranked list and the relevant documents missing from it.

    Attributes:
        documents: the first of the list, best first.
        left_out: number of further documents.
        missing: relevant documents that were not retrieved, the most relevant first.
        missing_left_out: number of further missing ones.
    """

    documents: tuple[Document, ...]
    left_out: int
    missing: tuple[Document, ...]
    missing_left_out: int


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """A predicted box, or a missed one.

    Attributes:
        label: name or value.
        outcome: ``tp``, ``fp``, ``missed``, or ``ignored`` if it counts as neither.
        score: score of a prediction; None if missed.
        corners: xmin, ymin, xmax, ymax in pixels of the image; for polygons and masks the bounding
            box.
        rings: coarse outline of polygons and masks; empty for boxes.
    """

    label: str
    outcome: str
    score: float | None
    corners: tuple[float, float, float, float]
    rings: tuple[Ring, ...] = ()


class Boxes(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of an image: missed ones, false positives, true positives, ignored ones.

    Attributes:
        boxes: the first of them; within an outcome by score.
        left_out: number of further boxes.
        iou_threshold: threshold of the match.
        score_threshold: lower predictions are not shown.
    """

    boxes: tuple[Box, ...]
    left_out: int
    iou_threshold: float
    score_threshold: float


class LabelScore(msgspec.Struct, frozen=True, kw_only=True):
    """A predicted label.

    Attributes:
        key: label key.
        label: name or value.
        score: None without scores.
        true: the label is true of the datum.
    """

    key: str
    label: str
    score: float | None
    true: bool


class Labelled(msgspec.Struct, frozen=True, kw_only=True):
    """Predicted and true labels of a datum.

    Attributes:
        predicted: by key, the highest score first.
        left_out: number of further labels.
        truth: label key and name or value of each true label.
    """

    predicted: tuple[LabelScore, ...]
    left_out: int
    truth: tuple[tuple[str, str], ...]


class LabelPixels(msgspec.Struct, frozen=True, kw_only=True):
    """Pixels of a label in an image.

    Attributes:
        key: label key.
        label: name or value.
        truth: its pixels in the ground truth.
        missed: ground-truth pixels predicted as another label.
        false: pixels wrongly predicted as this label.
        iou: None if neither side has pixels.
    """

    key: str
    label: str
    truth: int
    missed: int
    false: int
    iou: float | None


class PixelsWrong(msgspec.Struct, frozen=True, kw_only=True):
    """Labels of an image, the most wrong pixels first.

    Attributes:
        labels: the first of them.
        left_out: number of further labels.
        rings: coarse outlines of the largest regions of wrong pixels; empty if the inputs are not
            label maps or were not read again.
        size: height and width of the outlines' coordinates.
    """

    labels: tuple[LabelPixels, ...]
    left_out: int
    rings: tuple[Ring, ...] = ()
    size: tuple[int, int] | None = None


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of a table.

    Attributes:
        columns: names.
        rows: values as text, None if null.
        left_out: number of further rows.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]
    left_out: int

    @property
    def short(self) -> bool:
        """True if every row fits in a line."""
        return all(sum(len(one or "") for one in row) <= _LINE for row in self.rows)


Content = Texts | Ranking | Boxes | Labelled | PixelsWrong | Rows


class Contents(msgspec.Struct, frozen=True, kw_only=True):
    """Functions that build a task's contents of datums, from the tally or from the tables.

    Attributes:
        of_tally: maps tally, settings and codes int64 [m] to one item each, without reading files.
        of_tables: maps checked rows of the datums, settings, ids as text, parameters of the judging
            number and threads to one item each; None for a datum without anything to show.
        completed: adds information from the rows to items from the tally.
    """

    of_tally: Callable[[Any, Any, Array], list[Content]] | None = None
    of_tables: (
        Callable[[Frames, Any, list[str], dict[str, Any], Workers], list[Content | None]] | None
    ) = None
    completed: (
        Callable[[Frames, Any, list[str], list[Content | None]], list[Content | None]] | None
    ) = None


def copied(frames: Frames, notes: Sequence[Note] = ()) -> Frames:
    """The same tables for a step that uses them up."""
    sides = {role: frame.clone() for role, frame in frames.sides.items()}
    return msgspec.structs.replace(frames, sides=sides, notes=[*notes])


def by_datum(frame: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Rows of each datum, by its id as text."""
    parts = frame.partition_by("datum_id", as_dict=True, maintain_order=True)
    return {str(key[0]): rows for key, rows in parts.items()}


def word_diffs(
    frames: Frames,
    ids: Sequence[str],
    names: tuple[str, str],
    texts_of: Callable[[pl.DataFrame | None, str], list[str]],
) -> list[Content | None]:
    """Return the word diff of each datum; None for one without texts.

    Args:
        names: columns of both sides in one table; the first is that of separate tables.
        texts_of: texts of the rows of a datum in a column.
    """
    if frames.table is not None:
        rows = by_datum(frames.table)
        sides = [(rows, name) for name in names]
    else:
        sides = [(by_datum(side), names[0]) for side in (frames.predictions, frames.ground_truths)]
    out: list[Content | None] = []
    for one in ids:
        ours, theirs = (texts_of(rows.get(one), name) for rows, name in sides)
        out.append(word_diff(ours, theirs) if ours or theirs else None)
    return out


def shortened(text: str, most: int = CHARACTERS) -> tuple[str, int]:
    """Return the beginning of a text, and the number of omitted characters."""
    return text[:most], max(0, len(text) - most)


def word_diff(predictions: Sequence[str], references: Sequence[str]) -> Texts:
    """Return the word diff of the closest pair of prediction and reference.

    Args:
        predictions: of a datum; may be empty.
        references: of the datum; may be empty.
    """
    pairs = [
        (ours, theirs)
        for ours in (predictions or [""])[:_REFERENCES]
        for theirs in (references or [""])[:_REFERENCES]
    ]
    matchers = []
    for texts in pairs:
        a, b = ([word.strip() for word in _words(text[:CHARACTERS])] for text in texts)
        matchers.append(difflib.SequenceMatcher(None, a, b, autojunk=False))
    pair, best = max(
        zip(pairs, matchers, strict=True), key=lambda one: one[1].ratio() if len(pairs) > 1 else 0.0
    )
    ours, theirs = (_words(text[:CHARACTERS]) for text in pair)
    pieces = []
    for same, low, high, first, last in best.get_opcodes():
        if same == "equal":
            pairs_of_words = zip(ours[low:high], theirs[first:last], strict=True)
            pieces.append(Piece("both", "".join(max(one, key=len) for one in pairs_of_words)))
            continue
        if high > low:
            pieces.append(Piece("prediction", "".join(ours[low:high])))
        if last > first:
            pieces.append(Piece("reference", "".join(theirs[first:last])))
    return Texts(
        pieces=tuple(pieces),
        references=len(references),
        cut=(shortened(pair[0])[1], shortened(pair[1])[1]),
    )


def _words(text: str) -> list[str]:
    """Words with the space behind them."""
    return re.findall(r"\S+\s*|\s+", text)


def rows_of(frame: pl.DataFrame) -> Rows:
    """Return the first rows as text, without empty columns."""
    frame = frame[[one.name for one in frame if one.null_count() < frame.height]]
    return Rows(
        columns=tuple(frame.columns),
        rows=tuple(
            tuple(None if value is None else shortened(str(value))[0] for value in row)
            for row in frame.head(ROWS).rows()
        ),
        left_out=max(0, frame.height - ROWS),
    )


def contents_of_table(
    frames: Frames, settings: Any, ids: list[str], made_with: dict[str, Any], workers: Workers
) -> list[Content | None]:
    """Return the rows of datums in the single table; see :attr:`Contents.of_tables`."""
    assert frames.table is not None
    rows = by_datum(frames.table)
    return [rows_of(rows[one].drop("datum_id")) if one in rows else None for one in ids]


def called(labels: pl.DataFrame, code: int) -> str:
    """A label's name, or its value."""
    value, name = labels.select("label_value", "label_name").row(code)
    return str(value if name is None else name)
