"""Tally of classification: predictions matched with the truth of their unit."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...ingest.frames import Frames
from ...ingest.problems import Note, listing, note_of, tied_notes
from ...ingest.rules import NOTE, WARNING, Facts, Rule, apply
from ...kernels.labels import match_labels, true_label_facts
from ...metrics import Metric
from ...schemas.arrays import Array
from ...schemas.wording import option
from ...tallies.datums import Datums, Labels
from ...tallies.ranked import comparable
from ...tallies.registry import stored_as
from ...tallies.stored import Parts
from ...tallies.units import Facts as units_Facts
from ...tallies.units import Scored, Units, best_labels, outcomes_of, scored_by_rank
from ..encoding import Workers, truth_of_labels
from ..rules import counted, out_of_step, renamed
from ..scores import CUT_RULES, beyond_scores, check_probabilities, limits_of
from ..scores import notes_of as scores_notes_of
from .dialects import Settings
from .encode import Batch, Rows, encode_batch, without_repeats

# Warnings about labels or scores that are nearly always wrong but fit if reinterpreted.

_MAX_SAMPLE = 10_000  # units, evenly spaced
_LEAST, _LEAST_OF_PART = 20, 100  # small ones of many parts may look reversed by chance
_MISSING = 5  # true labels without scores, at least, next to datums of the same other labels
_RIGHT = 0.8  # share of right labels from which their order is right
_TIES = 65_536  # rows in which a tie is looked for first
_SIGMAS = 5  # standard errors below 0.5 of a ROC AUC that is below it by evidence
_REVERSED = 0.1  # ROC AUC from which down scores are of the other class
_UNLIKE = 0.5  # standard deviations between the scores of both predicted labels, at most
_SURER = 3  # standard errors by which right rows of the other label have higher scores, at least


def notes_of(batch: Batch, units: Units, *, whole: bool = True) -> list[Note]:
    """Return notes on labels or scores that hardly ever agree with the truth.

    Args:
        units: with predictions, if needed.
        whole: whether these are all datums, so that rows are in order.
    """
    tied = _unscored(batch, whole=whole) + _tied(batch, units)
    if batch.truth_start is not None or batch.truth.size < _LEAST:
        return tied
    step = max(1, batch.truth.size // _MAX_SAMPLE)
    if batch.rows is not None and not batch.rows.several:
        return _reversed(batch, step, _LEAST // 2 if whole else _LEAST_OF_PART)
    if units.hard is None:
        return tied
    predicted, truth = units.hard[::step], batch.truth[::step]
    labelled = (predicted >= 0) & (truth >= 0)
    pairs = counted(predicted[labelled], truth[labelled])
    warning = None
    if pairs is not None:
        values = batch.labels.frame["label_value"]
        warning = renamed(pairs, values, "of datums with a label on both sides,", 2)
    right = np.count_nonzero(units.hard == batch.truth)
    if whole and warning is None and right < _RIGHT * batch.truth.size:
        warning = out_of_step(units.hard, batch.truth, lambda ours, theirs: (ours == theirs).mean())
    return tied if warning is None else [*tied, warning]


def _unscored(batch: Batch, *, whole: bool) -> list[Note]:
    """Return a warning on true labels without scores, if all datums have the same other labels."""
    rows = batch.rows
    if rows is None or not (rows.several and rows.ranked) or batch.key is not None:
        return []
    label = _labels(rows) if rows.grid is None else rows.grid.label
    scored = np.bincount(label, minlength=len(batch.labels)) > 0
    missing = int((~scored[batch.truth[batch.truth >= 0]]).sum())
    width, n = int(scored.sum()), sum(part.size for part in rows.parts)
    if missing < (_MISSING if whole else 1) or width < 2 or n % width:
        return []
    if rows.grid is None and np.unique(_units_of(rows, n)).size * width != n:
        return []
    what = (
        f"without a score: every datum has scores of the same {width} labels, and these are not"
        " among them, as if a column of scores was left out. Give every label a score, or remove"
        " the rows of the others"
    )
    note = note_of("labels_without_scores", missing, ("true label", "true labels", what))
    return [msgspec.structs.replace(note, warning=True, facts={"fewest": _MISSING})]


def _tied(batch: Batch, units: Units) -> list[Note]:
    """Return a note on units whose highest score is shared by several labels, one of them true.

    A few rows are checked first; without a tie among them the others are skipped.
    """
    rows = batch.rows
    if rows is None or not (rows.several and rows.ranked) or batch.truth_start is not None:
        return []
    if batch.hard is None and units.hard is not None and units.hard_score is not None:
        best, first = units.hard_score, units.hard
    elif units.hard is None and units.facts is not None:  # ranked without a decision
        best, first = units.facts.true_score, batch.truth
    else:
        return []
    n = sum(part.size for part in rows.parts)
    for step in (max(1, n // _TIES), 1):
        unit, label, score = rows.sample(step)
        others = np.flatnonzero((score == best[unit]) & (label != first[unit]))
        of, truth = unit[others], batch.truth[unit[others]]
        tied = np.unique(of[(truth >= 0) & ((first[of] == truth) | (label[others] == truth))])
        if not tied.size:
            return []
    if units.hard is None:  # ties below the highest score are none at the top
        top = np.full(batch.truth.size, -np.inf)
        np.maximum.at(top, unit, score)
        tied = tied[best[tied] == top[tied]]
    labelled = int((batch.truth >= 0).sum())
    words = ("datum", "datums")
    return tied_notes(tied.size, labelled, words, "labels", "predicted labels and ranks")


def _labels(rows: Rows) -> Array:
    """Label of every row, int32 [n]."""
    assert rows.label_codes is not None
    return rows.label_codes


def _reversed(batch: Batch, step: int, least: int) -> list[Note]:
    """Return a warning about scores that are highest if their label is not true.

    Args:
        step: every how many units are looked at.
        least: positives and negatives of which there have to be so many.
    """
    rows = batch.rows
    assert rows is not None
    n = sum(part.size for part in rows.parts)
    if rows.unit_codes is not None or not rows.ranked or n != batch.truth.size:
        return []
    unit, _, score = rows.sample(step)
    true = batch.truth[unit] == rows.only
    positives, negatives = int(true.sum()), int((~true).sum())
    if min(positives, negatives) < least or not np.isfinite(score).all():
        return []
    rank = pl.Series(score).rank("average").to_numpy()
    area = (rank[true].sum() - positives * (positives + 1) / 2) / (positives * negatives)
    if area > _REVERSED and (area >= 0.5 or not _turned(score, true, area)):
        return []
    values = batch.labels.frame["label_value"].to_list()
    others = [value for code, value in enumerate(values) if code != rows.only]
    tip = f" {option('positive_label', others[0])} reads them so." if len(others) == 1 else ""
    return [
        Note(
            "scores_reversed",
            f"scores are lowest if {values[rows.only]!r} is true (ROC AUC {area:.3f} in"
            f" {score.size:,} looked at): are they scores of the other class, or distances?{tip}",
            warning=True,
            facts={"label": values[rows.only], "area": float(area)},
        )
    ]


def confidence_notes(blocks: Iterable[tuple[Units, Scored | None]], labels: Labels) -> list[Note]:
    """Return a warning about scores of the predicted label in place of the positive one's.

    All are in [0.5, 1] then, whichever label is predicted; rows predicted as the other label are
    right more often if their score is high; and 1 - score for these rows predicts the truth.

    Args:
        blocks: every unit, with its score.
        labels: meaning of label codes.
    """
    sums, only = np.zeros((3, 4)), 0
    highest, lowest = 0.0, 1.0  # of rows predicted as the positive label, and as the other one
    for units, scored in blocks:
        if scored is None or scored.several or not scored.ranked or len(labels) != 2:
            return []
        if units.hard is None or scored.unit is not None or len(scored) != units.hard.size:
            return []
        filled = [part for part in scored.parts if part.size]
        if not all(0.5 <= part.min() <= part.max() <= 1 for part in filled):
            return []
        score, only = scored.score, scored.only
        positive = units.hard == only
        code = 2 * positive + (positive == (scored.outcome == 1))
        sums += [np.bincount(code, weight, 4) for weight in (None, score, score**2)]
        highest = max(highest, score[positive].max(initial=0.0))
        lowest = min(lowest, score[~positive].min(initial=1.0))
    # Of the other label wrong and right, of the positive one wrong and right.
    n, total, squares = sums
    if n[:2].min() < 5 or n[2:].sum() < _LEAST // 2 or highest <= lowest:
        return []
    true, right = np.array([1, 0, 0, 1]), np.array([0, 1, 0, 1])
    base = (n @ true) * (n @ (1 - true)) / n.sum()
    worse, better = ((squares - 2 * to * total + to * n).sum() for to in (true, right))
    mean, spread = total[:2] / n[:2], np.maximum(squares[:2] / n[:2] - (total[:2] / n[:2]) ** 2, 0)
    surer = mean[1] - mean[0] > _SURER * np.sqrt((spread / n[:2]).sum())
    other, own = (total[side].sum() / n[side].sum() for side in (slice(2), slice(2, 4)))
    far = _UNLIKE * np.sqrt(squares.sum() / n.sum() - (total.sum() / n.sum()) ** 2)
    if not (better < base < worse and surer and own - other < far):
        return []
    values = labels.frame["label_value"].to_list()
    return [
        Note(
            "scores_of_predicted",
            f"scores seem to be those of the predicted label, not of {values[only]!r}: all are at"
            f" least 0.5, and their mean is {other:.2f} if {values[1 - only]!r} is predicted,"
            f" {own:.2f} if {values[only]!r} is. Write 1 - score for the former rows, in Polars:"
            f" pl.when(pl.col('predicted') == {values[only]!r}).then(pl.col('score'))"
            ".otherwise(1 - pl.col('score')).",
            int(n.sum()),
            warning=True,
            facts={"label": values[only], "count": int(n.sum())},
        )
    ]


def _turned(score: Array, true: Array, area: float) -> bool:
    """Return whether 1 - score predicts the truth, and the score does worse than a constant.

    Only inverted probabilities do: a poor model is rarely better than its base rate in reverse.
    """
    if score.min() < 0 or score.max() > 1:
        return False
    positives = int(true.sum())
    spread = np.sqrt(area * (1 - area) / min(positives, true.size - positives))  # at most
    base = true.mean() * (1 - true.mean())
    worse, better = ((score - true) ** 2).mean(), ((1 - score - true) ** 2).mean()
    return bool(area + _SIGMAS * spread < 0.5 and better < base < worse)


# Predicted labels if labels have individual thresholds.


def decision_of(settings: Settings, labels: Labels, *, single: bool = False) -> float | Array:
    """The score from which labels count as predicted: one for all, or float64 [labels]."""
    if not settings.thresholds:
        return comparable(settings.decision_threshold, single=single)
    return limits_of(
        settings.thresholds, labels, single=single, otherwise=settings.decision_threshold
    )


def best_above(
    batch: Batch, rows: Rows, settings: Settings, unit: Array, label: Array
) -> tuple[Array, Array]:
    """Return the best label of each unit among those that reach their threshold, -1 for none.

    Labels without a threshold always do.

    Args:
        unit: int32 [n], unit of every row.
        label: int32 [n], label of every row.

    Returns:
        int32 [u], label codes; float64 [u], their scores.
    """
    limits = limits_of(settings.thresholds, batch.labels, single=rows.single, otherwise=-np.inf)
    above = rows.score >= limits[label]
    _, hard, score = match_labels(
        unit[above], label[above], rows.score[above], batch.truth, batch.truth_start, want_hard=True
    )
    return hard, score


def cut_of(labels: Labels, only: int, settings: Settings) -> float:
    """Return the score from which the one scored label counts as predicted."""
    return float(np.broadcast_to(decision_of(settings, labels), len(labels))[only])


def cut_notes(
    blocks: Iterable[tuple[Units, Scored | None]],
    labels: Labels,
    settings: Settings,
    needs: frozenset[str],
) -> list[Note]:
    """Return a note on a decision threshold that does not fit the scores.

    Args:
        blocks: every unit, with its scores.
        labels: meaning of label codes.
    """
    at, default = np.nan, False
    low, high = np.inf, -np.inf
    for units, scored in blocks:
        if scored is None or not scored.ranked or "hard" not in needs:
            return []
        if scored.several:
            if not settings.multilabel or settings.thresholds:
                return []
            at = settings.decision_threshold
        elif not units.decided:
            return []
        else:
            at = cut_of(labels, scored.only, settings)
        default = at == 0.5
        if not default and 0 <= at <= 1:
            return []
        for part in scored.parts:
            low, high = part.min(initial=low), part.max(initial=high)
    values: dict[str, float] = {"lowest": float(low), "highest": float(high)}
    if default and (low < 0 or high > 1):
        severity = WARNING if low >= 0 and high >= 2 else NOTE
        facts = Facts(severity=severity, values=values)
        return apply(CUT_RULES, "", {"cut_logits"}, [facts])[0]
    if not default and low <= high and not low < at <= high:
        return beyond_scores("decision_threshold", at, **values)
    return []


def curve_notes(
    blocks: Iterable[tuple[Units, Scored | None]], settings: Settings, needs: frozenset[str]
) -> list[Note]:
    """Return a warning on thresholds of curves that are all beyond the scores."""
    at = min(settings.score_thresholds, default=0.0)
    if at <= 1 or not needs & {"scores", "details"}:
        return []
    low, high = np.inf, -np.inf
    for _, scored in blocks:
        for part in scored.parts if scored is not None and scored.ranked else ():
            low, high = part.min(initial=low), part.max(initial=high)
    if not low <= high <= 1:
        return []
    return beyond_scores("score_thresholds", at, float(low), float(high))


def _cut_off_notes(
    blocks: Iterable[tuple[Units, Scored | None]],
    labels: Labels,
    settings: Settings,
    needs: frozenset[str],
) -> list[Note]:
    """Return a note on cut-offs that reach the last of all labels; a single score ranks two."""
    whole = [k for k in settings.k if k is not None and k >= len(labels)]
    if not whole or "ranks" not in needs:
        return []
    n_scores = n_units = 0
    for units, scored in blocks:
        n_scores += 0 if scored is None else len(scored)
        n_units += len(units)
    if n_scores != n_units * len(labels) and not (n_scores == n_units and len(labels) == 2):
        return []
    message = (
        f"{option('k', whole)}: each datum has scores of {len(labels)} labels, so TopKAccuracy is 1"
        " there, whatever the scores."
    )
    facts = {"k": whole, "labels": len(labels)}
    return [Note("cut_offs_of_all_labels", message, facts=facts)]


def note_thresholds(
    frames: Frames, settings: Settings, labels: Labels, hard: Array | None, scored: Array | None
) -> None:
    """Add notes on the effect of thresholds.

    Args:
        frames: receives the notes.
        hard: int32 [u], predicted label of each unit, -1 for none; None for multi-label data.
        scored: bool [labels], labels that have scores; None without scores.
    """
    if not settings.thresholds:
        return
    if hard is not None and (none := int((hard < 0).sum())):
        words = "datum has", "datums have", "no label that reaches its threshold: none is predicted"
        frames.notes.append(note_of("undecided", none, words))
    frames.notes += scores_notes_of(settings.thresholds, labels, scored)


# If all weights of the set, a slice or a label are 0, its metrics are undefined.


Block = tuple[Units, Sequence[Array]]
"""Some units, and the group of each of their datums in every slice column, int32 [datums]."""


class _Seen:
    """Masks of codes with ground truths, and of codes with weighted ones."""

    def __init__(self, n: int) -> None:
        self._n = n
        self._truths, self._heavy = np.zeros((2, n), np.int64)

    def add(self, code: Array, weight: Array) -> None:
        """Take in truths with codes below ``n``, -1 for none."""
        inside = code >= 0
        code, heavy = code[inside], weight[inside] > 0
        self._truths += np.bincount(code, minlength=self._n)
        self._heavy += np.bincount(code[heavy], minlength=self._n)

    @property
    def all_zero(self) -> Array:
        """Codes that occur, but never with a weight above 0, int64 ascending."""
        return np.flatnonzero((self._truths > 0) & (self._heavy == 0))


def notes_of_blocks(
    blocks: Iterable[Block], labels: Labels, groups: Mapping[str, list[str]]
) -> list[Note]:
    """Return notes on labels or groups whose ground truths all have weight 0, one note per kind.

    Args:
        blocks: every unit, with weights.
        labels: meaning of label codes.
        groups: slice column -> names of its groups.
    """
    n, some = 0, False
    of_labels = _Seen(len(labels))
    of_groups = {column: _Seen(len(names)) for column, names in groups.items()}
    for units, codes in blocks:
        unit, label = units.truth_rows()
        assert units.weight is not None
        weight = units.weight[unit]
        n, some = n + unit.size, some or bool(weight.any())
        of_labels.add(label, weight)
        for seen, code in zip(of_groups.values(), codes, strict=True):
            seen.add(code[units.datum_of(unit)], weight)
    if n and not some:
        message = (
            f"column 'weight': all {n:,} weights are 0, so no number is defined. Remove the"
            " column, or give weights above 0."
        )
        return [Note("zero_weights", message, n)]
    notes = []
    zero = of_labels.all_zero
    if zero.size:
        values = labels.frame["label_value"].gather(zero).to_list()
        notes.append(_note(listing(values), zero.size, "label", "labels"))
    for column, seen in of_groups.items():
        zero = seen.all_zero
        if zero.size:
            listed = listing([groups[column][code] for code in zero])
            one, several = (f"{word} of {column!r}" for word in ("slice", "slices"))
            notes.append(_note(listed, zero.size, one, several))
    return notes


def weightless_notes(units: Units, labels: Labels, datums: Datums) -> list[Note]:
    """Return the notes on units in memory; empty without weights of 0."""
    if units.weight is None or not (units.weight == 0).any():
        return []
    groups = {column: datums.groups(column) for column in datums.slices.columns}
    codes = [group for group, _ in groups.values()]
    return notes_of_blocks(
        [(units, codes)], labels, {column: names for column, (_, names) in groups.items()}
    )


def _note(some: str, count: int, one: str, several: str) -> Note:
    named = one if count == 1 else several
    message = f"column 'weight': {count:,} {named} with only ground truths of weight 0: {some}."
    return Note("zero_weights", message, int(count))


@stored_as("classification.run/1", changes={1: {"filed": None}})
class Tallies(msgspec.Struct, frozen=True):
    """Tally of a classification run.

    Attributes:
        declared: int32 [l], position of each label among the declared ones, -1 for others; or None.
        units: one row per datum and label key.
        scored: scored labels, or None without scores.
        seconds: step -> wall seconds.
        beside: frames that exist for any metrics: ``per_datum`` of label sequences.
        keyed: declared labels came with label keys.
        details: the detailed curve was requested.
        confusion_examples: examples of the confusion matrix were requested.
        parts: files of units and scored labels, if their rows are on disk.
    """

    datums: Datums
    labels: Labels
    declared: Array | None
    units: Units
    scored: Scored | None
    seconds: dict[str, float]
    beside: tuple[str, ...] = ()
    keyed: bool = False
    details: bool = False
    confusion_examples: bool = False
    parts: Parts | None = None

    def ordered(self, code: Array | None = None) -> tuple[Any, ...]:
        """Return units and scores in an order independent of the rows of tables.

        Args:
            code: int32 [n_datums], index of each datum among those that count, -1 for others; None
                if all count.
        """
        units, scored = self.units, self.scored
        datum = units.datum_of() if code is None else code[units.datum_of()]
        key = np.zeros(len(units), np.int32) if units.key is None else units.key
        order = np.lexsort((key, datum))
        order = order[datum[order] >= 0]
        place = np.full(len(units), -1)
        place[order] = np.arange(order.size)
        result: list[Any] = [self.labels, self.declared, self.parts, datum[order], key[order]]
        facts = units.facts
        scores = (
            (None, None, None)
            if facts is None
            else (facts.true_score, facts.rank, np.round(facts.squared, 9))  # sums, in any order
        )
        every = (units.hard, units.hard_score, units.weight, *scores)
        result += [None if column is None else column[order] for column in every]
        tables: list[tuple[Array, Array, tuple[Array, ...]]] = [(*units.truth_rows(), ())]
        if scored is not None:
            unit, label = scored.unit_codes, scored.label_codes
            unit = np.arange(len(scored)) if unit is None else unit
            label = np.full(len(scored), scored.only) if label is None else label
            tables.append((unit, label, (scored.score, scored.outcome)))
        for unit, label, columns in tables:
            rows = (*columns[::-1], label, place[unit])
            order = np.lexsort(rows)
            order = order[place[unit][order] >= 0]
            result.append(tuple(column[order] for column in rows))
        return tuple(result if scored is not None else [*result, None])

    @property
    def weighted(self) -> bool:
        """True if counts are sums of weights."""
        return self.units.weight is not None


def tally(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Tallies:
    """Encode, match and tally.

    Args:
        needs: subset of ``hard``, ``scores``, ``probabilities``, ``ranks``, ``details``,
            ``confusion``.

    Raises:
        InputError: probabilities outside [0, 1], if a metric needs probabilities.
    """
    begun = time.perf_counter()
    if "probabilities" in needs:
        check_probabilities(frames, "Log loss, Brier score and calibration need")
    batch = encode_batch(
        frames, positive_label=settings.positive_label, multilabel=settings.multilabel
    )
    if settings.relabelled:
        batch = without_repeats(batch)
    encoded = time.perf_counter()
    if batch.rows is not None and needs & {"scores", "ranks"}:
        _note_decisions(frames, batch.rows)
    units, scored = matched(batch, settings, needs, frames)
    frames.notes += cut_notes([(units, scored)], batch.labels, settings, needs)
    frames.notes += curve_notes([(units, scored)], settings, needs)
    frames.notes += _cut_off_notes([(units, scored)], batch.labels, settings, needs)
    if "hard" in needs:
        one = batch.hard is None and not settings.multilabel
        of = None if scored is None else scored.labels
        note_thresholds(frames, settings, batch.labels, units.hard if one else None, of)
    frames.notes += weightless_notes(units, batch.labels, batch.datums)
    confident = confidence_notes([(units, scored)], batch.labels)
    frames.notes += confident or notes_of(batch, units, whole=frames.whole)
    if frames.whole and len(batch.datums) and not batch.labels.frame.height:
        message = "no row has a label: there are no numbers."
        frames.notes.append(Note("no_rows", message, 0, warning=True))
    extra = {
        "per_datum": batch.sequences,
        "examples": "confusion" in needs and settings.examples_given,
    }
    seconds = {"encode": encoded - begun, "match": time.perf_counter() - encoded}
    return Tallies(
        batch.datums,
        batch.labels,
        batch.declared,
        units,
        scored,
        seconds,
        tuple(frame for frame, used in extra.items() if used),
        keyed=frames.labels is not None and "label_key" in frames.labels.columns,
        details="details" in needs,
        confusion_examples=extra["examples"],
    )


def matched(
    batch: Batch, settings: Settings, needs: frozenset[str], frames: Frames | None = None
) -> tuple[Units, Scored | None]:
    """Compare predictions and scores with the true labels; needs are those of ``tally``.

    Args:
        frames: receives a warning.
    """
    if batch.rows is None:
        return _units(batch, batch.hard), None
    if batch.rows.several:
        return _listed(batch, batch.rows, settings, needs, frames)
    return _binary(batch, batch.rows, settings, needs)


def truth(tallies: Tallies) -> Array:
    """See :attr:`evalengine.tasks.task.Task.truth`."""
    unit, label = tallies.units.truth_rows()
    datum = tallies.units.datum_of(unit)
    return truth_of_labels(tallies.labels, len(tallies.datums), datum, label)


def weights(tallies: Tallies) -> Array | None:
    """See :attr:`evalengine.tasks.task.Task.weights`."""
    units = tallies.units
    if units.weight is None:
        return None
    return np.bincount(units.datum_of(), units.weight, len(tallies.datums))


def merged_notes(tallies: Tallies, settings: Settings, needs: frozenset[str]) -> list[Note]:
    """Return notes on weights of 0, on the threshold, and on scores of the predicted label."""
    datums, labels, parts = tallies.datums, tallies.labels, tallies.parts

    def blocks() -> Iterable[tuple[Units, Scored | None]]:
        if parts is None:
            return [(tallies.units, tallies.scored)]
        return ((part.rows.units, part.rows.wide) for part in parts)

    notes = cut_notes(blocks(), labels, settings, needs) + confidence_notes(blocks(), labels)
    notes += curve_notes(blocks(), settings, needs)
    notes += _cut_off_notes(blocks(), labels, settings, needs)
    if parts is None:
        return notes + weightless_notes(tallies.units, labels, datums)
    if tallies.units.weight is None:
        return notes
    names = {column: datums.groups(column)[1] for column in datums.slices.columns}
    rows = ((part.rows.units, part.codes) for part in parts)
    return notes + notes_of_blocks(rows, labels, names)


def _units(batch: Batch, hard: Array | None, hard_score: Array | None = None, **more: Any) -> Units:
    return Units(
        datum=batch.datum,
        key=batch.key,
        truth=batch.truth,
        truth_start=batch.truth_start,
        hard=hard,
        hard_score=hard_score,
        weight=batch.weight,
        by_row=batch.by_row,
        **more,
    )


def _binary(
    batch: Batch, rows: Rows, settings: Settings, needs: frozenset[str]
) -> tuple[Units, Scored]:
    """One score a unit, of the positive label."""
    hit = batch.truth == rows.only
    hard = batch.hard
    decided = hard is None and "hard" in needs
    limit = comparable(cut_of(batch.labels, rows.only, settings), single=rows.single)
    if decided:
        others = [code for code in range(len(batch.labels)) if code != rows.only]
        # With more than two labels, "not the positive one" is not a label, so there is no
        # prediction.
        other = others[0] if len(others) == 1 else -1
        hard = np.where(rows.score >= limit, np.int32(rows.only), np.int32(other))
    facts = None
    if needs & {"probabilities", "ranks"}:
        true_score = np.where(hit, rows.score, 1.0 - rows.score)
        facts = units_Facts(
            true_score=true_score,
            rank=((rows.score >= limit) != hit).astype(np.int32),
            squared=(rows.score - hit) ** 2,
        )
    labels = np.zeros(len(batch.labels), bool)
    labels[rows.only] = True
    units = _units(batch, hard, facts=facts, decided=decided)
    scored = Scored(rows.parts, hit.view(np.uint8), None, rows.unit, rows.only, labels, rows.single)
    return units, scored


def _listed(
    batch: Batch, rows: Rows, settings: Settings, needs: frozenset[str], frames: Frames | None
) -> tuple[Units, Scored]:
    """Any number of scored labels a unit."""
    n_units = batch.truth.size if batch.truth_start is None else batch.truth_start.size - 1
    want_hard = "hard" in needs and not settings.multilabel
    hard: Array | None
    hard_score: Array | None
    if rows.grid is not None and batch.truth_start is None:
        outcome = outcomes_of(rows.grid, batch.truth)
        hard, hard_score = best_labels(rows.grid, rows.parts, n_units if want_hard else 0)
    else:
        outcome, hard, hard_score = match_labels(
            _units_of(rows, n_units),
            _labels(rows),
            rows.score,
            batch.truth,
            batch.truth_start,
            want_hard=want_hard,
        )
    facts = None
    if "probabilities" in needs or "ranks" in needs:
        facts = units_Facts(
            *true_label_facts(
                _units_of(rows, n_units),
                _labels(rows),
                rows.score,
                outcome,
                n_units,
                first_wins=settings.rules.top_k_first_row,
            )
        )
    if not want_hard:  # of several labels a datum, those at the decision threshold are predicted
        hard, hard_score = None, None
    elif batch.hard is None and settings.thresholds:
        unit, label = _units_of(rows, n_units), _labels(rows)
        hard, hard_score = best_above(batch, rows, settings, unit, label)
    elif batch.hard is not None:
        hard, top = batch.hard, hard_score
        hard_score = np.full(n_units, np.nan)
        unit = _units_of(rows, n_units)
        chosen = np.flatnonzero(_labels(rows) == hard[unit])
        hard_score[unit[chosen]] = rows.score[chosen]
        if frames is not None:
            _note_other_labels(frames, rows, chosen, int((hard_score < top).sum()))
    units = _units(batch, hard, hard_score, facts=facts)
    labels = np.ones(len(batch.labels), bool)
    scored = Scored(
        rows.parts, outcome, rows.label, rows.unit, -1, labels, rows.single, rows.ranked, rows.grid
    )
    return units, scored


def _units_of(rows: Rows, n_units: int) -> Array:
    """Unit of every row, int32 [n]."""
    return np.arange(n_units, dtype=np.int32) if rows.unit_codes is None else rows.unit_codes


def _note_other_labels(frames: Frames, rows: Rows, chosen: Array, count: int) -> None:
    """Warn if other labels than the predicted ones have the highest scores in most units.

    Labels that a threshold or a weight decided have higher scores where they are predicted.

    Args:
        chosen: rows of the predicted labels.
        count: number of units in which another label has a higher score.
    """
    values = {"least": 0.5, "fewest": _LEAST // 2}
    if count <= values["least"] * chosen.size or (frames.whole and count < values["fewest"]):
        return
    label, score = _labels(rows), rows.score
    own, own_sum, n, total = (
        np.bincount(label[some], weight, int(label.max()) + 1)
        for some in (chosen, slice(None))
        for weight in (None, score[some])
    )
    if np.count_nonzero(own_sum * (n - own) < (total - own_sum) * own) > 1:
        facts = Facts(severity=WARNING, count=count, of=chosen.size, values=values)
        frames.notes += apply((_OTHER_LABELS,), "", {_OTHER_LABELS.code}, [facts])[0]


def _describe_other_labels(facts: Facts) -> str:
    return (
        f"in {facts.count:,} of {facts.of:,} rows another label than the predicted one has the"
        f" highest score. Has {option('score_columns')} each label's own column, and are high"
        " scores the likely ones?"
    )


_OTHER_LABELS: Rule[list[Facts]] = Rule(
    "scores_of_other_labels", {"scores_of_other_labels"}, iter, _describe_other_labels
)


def _note_decisions(frames: Frames, rows: Rows) -> None:
    """Note scores that are 0 and 1 only, which are likely decisions and not scores."""
    for length in (_LEAST, None):  # a few of each part first
        n = ones = 0
        for part in rows.parts:
            one = part[:length] == 1
            if not (one | (part[:length] == 0)).all():
                return
            n, ones = n + one.size, ones + int(one.sum())
    if n >= _LEAST and 0 < ones < n:
        message = (
            f"all {n:,} scores are 0 or 1, as decisions are: areas under curves then have a single"
            " threshold. Give the scores before they were cut."
        )
        frames.notes.append(Note("scores_are_decisions", message, n))


def by_rank(tallies: Tallies, settings: Settings, within: Array | None) -> Tallies:
    """The tally with ranks in place of scores; see :class:`..task.Ranking`."""
    if tallies.scored is None:
        return tallies
    pooled = settings.average in ("micro", "samples")
    scored = scored_by_rank(tallies.scored, tallies.units, within, pooled=pooled)
    return msgspec.structs.replace(tallies, scored=scored)


def by_value(tallies: Tallies, settings: Settings, metric: Metric) -> bool:
    """Return True if a metric depends on score values; hard predictions are already decided."""
    return not metric.ranks and (metric.needs != ("hard",) or tallies.units.hard is None)
