"""Losses and contents of single datums."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np

from ...dialects import Dialect
from ...ingest.problems import count_of
from ...kernels.labels import HIT, STRAY
from ...metrics import Metric
from ...schemas.arrays import Array
from ...tallies.units import Units
from ..contents import LABELS, Content, Labelled, LabelScore, called
from ..task import Cuts, Losses
from .dialects import Settings
from .tallies import Tallies, decision_of

# Labels of single datums, predicted and true.


def contents(tallies: Tallies, settings: Settings, codes: Array) -> list[Content]:
    """See :attr:`..contents.Contents.of_tally`."""
    units, scored, labels = tallies.units, tallies.scored, tallies.labels
    of_datum = units.datum_of()
    unit = np.flatnonzero(np.isin(of_datum, codes))
    true_unit, true_label = units.truth_rows()
    mask = np.isin(true_unit, unit)
    true_unit, true_label = true_unit[mask], true_label[mask]
    rows: Array = np.zeros(0, np.int64)
    row_unit = row_label = np.zeros(0, np.int32)
    if scored is not None:
        row_unit = (
            np.arange(len(scored), dtype=np.int32)
            if scored.unit_codes is None
            else scored.unit_codes
        )
        rows = np.flatnonzero(np.isin(row_unit, unit))
        row_unit = row_unit[rows]
        row_label = (
            np.full(rows.size, scored.only)
            if scored.label_codes is None
            else scored.label_codes[rows]
        )
    out: list[Content] = []
    for code in codes.tolist():
        datum_units = unit[of_datum[unit] == code]
        predicted_labels = []
        if scored is not None:
            here = np.flatnonzero(np.isin(row_unit, datum_units))
            score = scored.score[rows[here]]
            order = np.lexsort((row_label[here], -score, labels.key[row_label[here]]))
            predicted_labels = [
                _label(
                    tallies,
                    int(row_label[here[at]]),
                    float(score[at]) if scored.ranked else None,
                    bool(scored.outcome[rows[here[at]]] == HIT),
                )
                for at in order.tolist()
            ]
        elif units.hard is not None:
            hard = units.hard[datum_units]
            predicted_labels = [
                _label(tallies, int(label), None, bool(label == true))
                for label, true in zip(hard, units.truth[datum_units], strict=True)
                if label >= 0
            ]
        truth = true_label[np.isin(true_unit, datum_units)].tolist()
        out.append(
            Labelled(
                predicted=tuple(predicted_labels[:LABELS]),
                left_out=max(0, len(predicted_labels) - LABELS),
                truth=tuple(
                    (labels.key_names[labels.key[label]], called(labels.frame, label))
                    for label in truth[:LABELS]
                ),
            )
        )
    return out


def _label(tallies: Tallies, label: int, score: float | None, true: bool) -> LabelScore:
    labels = tallies.labels
    return LabelScore(
        key=labels.key_names[labels.key[label]],
        label=called(labels.frame, label),
        score=score,
        true=true,
    )


# Loss of single datums; a datum with several label keys gets the worst of them.

_LABELS_NEED = (
    "labels were only scored, not predicted: add Accuracy or LogLoss to the metrics to rank single"
    " datums"
)


def losses(
    tallies: Tallies, settings: Settings, metrics: Sequence[Metric], dialect: Dialect, *, cuts: Cuts
) -> Losses | str:
    """See :class:`..task.JudgeDatums`."""
    sums = _losses_of(tallies, settings, metrics)
    units, n = tallies.units, len(tallies.datums)
    if isinstance(sums, str) or units.weight is None:
        return sums
    at = units.datum_of()
    total, many = np.bincount(at, units.weight, minlength=n), np.bincount(at, minlength=n)
    return msgspec.structs.replace(sums, weight=total / np.maximum(many, 1))


def _losses_of(tallies: Tallies, settings: Settings, metrics: Sequence[Metric]) -> Losses | str:
    units = tallies.units
    if settings.multilabel or units.truth_start is not None:
        return _of_several(tallies, settings)
    if any("probabilities" in metric.needs for metric in metrics) and units.facts is not None:
        return _of_probabilities(tallies)
    return _LABELS_NEED if units.hard is None else _of_labels(tallies, settings)


def _of_several(tallies: Tallies, settings: Settings) -> Losses | str:
    """F1 of each datum's labels at the decision threshold."""
    scored, units, n = tallies.scored, tallies.units, len(tallies.datums)
    if scored is None:
        return "labels have no scores"
    limits = np.broadcast_to(
        decision_of(settings, tallies.labels, single=scored.single), len(tallies.labels)
    )
    rows = scored.score >= limits[scored.only if scored.label_codes is None else scored.label_codes]
    rows &= scored.outcome != STRAY
    unit = np.arange(rows.size) if scored.unit_codes is None else scored.unit_codes
    hits, predicted = (
        np.bincount(units.datum_of(unit[mask]), minlength=n)
        for mask in (rows & (scored.outcome == HIT), rows)
    )
    truths = np.bincount(units.datum_of(), units.n_truths, minlength=n).astype(np.int64)
    f1 = np.full(n, np.nan)
    np.divide(2 * hits, truths + predicted, out=f1, where=truths + predicted > 0)

    def why(codes: Array) -> list[str]:
        return [
            f"{truths[code] - hits[code]:,} of {count_of(int(truths[code]), 'label')} missed,"
            f" {predicted[code] - hits[code]:,} predicted that are wrong"
            for code in codes
        ]

    return Losses(
        metric="F1",
        made_with={"score_threshold": settings.decision_threshold},
        value=f1,
        higher=True,
        best=1.0,
        ties=lambda codes: [(truths + predicted - 2 * hits)[codes].astype(np.float64)],
        why=why,
    )


def _of_probabilities(tallies: Tallies) -> Losses:
    """Log loss, as the metric of that name has it."""
    units, scored = tallies.units, tallies.scored
    assert units.facts is not None
    assert scored is not None
    smallest = float(np.finfo(np.float32 if scored.single else np.float64).eps)
    true = np.nan_to_num(units.facts.true_score, nan=0.0)
    loss = -np.log(np.clip(true, smallest, 1 - smallest))
    loss[units.truth < 0] = np.nan
    value = _worst_of(units, loss, len(tallies.datums))

    def explain(unit: int) -> str:
        is_so = called(tallies.labels.frame, int(units.truth[unit]))
        hard = units.truth[unit] if units.hard is None else units.hard[unit]
        if hard in (-1, units.truth[unit]):
            return f"{is_so} has probability {true[unit]:.3g}"
        predicted = called(tallies.labels.frame, int(hard))
        return f"predicted {predicted}, is {is_so} (probability {true[unit]:.3g})"

    return Losses(
        metric="LogLoss",
        value=value,
        higher=False,
        best=0.0,
        ties=lambda codes: [],
        why=_by_unit(tallies, loss, value, explain),
    )


def _of_labels(tallies: Tallies, settings: Settings) -> Losses:
    """Return the score of the wrong label as loss; 0 or 1 if labels have no scores."""
    units, labels, n = tallies.units, tallies.labels, len(tallies.datums)
    hard = units.hard
    assert hard is not None
    judged = units.truth >= 0
    wrong = judged & (hard != units.truth)
    score = _scores(tallies, settings)

    def explain(unit: int) -> str:
        sure = "" if score is None or np.isnan(score[unit]) else f" ({score[unit]:.3g})"
        predicted = "no label" if hard[unit] < 0 else called(labels.frame, int(hard[unit])) + sure
        return f"predicted {predicted}, is {called(labels.frame, int(units.truth[unit]))}"

    if score is not None and not np.isnan(score[wrong]).all():
        loss = np.where(wrong, score, np.nan)
        value = _worst_of(units, loss, n)
        right_or_scored = judged & ~(wrong & np.isnan(score))
        return Losses(
            metric="Score of the wrong label",
            nothing=0.0,
            counted=np.bincount(units.datum_of(np.flatnonzero(right_or_scored)), minlength=n) > 0,
            value=value,
            higher=False,
            ties=lambda codes: [],
            why=_by_unit(tallies, loss, value, explain),
        )
    every, right = (
        np.bincount(units.datum_of(np.flatnonzero(rows)), minlength=n)
        for rows in (judged, judged & ~wrong)
    )
    share = np.full(n, np.nan)
    np.divide(right, every, out=share, where=every > 0)
    loss = np.where(judged, wrong.astype(np.float64), np.nan)
    return Losses(
        metric="Accuracy",
        value=share,
        higher=True,
        best=1.0,
        ties=lambda codes: [(every - right)[codes].astype(np.float64)],
        why=_by_unit(tallies, loss, _worst_of(units, loss, n), explain),
    )


def _scores(tallies: Tallies, settings: Settings) -> Array | None:
    """Return the score of each unit's predicted label, float64 [u]; None without scores.

    With one score per unit, the other label gets 1 minus the score. If scores are not
    probabilities, both are the distance to the decision threshold.
    """
    units, scored = tallies.units, tallies.scored
    if scored is None or not scored.ranked or scored.several or not units.decided:
        return units.hard_score
    score = np.empty(len(units))
    score[slice(None) if scored.unit_codes is None else scored.unit_codes] = scored.score
    positive = units.hard == scored.only
    if score.size and (score.min() < 0 or score.max() > 1):
        decided = decision_of(settings, tallies.labels, single=scored.single)
        limit = np.broadcast_to(decided, len(tallies.labels))[scored.only]
        return np.where(positive, score - limit, limit - score)
    return np.where(positive, score, 1 - score)


def _worst_of(units: Units, loss: Array, n: int) -> Array:
    """Return the highest loss over each datum's units, float64 [n]; NaN if undefined."""
    if units.datum is None:
        return loss
    out = np.full(n, np.nan)
    defined = ~np.isnan(loss)
    np.fmax.at(out, units.datum[defined], loss[defined])
    return out


def _by_unit(
    tallies: Tallies, loss: Array, worst: Array, sentence: Callable[[int], str]
) -> Callable[[Array], list[str]]:
    """Return a function that describes datums by the first of their units with the worst loss."""
    units, labels = tallies.units, tallies.labels

    def why(codes: Array) -> list[str]:
        if units.datum is None:
            return [sentence(code) for code in codes.tolist()]
        rows = np.flatnonzero(np.isin(units.datum, codes))
        rows = rows[loss[rows] == worst[units.datum[rows]]]
        at = dict(zip(units.datum[rows][::-1].tolist(), rows[::-1].tolist(), strict=True))
        sentences = []
        for code in codes.tolist():
            unit = at[code]
            key = ""
            if units.key is not None and len(labels.key_names) > 1:
                key = f"{labels.key_names[units.key[unit]]}: "
            sentences.append(key + sentence(unit))
        return sentences

    return why
