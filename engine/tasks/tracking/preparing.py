"""Prepare: which rows count, by the dialect and the marks of ground truths."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...ingest.problems import Note, listing, note_of
from ...kernels.clear import MATCH, TAKEN, absorbed
from ...kernels.track_frames import EPSILON
from ...schemas.errors import InputError
from ...schemas.wording import option
from ...tally.datums import Labels
from ..workers import Workers
from .dialects import TrackingRules
from .encode import Batch, Side
from .layout import LaidOut, coded, lay_out
from .masks import shared

Array = np.ndarray[Any, Any]

_WITHIN = 0.5  # of a prediction, above which it lies in a region


_UNCONSIDERED = (
    "row",
    "rows",
    "with 0 in 'considered' (in MOTChallenge's text a confidence below 1) left out",
)


class Prepared(msgspec.Struct, frozen=True):
    """The rows that count.

    Attributes:
        truth: ground truths.
        found: predictions.
        laid: both by unit and frame.
        frames: int64 [frames], the sequence of every frame that has a row, whether it counts or
            not.
        notes: what was left out because of its label, or by its table.
    """

    truth: Side
    found: Side
    laid: LaidOut
    frames: Array
    notes: list[Note]


def prepare(batch: Batch, rules: TrackingRules, workers: Workers) -> Prepared:
    """Leave out what does not count.

    Args:
        batch: all sequences.
        rules: of the dialect.
        workers: runs ranges of units side by side.

    Raises:
        InputError: the tables have no label that the dialect scores.
    """
    truth, found = batch.truth, batch.found
    frames = _frames(truth, found)
    meets, scored, distracts = _labels(batch.labels, rules, labelled=batch.labelled)
    _refuse_strangers(batch.labels, scored, rules)
    regions = truth.some(np.flatnonzero(truth.region))
    kept = np.flatnonzero((meets[truth.label] >= 0) & ~truth.region)
    truth, found_kept = truth.some(kept), np.flatnonzero(scored[found.label])
    notes = _left_out(batch, kept.size + regions.frame.size, found_kept.size)
    if unconsidered := int(np.count_nonzero(truth.left_out & scored[truth.label])):
        notes.append(note_of("not_considered", unconsidered, _UNCONSIDERED, (), "ground truths: "))
    found = found.some(found_kept)
    ignored = truth.ignored | distracts[truth.label]
    ignored |= (truth.hidden > (rules.most_occluded, rules.most_truncated)).any(axis=1)
    counts = scored[truth.label] & ~ignored & ~truth.left_out
    together = msgspec.structs.replace(truth, label=meets[truth.label])
    laid = lay_out(together, found, workers)
    if not counts.all() or regions.frame.size or rules.least_height is not None:
        stays = _staying(laid, found, regions, ignored, rules, workers)
        laid = laid.some(counts, stays)
        truth, found = truth.some(np.flatnonzero(counts)), found.some(np.flatnonzero(stays))
    return Prepared(truth, found, laid, frames, notes)


def _frames(truth: Side, found: Side) -> Array:
    """The sequence of every frame, int64 [frames]."""
    numbers, codes = coded([truth.frame, found.frame])
    many = max(1, numbers.size)
    sequences = (truth.datum, found.datum)
    there, _ = coded(
        [datum.astype(np.int64) * many + at for datum, at in zip(sequences, codes, strict=True)]
    )
    return there // many


def _labels(labels: Labels, rules: TrackingRules, *, labelled: bool) -> tuple[Array, Array, Array]:
    """What the dialect makes of each label.

    Returns:
        int32 [n_labels], the label whose predictions its ground truths are matched with, -1 for
        none; bool [n_labels], whether it is scored; bool [n_labels], whether it distracts.
    """
    n = len(labels)
    if not rules.evaluated or not labelled:
        return np.arange(n, dtype=np.int32), np.ones(n, bool), np.zeros(n, bool)
    names = [str(name).casefold() for name in labels.frame["label_value"].to_list()]
    code = {name: i for i, name in enumerate(names)}
    others = rules.beside.get("*", "")
    meets = [
        i if name in rules.evaluated else code.get(rules.beside.get(name, others), -1)
        for i, name in enumerate(names)
    ]
    scored = np.array([name in rules.evaluated for name in names], bool)
    distracts = np.array([name in rules.distractors for name in names], bool)
    return np.array(meets, np.int32), scored, distracts


def _refuse_strangers(labels: Labels, scored: Array, rules: TrackingRules) -> None:
    """Refuse tables of which no label is one that the dialect scores.

    Raises:
        InputError: names the labels, and how they are mapped.
    """
    if scored.any() or not len(labels):
        return
    names = labels.frame["label_value"].to_list()
    wanted = rules.evaluated
    raise InputError(
        f"the dialect scores {listing(wanted)}, and the tables have none of them but"
        f" {listing(sorted(map(str, names)))}. Map labels:"
        f" {option('label_map', {names[0]: wanted[0]})}; or score all of them:"
        f" {option('dialect', 'standard')}."
    )


def _left_out(batch: Batch, n_truth: int, n_found: int) -> list[Note]:
    words = ("row", "rows", "of labels that the dialect does not evaluate left out")
    gone = (
        ("ground truths: ", batch.truth.frame.size - n_truth),
        ("predictions: ", batch.found.frame.size - n_found),
    )
    return [note_of("labels_not_evaluated", n, words, (), side) for side, n in gone if n]


def _staying(
    laid: LaidOut,
    found: Side,
    regions: Side,
    ignored: Array,
    rules: TrackingRules,
    workers: Workers,
) -> Array:
    """Which predictions count, bool [m]."""
    state = np.zeros(laid.found_row.size, np.uint8)
    marks = ignored[laid.truth_row]
    least = rules.overlap - EPSILON
    workers.over(
        laid.offsets,
        lambda first, last: absorbed(laid.frames, first, last, marks, least, state),
    )
    of_row = np.zeros_like(state)
    of_row[laid.found_row] = state
    gone = of_row == TAKEN
    lone = np.flatnonzero((of_row != TAKEN) & (of_row != MATCH))
    if rules.least_height is not None:
        height = found.boxes[lone, 3] - found.boxes[lone, 1]
        gone[lone[height <= rules.least_height + EPSILON]] = True
    gone[lone[_within(found.some(lone), regions, workers)]] = True
    stays: Array = ~gone
    return stays


def _within(found: Side, regions: Side, workers: Workers) -> Array:
    """Which predictions lie in a region of their frame by more than half, bool [m]."""
    there = np.zeros(found.frame.size, bool)
    key = ["datum", "frame"]
    ours, theirs = (
        pl.DataFrame({"datum": side.datum, "frame": side.frame}).with_row_index(name)
        for side, name in ((found, "box"), (regions, "region"))
    )
    pairs = ours.join(theirs, on=key)
    rows, others = pairs["box"].to_numpy(), pairs["region"].to_numpy()
    if found.masks is not None and regions.masks is not None:
        common = shared(found.masks, regions.masks, rows, others, workers)
        share = common / np.maximum(found.masks.area[rows], 1)
        there[rows[share > _WITHIN + EPSILON]] = True
        return there
    own, other = found.boxes[rows], regions.boxes[others]
    wide, high = (
        np.maximum(
            0.0, np.minimum(own[:, far], other[:, far]) - np.maximum(own[:, at], other[:, at])
        )
        for at, far in ((0, 2), (1, 3))
    )
    area = (own[:, 2] - own[:, 0]) * (own[:, 3] - own[:, 1])
    share = np.zeros(area.size)
    np.divide(wide * high, area, out=share, where=area > EPSILON)
    there[rows[share > _WITHIN + EPSILON]] = True
    return there
