"""Match: HOTA, CLEAR and identity count unit by unit, once it is settled which rows count."""

from __future__ import annotations

import msgspec
import numpy as np
import polars as pl

from ...ingest.ids import encode
from ...ingest.problems import Note, listing, note_of
from ...kernels.order import group_by_label
from ...kernels.tracking import (
    EPSILON,
    MATCH,
    TAKEN,
    Boxes,
    ClearCounts,
    ClearEvents,
    HotaSums,
    TrackFrames,
    absorbed,
    clear,
    hota,
    identities,
    pairs_of,
)
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ...schemas.wording import option
from ...tallies.counts import TrackRows
from ...tallies.datums import Labels
from ..encoding import Workers
from .dialects import MOT_DISTRACTORS, Settings, TrackingRules
from .encode import Batch, Side, refuse_short, shared

# Layout: rows of both sides by unit (a sequence and label), frame and row, and their overlaps.


class SortedSides(msgspec.Struct, frozen=True):
    """Both sides by unit and video frame.

    Attributes:
        datum: int32 [units], code of the sequence.
        label: int32 [units], label code.
        frames: rows and pairs, as kernel input.
        truth_row: int64 [n], table row of each ground truth.
        predicted_row: int64 [m], table row of each prediction.
        offsets: int64 [units + 1], rows of both sides before each unit, a measure of work.
    """

    datum: Array
    label: Array
    frames: TrackFrames
    truth_row: Array
    predicted_row: Array
    offsets: Array

    def some(self, truth: Array, predicted: Array) -> SortedSides:
        """Restrict the layout to some of the rows, renumbered.

        Args:
            truth: bool [n], ground truths to keep, by row of their table.
            predicted: bool [m], predictions to keep, by row of their table.
        """
        frames = self.frames
        selected = [
            chosen[row]
            for chosen, row in ((truth, self.truth_row), (predicted, self.predicted_row))
        ]
        starts = [frames.truth_start, frames.track_start]
        place = [np.r_[0, np.cumsum(own)] for own in selected]
        rows = [at[start] for at, start in zip(place, starts, strict=True)]
        filled = (np.diff(rows[0]) + np.diff(rows[1])) > 0
        filled_before = np.r_[0, np.cumsum(filled)][frames.start]
        units = np.diff(filled_before) > 0
        of_frame = np.repeat(np.cumsum(units) - 1, np.diff(frames.start))
        of_pair = np.repeat(np.arange(filled.size), np.diff(frames.pair_start))
        ids = [
            _ids(code[own], np.repeat(of_frame, np.diff(start))[own], int(units.sum()))
            for code, own, start in zip(
                (frames.truth_id, frames.track_id), selected, starts, strict=True
            )
        ]
        at = [
            start[of_pair] + own
            for start, own in zip(starts, (frames.truth, frames.track), strict=True)
        ]
        pairs = np.flatnonzero(selected[0][at[0]] & selected[1][at[1]])
        pair_start = np.r_[0, np.cumsum(selected[0][at[0]] & selected[1][at[1]])][frames.pair_start]
        pair = [
            (before[place_of[pairs]] - first[of_pair[pairs]]).astype(np.int32)
            for before, place_of, first in zip(place, at, rows, strict=True)
        ]

        def left(start: Array) -> Array:
            """Return the starts of the frames that still have rows."""
            return np.r_[start[:-1][filled], start[-1]]

        start = np.r_[filled_before[:-1][units], filled_before[-1]]
        truth_start, track_start = left(rows[0]), left(rows[1])
        overlap = frames.overlap[pairs]
        (truth_id, n_truth_ids), (track_id, n_track_ids) = ids
        parts = (
            *(start, truth_start, track_start, left(pair_start), *pair, overlap),
            *(truth_id, track_id, n_truth_ids, n_track_ids),
        )
        order = [
            (np.cumsum(chosen) - 1)[row[own]]
            for chosen, row, own in zip(
                (truth, predicted), (self.truth_row, self.predicted_row), selected, strict=True
            )
        ]
        return SortedSides(
            datum=self.datum[units],
            label=self.label[units],
            frames=TrackFrames(*parts),
            truth_row=order[0],
            predicted_row=order[1],
            offsets=truth_start[start] + track_start[start],
        )


def lay_out(truth: Side, predicted: Side, workers: Workers) -> SortedSides:
    """Sort both sides by unit and video frame."""
    n_labels = int(max(truth.label.max(initial=0), predicted.label.max(initial=0))) + 1
    sides = (truth, predicted)
    numbers, frame_codes = coded([side.frame for side in sides])
    unit, units = coded([side.datum.astype(np.int64) * n_labels + side.label for side in sides])
    many = max(1, numbers.size)
    keys = [own.astype(np.int64) * many + at for own, at in zip(units, frame_codes, strict=True)]
    all_keys, codes = coded(keys)
    start = np.searchsorted(all_keys, np.arange(unit.size + 1) * many)
    rows, order = zip(*(_by_code(code, all_keys.size) for code in codes), strict=True)
    sorted_units = [own[at] for own, at in zip(units, order, strict=True)]
    ids, n_ids = zip(
        *(
            _ids(side.id[own], at, unit.size)
            for side, own, at in zip(sides, order, sorted_units, strict=True)
        ),
        strict=True,
    )
    boxes = [Boxes.of(side.boxes[own]) for side, own in zip((truth, predicted), order, strict=True)]
    pairs = pairs_of(rows[0], rows[1], boxes[0], boxes[1], workers.over)
    if truth.masks is not None and predicted.masks is not None:
        frame = np.repeat(np.arange(all_keys.size), np.diff(pairs[0]))
        place = [own[at[frame] + of] for own, at, of in zip(order, rows, pairs[1:3], strict=True)]
        common = shared(predicted.masks, truth.masks, place[1], place[0], workers)
        union = truth.masks.area[place[0]] + predicted.masks.area[place[1]] - common
        some = np.flatnonzero(common)
        before = np.r_[0, np.cumsum(common > 0)][pairs[0]]
        pairs = before, pairs[1][some], pairs[2][some], common[some] / union[some]
    parts = (start, rows[0], rows[1], *pairs, *ids, *n_ids)
    frames = TrackFrames(*parts)
    return SortedSides(
        datum=(unit // n_labels).astype(np.int32),
        label=(unit % n_labels).astype(np.int32),
        frames=frames,
        truth_row=order[0],
        predicted_row=order[1],
        offsets=rows[0][start] + rows[1][start],
    )


def coded(columns: list[Array]) -> tuple[Array, list[Array]]:
    """The distinct values of integer columns, ascending, and int32 codes of each column."""
    values, codes = encode([pl.Series("value", column) for column in columns])
    return values.to_numpy(), codes


def _by_code(code: Array, n_codes: int) -> tuple[Array, Array]:
    """Rows before each code, int64 [n_codes + 1], and the rows by code, int32 [n]."""
    start, place = group_by_label(np.zeros(code.size, np.int32), code, 1, n_codes)
    order = np.empty(code.size, np.int32)
    order[place] = np.arange(code.size, dtype=np.int32)
    return start, order


def _ids(ids: Array, unit: Array, n_units: int) -> tuple[Array, Array]:
    """Renumber ids from 0 in each unit.

    Args:
        ids: int32 [n], codes over all units.
        unit: int32 [n].

    Returns:
        int32 [n], the code of each row in its unit; int32 [n_units], number of codes.
    """
    width = int(ids.max(initial=0)) + 1
    keys, (at,) = coded([unit.astype(np.int64) * width + ids])
    count = np.bincount(keys // width, minlength=n_units)
    before = np.cumsum(count) - count
    return (at - before[unit]).astype(np.int32), count.astype(np.int32)


# Prepare: which rows count, by the dialect and the marks of ground truths.


_WITHIN = 0.5  # share of a prediction above which it is in a region


_UNCONSIDERED = (
    "row",
    "rows",
    "with 0 in 'considered' (in MOTChallenge's text a confidence below 1, as in results) skipped",
)


class Prepared(msgspec.Struct, frozen=True):
    """The rows that count.

    Attributes:
        truth: ground truths.
        predicted: predictions.
        sides: both by unit and frame.
        frames: int64 [frames], the sequence of every frame that has a row, counted or not.
        notes: rows that were dropped because of their label, or by their table.
    """

    truth: Side
    predicted: Side
    sides: SortedSides
    frames: Array
    notes: list[Note]


_OF_MOT = (
    "of classes that MOTChallenge's kit does not score, such as reflections, count here. For the"
    " numbers of the kit: {}"
)
_NEARLY_ALL = 0.95  # share of ground truths beyond which it is a warning that they are left out


def prepare(batch: Batch, rules: TrackingRules, workers: Workers) -> Prepared:
    """Drop rows that do not count.

    Raises:
        InputError: the tables have no label that the dialect scores.
    """
    truth, predicted = batch.truth, batch.predicted
    frames = _frames(truth, predicted)
    meets, scored, distracts = _labels(batch.labels, rules, labelled=batch.labelled)
    _refuse_strangers(batch.labels, scored, rules)
    regions = truth.some(np.flatnonzero(truth.region))
    rows = np.flatnonzero((meets[truth.label] >= 0) & ~truth.region)
    truth, counted = truth.some(rows), np.flatnonzero(scored[predicted.label])
    n_truth = rows.size + regions.frame.size
    words = ("row", "rows", "of labels that the dialect does not evaluate skipped")
    dropped = (
        ("ground truths: ", batch.truth.frame.size - n_truth),
        ("predictions: ", batch.predicted.frame.size - counted.size),
    )
    notes = [note_of("labels_not_evaluated", n, words, (), side) for side, n in dropped if n]
    if not rules.evaluated and batch.labelled:
        names = batch.labels.frame["label_value"].cast(pl.String)
        unscored = np.flatnonzero(names.is_in([*MOT_DISTRACTORS]).to_numpy())
        if "pedestrian" in names and (n := int(np.isin(truth.label, unscored).sum())):
            words = ("row", "rows", _OF_MOT.format(option("dialect", "mot")))
            notes.append(note_of("mot_classes", n, words, (), "ground truths: "))
    if unconsidered := int(np.count_nonzero(truth.left_out & scored[truth.label])):
        note = note_of("not_considered", unconsidered, _UNCONSIDERED, (), "ground truths: ")
        of = int(np.count_nonzero(scored[truth.label]))
        facts = {"count": unconsidered, "of": of, "beyond": _NEARLY_ALL}
        none_left = unconsidered > _NEARLY_ALL * of
        notes.append(msgspec.structs.replace(note, warning=none_left, facts=facts))
    predicted = predicted.some(counted)
    ignored = truth.ignored | distracts[truth.label]
    ignored |= (truth.hidden > (rules.most_occluded, rules.most_truncated)).any(axis=1)
    counts = scored[truth.label] & ~ignored & ~truth.left_out
    pooled = msgspec.structs.replace(truth, label=meets[truth.label])
    sides = lay_out(pooled, predicted, workers)
    if not counts.all() or regions.frame.size or rules.least_height is not None:
        stays = _staying(sides, predicted, regions, ignored, rules, workers)
        sides = sides.some(counts, stays)
        truth, predicted = truth.some(np.flatnonzero(counts)), predicted.some(np.flatnonzero(stays))
    return Prepared(truth, predicted, sides, frames, notes)


def _frames(truth: Side, predicted: Side) -> Array:
    """The sequence of every frame, int64 [frames]."""
    numbers, codes = coded([truth.frame, predicted.frame])
    many = max(1, numbers.size)
    sequences = (truth.datum, predicted.datum)
    keys, _ = coded(
        [datum.astype(np.int64) * many + at for datum, at in zip(sequences, codes, strict=True)]
    )
    return keys // many


def _labels(labels: Labels, rules: TrackingRules, *, labelled: bool) -> tuple[Array, Array, Array]:
    """Return the role of each label in the dialect.

    Returns:
        int32 [n_labels], the label whose predictions its ground truths are matched with, -1 for
        none; bool [n_labels], scored labels; bool [n_labels], distractors.
    """
    n = len(labels)
    if not rules.evaluated or not labelled:
        return np.arange(n, dtype=np.int32), np.ones(n, bool), np.zeros(n, bool)
    names = [str(name).casefold() for name in labels.frame["label_value"].to_list()]
    code = {name: i for i, name in enumerate(names)}
    others = rules.partner.get("*", "")
    meets = [
        i if name in rules.evaluated else code.get(rules.partner.get(name, others), -1)
        for i, name in enumerate(names)
    ]
    scored = np.array([name in rules.evaluated for name in names], bool)
    distracts = np.array([name in rules.distractors for name in names], bool)
    return np.array(meets, np.int32), scored, distracts


def _refuse_strangers(labels: Labels, scored: Array, rules: TrackingRules) -> None:
    """Raise InputError for tables without any label that the dialect scores."""
    if scored.any() or not len(labels):
        return
    names = labels.frame["label_value"].to_list()
    classes = rules.evaluated
    raise InputError(
        f"the dialect scores {listing(classes)}, but the tables only have"
        f" {listing(sorted(map(str, names)))}. Map labels:"
        f" {option('label_map', {names[0]: classes[0]})}; or score all of them:"
        f" {option('dialect', 'standard')}.",
        code="labels_not_evaluated",
        labels=sorted(map(str, names)),
    )


def _staying(
    sides: SortedSides,
    predicted: Side,
    regions: Side,
    ignored: Array,
    rules: TrackingRules,
    workers: Workers,
) -> Array:
    """Return the predictions that count, bool [m]."""
    state = np.zeros(sides.predicted_row.size, np.uint8)
    ignored_rows = ignored[sides.truth_row]
    least = rules.overlap - EPSILON
    workers.over(
        sides.offsets,
        lambda first, last: absorbed(sides.frames, first, last, ignored_rows, least, state),
    )
    of_row = np.zeros_like(state)
    of_row[sides.predicted_row] = state
    dropped = of_row == TAKEN
    unmatched = np.flatnonzero((of_row != TAKEN) & (of_row != MATCH))
    if rules.least_height is not None:
        height = predicted.boxes[unmatched, 3] - predicted.boxes[unmatched, 1]
        dropped[unmatched[height <= rules.least_height + EPSILON]] = True
    dropped[unmatched[_within(predicted.some(unmatched), regions, workers)]] = True
    return ~dropped


def _within(predicted: Side, regions: Side, workers: Workers) -> Array:
    """Return predictions more than half inside a single region of their frame, bool [m]."""
    inside = np.zeros(predicted.frame.size, bool)
    key = ["datum", "frame"]
    ours, theirs = (
        pl.DataFrame({"datum": side.datum, "frame": side.frame}).with_row_index(name)
        for side, name in ((predicted, "box"), (regions, "region"))
    )
    pairs = ours.join(theirs, on=key)
    rows, others = pairs["box"].to_numpy(), pairs["region"].to_numpy()
    if predicted.masks is not None and regions.masks is not None:
        common = shared(predicted.masks, regions.masks, rows, others, workers)
        share = common / np.maximum(predicted.masks.area[rows], 1)
        inside[rows[share > _WITHIN + EPSILON]] = True
        return inside
    rects, other = predicted.boxes[rows], regions.boxes[others]
    wide, high = (
        np.maximum(
            0.0, np.minimum(rects[:, far], other[:, far]) - np.maximum(rects[:, at], other[:, at])
        )
        for at, far in ((0, 2), (1, 3))
    )
    area = (rects[:, 2] - rects[:, 0]) * (rects[:, 3] - rects[:, 1])
    share = np.zeros(area.size)
    np.divide(wide * high, area, out=share, where=area > EPSILON)
    inside[rows[share > _WITHIN + EPSILON]] = True
    return inside


class Matched(msgspec.Struct, frozen=True):
    """Outcomes of the rows of both sides.

    Attributes:
        sides: the rows that count.
        truth: the ground truths that count, in the order of their table.
        predicted: the predictions that count.
        events: outcome of each ground truth in CLEAR, in layout order.
        rows: counts by sequence and label.
        notes: rows that were dropped because of their label.
    """

    sides: SortedSides
    truth: Side
    predicted: Side
    events: ClearEvents
    rows: TrackRows
    notes: list[Note]


def match(batch: Batch, settings: Settings, needs: frozenset[str], workers: Workers) -> Matched:
    """Match and count by sequence and label.

    Raises:
        InputError: no label is scored by the dialect, or a sequence has rows of more frames than
            its length.
    """
    least = settings.overlap
    prepared = prepare(batch, settings.rules, workers)
    seen = np.bincount(prepared.frames, minlength=len(batch.datums))
    refuse_short(batch, seen)
    truth, predicted, sides = prepared.truth, prepared.predicted, prepared.sides
    n, n_alphas = sides.datum.size, len(settings.alphas)

    def many(*shape: int, dtype: type = np.int64) -> Array:
        return np.zeros((n, *shape), dtype)

    sums = HotaSums(many(n_alphas), *(many(n_alphas, dtype=np.float64) for _ in range(4)))
    counts = ClearCounts(many(), many(), many(), many(), many(), many(), many(dtype=np.float64))
    common = many()
    n_rows = sides.truth_row.size
    events = ClearEvents(
        np.zeros(n_rows, np.uint8),
        np.full(n_rows, -1, np.int64),
        np.full(n_rows, -1, np.int32),
        np.full(n_rows, np.nan),
    )
    floors = np.array(settings.alphas) - EPSILON

    def count(first: int, last: int) -> None:
        if "hota" in needs:
            hota(sides.frames, first, last, floors, sums)
        if "clear" in needs or "events" in needs:
            clear(sides.frames, first, last, least - EPSILON, counts, events)
        if "identity" in needs:
            identities(sides.frames, first, last, least, common)

    workers.over(sides.offsets, count)
    bounds = sides.frames.start
    rows_truth, rows_track = (
        np.diff(start[bounds]) for start in (sides.frames.truth_start, sides.frames.track_start)
    )
    both = (rows_truth > 0) & (rows_track > 0)
    length = np.where(batch.length > 0, batch.length, seen)
    rows = TrackRows(
        datum=sides.datum,
        label=sides.label,
        truth=rows_truth,
        found=rows_track,
        frames=np.where(both, length[sides.datum], 0),
        tp=counts.tp,
        switches=counts.switches,
        fragments=counts.fragments,
        mostly=counts.mostly,
        partly=counts.partly,
        lost=counts.lost,
        overlap=counts.overlap,
        common=common,
        alpha_tp=sums.tp,
        alpha_overlap=sums.overlap,
        alpha_either=sums.either,
        alpha_truth=sums.of_truth,
        alpha_found=sums.of_track,
    )
    return Matched(sides, truth, predicted, events, rows, prepared.notes)
