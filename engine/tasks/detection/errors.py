"""TIDE errors: kind of each wrong prediction, missed ground truths, and the AP cost of each kind.

Each IoU threshold has a tally, ranked like the main one, whose variants are fixes instead of area
ranges: for one kind of error, its false positives are removed, those that would have hit are true
positives, and ground truths without a near prediction are dropped. The cost of the kind is the AP
of that variant minus the AP. Slices, resamples, parts and files work as for any tally.

Source: D. Bolya et al., "TIDE" (ECCV 2020), and its code tidecv 1.0.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...kernels.detection_errors import (
    BACKGROUND,
    BOTH,
    CLASS,
    DUPLICATE,
    LOCATION,
    NONE,
    Overlaps,
    find_errors,
    match_first_best,
)
from ...kernels.pairs import rows_by_datum
from ...schemas.arrays import Array
from ...schemas.errors import OptionError
from ...schemas.results import empty_frame, frame_schema
from ...schemas.wording import option
from ...tally.interpolation import Beside, Interpolation
from ...tally.merging import merge_ranked
from ...tally.ranked import Ranked, Variants
from ...tally.registry import stored_as
from ..workers import Workers
from .encode import Batch
from .error_rows import IDS, error_rows, in_order
from .matching import Matched
from .near import Near
from .overlaps import Pairs, find_pairs, regular_ground_truths
from .rules import DetectionRules
from .settings import Settings

BASE = "as it is"
KINDS = {"Cls": CLASS, "Loc": LOCATION, "Both": BOTH, "Dupe": DUPLICATE, "Bkg": BACKGROUND}
"""Kinds of wrong predictions, in the order of tidecv's tables."""
MISS, FALSE_POSITIVES, FALSE_NEGATIVES = "Miss", "FalsePos", "FalseNeg"
FIXES = (*KINDS, MISS, FALSE_POSITIVES, FALSE_NEGATIVES)
_COUNTED = "counted "
COUNTED = tuple(f"{_COUNTED}{kind}" for kind in KINDS)
"""Variants in which only errors of one kind count, if some do not count without fixes."""

_NAMES = np.array(["", *(name for name, _ in sorted(KINDS.items(), key=lambda item: item[1]))])


@stored_as("detection.errors/1")
class Errors(msgspec.Struct, frozen=True):
    """TIDE errors at all thresholds.

    Attributes:
        ranked: tally per IoU threshold, with one variant per fix instead of an area range, since
            the
            counted ground truths depend on both.
        unmended: same without fixes, if its order of ties differs; else empty.
        frame: the ``errors`` frame, or None.
    """

    ranked: tuple[Ranked, ...]
    unmended: tuple[Ranked, ...]
    frame: pl.DataFrame | None


class _Found(msgspec.Struct, frozen=True):
    """TIDE errors at one IoU threshold.

    Attributes:
        hit: bool [n], true positives.
        ignored: bool [n], neither true nor false positives.
        kind: int8 [n].
        target: int32 [n], ground truth that a location or class error is the first to hit once
            fixed; -1 for others.
        best: int32 [n], ground truth that determines the error, -1 for none.
        taken: bool [m], ground truths that were hit.
        missed: bool [m], ground truths that no fixed prediction would hit.
    """

    iou: float
    hit: Array
    ignored: Array
    kind: Array
    target: Array
    best: Array
    taken: Array
    missed: Array


def find(
    batch: Batch,
    matched: Matched,
    pairs: Pairs,
    near: Near | None,
    settings: Settings,
    threads: Workers,
    *,
    shown: bool,
) -> Errors:
    """Compute the errors at the thresholds of the confusion matrix and outcomes.

    Args:
        matched: the match, with takers.
        pairs: overlaps of at least the background threshold.
        near: overlaps of other geometry than boxes, None for boxes.
        shown: build the frame.

    Raises:
        OptionError: the background threshold is above an IoU threshold.
    """
    ranked, ious = matched.ranked, settings.spot_ious
    if min(ious) < settings.background_iou:
        raise OptionError(
            f"{option('background_iou', settings.background_iou)}: what lies on the background ends"
            f" below what hits, and that begins at IoU {min(ious):g}."
        )
    regular = regular_ground_truths(matched)
    if settings.rules.first_best is not None:
        pairs = find_pairs(
            matched, batch.labels, len(batch.datums), settings.background_iou, threads, near,
            crowd=matched.ground_truths.laid(batch.crowd),
        )  # fmt: skip
    overlaps = _by_prediction(pairs, ranked.score.size)
    found = [_at(batch, matched, pairs, overlaps, regular, settings, iou, threads) for iou in ious]
    if settings.rules.first_best is None:
        tallies = tuple(_tally(ranked, pairs, one, regular, (BASE, *FIXES)) for one in found)
        unmended: tuple[Ranked, ...] = ()
    else:  # tidecv lists what was wrong first, then what hit, once something is mended
        names = (BASE, *FIXES, *COUNTED)
        tallies = tuple(
            _tally(ranked, pairs, one, regular, names, wrong_first=True) for one in found
        )
        unmended = tuple(_tally(ranked, pairs, one, regular, (BASE,)) for one in found)
    frame = None
    if shown:
        parts = [
            _rows(batch, ranked, pairs, overlaps, one, iou)
            for one, iou in zip(found, ious, strict=True)
        ]
        frame = in_order(pl.concat(parts)) if parts else None
    return Errors(tallies, unmended, frame)


def _by_prediction(pairs: Pairs, n: int) -> Overlaps:
    start, order = rows_by_datum(pairs.prediction, n)
    return Overlaps(start, pairs.ground_truth[order], pairs.iou[order])


def _at(
    batch: Batch,
    matched: Matched,
    pairs: Pairs,
    overlaps: Overlaps,
    regular: Array,
    settings: Settings,
    iou: float,
    threads: Workers,
) -> _Found:
    ranked = matched.ranked
    labels = pairs.p_label, pairs.g_label
    if settings.rules.first_best is not None:
        order = np.lexsort((ranked.row, -ranked.score, ranked.datum)).astype(np.int32)
        state, taker = match_first_best(
            order, ranked.datum, overlaps, labels, ranked.gt_row, ~regular, positive=iou,
            cap=settings.rules.first_best,
        )  # fmt: skip
        hit, ignored, wrong = state == 1, state >= 2, (state == 0) | (state == 2)
        own = regular[overlaps.truth]
        counted = np.r_[0, np.cumsum(own)]
        overlaps = Overlaps(counted[overlaps.start], overlaps.truth[own], overlaps.iou[own])
    else:
        threshold = ranked.variants.threshold_index(iou)
        word, bit = ranked.variants.bit(threshold)
        one = np.uint64(1 << bit)
        hit, ignored = (ranked.hit[word] & one) != 0, (ranked.ignored[word] & one) != 0
        taker = matched.taker[threshold]
        if ranked.skipped.size:
            ignored = ignored | (ranked.skipped & ~hit)
        wrong = ~hit & ~ignored
    taken = taker >= 0
    anything = np.zeros(len(batch.datums), bool)
    anything[ranked.gt_datum[regular]] = True
    judged = np.where(wrong, np.where(anything[ranked.datum], 2, 1), 0).astype(np.uint8)
    kind, target, best = find_errors(
        overlaps, judged, labels, ranked.gt_row, taken,
        background=settings.background_iou, positive=iou,
    )  # fmt: skip
    open_targets: Array = np.flatnonzero(target >= 0)
    open_targets = open_targets[~taken[target[open_targets]]]
    near_miss: Array = np.zeros(taken.size, bool)
    near_miss[target[open_targets]] = True
    # If several errors would hit one ground truth, the first by score does.
    by_target: Array = np.lexsort(
        (ranked.row[open_targets], -ranked.score[open_targets], target[open_targets])
    )
    open_targets = open_targets[by_target]
    hits = target[open_targets]
    first = open_targets[np.r_[True, hits[1:] != hits[:-1]]] if hits.size else open_targets
    mended = np.full(kind.size, -1, np.int32)
    mended[first] = target[first]
    return _Found(iou, hit, ignored, kind, mended, best, taken, regular & ~taken & ~near_miss)


def _tally(
    ranked: Ranked,
    pairs: Pairs,
    found: _Found,
    regular: Array,
    names: tuple[str, ...],
    *,
    wrong_first: bool = False,
) -> Ranked:
    """Build the tally: the predictions, repeated under another label if they would hit there.

    Args:
        pairs: with labels.
        regular: bool [m], ground truths that count.
        names: variants.
        wrong_first: among ties, wrong predictions come first.
    """
    n = ranked.score.size
    moved = np.flatnonzero((found.kind == CLASS) & (found.target >= 0))
    row_of = np.r_[np.arange(n), moved]
    label = np.r_[pairs.p_label, pairs.g_label[found.target[moved]]]
    extra = np.arange(row_of.size) >= n
    base, out, kind = found.hit[row_of], found.ignored[row_of], found.kind[row_of]
    score, datum, row = ranked.score[row_of], ranked.datum[row_of], ranked.row[row_of]
    tie = ranked.tie[row_of] if ranked.tie.size else None
    if wrong_first:
        tie = (kind != NONE).astype(np.float64)
    order = _in_rank(n, (label, -score, *(() if tie is None else (-tie,)), datum, row), wrong_first)
    mended = (kind == LOCATION) & (found.target[row_of] >= 0)
    hit, ignored = _of_predictions(names)
    fate = _code(base, out, extra, mended, kind)[order]
    truth = _code(regular, found.missed, found.taken)
    start = np.zeros(ranked.n_labels + 1, np.int64)
    np.cumsum(np.bincount(label, minlength=ranked.n_labels), out=start[1:])
    return Ranked(
        variants=Variants((found.iou,), tuple((name, -np.inf, np.inf) for name in names)),
        start=start,
        score=score[order],
        datum=datum[order],
        row=row[order],
        rank=np.zeros(row_of.size, np.int32),
        hit=hit[fate][None],
        ignored=ignored[fate][None],
        skipped=np.zeros(0, bool),
        tie=np.zeros(0) if tie is None else tie[order],
        gt_start=ranked.gt_start,
        gt_datum=ranked.gt_datum,
        gt_row=ranked.gt_row,
        gt_counted=_of_truths(names)[truth][None],
        cap=None,
        single=ranked.single,
    )


def _in_rank(n: int, keys: tuple[Array, ...], every: bool) -> Array:
    """Sort rows by keys, the first key first, int64.

    Args:
        n: number of leading rows that are already sorted, unless ``every``.
        every: sort all rows, not just those after the first ``n``.
    """
    if every:
        return np.lexsort(keys[::-1])
    few = n + np.lexsort(tuple(key[n:] for key in keys[::-1]))
    fields = [(f"{i}", key.dtype) for i, key in enumerate(keys)]
    known, new = np.empty(n, fields), np.empty(few.size, fields)
    for (name, _), key in zip(fields, keys, strict=True):
        known[name], new[name] = key[:n], key[few]
    return np.insert(np.arange(n), np.searchsorted(known, new), few)


def _code(*parts: Array) -> Array:
    """Pack facts of rows into one integer: booleans from the lowest bit, then a last part."""
    made = parts[0].astype(np.uint8)
    for bit, part in enumerate(parts[1:], 1):
        made |= part.astype(np.uint8) << np.uint8(bit)
    return made


def _of_predictions(names: tuple[str, ...]) -> tuple[Array, Array]:
    """Variants in which predictions hit and in which they are ignored, uint64 by their code."""
    code = np.arange((max(KINDS.values()) + 1) << 4)
    base, out, extra, mended = ((code >> bit) & 1 == 1 for bit in range(4))
    kind = code >> 4
    right = {"Loc": ~extra & mended, "Cls": extra}
    hit, ignored = np.zeros((2, len(names), code.size), bool)
    for a, name in enumerate(names):
        hit[a] = base & ~extra
        ignored[a] = (out & ~base) | extra
        if name in KINDS:
            hit[a] |= right.get(name, False)
            ignored[a] |= (kind == KINDS[name]) & ~extra
            ignored[a] &= ~hit[a]
        elif name == FALSE_POSITIVES:
            ignored[a] |= ~base
        elif name in COUNTED:
            hit[a] = False
            ignored[a] = extra | (kind != KINDS[name.removeprefix(_COUNTED)])
    return _word(hit), _word(ignored)


def _of_truths(names: tuple[str, ...]) -> Array:
    """Variants in which ground truths are asked for, uint64 by their code."""
    regular, missed, taken = ((np.arange(8) >> bit) & 1 == 1 for bit in range(3))
    counted = {MISS: regular & ~missed, FALSE_NEGATIVES: regular & taken}
    return _word(np.stack([counted.get(name, regular) for name in names]))


def _word(bits: Array) -> Array:
    """Booleans of variants, [variants, n], as bits of one word, uint64 [n]."""
    out = np.zeros(bits.shape[1], np.uint64)
    for bit, values in enumerate(bits):
        out |= values.astype(np.uint64) << np.uint64(bit)
    return out


def _rows(
    batch: Batch, ranked: Ranked, pairs: Pairs, overlaps: Overlaps, found: _Found, iou: float
) -> pl.DataFrame:
    """The ``errors`` frame at one threshold."""
    wrong = np.flatnonzero(found.kind != NONE)
    prediction = np.repeat(np.arange(ranked.score.size), np.diff(overlaps.start))
    own = overlaps.truth == found.best[prediction]
    at = np.full(ranked.score.size, np.nan)
    at[prediction[own]] = overlaps.iou[own]
    missed = np.flatnonzero(found.missed)
    nobody = np.full(missed.size, -1)
    return error_rows(
        batch,
        ranked,
        predictions=np.r_[wrong, nobody],
        truths=np.r_[found.best[wrong], missed],
        error=np.r_[_NAMES[found.kind[wrong]], np.full(missed.size, MISS)],
        iou=np.r_[at[wrong], np.full(missed.size, np.nan)],
        threshold=iou,
        mended=np.r_[found.target[wrong] >= 0, np.zeros(missed.size, bool)],
    )


_HUNDREDTHS = np.arange(101) / 100  # as tidecv divides: some lie one bit beside those of COCO


def beside(
    found: Errors | None, rules: DetectionRules, interpolation: Interpolation
) -> dict[str, Beside]:
    """The tallies of errors, as views have them: by the place of their threshold."""
    if found is None:
        return {}
    own = interpolation if rules.first_best is None else Interpolation(_HUNDREDTHS)
    every = {"errors": found.ranked, "unmended": found.unmended}
    return {
        f"{name} {t}": Beside(ranked, own)
        for name, tallies in every.items()
        for t, ranked in enumerate(tallies)
    }


def in_the_input(frame: pl.DataFrame | None, rows: Array | None) -> pl.DataFrame | None:
    """Replace row numbers by those of the whole input, if the table is part of one."""
    if rows is None or frame is None:
        return frame
    place = pl.Series("prediction_row", rows)
    return frame.with_columns(place.gather(frame["prediction_row"]))


def merge_errors(
    parts: Sequence[Errors],
    datums: Sequence[Array],
    labels: Sequence[Array],
    n_labels: int,
    before: Sequence[tuple[int, int]],
    *,
    named_by_row: bool,
) -> Errors | None:
    """Merge errors.

    Args:
        parts: of disjoint sets of datums; empty if not requested.
        datums: new datum codes per part.
        labels: new label codes per part.
        n_labels: labels of the whole.
        before: rows of both sides that precede each part.
        named_by_row: ground truths are identified by row.
    """
    if not parts:
        return None

    def together(name: str) -> tuple[Ranked, ...]:
        of_thresholds = zip(*(getattr(part, name) for part in parts), strict=True)
        return tuple(merge_ranked(some, datums, labels, n_labels) for some in of_thresholds)

    frame = merge_rows([part.frame for part in parts], before, named_by_row=named_by_row)
    return Errors(
        together("ranked"), together("unmended"), None if frame is None else in_order(frame)
    )


def merge_rows(
    frames: Sequence[pl.DataFrame | None],
    before: Sequence[tuple[int, int]],
    *,
    named_by_row: bool,
) -> pl.DataFrame | None:
    """Concatenate rows that refer to predictions and ground truths.

    Args:
        frames: per part; None if not requested.
        before: rows of both sides that precede each part.
        named_by_row: ground truths are identified by row.
    """
    moved = [
        frame.with_columns(
            pl.col("prediction_row") + ours,
            *(pl.col(name) + theirs for name in IDS if named_by_row and name in frame.columns),
        )
        for frame, (ours, theirs) in zip(frames, before, strict=True)
        if frame is not None
    ]
    filled = [frame for frame in moved if frame.height] or moved[:1]
    return pl.concat(filled, how="vertical_relaxed") if filled else None


def errors_frame(found: Errors | None, label: Any, datum: Any) -> pl.DataFrame:
    """Return the ``errors`` frame; empty if none was built."""
    if found is None or found.frame is None:
        return empty_frame("errors", label=label, datum=datum)
    return found.frame.cast(
        frame_schema("errors", label=label, datum=datum)  # type: ignore[arg-type]
        | {name: found.frame.schema[name] for name in IDS}
    )
