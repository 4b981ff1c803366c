"""Encode and match: label maps are compared by pixel, masks by run-length codes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...ingest.ids import steps_of
from ...ingest.problems import Note, note_of
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, PREDICTIONS
from ...schemas.errors import InputError
from ...schemas.tuning import tuning
from ...schemas.wording import option
from ...tallies.counts import Areas, Crossings, Pixels
from ...tallies.datums import Labels
from ...tallies.registry import stored_as
from ..counted import CountTallies, sides_of
from ..encoding import Workers, declared_codes, encode_sides
from ..pixels.maps import Pair, count_maps, opened_pair
from ..pixels.rasters import NOTHING, Pairs, Side, quiet, side_of
from ..rules import renamed
from . import surfaces
from .dialects import Settings
from .naming import (
    IGNORED,
    Names,
    Units,
    decoded,
    distinct,
    images_of,
    index_names,
    label_codes,
    summed,
)

# Label maps that hardly overlap but would if reinterpreted: other numbering, rotation, void.


_POOR, _GOOD = 0.4, 0.5  # mean IoU as they are, below which pixels are looked at, and otherwise
_LOOKED_AT = 4  # pairs
_VOID = 255
_TURNS: dict[str, Callable[[Array], Array]] = {
    "rows and columns exchanged": lambda pixels: pixels.T,
    "top and bottom exchanged": lambda pixels: pixels[::-1],
    "left and right exchanged": lambda pixels: pixels[:, ::-1],
}


def notes_of(
    pairs: list[Pair], counted: Pairs, codes: list[Array], labels: Labels, *, ignored: bool
) -> list[Note]:
    """Return notes on maps that hardly overlap.

    Args:
        pairs: the maps.
        counted: pixels by pairs of indices of labels.
        codes: int64 [n] twice, label codes of those, -1 for none.
        ignored: an index is ignored, by the user or by the coding of the files.
    """
    counts = pl.DataFrame({"mine": codes[1], "other": codes[0], "len": counted.count})
    counts = counts.group_by("mine", "other").agg(pl.col("len").sum())
    notes = [] if ignored else _void(counted)
    named = counts.filter((pl.col("mine") >= 0) & (pl.col("other") >= 0))
    values = labels.frame["label_value"]
    intro = "pixels of the two sides are all labelled, but"
    warning = renamed(named, values, intro, 2, independent=False)
    if warning is None:
        intro = "labels of only one side overlap, and"
        warning = renamed(_one_sided_pairs(named), values, intro, 1, independent=False)
    if warning is None and _mean_iou(named) < _POOR:
        warning = _turned(pairs)
    return notes + ([warning] if warning is not None else [])


def _one_sided_pairs(counts: pl.DataFrame) -> pl.DataFrame:
    """Pairs of labels of which neither is on the other side: masks that were scaled to be seen."""
    mine, other = pl.col("mine"), pl.col("other")
    labels = counts["mine"].unique(), counts["other"].unique()
    return counts.filter(~mine.is_in(labels[1].implode()) & ~other.is_in(labels[0].implode()))


def _void(counted: Pairs) -> list[Note]:
    here = counted.truth == _VOID
    if not here.any() or (counted.found == _VOID).any():
        return []
    share = counted.count[here].sum() / counted.count.sum()
    return [
        Note(
            "maybe_void",
            f"index {_VOID} is only in the ground truths ({share:.1%} of pixels) and counts as a"
            f" label. If it is void, write {option('ignore_index', _VOID)}.",
        )
    ]


def _mean_iou(counts: pl.DataFrame) -> float:
    """Mean IoU over the labels of the ground truths."""
    if not counts.height:
        return 0.0
    right = counts.filter(pl.col("mine") == pl.col("other")).select("other", right="len")
    predicted = counts.group_by("mine").agg(found=pl.col("len").sum())
    truth = counts.group_by("other").agg(truth=pl.col("len").sum())
    table = truth.join(right, on="other", how="left").join(
        predicted, left_on="other", right_on="mine", how="left"
    )
    shared = pl.col("right").fill_null(0)
    iou = shared / (pl.col("truth") + pl.col("found").fill_null(0) - shared)
    return float(table.select(iou.mean()).item())


def _turned(pairs: list[Pair]) -> Note | None:
    """Return a warning about maps that overlap once those of one side are rotated or flipped."""
    complete = [pair for pair in pairs if pair[0] is not None and pair[1] is not None]
    looked = complete[:: max(1, len(complete) // _LOOKED_AT)][:_LOOKED_AT]
    read: list[tuple[Array, Array]] = []
    with quiet():
        for pair in looked:
            with ExitStack() as stack:
                try:
                    truth, predicted = opened_pair(pair, stack, resample=False)
                except InputError:
                    return None
                assert truth is not None
                assert predicted is not None
                if truth.whole.size <= tuning().window_pixels:
                    read.append((truth.read(truth.whole), predicted.read(predicted.whole)))
    if not read:
        return None
    before = _sampled(read)
    for words, turn in _TURNS.items():
        turned = [(truth, turn(predicted)) for truth, predicted in read]
        if any(truth.shape != predicted.shape for truth, predicted in turned):
            continue
        after = _sampled(turned)
        if after >= _GOOD and after >= 2 * before:
            return Note(
                "maps_turned",
                f"predictions seem to have {words}: in {len(read)} of them looked at, the mean IoU"
                f" is {before:.2f} as they are and {after:.2f} so. Write them as the ground truths"
                " are.",
                warning=True,
            )
    return None


def _sampled(read: list[tuple[Array, Array]]) -> float:
    """Mean IoU of some maps, by the values of their pixels."""
    sides = (np.concatenate([pair[i].ravel() for pair in read]).astype(np.int64) for i in (0, 1))
    other, mine = sides
    pairs = pl.DataFrame({"mine": mine, "other": other}).group_by("mine", "other").len()
    return _mean_iou(pairs)


# Notes on predicted label maps that were brought onto another grid.


def resampling_notes(resampled: Array, counted: Pairs, units: Units, ids: pl.Series) -> list[Note]:
    """Return notes on resampled maps, and on those outside their ground truth.

    A map outside its ground truth is legal, since a prediction may cover less ground, but the datum
    is then scored as without a prediction, which would otherwise be hard to notice.

    Args:
        resampled: int64 [m], units whose predicted map was resampled to another grid.
        counted: pixels by pairs of indices, by unit.
        units: compared units.
        ids: ids of the datum codes.
    """
    if not resampled.size:
        return []
    reached = np.zeros(units.datum.size, bool)
    reached[counted.place[counted.found != NOTHING]] = True
    words = {
        "resampled": (
            resampled,
            "with a predicted raster of another grid, of which the nearest pixels are compared"
            f" ({option('resample', True)})",
        ),
        "no_overlap": (
            resampled[~reached[resampled]],
            "whose predicted raster does not overlap the ground truth's, so no pixel there counts"
            " as predicted",
        ),
    }
    notes = []
    for kind, (unit, what) in words.items():
        datum = np.unique(units.datum[unit])
        if datum.size:
            lowest = ids.gather(datum).sort().head(5).to_list()
            notes.append(note_of(kind, datum.size, ("datum", "datums", what), lowest))
    return notes


@stored_as("segmentation.run/1")
class Tallies(CountTallies, frozen=True, kw_only=True):
    """Tally of a segmentation run.

    Attributes:
        pixels: the counts, :class:`~evalengine.tallies.counts.Pixels`, or on disk
            :class:`~evalengine.tallies.tables.InFiles`.
    """

    pixels: Any


def encode_batch(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> Tallies:
    """Count pixels by datum and pair of labels, as a tally without values of single datums.

    Raises:
        InputError: pixels that cannot be read or compared, or an index without a name.
    """
    datums, coded = encode_sides(frames)
    roles = (GROUND_TRUTHS, PREDICTIONS)
    truth, predicted = sides = [
        side_of(frames, role, codes, datums.id) for role, codes in zip(roles, coded, strict=True)
    ]
    units = Units.among(sides)
    answered, labelled = (
        np.bincount(side.datum, minlength=len(datums)) > 0 for side in (predicted, truth)
    )
    if truth.layered or predicted.layered:
        from .layers import count_layers

        labels, pixels = count_layers(
            frames, datums, (truth, predicted), units, settings, needs, workers
        )
    else:
        labels, pixels = _label_maps(frames, truth, predicted, units, settings, needs, workers)
    present = sides_of(answered, labelled)
    return Tallies(datums=datums, labels=labels, pixels=pixels, present=present)


def _label_maps(
    frames: Frames,
    truth: Side,
    predicted: Side,
    units: Units,
    settings: Settings,
    needs: frozenset[str],
    workers: Workers,
) -> tuple[Labels, Pixels]:
    """Both sides are maps of indices: one joint histogram a unit."""
    placed = []
    for side in (truth, predicted):
        places = side.places()
        of_unit: list[Any] = [None] * units.datum.size
        for row, unit in enumerate(units.of(side).tolist()):
            of_unit[unit] = places[row]
        placed.append(of_unit)
    pairs = list(zip(*placed, strict=True))
    counted, resampled = count_maps(pairs, workers, resample=settings.resample)
    frames.notes += resampling_notes(resampled, counted, units, truth.ids)
    names = index_names(frames, settings)
    as_read = counted
    counted = _decoded(counted, (truth, predicted), units, names, settings)
    mask = (counted.truth != IGNORED) & (
        counted.truth != _or_nothing(settings.ignore_index, IGNORED)
    )
    counted = Pairs(*(getattr(counted, name)[mask] for name in Pairs.__struct_fields__))
    here, indexed = [], []
    for index in (counted.truth, counted.found):
        labelled = np.flatnonzero((index != NOTHING) & (index != _or_nothing(settings.background)))
        here.append(labelled)
        indexed.append((counted.place[labelled], index[labelled], counted.count[labelled]))
    labels, coded, ignored = label_codes(
        frames, (truth, predicted), indexed, units, names, settings
    )
    codes = [np.full(counted.place.size, -1, np.int64) for _ in here]
    for full, labelled, code in zip(codes, here, coded, strict=True):
        full[labelled] = code
    void = settings.ignore_index is not None or "raster_coding" in truth.frame.columns
    frames.notes += notes_of(pairs, counted, codes, labels, ignored=void)
    pixels = pixels_of(labels, units, counted.place, codes, counted.count, ignored, frames)
    if surfaces.NEED in needs:
        lines = surfaces.of_maps(pairs, as_read, mask, codes, units.datum, settings, workers)
        pixels = msgspec.structs.replace(pixels, surfaces=lines)
    return labels, pixels


def _decoded(
    counted: Pairs, sides: tuple[Side, Side], units: Units, names: Names | None, settings: Settings
) -> Pairs:
    """Return pairs of label indices for pairs of values in files."""
    indices = []
    for side, values in zip(sides, (counted.truth, counted.found), strict=True):
        row = np.zeros(units.datum.size, np.int64)
        row[units.of(side)] = np.arange(side.frame.height)
        step = steps_of(settings.label_format)
        indices.append(decoded(side, row[counted.place], values, counted.count, names, step))
    return Pairs(counted.place, indices[0], indices[1], counted.count)


def _or_nothing(index: int | None, nothing: int = NOTHING) -> int:
    return nothing if index is None else index


def pixels_of(
    labels: Labels,
    units: Units,
    unit: Array,
    codes: list[Array],
    count: Array,
    ignored: Array,
    frames: Frames,
) -> Pixels:
    """Return counts by datum and label from counts of pairs of non-overlapping labels.

    Args:
        units: compared units.
        unit: int64 [n], unit of each pair.
        codes: int64 [n] twice, label code in the ground truth and in the prediction, -1 for none.
        count: int64 [n], pixels.
        ignored: bool [n_labels], labels of the ignored index.
        frames: for declared labels.
    """
    many = len(labels) + 1
    joint = (unit * many + codes[0] + 1) * many + codes[1] + 1
    place, inverse = distinct(joint, units.datum.size * many * many)
    pixels = summed(inverse, count, place.size)
    unit, actual, predicted = (place // (many * many), place // many % many - 1, place % many - 1)
    same = actual == predicted
    crossing = np.flatnonzero(~same | (actual >= 0))
    images = images_of(
        labels,
        units,
        summed(unit, pixels, units.datum.size),
        summed(unit[same], pixels[same], units.datum.size),
        np.zeros(units.datum.size, bool),
    )
    return Pixels(
        areas=_areas(units, many, unit, actual, predicted, pixels),
        crossings=Crossings(
            units.datum[unit[crossing]],
            actual[crossing].astype(np.int32),
            predicted[crossing].astype(np.int32),
            pixels[crossing],
        ),
        images=images,
        declared=declared_codes(frames, labels),
        ignored=ignored,
    )


def _areas(
    units: Units, many: int, unit: Array, actual: Array, predicted: Array, count: Array
) -> Areas:
    """Pixels of every label on both sides, and in both."""
    one_side = [code >= 0 for code in (actual, predicted)]
    joint = [
        (unit * many + code)[on] for code, on in zip((actual, predicted), one_side, strict=True)
    ]
    place, inverse = distinct(np.concatenate(joint), units.datum.size * many)
    at = np.split(inverse, [joint[0].size])
    sums = [summed(to, count[on], place.size) for to, on in zip(at, one_side, strict=True)]
    same = (actual == predicted)[one_side[0]]
    right = summed(at[0][same], count[one_side[0]][same], place.size)
    return Areas(
        units.datum[place // many], (place % many).astype(np.int32), sums[0], sums[1], right
    )
