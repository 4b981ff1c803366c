"""Tracking as a task: its tally, and events of boxes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ...dialects import Dialect
from ...ingest.frames import Frames
from ...ingest.geometry import CORNER_NAMES
from ...ingest.problems import Note, count_of
from ...kernels.tracking import FRAGMENT, MATCH, SWITCH
from ...metrics import Metric
from ...schemas.arrays import Array
from ...schemas.results import empty_frame, frame_schema, in_schema
from ...schemas.wording import option
from ...tallies.counts import CountsView, TrackRows, Tracks
from ...tallies.registry import stored_as
from ...tallies.stats import Column, Stats
from ..contents import Content, Contents
from ..counted import (
    CountTallies,
    counts_in_parts,
    frames_of,
    in_order,
    label_tables,
    merge_by,
    view_of,
)
from ..encoding import Workers
from ..rules import (
    FEWEST,
    GOOD,
    LEAST,
    POOR,
    boxes_note,
    fit,
    good_fit,
    hardly_any,
    no_better_than_elsewhere,
    other_box_form,
    other_labels,
    sample,
)
from ..task import Cuts, Losses, Sample, Task
from .dialects import Settings
from .encode import Batch, Side, encode_batch, refuse_frames
from .matching import Matched, match
from .metrics import NUMBERS

# Events: outcome of every box in CLEAR, per video frame, and the subset of errors.

OUTCOMES = ("match", "switch", "fragment", "miss", "false")
"""Outcomes of rows: the last is for predictions without a match, the others for ground truths."""
_KEYS = ("datum_id", "frame", "label_value", "object_id", "track_id")


def event_frame(batch: Batch, matched: Matched, settings: Settings) -> pl.DataFrame:
    """Return one row per ground truth, and per unmatched prediction, by sequence and frame."""
    sides, events = matched.sides, matched.events
    unmatched = np.ones(sides.predicted_row.size, bool)
    unmatched[events.met[events.met >= 0]] = False
    wrong = sides.predicted_row[np.flatnonzero(unmatched)]
    truth, predicted = sides.truth_row, matched.predicted
    event = events.event.astype(np.int64)
    kind = np.select(
        [event & SWITCH > 0, event & FRAGMENT > 0, event & MATCH > 0], [1, 2, 0], default=3
    )
    matches = np.where(
        events.met < 0, -1, sides.predicted_row[events.met] if sides.predicted_row.size else -1
    )
    before = _tracks_before(matched)
    n, k = truth.size, wrong.size
    label = np.r_[matched.truth.label[truth], predicted.label[wrong]]
    table = batch.labels.frame
    none = np.full(k, -1, np.int64)
    track = np.r_[
        np.where(matches < 0, -1, predicted.id[matches] if predicted.id.size else -1),
        predicted.id[wrong],
    ]
    scored = np.r_[matches, wrong]
    columns = {
        "datum_id": batch.datums.id.gather(
            np.r_[matched.truth.datum[truth], predicted.datum[wrong]]
        ),
        "label_key": table["label_key"].gather(label),
        "label_value": table["label_value"].gather(label),
        "iou_threshold": np.full(n + k, settings.overlap),
        "score_threshold": pl.Series([None], dtype=pl.Float64).new_from_index(0, n + k),
        "outcome": pl.Series(OUTCOMES).gather(np.r_[kind, np.full(k, 4)]),
        "score": _gather_or_null(predicted.score, scored),
        "iou": pl.Series(np.r_[events.overlap, np.full(k, np.nan)], nan_to_null=True),
        "matched_annotation_id": pl.Series([None], dtype=pl.Int64).new_from_index(0, n + k),
        "frame": np.r_[matched.truth.frame[truth], predicted.frame[wrong]],
        "object_id": _gather_or_null(matched.truth.ids, np.r_[matched.truth.id[truth], none]),
        "track_id": _gather_or_null(predicted.ids, track),
        "previous_track_id": _gather_or_null(predicted.ids, np.r_[before, none]),
        "resumed": np.r_[event & FRAGMENT > 0, np.zeros(k, bool)],
        **_corners("", predicted.boxes, scored),
        **_corners("annotation_", matched.truth.boxes, np.r_[truth, none]),
    }
    schema = frame_schema("outcomes", label=batch.labels.dtype, datum=batch.datums.id_dtype)
    frame = pl.DataFrame(columns)
    if not batch.labelled:
        nothing = [pl.lit(None, frame.schema[name]).alias(name) for name in _LABEL]
        frame = frame.with_columns(nothing)
    return in_order(frame.cast({name: dtype for name, dtype in schema.items() if dtype}), _KEYS)


_LABEL = ("label_key", "label_value")
_ERRORS = ("switch", "fragment", "false", "miss")
"""Outcomes that are errors, the most informative first."""


def outcome_rows(events: pl.DataFrame) -> pl.DataFrame:
    """The ``outcomes`` frame: events without boxes."""
    return events.drop(name for name in events.columns if name.endswith(CORNER_NAMES))


def error_rows(events: pl.DataFrame) -> pl.DataFrame:
    """Return the ``errors`` frame: per sequence in the order of ``_ERRORS``."""
    wrong = events.filter(pl.col("outcome").is_in(_ERRORS)).rename({"outcome": "error"})
    place = pl.col("error").replace_strict(_ERRORS, range(len(_ERRORS)), return_dtype=pl.Int8)
    wrong = wrong.sort("datum_id", place, maintain_order=True)
    schema = frame_schema(
        "errors", label=events.schema["label_value"], datum=events.schema["datum_id"]
    )
    extra = ("frame", "object_id", "track_id", "previous_track_id", "resumed")
    return in_schema(wrong, {**schema, **{name: wrong.schema[name] for name in extra}})


def _corners(before: str, boxes: np.ndarray, at: np.ndarray) -> dict[str, pl.Series]:
    """Corners of boxes at places, null at -1."""
    corners = np.full((at.size, 4), np.nan)
    corners[at >= 0] = boxes[at[at >= 0]]
    return {
        before + name: pl.Series(column, nan_to_null=True)
        for name, column in zip(CORNER_NAMES, corners.T, strict=True)
    }


def _tracks_before(matched: Matched) -> np.ndarray:
    """The track from which each ground truth switched, its code, int64 [n], -1 for none."""
    frames, before = matched.sides.frames, matched.events.before
    many = np.diff(frames.start)
    unit_of_frame = np.repeat(np.arange(many.size), many)
    units = [
        np.repeat(unit_of_frame, np.diff(start))
        for start in (frames.truth_start, frames.track_start)
    ]
    width = int(max(before.max(initial=0), frames.track_id.max(initial=0))) + 1
    track_ids = matched.predicted.id[matched.sides.predicted_row]
    keys, first = np.unique(units[1] * width + frames.track_id, return_index=True)
    here = np.flatnonzero(before >= 0)
    out = np.full(before.size, -1, np.int64)
    out[here] = track_ids[first[np.searchsorted(keys, units[0][here] * width + before[here])]]
    return out


def _gather_or_null(values: pl.Series | None, at: np.ndarray) -> pl.Series:
    if values is None:
        return pl.Series([None], dtype=pl.Float64).new_from_index(0, at.size)
    return values.gather(pl.Series(at, dtype=pl.Int64).replace(-1, None))


# Evidence that tracks would overlap under other frame numbers, exchanged columns, units or labels.
# Slow objects match despite an offset, so frames are compared whenever the lowest ones differ.


_MATCHED = 0.25  # share of the smaller side's rows; from here on the boxes agree
_BETTER = 0.05  # gain in the mean of best IoUs that other frame numbers have to bring
_SEQUENCES, _FRAMES = 8, 200  # that are looked at if boxes match but first frames differ
_SHIFTS = (1, -1)
_OTHERS = 50  # other sequences that predictions are compared with
_GAPS = 5  # between frames of a side, below which a common step is chance
_AT = 0.5  # IoU at which HOTA's matches are counted here


class _Units(msgspec.Struct, frozen=True):
    """Rows of one side by frame of a sequence.

    Attributes:
        datum: int64 [n], code of the frame, the same on both sides.
        label: int32 [n], label codes.
        corners: float64 [n, 4].
    """

    datum: Array
    label: Array
    corners: Array

    def boxes(self, rows: Array) -> Array:
        """Corners of some rows, float64 [k, 4]."""
        return self.corners[rows]


def disagreement(
    batch: Batch, truth: Side, predicted: Side, rows: TrackRows, alphas: tuple[float, ...]
) -> Note | None:
    """Return a warning about tracks that hardly match for a known reason.

    Sequences that match less than the others, or begin at another frame, are also compared without
    the others.
    """
    nearest = int(np.abs(np.array(alphas) - _AT).argmin())
    n = len(batch.datums)
    counts = (rows.tp, rows.common, rows.alpha_tp[:, nearest])
    each = np.stack([np.bincount(rows.datum, one, n) for one in counts])
    sizes = np.minimum(*(np.bincount(side.datum, minlength=n) for side in (truth, predicted)))
    smaller = min(truth.frame.size, predicted.frame.size)
    poor = int(each.sum(axis=1).max()) < _MATCHED * smaller
    warning = _disagreement(batch, truth, predicted, poor=poor) if smaller else None
    both = np.count_nonzero(sizes)
    if warning is not None or poor or both < 2:
        return warning
    first = np.full((2, n), np.iinfo(np.int64).max)
    for lowest, side in zip(first, (truth, predicted), strict=True):
        np.minimum.at(lowest, side.datum, side.frame)
    shift = np.where(sizes > 0, first[0] - first[1], 0)
    unmatched = (sizes > 0) & (each.max(axis=0) < _MATCHED * sizes)
    moved, often = np.unique(shift[(shift != 0) & ~unmatched], return_counts=True)
    shifted = shift == moved[often.argmax()] if moved.size else np.zeros(n, bool)
    for chosen, few_match in ((unmatched, True), (shifted & ~unmatched, False)):
        few = np.count_nonzero(chosen)
        if not 0 < few < both:
            continue
        some = [side.some(np.flatnonzero(chosen[side.datum])) for side in (truth, predicted)]
        warning = _disagreement(batch, *some, poor=few_match, whole=False)
        if warning is not None:
            where = (
                f"in {few:,} of {both:,} sequences, first {batch.datums.id[int(chosen.argmax())]!r}"
            )
            return msgspec.structs.replace(warning, message=f"{where}, {warning.message}")
    return None


def _disagreement(
    batch: Batch, truth: Side, predicted: Side, *, poor: bool, whole: bool = True
) -> Note | None:
    """Return the warning about all sequences or some of them.

    Args:
        poor: few boxes match.
        whole: the sides have all sequences.
    """
    from_other = int(truth.frame.min()) - int(predicted.frame.min())
    if not poor and not from_other:
        return None
    if not poor:
        truth, predicted = _some(truth), _some(predicted)
        if not min(truth.frame.size, predicted.frame.size):
            return None
    ours, theirs, key = _units(truth, predicted)
    some = sample(ours, theirs, _placed(key, 0))
    as_is = fit(some)
    shifts = dict.fromkeys((from_other, *(_SHIFTS if poor else ())))
    warning = _shifted(ours, theirs, key, [shift for shift in shifts if shift], as_is)
    if warning is not None or not poor:
        return warning
    if some.fewest and as_is >= POOR:
        warning = other_labels(some, batch.labels)
    elif some.fewest and predicted.masks is None:
        warning = other_box_form(some)
    warning = warning or _exchanged(truth, predicted) or _no_common_frame(ours, theirs)
    warning = warning or _spaced(truth, predicted, ours, theirs, key, as_is)
    if warning is None and whole and as_is < POOR:
        warning = _other_sequences(ours, theirs, key, batch.datums.id)
    if warning is None and whole and some.fewest and predicted.masks is None:
        warning = hardly_any(some, as_is)
        if warning is None and as_is < POOR:
            return no_better_than_elsewhere(ours, theirs, len(key), some, as_is)
    return warning


def _some(side: Side) -> Side:
    """The first frames of the first sequences: enough to compare frame numbers."""
    first = np.flatnonzero(np.bincount(side.datum))[:_SEQUENCES]
    few = np.flatnonzero((side.datum <= first[-1]) & (side.frame < side.frame.min() + _FRAMES))
    return side.some(few) if few.size < side.datum.size else side


def _units(truth: Side, predicted: Side) -> tuple[_Units, _Units, Array]:
    """Group rows of predictions and of ground truths by frame.

    Returns:
        predictions, ground truths, and int64 [n_units, 2]: sequence and frame of each code.
    """
    pairs = np.stack(
        [
            np.concatenate([predicted.datum, truth.datum]).astype(np.int64),
            np.concatenate([predicted.frame, truth.frame]),
        ]
    )
    order = np.lexsort(pairs[::-1])
    ordered = pairs[:, order]
    new = np.ones(order.size, bool)
    new[1:] = (ordered[:, 1:] != ordered[:, :-1]).any(axis=0)
    code = np.empty(order.size, np.int64)
    code[order] = np.cumsum(new) - 1
    n = predicted.frame.size
    ours = _Units(code[:n], predicted.label, predicted.boxes)
    return ours, _Units(code[n:], truth.label, truth.boxes), ordered[:, new].T


def _placed(key: Array, shift: int = 0, sequence: int = 0, sought: Array | None = None) -> Array:
    """The code of the frame ``shift`` later, ``sequence`` sequences further on; -1 without one.

    Args:
        sought: int64 [n_units, 2], other sequences and frames to look for.
    """
    if sought is None:
        if not shift and not sequence:
            return np.arange(len(key), dtype=np.int64)
        datum = (key[:, 0] + sequence) % (key[:, 0].max() + 1)
        sought = np.stack([datum, key[:, 1] + shift], axis=1)
    names = ["datum", "frame"]
    frames = pl.DataFrame(key, schema=names).with_row_index("code")
    places = pl.DataFrame(sought, schema=names).join(
        frames, on=names, how="left", maintain_order="left"
    )
    return places["code"].cast(pl.Int64).fill_null(-1).to_numpy()


def _shifted(
    ours: _Units, theirs: _Units, key: Array, shifts: list[int], as_is: float
) -> Note | None:
    """A warning of frames that are counted from another number on one side."""
    for shift in shifts:
        some = sample(ours, theirs, _placed(key, shift))
        if some.fewest < FEWEST:
            continue
        well = fit(some)
        if well >= good_fit(some.fewest) and well >= as_is + _BETTER:
            return Note(
                "frames_shifted",
                "boxes overlap better once the frames of the predictions are changed by"
                f" {shift:+d}: one side counts its frames from another number, or is late, and the"
                " numbers mean little. Change column 'frame' of that side.",
                warning=True,
            )
    return None


def _other_sequences(ours: _Units, theirs: _Units, key: Array, ids: pl.Series) -> Note | None:
    """A warning of sequences whose predictions are of other sequences, in turn."""
    for step in range(1, min(len(ids), _OTHERS)):
        some = sample(ours, theirs, _placed(key, 0, step))
        if some.fewest >= LEAST and fit(some) >= GOOD:
            first, other = ids[0], ids[step]
            return boxes_note(
                f"those of the sequences are exchanged: predictions of {first!r} overlap the ground"
                f" truths of {other!r}. Rename the sequences of one side",
                sequences=[first, other],
            )
    return None


def _steps(truth: Side, predicted: Side) -> list[int]:
    """The common step of the frame numbers of both sides; 0 if there are too few."""
    steps = []
    for side in (truth, predicted):
        key = np.unique(np.stack([side.datum, side.frame]), axis=1)
        gaps = np.diff(key[1])[np.diff(key[0]) == 0]
        steps.append(int(np.gcd.reduce(gaps)) if gaps.size >= _GAPS else 0)
    return steps


def _spaced(
    truth: Side, predicted: Side, ours: _Units, theirs: _Units, key: Array, as_is: float
) -> Note | None:
    """A warning of frames that are numbered in other steps, as of a video at another rate."""
    steps = _steps(truth, predicted)
    if not min(steps) or steps[0] == steps[1]:
        return None
    there, here = (int(side.frame.min()) for side in (truth, predicted))
    numbers, rest = np.divmod(key[:, 1] - here, steps[1])
    moved = np.stack([key[:, 0], np.where(rest, -1, there + numbers * steps[0])], axis=1)
    some = sample(ours, theirs, _placed(key, sought=moved))
    well = fit(some) if some.fewest >= LEAST else 0.0
    if well < max(GOOD, as_is + _BETTER):
        return None
    side = "predictions" if steps[1] > steps[0] else "ground_truths"
    return Note(
        "frames_skipped",
        f"boxes overlap once the frames {here}, {here + steps[1]} and so on of the predictions are"
        f" read as {there}, {there + steps[0]} and so on: one side numbers its frames in other"
        " steps, and the numbers mean little. Change column 'frame' of that side.",
        warning=True,
        facts={"side": side, "steps": steps},
    )


def _skipped(truth: Side, predicted: Side) -> Note | None:
    """A warning of a side that has only every n-th frame of the other's sequences."""
    sizes = [truth.frame.size, predicted.frame.size]
    if 2 * max(sizes) < 3 * min(sizes):
        return None
    steps = _steps(truth, predicted)
    if not min(steps) or steps[0] == steps[1]:
        return None
    step, first = max(steps), (predicted if steps[1] > steps[0] else truth).frame.min()
    few = "predictions" if steps[1] > steps[0] else "ground truths"
    return Note(
        "frames_skipped",
        f"the {few} have at most 1 of {step} frames, the other side"
        f" {'all' if min(steps) == 1 else f'1 of {min(steps)}'}. Frames of one side only count as"
        " missed or as false positives: remove them, e.g. with"
        f" {option('where', f'frame % {step} = {first % step}')}.",
        warning=True,
        facts={"side": few.replace(" ", "_"), "steps": steps},
    )


def _untracked(truth: Side, predicted: Side) -> Note | None:
    """Warn if nearly every box of only one side has another track id."""
    single, lengths = [], []
    for side in (truth, predicted):
        n, sequences = side.frame.size, int(side.datum.max(initial=0)) + 1
        tracks = len(side.ids) * sequences  # at most
        if _SINGLE * n <= tracks:
            tracks = np.unique(side.datum.astype(np.int64) * len(side.ids) + side.id).size
        single.append(n >= LEAST and tracks >= _SINGLE * n)
        lengths.append(n / max(1, tracks))
    if single[0] == single[1] or lengths[single.index(False)] < _LONG:
        return None
    column, name = ("track_id", "predictions") if single[1] else ("object_id", "ground truths")
    return Note(
        "tracks_of_one_box",
        f"nearly every box of the {name} has another track id, while tracks of the other side have"
        f" {lengths[single.index(False)]:.3g} boxes on average, and the numbers mean little. Name"
        f" the column of tracks: {option('columns', {'mine': column})}.",
        warning=True,
        facts={"side": name.replace(" ", "_")},
    )


_SINGLE, _LONG = 0.95, 3.0  # share of boxes that are a track; mean length of the other's tracks


def _unanswered(truth: Side, predicted: Side) -> Note | None:
    """A warning of sequences whose frames are mostly without predictions.

    Sequences without any prediction have a warning of their own.
    """
    if 2 * predicted.frame.size > truth.frame.size:  # clean tables need no look at their frames
        return None
    some = truth.some(np.flatnonzero(np.isin(truth.datum, predicted.datum)))
    theirs, ours = (
        np.unique(np.stack([side.datum, side.frame]), axis=1) for side in (some, predicted)
    )
    union = np.unique(np.concatenate([theirs, ours], axis=1), axis=1).shape[1]
    of, n = theirs.shape[1], union - ours.shape[1]
    if of < _FRAMES_LEAST or n < _UNANSWERED * of:
        return None
    return Note(
        "frames_without_predictions",
        f"{n:,} of {of:,} frames with ground truths have no predictions; their ground truths count"
        " as missed. If the tracker was not run on them, leave them out, e.g. with"
        f" {option('where', f'frame <= {predicted.frame.max()}')}.",
        warning=True,
        facts={"count": n, "of": of},
    )


_UNANSWERED, _FRAMES_LEAST = 0.5, 20  # share of frames, and how many there are at least


def _by_sequence(side: Side, n: int) -> list[Array]:
    """Return the frames of the rows of each of n sequences."""
    order = np.argsort(side.datum, kind="stable")
    return np.split(side.frame[order], np.cumsum(np.bincount(side.datum, minlength=n))[:-1])


def _cut_off(truth: Side, predicted: Side, ids: pl.Series) -> Note | None:
    """A warning of sequences whose predictions end early, as of a tracker that was stopped.

    Only frames with several objects are evidence: a single one may be lost.
    """
    last = np.full((2, len(ids)), -1, np.int64)
    for ends, side in zip(last, (truth, predicted), strict=True):
        np.maximum.at(ends, side.datum, side.frame)
    ended = []
    early = np.flatnonzero((last[1] >= 0) & (last[0] - last[1] >= _FRAMES_LEAST))
    frames = [_by_sequence(side, len(ids)) for side in (truth, predicted)] if early.size else []
    for datum in early:
        theirs, ours = (of_side[datum] for of_side in frames)
        every = np.unique(theirs)
        before = every[every <= last[1, datum]]
        after = every.size - before.size
        many = np.count_nonzero(theirs > last[1, datum]) >= _OBJECTS * after
        whole = np.isin(before, ours).sum() >= _ANSWERED * max(before.size, _FRAMES_LEAST / 2)
        if after >= max(_FRAMES_LEAST, _ENDED * every.size) and many and whole:
            ended.append(int(datum))
    if not ended:
        return None
    first = ended[0]
    return Note(
        "frames_without_predictions",
        f"{count_of(len(ended), 'sequence')} without predictions in the last frames, first"
        f" {ids[first]!r}: none after frame {last[1, first]:,} of {last[0, first]:,}. Ground truths"
        " there count as missed. Was the tracker stopped early, or run at another frame rate?",
        len(ended),
        warning=True,
        facts={"count": len(ended), "sequences": ids.gather(ended[:3]).to_list()},
    )


_ENDED, _ANSWERED, _OBJECTS = 0.4, 0.8, 2  # shares of frames after and before; objects per frame


def _exchanged(truth: Side, predicted: Side) -> Note | None:
    """A warning of predictions whose ids and frames are exchanged."""
    ids = predicted.ids.cast(pl.Int64, strict=False)
    if ids.null_count() or not len(ids):
        return None
    other = msgspec.structs.replace(predicted, frame=ids.to_numpy()[predicted.id])
    ours, theirs, key = _units(truth, other)
    some = sample(ours, theirs, _placed(key, 0))
    if some.fewest < LEAST or fit(some) < GOOD:
        return None
    return Note(
        "frames_exchanged",
        "boxes of the two sides overlap once columns 'frame' and 'track_id' of the predictions are"
        " exchanged, and the numbers mean little as they are. In text files the frame is the first"
        f" column; of a table, name both with {option('columns')}.",
        warning=True,
    )


def _no_common_frame(ours: _Units, theirs: _Units) -> Note | None:
    """A warning of sides without a frame in common."""
    if np.isin(ours.datum, theirs.datum).any():
        return None
    return Note(
        "no_common_frame",
        "no frame of a sequence is on both sides, and the numbers mean little: are columns 'frame'"
        " of both sides frame numbers, and of the same videos?",
        warning=True,
    )


STATUS = ("scored", "not_predicted", "no_ground_truth", "no_boxes")
"""Standing of a sequence; those of the last have no number."""


@stored_as("tracking.run/1")
class Tallies(CountTallies, frozen=True, kw_only=True):
    """Tally of a tracking run, whose datums are sequences.

    Attributes:
        tracks: the counts, :class:`~evalengine.tallies.counts.Tracks`, or on disk
            :class:`~evalengine.tallies.tables.InFiles`.
        counted: the counted needs: ``hota``, ``clear``, ``identity``.
        events: outcome of every box, from :func:`.event_frame`, or None.
    """

    tracks: Any
    counted: tuple[str, ...]
    events: pl.DataFrame | None


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode, match and tally.

    Raises:
        InputError: only one side has labels, rows without the compared geometry, or rows of frames
            outside their sequence.
    """
    begun = time.perf_counter()
    batch = _encoded(frames, settings, workers)
    read = time.perf_counter()
    matched = _matched(batch, frames, settings, needs, workers)
    tracks = Tracks(matched.rows, batch.declared, batch.labelled)
    listed = event_frame(batch, matched, settings) if "events" in needs else None
    counted = tuple(sorted(needs - {"events"}))
    n_datums = len(batch.datums)
    rows = tracks.rows
    truth, predicted = (
        np.bincount(rows.datum, getattr(rows, name), minlength=n_datums) > 0
        for name in ("truth", "found")
    )
    present = np.array([[3, 2], [1, 0]], np.int8)[truth.astype(int), predicted.astype(int)]
    seconds = {"encode": read - begun, "match": time.perf_counter() - read}
    stats = stats_from(present, tracks, counted)
    return Tallies(
        datums=batch.datums,
        labels=batch.labels,
        tracks=tracks,
        stats=stats,
        present=present,
        counted=counted,
        events=listed,
        seconds=seconds,
    )


def examine(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> None:
    """Add the notes of encoding and matching to those of the frames, which are consumed.

    Raises:
        InputError: as :func:`tally`.
    """
    _matched(_encoded(frames, settings, workers), frames, settings, needs, workers)


def _encoded(frames: Frames, settings: Settings, workers: Workers) -> Batch:
    batch = encode_batch(frames, settings.iou_type, workers)
    if settings.rules.first_frame is not None:
        refuse_frames(batch, settings.rules.first_frame)
    return batch


def _matched(
    batch: Batch, frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> Matched:
    """Match, and add the notes on it to those of the frames."""
    matched = match(batch, settings, needs, workers)
    sides = matched.truth, matched.predicted
    doubt = disagreement(batch, *sides, matched.rows, settings.alphas) or _skipped(*sides)
    doubt = doubt or _untracked(*sides) or _unanswered(*sides)
    doubt = doubt or _cut_off(*sides, batch.datums.id)
    frames.notes += [*matched.notes, *([] if doubt is None else [doubt])]
    return matched


def stats_from(present: Array, tracks: Tracks, counted: Sequence[str]) -> Stats:
    """Compute the metrics of every sequence, all its labels together."""
    rows = tracks.rows

    def of(name: str) -> Array:
        values = getattr(rows, name)
        out = np.zeros((present.size, *values.shape[1:]), values.dtype)
        np.add.at(out, rows.datum, values)
        return out

    columns: dict[str, tuple[Column, ...]] = {}
    for number in NUMBERS:
        if number.need in counted:
            value = number.formula(of)
            value = value.mean(axis=-1) if number.alphas else value.astype(np.float64)
            values = np.where(number.some(of), value, np.nan)[:, None, None]
            column = Column(metric=number.name, values=values, reason=number.reason)
            columns[number.name] = (column,)
    return Stats(np.ones(present.size, bool), columns, (STATUS, present))


def rows_of(
    name: str, chosen: Callable[[pl.DataFrame], pl.DataFrame]
) -> Callable[[Tallies], pl.DataFrame]:
    """Return a function that extracts a frame of rows from the events; empty if not requested."""

    def rows(tallies: Tallies) -> pl.DataFrame:
        if tallies.events is not None:
            return chosen(tallies.events)
        return empty_frame(name, label=tallies.labels.dtype, datum=tallies.datums.id_dtype)

    return rows


merge = merge_by(
    "tracks",
    lambda whole, settings: stats_from(whole.present, whole.tracks, whole.counted),
    "events",
    _KEYS,
)


# Loss of single sequences: HOTA, else another number; and their contents.

_JUDGES = ("HOTA", "MOTA", "IDF1")


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses | str:
    """See :class:`..task.JudgeDatums`."""
    judges = [name for name in _JUDGES if name in tallies.stats.columns]
    if not judges:
        return "sequences are judged by HOTA, MOTA or IDF1, and none was computed"
    (column,) = tallies.stats.columns[judges[0]]
    value = column.values[:, 0, 0]
    rows = tallies.tracks.rows
    totals = {
        name: np.bincount(rows.datum, getattr(rows, name), minlength=value.size)
        for name in ("truth", "found", "tp", "switches")
    }

    def why(codes: Array) -> list[str]:
        sentences = []
        for code in codes.tolist():
            truth, predicted, tp, switches = (int(totals[name][code]) for name in totals)
            parts = f"{count_of(truth, 'box', 'boxes')}, {predicted:,} predicted"
            if "clear" in tallies.counted:
                switched = count_of(switches, "switch", "switches")
                parts = f"{truth - tp:,} missed, {predicted - tp:,} too many, {switched}"
            sentences.append(parts)
        return sentences

    return Losses(
        metric=judges[0],
        value=value,
        higher=True,
        best=1.0,
        ties=lambda codes: [totals["truth"][codes] + totals["found"][codes]],
        why=why,
        by_score=False,
    )


def contents(tallies: Tallies, settings: Settings, codes: Array) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`: labels of sequences, the most boxes first."""
    rows = tallies.tracks.rows
    counts = {
        "boxes": rows.truth,
        "predicted": rows.found,
        "matched": rows.tp,
        "switches": rows.switches,
        "fragments": rows.fragments,
    }
    columns = {name: lambda at, values=values: f"{values[at]}" for name, values in counts.items()}
    return label_tables(tallies, rows, codes, rows.truth + rows.found, columns)


# Tiny tables that make every kernel of tracking run once.


def samples() -> Iterator[Sample]:
    """Two objects of two labels in two frames, one ignored."""
    truth = pl.DataFrame(
        {
            "sequence": ["a"] * 4,
            "frame": [1, 1, 2, 2],
            "object_id": [1, 2, 1, 2],
            "xmin": [0.0, 9.0, 1.0, 9.0],
            "ymin": [0.0] * 4,
            "xmax": [4.0, 12.0, 5.0, 12.0],
            "ymax": [4.0] * 4,
            "label_value": ["x", "y", "x", "y"],
            "ignored": [0, 1, 0, 0],
        }
    )
    predicted = truth.drop("ignored").rename({"object_id": "track_id"})
    yield predicted, truth, {"metrics": metrics.names("tracking")}
    square = [[0.0, 0.0, 4.0, 0.0, 4.0, 4.0, 0.0, 4.0]]
    mask = {"size": [8, 8], "counts": [0, 8, 56]}
    shaped = truth.drop("xmin", "ymin", "xmax", "ymax").with_columns(
        polygon=pl.Series([square, None] * 2),
        mask=pl.Series([None, mask] * 2),
        region=pl.Series([0, 0, 0, 1]),
    )
    tracks = shaped.drop("ignored", "region").rename({"object_id": "track_id"})
    sizes = pl.DataFrame({"sequence": ["a"], "height": [8], "width": [8]})
    yield tracks, shaped, {"metrics": ["HOTA"], "iou_type": "segm", "datums": sizes}


# The plan of a tracking run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    at = settings.overlap
    lines = {
        "hota": f"match     HOTA: one assignment a frame, at {len(settings.alphas)} IoU thresholds",
        "clear": f"match     CLEAR: IoU of {at:g} or more, pairs of the frame before first",
        "identity": f"match     identity: one track an object, IoU of {at:g} or more",
        "events": "list      outcome of every box",
    }
    steps = [line for need, line in lines.items() if need in needs]
    return [*steps, "tally     by sequence and label", "sum       over sequences and labels"]


def cells_per_group(n_labels: int, settings: Settings, needs: frozenset[str]) -> int:
    """Numbers of one group of sequences."""
    return (5 * len(settings.alphas) + 20) * (n_labels + 1)


TASK = Task(
    name="tracking",
    settings=Settings,
    tally=tally,
    examine=examine,
    merge=merge,
    view=view_of(CountsView, "tracks"),
    cells_per_group=cells_per_group,
    own_frames=frames_of(
        outcomes=rows_of("outcomes", outcome_rows), errors=rows_of("errors", error_rows)
    ),
    explain=explain,
    samples=samples,
    losses=losses,
    contents=Contents(of_tally=contents),
    no_limits="no number of it rests on ties of scores, a cap or missing judgments",
    drawn=CountsView.drawn,
    warm=("parts",),
    in_parts=counts_in_parts("tracks", merge),
)
