"""Encoding of detection tables as arrays."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import flat
from ...ingest.frames import Frames
from ...ingest.geometry import CORNER_NAMES, GEOMETRY_NAMES
from ...ingest.problems import Note, count_of, listing, note_of
from ...ingest.where import RemainingRows
from ...kernels.boxes import Piece
from ...kernels.order import group_by_label
from ...schemas.arrays import Array
from ...schemas.contract import (
    ALPHA,
    BOX3D,
    EGO_DISTANCE,
    GROUND_TRUTHS,
    HEIGHT_2D,
    KEYPOINTS,
    NUM_POINTS,
    OBB,
    OCCLUDED,
    PREDICTIONS,
    REGIONS,
    ROW,
    TRUNCATED,
)
from ...schemas.errors import N_EXAMPLES, N_NAMES, InputError
from ...schemas.tuning import tuning
from ...schemas.wording import option
from ...tallies.datums import Datums, Labels
from ...tallies.ranked import comparable
from ..encoding import (
    Workers,
    dataset_of,
    declared_sizes,
    encode_datums,
    encode_labels,
    pop_column,
    pop_if_present,
    pop_numbers,
    row_numbers,
)
from ..rules import overlap_warning
from ..scores import beyond_scores
from .dialects import COCO_AREAS, DetectionRules, Difficulty
from .layers import Region, Shapes
from .preparing import compared
from .settings import Settings

# Duplicated rows: a file given twice, or results that were appended to.

_DATUMS = 200  # looked at, evenly spaced
_LEAST, _NOTED = 3, 0.01  # copies, and their share of rows, from which there is a note
_SURE, _COPIES = 10, 0.1  # the same for a warning, unless every row has a copy


def doubled(side: Side, role: str, n_datums: int) -> Note | None:
    """Return a note on rows that repeat another row of their datum, a warning if many do.

    Single duplicates are legal: two objects may have the same box. Rows without extent or with a
    score of 0 may be padding and are skipped.

    Args:
        role: name of the side.
    """
    rows = np.arange(side.datum.size)
    if n_datums > _DATUMS:
        datums = np.flatnonzero(np.bincount(side.datum, minlength=n_datums))
        chosen = np.zeros(n_datums, bool)
        chosen[datums[:: max(1, datums.size // _DATUMS)]] = True
        rows = np.flatnonzero(chosen[side.datum])
    least = max(_LEAST, _NOTED * rows.size)
    boxes = side.boxes(rows)
    first = np.sort(boxes[:, 0])
    if np.count_nonzero(first[1:] == first[:-1]) < least:  # decides nearly all tables
        return None
    scores = side.scores(rows)
    filled = (boxes[:, :2] != boxes[:, 2:]).any(axis=1)
    if scores is not None:
        filled &= scores != 0
    rows, boxes, scores = rows[filled], boxes[filled], None if scores is None else scores[filled]
    columns = [side.datum[rows], side.label[rows], *boxes.T, *([] if scores is None else [scores])]
    table = pl.DataFrame({str(i): column for i, column in enumerate(columns)})
    n = rows.size - table.n_unique()
    if n < least:
        return None
    same = "label and position" if scores is None else "label, position and score"
    what = (
        f"of other rows: the same {same} appear twice or more in the datums looked at, and each"
        " counts separately. If a file was given twice, or results were appended to, remove the"
        " copies"
    )
    words = "copy", "copies", what
    note = note_of("rows_doubled", n, words, before=f"{role.replace('_', ' ')}: ")
    sure = n > _COPIES * rows.size and (n >= _SURE or bool(table.is_duplicated().all()))
    facts = {"side": role, "count": n, "of": rows.size, "beyond": _COPIES}
    return msgspec.structs.replace(note, warning=sure, facts=facts)


# KITTI's difficulties (in place of area ranges) and don't-care regions, by its
# ``evaluate_object.cpp``, ``cleanData``.

UNKNOWN = -10.0
"""``alpha`` of objects of which it is not known."""


class Graded(msgspec.Struct, frozen=True):
    """Visibility of rows, by row of the tables.

    Attributes:
        height: float64 [n] and [m], pixels.
        occluded: float64 [m].
        truncated: float64 [m].
        single: ``truncated`` came in single precision.
        left: bool [m], ground truths that are regions, or of labels that are not scored.
        alpha: float64 [n] and [m], observation angles; -10 if unknown.
        of_region: int32 [r], datums of regions.
        regions: float64 [r, 4], boxes of regions.
    """

    height: tuple[Array, Array]
    occluded: Array
    truncated: Array
    single: bool
    left: Array
    alpha: tuple[Array, Array]
    of_region: Array
    regions: Array

    def regular(self, one: Difficulty) -> Array:
        """Ground truths that count at a difficulty, bool [m]."""
        return (
            (self.height[1] > one.height)
            & (self.occluded <= one.occluded)
            & (self.truncated <= comparable(one.truncated, single=self.single))
        )

    def small(self, one: Difficulty) -> Array:
        """Predictions too small for a difficulty, bool [n]."""
        return self.height[0] < one.height


def graded(
    frames: Frames,
    datums: Datums,
    labels: Labels,
    codes: tuple[tuple[Array, Array], tuple[Array, Array]],
    rules: DetectionRules,
) -> tuple[Graded, Array, Array]:
    """Return the visibility of rows, with ground truths of neighbours moved to the main label.

    Args:
        codes: both sides' datum codes, and their label codes, int32 [n].

    Returns:
        visibility of rows; int32 [m], labels of ground truths; bool [m], those of neighbours.

    Raises:
        InputError: columns required by difficulties are missing, or null in some rows.
    """
    names = labels.frame["label_value"].cast(pl.String).to_list()
    code = {name: at for at, name in enumerate(names)}
    label = codes[1][1]
    is_region = label == code.get(rules.region or "", -1)
    ours = _Side(
        frames.predictions, PREDICTIONS, datums, codes[0][0], np.ones(codes[0][0].size, bool)
    )
    theirs = _Side(frames.ground_truths, GROUND_TRUTHS, datums, codes[0][1], ~is_region)
    moved, neighbour = label.copy(), np.zeros(label.size, bool)
    for name, other in rules.neighbours.items():
        if name in code and other in code:
            here = label == code[name]
            moved[here], neighbour[here] = code[other], True
    unscored = np.zeros(label.size, bool)
    for name in rules.unscored:
        here = (label == code.get(name, -1)) & ~neighbour
        unscored |= here
        if n := int(here.sum()):
            words = ("row", "rows", f"of label {name!r}, which is not scored, skipped")
            frames.notes.append(note_of("unscored", n, words, before="ground truths: "))
    of_region, regions = _regions(frames, datums, codes[0][1], is_region)
    visibility = Graded(
        height=(ours.height(), theirs.height()),
        occluded=theirs.needed(OCCLUDED.name),
        truncated=theirs.needed(TRUNCATED.name),
        single=frames.ground_truths.schema.get(TRUNCATED.name) == pl.Float32,
        left=is_region | unscored,
        alpha=(_alpha(frames.predictions), _alpha(frames.ground_truths)),
        of_region=of_region,
        regions=regions,
    )
    return visibility, moved, neighbour


class _Side(msgspec.Struct, frozen=True):
    """One side, and the mask of its rows (bool [n]) that need the columns of difficulties."""

    frame: pl.DataFrame
    name: str
    datums: Datums
    datum: Array
    where: Array

    def height(self) -> Array:
        """Return the heights of boxes in their images, float64 [n]."""
        if not {"ymin", "ymax"} <= {*self.frame.columns}:
            return self.needed(HEIGHT_2D.name)
        tall = self.frame["ymax"].cast(pl.Float64) - self.frame["ymin"].cast(pl.Float64)
        return tall.abs().to_numpy()

    def needed(self, name: str) -> Array:
        """Return a column as float64 [n].

        Raises:
            InputError: it is missing, or null in some rows.
        """
        if not self.frame.height:
            return np.zeros(0)
        side = self.name.replace("_", " ")
        if name not in self.frame.columns:
            raise InputError(
                f"{side}: no column {name!r} of numbers, which KITTI's difficulties need. Give"
                f" {_REMEDIES.get(name, 'one, with 0 for objects neither hidden nor cut')}.",
                code="column_missing",
                side=self.name,
                column=name,
            )
        column = self.frame[name].cast(pl.Float64)
        missing = np.flatnonzero(column.is_null().to_numpy() & self.where)
        if missing.size:
            first = [self.datums.id[int(code)] for code in self.datum[missing[:N_EXAMPLES]]]
            raise InputError(
                f"{side}: column {name!r}: {count_of(missing.size, 'row')} without a value, which"
                f" KITTI's difficulties rest on, first of datums {listing(first, missing.size)}."
                " Fill them in, or remove these rows.",
                code="null_values",
                side=self.name,
                column=name,
                count=missing.size,
            )
        return column.fill_null(0.0).to_numpy()


_REMEDIES = {
    HEIGHT_2D.name: "boxes in pixels (xmin, ymin, xmax, ymax) in addition to those in space, or"
    " their height"
}


def angles_unknown(predictions: pl.DataFrame) -> str:
    """Return why predictions have no observation angles; empty if all have one."""
    if ALPHA.name not in predictions.columns:
        return ""
    many = int((predictions[ALPHA.name].cast(pl.Float64).fill_null(UNKNOWN) == UNKNOWN).sum())
    return f"{count_of(many, 'prediction')} of unknown alpha ({UNKNOWN:g})" if many else ""


def _alpha(frame: pl.DataFrame) -> Array:
    if ALPHA.name not in frame.columns:
        return np.full(frame.height, UNKNOWN)
    return frame[ALPHA.name].cast(pl.Float64).fill_null(UNKNOWN).to_numpy()


def _regions(frames: Frames, datums: Datums, datum: Array, is_region: Array) -> tuple[Array, Array]:
    """Return datums int32 [r] and boxes float64 [r, 4] of regions, from rows and the datum table.

    Raises:
        InputError: a list does not have four numbers per region.
    """
    owners, boxes = [np.zeros(0, np.int32)], [np.zeros((0, 4))]
    truths = frames.ground_truths
    if is_region.any() and {*CORNER_NAMES} <= {*truths.columns}:
        every = truths.filter(pl.Series(is_region)).select(pl.col(CORNER_NAMES).cast(pl.Float64))
        owners.append(datum[is_region])
        boxes.append(every.to_numpy().reshape(-1, 4))
    table = frames.datums
    if table is not None and REGIONS.name in table.columns:
        lists = table.select("datum_id", REGIONS.name).drop_nulls()
        places = datums.id.to_frame("datum_id").with_row_index("code")
        rows = lists.with_columns(pl.col("datum_id").cast(datums.id_dtype)).join(
            places, on="datum_id"
        )
        values, (offsets,) = flat(rows[REGIONS.name])
        many = np.diff(offsets)
        numbers = values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        odd = many % 4 != 0
        odd[np.repeat(np.arange(many.size), many)[~np.isfinite(numbers)]] = True
        if odd.any():
            first = rows["datum_id"].filter(pl.Series(odd)).head(N_EXAMPLES).to_list()
            raise InputError(
                f"datums: column {REGIONS.name!r}: {count_of(int(odd.sum()), 'row')} whose list is"
                f" not four finite numbers a region, first {listing(first, int(odd.sum()))}. Write"
                " xmin, ymin, xmax and ymax of each.",
                code="wrong_length",
                column=REGIONS.name,
                count=int(odd.sum()),
            )
        owners.append(np.repeat(rows["code"].cast(pl.Int32).to_numpy(), many // 4))
        boxes.append(numbers.reshape(-1, 4))
    return np.concatenate(owners).astype(np.int32), np.concatenate(boxes)


# Label lists of the table of datums (present, absent, not exhaustively annotated), and caps.


_LISTS = ("positive_labels", "negative_labels", "partial_labels")


class Listed(msgspec.Struct, frozen=True):
    """Label lists of the table of datums, which apply without rows.

    Attributes:
        start: int64 [labels + 1], offsets by label.
        datum: int32 [k].
        checked: bool [k], the label was searched for in the datum.
        partial: bool [k], not every object of it is annotated there.
    """

    start: Array
    datum: Array
    checked: Array
    partial: Array


def listed(frames: Frames, datums: Datums, labels: Labels, rules: DetectionRules) -> Listed:
    """Return the coded lists of the table of datums.

    Raises:
        InputError: the lists are missing, or a datum has none.
    """
    table = frames.datums
    missing = [name for name in rules.federated if table is None or name not in table.columns]
    if table is None or missing:
        lists = " and ".join(map(repr, missing))
        raise InputError(
            f"datums: {lists} missing, so the labels annotated per datum are unknown. Give a table"
            f" of all datums with them as lists of labels, {option('datums')}, or LVIS JSON as"
            " ground truths; other data need another dialect.",
            code="column_missing",
            table="datums",
        )
    names = [name for name in _LISTS if name in table.columns]
    pairs = [
        table.select(
            "datum_id",
            pl.col(name).cast(pl.List(_dtype(table[name], labels))).alias("value"),
            checked=pl.lit(name != "partial_labels"),
            partial=pl.lit(name == "partial_labels"),
        )
        .explode("value")
        .drop_nulls("value")
        for name in names
    ]
    return _coded(pl.concat(pairs), frames, datums, labels)


def _dtype(lists: pl.Series, labels: Labels) -> pl.DataType:
    """Return the dtype of labels, after checking that lists are compatible.

    Raises:
        InputError: integers on one side and strings on the other.
    """
    values = lists.explode()
    if len(values.drop_nulls()) and (values.dtype == pl.String) != (labels.dtype == pl.String):
        raise InputError(
            f"datums: column {lists.name!r} contains lists of {values.dtype}, labels are"
            f" {labels.dtype}. Cast them to one.",
            code="types_differ",
            column=lists.name,
        )
    return labels.dtype


def _coded(pairs: pl.DataFrame, frames: Frames, datums: Datums, labels: Labels) -> Listed:
    """Return the lists by label, without labels that have no row and are not declared."""
    codes = labels.frame.select("label_value", "label_key").with_row_index("label")
    if frames.label_map:
        every = pl.concat(list(frames.label_map.values()), how="vertical_relaxed")
        renamed = (
            every.select(
                pl.col("label_value").alias("value"),
                pl.col("new_label_key").alias("label_key"),
                pl.col("new_label_value").alias("label_value"),
            )
            .drop_nulls()
            .unique()
        )
        unmapped = codes.join(
            renamed.select("value"), left_on="label_value", right_on="value", how="anti"
        )
        codes = pl.concat(
            [
                unmapped.select("label", pl.col("label_value").alias("value")),
                codes.join(renamed, on=["label_key", "label_value"]).select("label", "value"),
            ]
        )
    else:
        codes = codes.select("label", pl.col("label_value").alias("value"))
    places = datums.id.to_frame("datum_id").with_row_index("datum")
    coded = (
        pairs.with_columns(pl.col("datum_id").cast(datums.id_dtype))
        .join(codes, on="value")
        .join(places, on="datum_id")
    )
    datum, label = (coded[name].cast(pl.Int32).to_numpy() for name in ("datum", "label"))
    start, place = group_by_label(datum, label, len(datums), len(labels))
    flags = coded["checked"].to_numpy(), coded["partial"].to_numpy()
    columns = []
    for column in (datum, *flags):
        out = np.empty_like(column)
        out[place] = column
        columns.append(out)
    return Listed(start, *columns)


def beyond_cap(frame: pl.DataFrame, cap: int) -> pl.Series | None:
    """Return a mask of predictions within the cap per datum, by score, then row.

    Returns:
        Boolean [n]; None if no datum has more.
    """
    many = frame.select(pl.col("datum_id")).to_series().value_counts()
    full = many.filter(pl.col("count") > cap)["datum_id"]
    if not len(full):
        return None
    numbered = frame.select("datum_id", "score").with_row_index("row")
    ordered = numbered.filter(pl.col("datum_id").is_in(full.implode())).sort(
        "datum_id", "score", descending=[False, True], maintain_order=True
    )
    place = pl.int_range(pl.len()).over("datum_id")
    out = np.ones(frame.height, np.bool_)
    out[ordered.filter(place >= cap)["row"].to_numpy()] = False
    return pl.Series("within", out)


_NONE = np.empty(0, np.float64)
_PLACE = "__place"
"""Column of the original row number, once rows are dropped."""


class Side(msgspec.Struct, frozen=True):
    """One side's rows as arrays, in the order of its table.

    Attributes:
        datum: int32 [n], datum codes.
        label: int32 [n], label codes.
        pieces: boxes, and the scores of predictions, by chunk of the columns.
        shapes: polygons or masks, if compared; boxes are then their bounding boxes. None if boxes
            are compared.
        frame: remaining columns of the checked table, which some outputs need.
        rows: int64 [n], row number in the whole input; None if the table is the whole input.
    """

    datum: Array
    label: Array
    pieces: tuple[Piece, ...]
    shapes: Shapes | None
    frame: pl.DataFrame
    rows: Array | None = None

    def boxes(self, rows: Array) -> Array:
        """xmin, ymin, xmax, ymax of some rows of the table, float64 [k, 4]."""
        out = np.empty((rows.size, 4))
        before = 0
        for piece in self.pieces:
            here = np.flatnonzero((rows >= before) & (rows < before + piece.corners[0].size))
            for corner, column in enumerate(piece.corners):
                out[here, corner] = column[rows[here] - before]
            before += piece.corners[0].size
        return out

    def scores(self, rows: Array) -> Array | None:
        """Return the scores of table rows, float64 [k]; None for ground truths."""
        parts = [*map(attrgetter("score"), self.pieces)] or [np.zeros(0)]
        every = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return every[rows].astype(np.float64) if every.size else None


class Batch(msgspec.Struct, frozen=True):
    """Detection input as arrays.

    Attributes:
        datums: codes ascending by id.
        labels: codes ascending by key and value.
        single: scores came in single precision.
        crowd: bool [m].
        ignore: bool [m], ground truths that do not count.
        area: float64 [m], annotated area, or None to use that of the geometry.
        heights: rows of both tables, if they are numbered from their first; None if they are
            numbered as in the whole input.
        listed: label lists of datums, if the dialect uses them.
        graded: visibility of rows, if the dialect has difficulties.
        regions: datums int32 [r] and boxes float64 [r, 4] of regions in which nothing counts.
        sizes: int64 [n_datums, 2], height and width of images with regions; 0 if unknown.
    """

    datums: Datums
    labels: Labels
    predictions: Side
    ground_truths: Side
    single: bool
    crowd: Array
    ignore: Array
    area: Array | None
    heights: tuple[int, int] | None = None
    listed: Listed | None = None
    graded: Graded | None = None
    regions: tuple[Array, Array] | None = None
    sizes: Array | None = None


def _pieces(columns: list[pl.Series]) -> list[tuple[Array, ...]]:
    """Return numeric columns as float64 arrays by chunk; joined if chunks are small or differ."""
    columns = [column.cast(pl.Float64) for column in columns]
    lengths = [*map(pl.Series.chunk_lengths, columns)]
    equal = lengths.count(lengths[0]) == len(lengths)
    if not equal or len(lengths[0]) * tuning().chunk_rows > len(columns[0]):
        return [tuple(map(pl.Series.to_numpy, columns))]
    chunks = [[chunk.to_numpy() for chunk in column.get_chunks()] for column in columns]
    return list(zip(*chunks, strict=True))


def _side(
    frame: pl.DataFrame, datum: Array, label: Array, shapes: Shapes | None, score: pl.Series | None
) -> Side:
    rows = row_numbers(frame)
    if _PLACE in frame.columns:
        place = pop_column(frame, _PLACE).to_numpy()
        rows = place if rows is None else rows
    scores = [] if score is None else [score]
    if shapes is not None:
        corners: Any = tuple(np.ascontiguousarray(shapes.boxes.T, np.float64))
        for name in (*GEOMETRY_NAMES, KEYPOINTS.name, BOX3D.name):
            if name in frame.columns:
                frame.drop_in_place(name)
        one = _NONE if score is None else score.cast(pl.Float64).to_numpy()
        return Side(datum, label, (Piece(corners, None, one),), shapes, frame, rows)
    names = list(CORNER_NAMES)
    if "box_width" in frame.columns and "box_height" in frame.columns:
        names += ["box_width", "box_height"]
    pieces = []
    for xmin, ymin, xmax, ymax, *rest in _pieces(
        [*map(partial(pop_column, frame), names), *scores]
    ):
        one = rest.pop() if scores else _NONE
        extent = (rest[0], rest[1]) if rest else None
        pieces.append(Piece((xmin, ymin, xmax, ymax), extent, one))
    return Side(datum, label, tuple(pieces), None, frame, rows)


def _declared_rows(frames: Frames, settings: Settings) -> None:
    """Drop rows of undeclared datums, rows beyond a datum's cap, and undeclared labels."""
    columns = settings.rules.declared_only
    if "datum_id" in columns:
        _declared(frames, "datum_id", frames.datums)
    if settings.rules.cap_of_datum and settings.cap is not None:
        within = beyond_cap(frames.predictions, settings.cap)
        if within is not None:
            words = ("row", "rows", f"beyond the {settings.cap} of a datum skipped")
            keep_rows(frames, "predictions", within, "beyond_cap", words)
    if "label_value" in columns:
        _declared(frames, "label_value", frames.labels)


def _in_range(frames: Frames, settings: Settings) -> None:
    """Drop rows beyond the range of their label, and ground truths without a point."""
    ranges = settings.rules.ranges
    for side in ("predictions", "ground_truths"):
        frame = getattr(frames, side)
        if EGO_DISTANCE.name in frame.columns:
            most = (
                pl.col("label_value")
                .cast(pl.String)
                .replace_strict(ranges, default=float("inf"), return_dtype=pl.Float64)
            )
            mask = frame.select(pl.col(EGO_DISTANCE.name) < most).to_series()
            words = ("row", "rows", "beyond the range of their label skipped")
            keep_rows(frames, side, mask, "beyond_range", words)
        elif frame.height:
            counts = (
                f"{side.replace('_', ' ')}: no column {EGO_DISTANCE.name}, so that all rows count"
            )
            frames.notes.append(
                Note("no_range", f"{counts} as lying within the range of their label.")
            )
    frame = frames.ground_truths
    if NUM_POINTS.name in frame.columns:
        mask = frame.select(pl.col(NUM_POINTS.name) != 0).to_series()
        words = ("row", "rows", "without a lidar or radar point skipped")
        keep_rows(frames, "ground_truths", mask, "no_points", words)


def _declared(frames: Frames, column: str, table: pl.DataFrame | None) -> None:
    """Drop rows whose value of a column is not declared."""
    if table is None or column not in table.columns:
        return
    declared = table[column].implode()
    for side in ("predictions", "ground_truths"):
        mask = getattr(frames, side).select(pl.col(column).is_in(declared)).to_series()
        what = "datums" if column == "datum_id" else "labels"
        words = ("row", "rows", f"of undeclared {what} skipped, as in COCO")
        keep_rows(frames, side, mask, "undeclared_left_out", words)
    if column == "datum_id":
        frames.notes = [_not_scored(note) for note in frames.notes]


def _not_scored(note: Note) -> Note:
    """A note on datums that are not listed, without the words that their rows are scored."""
    if note.kind != "datums_not_listed" or note.words is None:
        return note
    one, many, what = note.words
    words = one, many, what.partition(", scored")[0]
    return note_of(note.kind, note.count or 0, words, note.lowest, note.before)


def keep_rows(
    frames: Frames, side: str, selected: pl.Series, kind: str, words: tuple[str, str, str]
) -> None:
    """Keep the masked rows of a side, and note the dropped ones."""
    frame = getattr(frames, side)
    n = frame.height - int(selected.sum())
    if n:
        if _PLACE not in frame.columns:
            frame = frame.with_row_index(_PLACE).with_columns(pl.col(_PLACE).cast(pl.Int64))
        setattr(frames, side, frame.filter(selected))
        frames.ids = None
        frames.remaining.setdefault(side, RemainingRows()).only(selected)
        frames.notes.append(note_of(kind, n, words, before=f"{side.replace('_', ' ')}: "))


def _note_scores(frames: Frames, score: pl.Series, datum: Array, settings: Settings) -> None:
    """Add notes on scores that are not probabilities, and on those that rank nothing.

    Default thresholds are in [0, 1]; rows of one score are ranked by their order.
    """
    if len(score):
        low, high = float(score.min()), float(score.max())  # type: ignore[arg-type]
        at = min(settings.score_thresholds, default=0.0)
        if at > 1 >= high:
            frames.notes += beyond_scores("score_thresholds", at, low, high)
        n = int((score == high).sum())
        if n >= _LEAST_TIED and n > _TIED * len(score):
            words = "row", "rows", "of one score, the highest: the AP depends on the order of rows"
            note = note_of("tied_scores", n, words, before="predictions: ")
            facts = {"count": n, "of": len(score), "beyond": _TIED}
            frames.notes.append(msgspec.structs.replace(note, warning=True, facts=facts))
        scales = _two_scales(score, datum) if low >= 0 and 1 < high <= _PERCENT else None
        if scales is not None:
            frames.notes.append(scales)
        elif low < 0 or high > 1:
            beyond = int(((score < 0) | (score > 1)).sum())
            words = "score", "scores", "outside [0, 1], the range of the default score_thresholds"
            frames.notes.append(note_of("scores_beyond_one", beyond, words, before="predictions: "))


def _note_angles(frames: Frames) -> None:
    """Warn if the angles of one side are in degrees, and those of the other in radians."""
    tables = {"predictions": frames.predictions, "ground truths": frames.ground_truths}
    name = next((one for one in (OBB.name, BOX3D.name) if one in frames.predictions.columns), "")
    if name not in frames.ground_truths.columns:
        return
    angles = {}
    for side, table in tables.items():
        values, (offsets,) = flat(table[name])
        last = offsets[1:][np.diff(offsets) > 0] - 1
        angles[side] = np.abs(values.to_numpy()[last])
    if min(map(len, angles.values())) < _LEAST_ANGLES:
        return
    small, large = sorted(angles, key=lambda side: float(np.median(angles[side])))
    ratio = np.median(angles[large]) / max(float(np.median(angles[small])), 1e-9)
    turn = 2 * np.pi
    if _DEGREES[0] <= ratio <= _DEGREES[1] and angles[small].max() <= turn < angles[large].max():
        message = (
            f"angles of the {large} are about {ratio:.0f} times those of the {small}, as degrees"
            f" are those of radians, and the numbers mean little. {option('angle_format')} is for"
            " both sides: convert the angles of one."
        )
        frames.notes.append(Note("angles_apart", message, warning=True, facts={"ratio": ratio}))


_LEAST_ANGLES, _DEGREES = 10, (40, 80)  # boxes of each side; ratios like 180 / pi


def _two_scales(score: pl.Series, datum: Array) -> Note | None:
    """A warning of scores in percent in some datums, and as shares in others."""
    highest = pl.DataFrame({"datum": datum, "score": score}).group_by("datum").max()["score"]
    percent, shares = highest.filter(highest > 1), highest.filter(highest <= 1)
    if min(len(percent), len(shares)) < max(_OF_EACH, _SHARE * len(highest)):
        return None
    if percent.min() <= _BETWEEN or shares.median() < _PROBABLE:  # type: ignore[operator]
        return None
    what = (
        "with scores in percent, while those of all others are at most 1: boxes of the former rank"
        " first. Divide their scores by 100"
    )
    note = note_of("scores_of_two_scales", len(percent), ("datum", "datums", what))
    facts = {"count": len(percent), "of": len(highest)}
    return msgspec.structs.replace(note, warning=True, facts=facts)


_PERCENT, _BETWEEN = 100, 10  # highest score in percent; no datum's is between 1 and this
_PROBABLE = 0.3  # median of the highest scores that are shares
_OF_EACH, _SHARE = 5, 0.1  # datums of each scale, and their share
_LEAST_TIED, _TIED = 20, 0.9  # rows, and their share, with the highest score


def _crowds_or_ignored(crowd: Array, ignore: Array, numbered: bool) -> Note | None:
    """A note or warning of ground truths that are all, or mostly, crowd regions or ignored."""
    n, crowds = crowd.size, int(crowd.sum())
    least = _LEAST_ROWS[numbered]
    if n < (least if numbered else 1):
        return None
    if crowds == n:
        return Note(
            "all_crowds",
            f"all {n:,} ground truths are crowd regions ('iscrowd' is 1), so none can be found or"
            " missed. If they are single objects, as converters that write RLE often mark them,"
            " set 'iscrowd' to 0.",
            n,
            warning=n >= least,
        )
    if (crowd | ignore).all():
        what = "have 'ignore' or 'iscrowd'" if crowds else "have 'ignore'"
        return Note(
            "all_ignored",
            f"all {n:,} ground truths {what}, so none can be found or missed.",
            n,
            warning=n >= least,
        )
    if n >= _LEAST_MANY and 2 * crowds > n:
        return Note(
            "all_crowds",
            f"{crowds:,} of {n:,} ground truths are crowd regions ('iscrowd' is 1), which can"
            " neither be found nor missed.",
            crowds,
        )
    return None


def _note_regions(frames: Frames, labels: Labels, ignored: Array, predicted: Array) -> None:
    """Add a note on ignored ground truths whose label is never predicted: they may be regions.

    Args:
        ignored: int32 [k], label codes of ignored ground truths.
        predicted: int32 [n], label codes of predictions.
    """
    never = ignored[~np.isin(ignored, predicted)]
    if not (never.size and predicted.size):
        return
    codes = np.unique(never)
    names = listing(labels.frame["label_value"].gather(codes[:N_NAMES]).to_list(), codes.size)
    what = (
        f"with 'ignore' of a label that is never predicted ({names}): each excuses only predictions"
        " of its label. For regions in which no prediction counts, leave their label null, or give"
        f" {option('regions', 'TABLE')}"
    )
    words = ("ground truth", "ground truths", what)
    frames.notes.append(note_of("ignored_labels", never.size, words))


def _odd_areas(area: Array | None, truths: Side, least: int, *, usual: bool) -> Note | None:
    """A warning of annotated areas, at least so many, that cannot be those of their boxes.

    They are all equal while boxes differ, at most 1, or mostly larger than their boxes with
    inclusive corners.

    Args:
        usual: area ranges are COCO's, in pixels; others may be for areas of another unit.
    """
    if area is None or area.size < least:
        return None
    constant = not (area != area[0]).any()
    if not (constant or usual):
        return None
    most = area.size if constant else min(area.size, _AREAS)
    rows = np.linspace(0, area.size - 1, most).astype(np.int64)
    boxes = truths.boxes(rows)
    sides = boxes[:, 2:] - boxes[:, :2]
    extent = sides.prod(axis=1)
    code, varied = "areas_apart", extent.max() > _VARIED * extent.min()
    if constant and varied:
        code = "constant_area"
        what = f"all {area.size:,} annotated areas are {area[0]:g}, but boxes differ in size"
    elif not constant and area.max() <= 1 < extent.min():
        what = "annotated areas are at most 1, like shares of an image, and boxes are in pixels"
    elif not constant and 2 * (area[rows] > _VARIED * (sides + 1).prod(axis=1)).sum() > most:
        what = "most annotated areas are larger than their boxes, as of another image size"
    else:
        return None
    message = f"{what}, so numbers by area mean little. Remove 'area' to use the areas of the"
    return Note(code, f"{message} compared geometry.", area.size, warning=True)


_AREAS = 10_000  # annotated areas that are compared with their boxes
_LEAST_ROWS = (3, 100)  # ground truths that are no coincidence: of all datums, of some datums
_LEAST_MANY = 10  # ground truths of which a majority is noted
_VARIED = 1.5  # ratio of areas that neither one annotated area nor rounding explains


def _as_written(frame: pl.DataFrame, decimals: tuple[int, int]) -> pl.DataFrame:
    """Predictions as files with so many decimals of the scores and of the corners have them."""
    columns = {"score": decimals[0]} | dict.fromkeys(CORNER_NAMES, decimals[1])
    return frame.with_columns(
        pl.Series(name, _rounded(frame[name].cast(pl.Float64).to_numpy(), many))
        for name, many in columns.items()
        if name in frame.columns
    )


def _rounded(values: Array, decimals: int) -> Array:
    """The nearest decimal to the exact value of each, as formatting gives it, float64 [n]."""
    scale = 10.0**decimals
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values * scale
        out: Array = np.rint(scaled) / scale
        halfway = np.abs(scaled - np.floor(scaled) - 0.5) < 1e-6  # the product was rounded itself
    large = np.abs(values) >= 2.0**52
    out[large] = values[large]
    at = np.flatnonzero(halfway & ~large)
    out[at] = [float(f"{value:.{decimals}f}") for value in values[at]]
    return out


def encode_batch(frames: Frames, settings: Settings, threads: Workers) -> Batch:
    """Encode checked tables as arrays; columns are consumed as they are encoded.

    Args:
        frames: both sides, checked; consumed. Their label map is applied.
        settings: handling of undeclared datums and labels; compared geometry.

    Raises:
        InputError: polygons or masks that cannot be read or compared.
    """
    numbered = ROW in frames.predictions.columns
    heights = frames.heights or (frames.predictions.height, frames.ground_truths.height)
    if settings.rules.declared_only:
        _declared_rows(frames, settings)
    if settings.rules.ranges:
        _in_range(frames, settings)
    if settings.rules.unscored and not settings.rules.difficulties:
        for side in ("predictions", "ground_truths"):
            label = getattr(frames, side)["label_value"].cast(pl.String)
            words = ("row", "rows", "of labels that are not scored skipped")
            mask = ~label.is_in(settings.rules.unscored)
            keep_rows(frames, side, mask, "unscored", words)
    if settings.rules.decimals is not None:
        frames.predictions = _as_written(frames.predictions, settings.rules.decimals)
    values, keys, ids = [], [], []
    dataset = dataset_of(frames)
    for frame in (frames.predictions, frames.ground_truths):
        values.append(pop_column(frame, "label_value"))
        keys.append(pop_if_present(frame, "label_key"))
        ids.append(pop_column(frame, "datum_id"))
    calls: list[Callable[[], Any]] = [
        partial(encode_datums, ids, frames, dataset, (PREDICTIONS, GROUND_TRUTHS)),
        partial(encode_labels, values, keys, frames),
    ]
    (datums, (p_datum, g_datum)), (labels, (p_label, g_label)) = threads.each(calls)
    del calls, values, keys
    codes = (p_datum, g_datum), (p_label, g_label)
    seen, neighbour = None, np.zeros(0, bool)
    if settings.rules.difficulties:
        seen, g_label, neighbour = graded(frames, datums, labels, codes, settings.rules)
    if not {OBB.name, BOX3D.name}.isdisjoint(frames.predictions.columns):
        _note_angles(frames)
    shapes = compared(frames, datums, labels, codes, settings, threads) or (None, None)
    ground_truths = frames.ground_truths
    score = pop_column(frames.predictions, "score")
    _note_scores(frames, score, p_datum, settings)
    crowd, ignore = (
        ground_truths[name].cast(pl.Boolean).to_numpy()
        if name in ground_truths.columns
        else np.zeros(g_datum.size, bool)
        for name in ("iscrowd", "ignore")
    )
    if not settings.rules.ignore:
        ignore = np.zeros(g_datum.size, bool)
    ignored = ignore
    if frames.whole and settings.rules.region_overlap is not None and ignore.any():
        _note_regions(frames, labels, g_label[ignore & ~crowd], p_label)
    if shapes[1] is not None and shapes[1].set_aside is not None:
        ignore = ignore | shapes[1].set_aside
    if seen is not None:
        ignore = ignore | neighbour
    ours = _side(frames.predictions, p_datum, p_label, shapes[0], score)
    theirs = _side(ground_truths, g_datum, g_label, shapes[1], None)
    warnings: list[Note | None] = [
        overlap_warning(ours, theirs, datums, labels, ours.scores, whole=frames.whole),
        doubled(ours, PREDICTIONS, len(datums)),
        doubled(theirs, GROUND_TRUTHS, len(datums)),
        _crowds_or_ignored(
            crowd & (settings.rules.crowd and not settings.rules.crowd_counts), ignored, numbered
        ),
    ]
    area = pop_numbers(ground_truths, "area") if "area" in ground_truths.columns else None
    if settings.ranged:
        usual = COCO_AREAS.items() >= {(name, (low, high)) for name, low, high in settings.areas}
        warnings.append(_odd_areas(area, theirs, _LEAST_ROWS[numbered], usual=usual))
    frames.notes += filter(None, warnings)
    return Batch(
        datums=datums,
        labels=labels,
        predictions=ours,
        ground_truths=theirs,
        single=score.dtype == pl.Float32,
        crowd=crowd,
        ignore=ignore,
        area=area,
        heights=None if numbered else heights,
        listed=listed(frames, datums, labels, settings.rules) if settings.rules.federated else None,
        graded=seen,
        **_of_regions(frames, datums, settings, shapes[0]),
    )


def _of_regions(
    frames: Frames, datums: Datums, settings: Settings, shapes: Shapes | None
) -> dict[str, Any]:
    """Regions in which nothing counts, and the sizes of images; a note if they are not applied."""
    table = frames.datums
    if settings.rules.difficulties or table is None or REGIONS.name not in table.columns:
        return {}
    none = np.zeros(0, np.int32), np.zeros(0, np.bool_)
    regions = _regions(frames, datums, *none)
    if not (many := regions[0].size):
        return {}
    layer = None if shapes is None else shapes.layers[0]
    why = ""
    if settings.region_overlap is None:
        why = "dialects standard and visdrone skip detections there"
    elif layer is not None and (not isinstance(layer, Region) or getattr(layer, "in_space", False)):
        why = "keypoints and boxes in space have no share inside regions"
    if not why:
        return {"regions": regions, "sizes": declared_sizes(frames, datums)}
    what = f"in which nothing counts not applied, so detections there count: {why}"
    frames.notes.append(note_of("regions_left_out", many, ("region", "regions", what)))
    return {}
