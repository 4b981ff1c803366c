"""KITTI's difficulties (which ground truths count, by visibility), and don't-care regions.

A difficulty takes the place of an area range. Ground truths of neighbouring labels may absorb
predictions, and predictions that are small in the image count neither as hit nor as miss.
Source: KITTI's ``evaluate_object.cpp``, ``cleanData``.
"""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl

from ...geometry.columns import flat
from ...ingest.boxes import CORNER_NAMES
from ...ingest.frames import Frames
from ...ingest.problems import count_of, listing, note_of
from ...schemas.arrays import Array
from ...schemas.columns import OCCLUDED, TRUNCATED
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...schemas.errors import InputError
from ...schemas.geometry_columns import ALPHA, HEIGHT_2D
from ...schemas.shared_tables import REGIONS
from ...tally.datums import Datums, Labels
from ...tally.precision import comparable
from .rules import DetectionRules, Difficulty

UNKNOWN = -10.0
"""``alpha`` of objects of which it is not known."""
_SHOWN = 3


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
        found: Array = (
            (self.height[1] > one.height)
            & (self.occluded <= one.occluded)
            & (self.truncated <= comparable(one.truncated, single=self.single))
        )
        return found

    def small(self, one: Difficulty) -> Array:
        """Predictions too small for a difficulty, bool [n]."""
        low: Array = self.height[0] < one.height
        return low


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
            words = ("row", "rows", f"of label {name!r}, which is not scored, left out")
            frames.notes.append(note_of("unscored", n, words, before="ground truths: "))
    of_region, regions = _regions(frames, datums, codes[0][1], is_region)
    made = Graded(
        height=(ours.height(), theirs.height()),
        occluded=theirs.needed(OCCLUDED.name),
        truncated=theirs.needed(TRUNCATED.name),
        single=frames.ground_truths.schema.get(TRUNCATED.name) == pl.Float32,
        left=is_region | unscored,
        alpha=(_alpha(frames.predictions), _alpha(frames.ground_truths)),
        of_region=of_region,
        regions=regions,
    )
    return made, moved, neighbour


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
        height: Array = tall.abs().to_numpy()
        return height

    def needed(self, name: str) -> Array:
        """Return a column as float64 [n].

        Raises:
            InputError: it is missing, or null in some rows.
        """
        if not self.frame.height:
            return np.zeros(0)
        said = self.name.replace("_", " ")
        if name not in self.frame.columns:
            raise InputError(
                f"{said}: no column {name!r} of numbers, which KITTI's difficulties rest on. Give"
                f" {_WAYS.get(name, 'one, of 0 where nothing is hidden or cut')}."
            )
        column = self.frame[name].cast(pl.Float64)
        bare = np.flatnonzero(column.is_null().to_numpy() & self.where)
        if bare.size:
            shown = [self.datums.id[int(code)] for code in self.datum[bare[:_SHOWN]]]
            raise InputError(
                f"{said}: column {name!r}: {count_of(bare.size, 'row')} without a value, which"
                f" KITTI's difficulties rest on, first of datums {listing(shown, bare.size)}. Fill"
                " them in, or remove these rows."
            )
        return column.fill_null(0.0).to_numpy()


_WAYS = {
    HEIGHT_2D.name: "boxes in pixels (xmin, ymin, xmax, ymax) beside those in space, or this height"
    " of theirs"
}


def angles_unknown(predictions: pl.DataFrame) -> str:
    """Return why predictions have no observation angles; empty if all have one."""
    if ALPHA.name not in predictions.columns:
        return ""
    given = predictions[ALPHA.name].cast(pl.Float64).fill_null(UNKNOWN)
    many = int((given == UNKNOWN).sum())
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
    if {*CORNER_NAMES} <= {*truths.columns}:
        every = truths.filter(pl.Series(is_region)).select(pl.col(CORNER_NAMES).cast(pl.Float64))
        owners.append(datum[is_region])
        boxes.append(every.to_numpy().reshape(-1, 4))
    table = frames.datums
    if table is not None and REGIONS.name in table.columns:
        there = table.select("datum_id", REGIONS.name).drop_nulls()
        places = datums.id.to_frame("datum_id").with_row_index("code")
        own = there.with_columns(pl.col("datum_id").cast(datums.id_dtype)).join(
            places, on="datum_id"
        )
        values, (offsets,) = flat(own[REGIONS.name])
        many = np.diff(offsets)
        numbers = values.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        odd = many % 4 != 0
        odd[np.repeat(np.arange(many.size), many)[~np.isfinite(numbers)]] = True
        if odd.any():
            shown = own["datum_id"].filter(pl.Series(odd)).head(_SHOWN).to_list()
            raise InputError(
                f"datums: column {REGIONS.name!r}: {count_of(int(odd.sum()), 'row')} whose list is"
                f" not four finite numbers a region, first {listing(shown, int(odd.sum()))}. Write"
                " xmin, ymin, xmax and ymax of each."
            )
        owners.append(np.repeat(own["code"].cast(pl.Int32).to_numpy(), many // 4))
        boxes.append(numbers.reshape(-1, 4))
    return np.concatenate(owners).astype(np.int32), np.concatenate(boxes)
