"""Semantic segmentation as a task: label maps compared by pixel, masks by run-length codes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ...dialects import Dialect
from ...ingest import both_sides
from ...ingest.frames import Frames
from ...ingest.ids import steps_of
from ...ingest.problems import VOID_PREDICTED, Note, not_read, note_of
from ...metrics import Metric
from ...schemas.arrays import Array
from ...schemas.contract import GROUND_TRUTHS, LABELS, PREDICTIONS
from ...schemas.errors import InputError
from ...schemas.tuning import tuning
from ...schemas.wording import option
from ...tallies.counts import Areas, Crossings, Pixels, PixelView, Surfaces
from ...tallies.datums import Labels
from ...tallies.registry import stored_as
from ...tallies.stats import Column, Fill, Stats, aligned, row_places
from ..contents import LABELS as MOST_LABELS
from ..contents import Content, Contents, LabelPixels, PixelsWrong, called, copied, of_pixels
from ..counted import (
    CountTallies,
    cells_per_group,
    counts_in_parts,
    crossing_frame,
    frames_of,
    merge_by,
    sides_of,
    view_of,
)
from ..encoding import Workers, declared_codes, encode_sides
from ..pixels import NOTHING, Pair, Pairs, Side, count_maps, opened_pair, quiet, side_of, windows_of
from ..rules import renamed
from ..task import Common, Cuts, LateNotes, Losses, PageFrame, Sample, Task
from .dialects import Settings
from .layers import SURFACES, of_maps
from .metrics import OF_IMAGE
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
_MAX_SAMPLE = 4  # pairs
_VOID = 255
_FLIPS: dict[str, Callable[[Array], Array]] = {
    "rows and columns exchanged": lambda pixels: pixels.T,
    "top and bottom exchanged": lambda pixels: pixels[::-1],
    "left and right exchanged": lambda pixels: pixels[:, ::-1],
    "a half turn": lambda pixels: pixels[::-1, ::-1],
    "a quarter turn to the left": lambda pixels: np.rot90(pixels, -1),
    "a quarter turn to the right": np.rot90,
}


def notes_of(
    pairs: list[Pair],
    counted: Pairs,
    truth: Array,
    codes: list[Array],
    labels: Labels,
    *,
    ignored: bool,
) -> list[Note]:
    """Return notes on maps that hardly overlap.

    Args:
        pairs: the maps.
        counted: pixels by pairs of indices of labels.
        truth: indices of the ground truths with the ignored ones.
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
    if warning is None:
        warning = _swapped(np.unique(counted.predicted), truth)
    if warning is None and _mean_iou(named) < _POOR:
        warning = _turned(pairs)
    return notes + ([warning] if warning is not None else [])


def _one_sided_pairs(counts: pl.DataFrame) -> pl.DataFrame:
    """Pairs of labels of which neither is on the other side: masks that were scaled to be seen."""
    mine, other = pl.col("mine"), pl.col("other")
    labels = counts["mine"].unique(), counts["other"].unique()
    return counts.filter(~mine.is_in(labels[1].implode()) & ~other.is_in(labels[0].implode()))


def _swapped(predicted: Array, truth: Array) -> Note | None:
    """Return a warning if only the predictions have the index of void, far from all others.

    Args:
        predicted: distinct labels, ascending; binary masks are no evidence.
    """
    labels = predicted[predicted != NOTHING].tolist()
    if len(labels) < 3 or labels[-1] != _VOID or labels[-2] == _VOID - 1 or (truth == _VOID).any():
        return None
    return Note(
        VOID_PREDICTED,
        f"index {_VOID}, usually void, is only in the predictions, and void is a mark of ground"
        " truths: are the two sides swapped? The predictions come first.",
        warning=True,
    )


def _void(counted: Pairs) -> list[Note]:
    here = counted.truth == _VOID
    if not here.any() or (counted.predicted == _VOID).any():
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
    sampled = complete[:: max(1, len(complete) // _MAX_SAMPLE)][:_MAX_SAMPLE]
    read: list[tuple[Array, Array]] = []
    with quiet():
        for pair in sampled:
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
    for words, turn in _FLIPS.items():
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
    reached[counted.place[counted.predicted != NOTHING]] = True
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
    for index in (counted.truth, counted.predicted):
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
    frames.notes += notes_of(pairs, counted, as_read.truth, codes, labels, ignored=void)
    pixels = pixels_of(labels, units, counted.place, codes, counted.count, ignored, frames)
    if SURFACES in needs:
        lines = of_maps(pairs, as_read, mask, codes, units.datum, settings, workers)
        pixels = msgspec.structs.replace(pixels, surfaces=lines)
    return labels, pixels


def _decoded(
    counted: Pairs, sides: tuple[Side, Side], units: Units, names: Names | None, settings: Settings
) -> Pairs:
    """Return pairs of label indices for pairs of values in files."""
    indices = []
    for side, values in zip(sides, (counted.truth, counted.predicted), strict=True):
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


# Tally: pixels by datum and label, and per-datum values.


STATUS = ("scored", "not_predicted", "no_ground_truth", "no_pixels")
"""Standing of a datum; those of the last have no number."""


def stats_of(present: Array, labels: Labels, pixels: Pixels, settings: Settings) -> Stats:
    """Compute per-datum values from counts: mIOU, macro Dice, pixel accuracy.

    Args:
        present: int8 [n], status of datums by the sides that have them.
    """
    some = np.zeros(present.size, bool)
    some[pixels.images.datum[pixels.images.pixels > 0]] = True
    status = np.where(some, present, np.int8(3))
    columns = columns_of(present.size, labels, pixels, settings)
    return Stats(np.ones(present.size, bool), columns, (STATUS, status))


def columns_of(
    n: int, labels: Labels, pixels: Pixels, settings: Settings
) -> dict[str, tuple[Column, ...]]:
    """Compute every per-image metric from pixel counts."""
    keys = labels.key_names
    parameters: tuple[str | None, ...] = (None,) * len(keys)
    if len(keys) > 1:
        parameters = tuple(json.dumps({"label_key": name}, ensure_ascii=False) for name in keys)
    return {
        one.name: (
            Column(
                metric=one.name,
                parameters=parameters,
                values=one.compute(pixels, labels, n, settings)[:, :, None],
                reason=one.reason,
            ),
        )
        for one in OF_IMAGE
    }


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode, match and tally.

    Raises:
        InputError: pixels that cannot be read or compared, or an index without a name.
    """
    begun = time.perf_counter()
    batch = encode_batch(frames, settings, needs, workers)
    matched = time.perf_counter()
    stats = stats_of(batch.present, batch.labels, batch.pixels, settings)
    seconds = {"match": matched - begun, "measure": time.perf_counter() - matched}
    return msgspec.structs.replace(batch, stats=stats, seconds=seconds)


merge = merge_by(
    "pixels", lambda whole, settings: stats_of(whole.present, whole.labels, whole.pixels, settings)
)


def label_notes(tallies: Tallies) -> list[Note]:
    """Return notes on one-sided labels, for a run in parts that cannot detect them."""
    frame = tallies.labels.frame.select("label_key", "label_value")
    seen = PixelView(tallies.pixels, tallies.labels, tallies.stats)
    pairs = {
        side: frame[np.flatnonzero(getattr(seen, name)[0])]
        for side, name in ((PREDICTIONS, "predicted"), (GROUND_TRUTHS, "truth"))
    }
    if seen.whole.declared is not None:
        pairs[LABELS] = frame.filter(pl.Series(seen.whole.declared))
    return both_sides.label_notes(pairs, pairs)


def common(tallies: Sequence[Tallies], codes: Sequence[Array], fill: Fill) -> list[Tallies] | None:
    """Restrict tallies to distances of the labels and images for which all runs have one.

    See :class:`..task.Common`. If neither the truth nor a run has the label in an image, that run
    is right, so that shares of outlines are unchanged. An infinite fill is each image's diagonal.

    Raises:
        InputError: it is unknown, as in tallies of older versions.
    """
    outlines = [one.pixels.surfaces for one in tallies]
    if not all(one.datum.size for one in outlines):
        return None
    values = [np.stack([getattr(one, name) for name in _DISTANCES], axis=1) for one in outlines]
    worst = fill(SURFACES)
    distances = aligned(row_places(tallies, outlines, codes, "label"), values, worst)
    if distances is None:
        return None
    if np.isinf(worst):
        distances = [
            _with_diagonals(one, value) for one, value in zip(outlines, distances, strict=True)
        ]
    result = []
    for one, value in zip(tallies, distances, strict=True):
        columns = dict(zip(_DISTANCES, np.ascontiguousarray(value.T), strict=True))
        surfaces = msgspec.structs.replace(one.pixels.surfaces, **columns)
        pixels = msgspec.structs.replace(one.pixels, surfaces=surfaces)
        result.append(msgspec.structs.replace(one, pixels=pixels))
    return result


def _with_diagonals(surfaces: Surfaces, values: Array) -> Array:
    filled, diagonal = np.isinf(values), surfaces.diagonal
    if diagonal is None or np.isnan(diagonal[filled.any(axis=1)]).any():
        raise InputError(
            f"{option('missing', 'worst')}: a run of an older version does not contain the sizes of"
            " its images. Score it again.",
            code="option_value",
            option="missing",
        )
    return np.where(filled, diagonal[:, None], values)


_DISTANCES = ("hausdorff", "hd95", "assd")


# The metrics of a run: any label map or mask can carry all of them.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, requested: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics as planned, and notes on options without effect on these tables."""
    notes = []
    if settings.ignore_index is not None and "label_value" in frames.ground_truths.columns:
        written = option("ignore_index", settings.ignore_index)
        notes.append(
            not_read(
                f"{written} is not read: the {GROUND_TRUTHS.replace('_', ' ')} are masks of labels,"
                " which have no indices."
            )
        )
    layered = [
        role.replace("_", " ")
        for role, frame in frames.sides.items()
        if "label_value" in frame.columns
    ]
    if settings.resample and layered:
        notes.append(
            not_read(
                f"{option('resample', True)} is not read: the {' and the '.join(layered)} are"
                " masks of labels, which must share one grid; only label maps are resampled."
            )
        )
    return metrics, notes


# Loss of single images: mean IOU over their labels.


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses:
    """See :class:`..task.JudgeDatums`; of several label keys the worst counts."""
    stats, areas = tallies.stats, tallies.pixels.areas
    ((column,), (agreeing,)) = stats.columns["mIOU"], stats.columns["PixelAccuracy"]
    value, agreement = (
        np.fmin.reduce(np.where(stats.counted[:, None], one.values[:, :, 0], np.nan), axis=1)
        for one in (column, agreeing)
    )

    def why(codes: Array) -> list[str]:
        """Pixels that are wrong, and the label with the most of them."""
        rows = np.flatnonzero(np.isin(areas.datum, codes))
        off = areas.truth[rows] + areas.found[rows] - 2 * areas.right[rows]
        rows = rows[np.lexsort((areas.label[rows], -off, areas.datum[rows]))]
        datums, first = np.unique(areas.datum[rows], return_index=True)
        worst = dict(zip(datums.tolist(), rows[first].tolist(), strict=True))
        sentences = []
        for code in codes.tolist():
            share = 100 * (1 - agreement[code])
            parts = [] if np.isnan(share) else [f"{share:.3g} % of the pixels wrong"]
            if code in worst:
                at = worst[code]
                missed, false = (side[at] - areas.right[at] for side in (areas.truth, areas.found))
                parts.append(
                    f"most of {called(tallies.labels.frame, int(areas.label[at]))}: {missed:,} of"
                    f" its {areas.truth[at]:,} missed, {false:,} too many"
                )
            sentences.append(", ".join(parts))
        return sentences

    return Losses(
        metric="mIOU",
        value=value,
        higher=True,
        best=1.0,
        ties=lambda codes: [-agreement[codes]],
        why=why,
    )


# Contents of single images: wrong pixels of every label, and their regions.

_MOST = 1 << 26  # pixels of an image whose wrong ones are outlined
_CELLS, _POINTS = 128, 1_000


def contents(tallies: Tallies, settings: Settings, codes: np.ndarray[Any, Any]) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`."""
    areas, labels = tallies.pixels.areas, tallies.labels
    rows = np.flatnonzero(np.isin(areas.datum, codes))
    wrong = areas.truth[rows] + areas.found[rows] - 2 * areas.right[rows]
    rows = rows[np.lexsort((areas.label[rows], -wrong))]
    out: list[Content] = []
    for code in codes.tolist():
        places = rows[areas.datum[rows] == code]
        counts = []
        for at in places[:MOST_LABELS].tolist():
            label = int(areas.label[at])
            truth, predicted, right = (
                int(column[at]) for column in (areas.truth, areas.found, areas.right)
            )
            union = truth + predicted - right
            counts.append(
                LabelPixels(
                    key=labels.key_names[labels.key[label]],
                    label=called(labels.frame, label),
                    truth=truth,
                    missed=truth - right,
                    false=predicted - right,
                    iou=right / union if union else None,
                )
            )
        out.append(PixelsWrong(labels=tuple(counts), left_out=max(0, places.size - MOST_LABELS)))
    return out


def with_regions(
    frames: Frames, settings: Settings, ids: list[str], contents_of: list[Content | None]
) -> list[Content | None]:
    """See :attr:`..contents.Contents.completed`: regions of wrong pixels of label maps.

    Not available for masks of single labels, or with mapped labels, since indices do not show which
    pixels are wrong.
    """
    roles = (GROUND_TRUTHS, PREDICTIONS)
    few = copied(frames)
    datums, coded = encode_sides(few)
    sides = [side_of(few, role, code, datums.id) for role, code in zip(roles, coded, strict=True)]
    if any(side.layered for side in sides) or frames.label_map is not None:
        return contents_of
    units = Units.among(sides)
    pairs: list[list[Any]] = [[None, None] for _ in range(units.datum.size)]
    for place, side in enumerate(sides):
        for unit, one in zip(units.of(side).tolist(), side.places(), strict=True):
            pairs[unit][place] = one
    wrong: dict[str, np.ndarray[Any, Any]] = {}
    for code, (truth, predicted) in zip(units.datum.tolist(), pairs, strict=True):
        here = _wrong((truth, predicted), settings)
        name = str(datums.id[code])
        if here is not None:
            same = name in wrong and wrong[name].shape == here.shape
            wrong[name] = wrong[name] | here if same else here
    return [
        msgspec.structs.replace(
            content, rings=of_pixels(wrong[one], most=_POINTS, cells=_CELLS), size=wrong[one].shape
        )
        if isinstance(content, PixelsWrong) and one in wrong
        else content
        for one, content in zip(ids, contents_of, strict=True)
    ]


def _wrong(pair: Pair, settings: Settings) -> np.ndarray[Any, Any] | None:
    """Pixels whose index is another than the ground truth's, bool [height, width]."""
    with quiet(), ExitStack() as stack:
        truth, predicted = opened_pair(pair, stack, resample=settings.resample)
        if truth is None or predicted is None or truth.whole.size > _MOST:
            return None
        out = np.zeros(truth.shape, bool)
        for window in windows_of([truth, predicted]):
            top, bottom, left, right = window
            ours, theirs = truth.read(window), predicted.read(window)
            here = ours != theirs
            if settings.ignore_index is not None:
                here &= ours != settings.ignore_index
            out[top:bottom, left:right] = here
        return out


# The confusion matrix of pixels, with the IoU of each pair of labels and unmatched shares.


def confusion_frame(column: str | None, names: list[str], view: PixelView) -> pl.DataFrame:
    """Build the ``confusion`` frame of one view.

    Returns:
        the contract's columns, then ``iou``: pixels of the pair / pixels that either label has,
        null for unlabelled pixels; and ``share``: pixels of the label without a label on the other
        side / all of the label, null for pairs.
    """
    group, actual, predicted, count = view.crossed
    pair = (actual >= 0) & (predicted >= 0)
    # For a missing label, -1, the last label's sums are read but not used.
    truth, predicted_area = (
        np.pad(sums, ((0, 0), (0, 1)))[group, code]
        for sums, code in ((view.truth, actual), (view.predicted, predicted))
    )
    nan = np.full(count.size, np.nan)
    union, area = truth + predicted_area - count, np.where(actual < 0, predicted_area, truth)
    iou = np.divide(count, union, out=nan.copy(), where=pair)
    share = np.divide(count, area, out=nan, where=~pair)
    return crossing_frame(column, names, view).with_columns(
        pl.Series("iou", iou, nan_to_null=True), pl.Series("share", share, nan_to_null=True)
    )


# Tiny tables that make every kernel of segmentation run once.


def samples() -> Iterator[Sample]:
    """Label maps of bytes, and of indices beyond them."""
    every = metrics.names("segmentation")
    small = (np.arange(64, dtype=np.uint8) // 9).reshape(1, 8, 8)
    yield small, small[:, ::-1], {"metrics": every, "ignore_index": 255}
    wide = small.astype(np.int32) * 1000
    yield wide, wide[:, ::-1], {"metrics": every}


# The plan of a segmentation run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    left = [
        f"{name} {index}"
        for name, index in (
            ("ignored index", settings.ignore_index),
            ("background", settings.background),
        )
        if index is not None
    ]
    grid = "resampled to the ground truth's grid" if settings.resample else "on one grid"
    return [
        f"match     pixel by pixel, {grid}; {', '.join(left) or 'every index a label'}",
        f"tally     {', '.join(sorted(needs))} by datum and label",
        f"mean      over labels that are {settings.rules.means} (mIOU), per label key",
    ]


TASK = Task(
    name="segmentation",
    settings=Settings,
    fit=fit,
    tally=tally,
    merge=merge,
    view=view_of(PixelView, "pixels"),
    cells_per_group=cells_per_group,
    own_frames=frames_of(confusion_frame),
    explain=explain,
    samples=samples,
    losses=losses,
    contents=Contents(of_tally=contents, completed=with_regions),
    drawn=PixelView.drawn,
    warm=("parts", "masks"),
    examine=encode_batch,
    # Only tallying finds the labels.
    late_notes=LateNotes(
        (
            "labels_in_predictions_only",
            "labels_in_ground_truths_only",
            "labels_not_declared",
            "no_common_label_key",
            "no_common_label",
            "labels_apart",
            "labels_exchanged",
            "labels_one_sided",
            "maps_turned",
            "maybe_void",
        ),
        lambda tallies, *_: label_notes(tallies),
    ),
    in_parts=counts_in_parts("pixels", merge),
    common=Common(common, worst_of_datums=frozenset({SURFACES})),
    page=(PageFrame(name="confusion", metrics=("ConfusionMatrix",)),),
)
