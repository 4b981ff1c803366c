"""Classification as a task: fit, views, explanations, and losses and contents of single datums."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ...dialects import Dialect
from ...ingest.frames import Frames
from ...ingest.problems import Note, count_of, listing
from ...kernels.labels import HIT, STRAY
from ...metrics.registry import Metric
from ...schemas.arrays import Array
from ...schemas.errors import InputError
from ...schemas.wording import option
from ...tallies.merging import (
    merge_datums,
    merge_labels,
    merge_places,
    merge_scored,
    merge_units,
    merged_seconds,
    one_precision,
)
from ...tallies.scored_view import ScoredDraws
from ...tallies.sorted_scores import ScoredRows
from ...tallies.stored import FRAME_DATA, Place, parts_of, things_of_part
from ...tallies.tables import combined
from ...tallies.units import Scored, Units
from ..contents import LABELS, Content, Contents, Labelled, LabelScore, called
from ..counted import HUNDREDTHS
from ..task import Cuts, InParts, LateNotes, Losses, PageFrame, Ranking, Sample, Task
from .dialects import Settings
from .encode import unclear
from .frames import cells_per_group, one_draw, own_frames, view
from .metrics.counts import FAIRNESS
from .metrics.scores import curve_of, drawn_curves
from .tallies import Tallies, by_rank, by_value, decision_of, merged_notes, tally, truth, weights

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


# Tiny tables that make every kernel of classification run once.


def samples() -> Iterator[Sample]:
    """Predictions, ground truths and options: two tables and one, with weights and without."""
    every = {"metrics": metrics.names("classification"), "by": "slice"}
    truth = pl.DataFrame({"datum_id": [1, 2], "label_value": ["a", "b"], "slice": ["x", "y"]})
    predicted = pl.DataFrame(
        {"datum_id": [1, 1, 2, 2], "label_value": ["a", "b"] * 2, "score": [0.9, 0.1, 0.6, 0.4]}
    )
    yield predicted, truth, every
    yield predicted, truth.with_columns(weight=pl.Series([1.0, 2.0])), every
    table = pl.DataFrame({"actual": [0, 1, 1], "score": [0.2, 0.7, 0.4], "slice": ["x", "x", "y"]})
    yield table, None, every
    yield table, None, {"metrics": ["ROCAUC", "AP"], "intervals": 0.95, "draws": 20}


# Merging classification tallies of disjoint sets of datums.


def merge(parts: Sequence[Tallies], settings: Settings) -> Tallies:
    """Merge tallies.

    Args:
        parts: tallies of disjoint sets of datums, in the order of their rows.

    Raises:
        InputError: parts are incompatible.
    """
    datums, of_datum = merge_datums([part.datums for part in parts])
    labels, of_label = merge_labels([part.labels for part in parts])
    scored = [part.scored for part in parts]
    units, of_unit = merge_units(
        [part.units for part in parts],
        of_datum,
        of_label,
        labels,
        [part.labels.key_names for part in parts],
        scored,
    )
    first = parts[0]
    return Tallies(
        datums,
        labels,
        merge_places(
            [(part.declared, part.labels) for part in parts], of_label, labels, keyed=first.keyed
        ),
        units,
        merge_scored(scored, of_unit, of_label, len(labels)),
        merged_seconds(parts),
        max((part.beside for part in parts), key=len),
        keyed=first.keyed,
        details=first.details,
        confusion_examples=first.confusion_examples,
    )


def without_scores(scored: Scored) -> Scored:
    """Return scored labels without rows."""
    none = np.zeros(0, np.int32)
    return msgspec.structs.replace(
        scored,
        parts=(),
        outcome=np.zeros(0, np.uint8),
        label=none if scored.several else None,
        unit=None if scored.unit_codes is None else none,
        grid=None,
    )


def merge_heads(parts: Sequence[Scored | None], rows: Sequence[int]) -> Scored | None:
    """Merge scored labels without their rows.

    Args:
        parts: without their rows.
        rows: number of rows of each part.

    Raises:
        InputError: parts were scored differently.
    """
    present = [(part, n) for part, n in zip(parts, rows, strict=True) if part is not None]
    if not present:
        return None
    filled = [part for part, n in present if n] or [present[0][0]]
    if len({(part.several, part.only, part.ranked) for part in filled}) > 1:
        raise InputError(
            "score columns were read differently in the partitions: as one label and as several,"
            " or as different labels. Name all labels with labels=, and positive_label= if there"
            " is one."
        )
    single = one_precision([(part.single, n) for part, n in present])
    labels = np.any([part.labels for part in filled], axis=0)
    return msgspec.structs.replace(filled[0], single=single, labels=labels)


# Classification tallies in parts: data written to each part's file, and data kept in memory.


class Bytes(NamedTuple):
    """Bytes on disk of a unit and of a scored label."""

    unit: int
    score: int


def bytes_on_disk(
    metrics: Sequence[Metric],
    settings: Settings,
    needs: frozenset[str],
    heads: Mapping[str, pl.DataFrame],
    n_slices: int,
) -> Bytes:
    """Return the maximum bytes of a unit and of a score on disk, in addition to their columns."""
    weight = _WEIGHT * any("weight" in head.columns for head in heads.values())
    runs = (1 + n_slices) * (1 + (settings.average == "micro"))
    score = _SCORE + runs * 2 * (_RUN + weight)
    unit = _UNIT + _COLUMN * n_slices + weight
    unit += _FACTS * bool(needs & {"probabilities", "ranks"})
    framed = _has_datum_frames(metrics, settings)
    return Bytes(unit + _FRAME_UNIT * framed, score + _FRAME_SCORE * framed)


_UNIT, _SCORE, _COLUMN, _WEIGHT, _FACTS = 28, 26, 4, 8, 20
_RUN = 8  # of a part's run, and of that of all parts
_FRAME_UNIT, _FRAME_SCORE = 60, 30  # in frames of single datums, in addition to ids


def _has_datum_frames(metrics: Sequence[Metric], settings: Settings) -> bool:
    """Return True if frames show single datums: outcomes, sequences, and examples of cells."""
    examples = settings.examples_given and any("confusion" in metric.needs for metric in metrics)
    return examples or any(metric.frame in _OF_DATUMS for metric in metrics)


_OF_DATUMS = ("examples", "label_errors", "outcomes", "per_datum")


def part_things(tallies: Tallies, settings: Settings, metrics: Sequence[Metric]) -> dict[str, Any]:
    """Return the file entries of one part's tally, by name."""
    units, scored = tallies.units, tallies.scored
    without_rows = msgspec.structs.replace(
        tallies,
        units=_without_rows(units),
        scored=None if scored is None else without_scores(scored),
    )
    scores = 0 if scored is None else len(scored)
    entries = things_of_part(
        tallies, without_rows, ScoredRows.narrowed(units, scored), scores=scores
    )
    if _has_datum_frames(metrics, settings) or tallies.beside:
        scores = tallies.details or any(metric.frame == "label_errors" for metric in metrics)
        # Sequences are scored one by one, and single datums are assessed: both need the whole part.
        complete = tallies.beside or any(metric.frame == "per_datum" for metric in metrics)
        entries[FRAME_DATA] = (
            tallies
            if complete
            else msgspec.structs.replace(
                tallies,
                units=msgspec.structs.replace(tallies.units, facts=None, weight=None),
                scored=tallies.scored if scores else None,
            )
        )
    return entries


def judged(tallies: Tallies, settings: Settings) -> Tallies:
    """Return an in-memory tally for assessing single datums, without scores if they do not matter.

    Args:
        tallies: of a run, in memory or on disk.
    """
    if tallies.parts is None:
        return tallies
    scored = tallies.scored
    single = scored is None or not scored.several or settings.multilabel
    if single or tallies.units.truth_start is not None:
        return merge([*tallies.parts.frame_data()], settings)
    few = (msgspec.structs.replace(part, scored=None) for part in tallies.parts.frame_data())
    return msgspec.structs.replace(merge([*few], settings), scored=scored)


def _without_rows(units: Units) -> Units:
    empty: Units = combined([units], lambda own: own[0][:0])
    if units.truth_start is None:
        return empty
    return msgspec.structs.replace(empty, truth_start=np.zeros(1, np.int64))


def of_parts(files: Sequence[str], place: Place, settings: Settings) -> Tallies:
    """Return the tally whose parts are on disk.

    Raises:
        InputError: parts are incompatible.
    """
    heads, parts, datums = parts_of(files, place)
    bare: list[Tallies] = [head.bare for head in heads]
    labels, codes = merge_labels([one.labels for one in bare])
    if any(code.size != len(labels) for code in codes):
        raise InputError("partitions know different labels: declare all of them with labels=.")
    places = [(one.declared, one.labels) for one in bare]
    return msgspec.structs.replace(
        bare[0],
        datums=datums,
        labels=labels,
        declared=merge_places(places, codes, labels, keyed=bare[0].keyed),
        scored=merge_heads([one.scored for one in bare], [head.scores for head in heads]),
        seconds=merged_seconds(bare),
        beside=max((one.beside for one in bare), key=len),
        parts=parts,
    )


# Data of the report: counts by score threshold, bins of confidence, confusions.

_SAMPLE = 200_000
_EVEN = np.linspace(0.0, 1.0, 49)
_TAIL = 1.0 - np.logspace(-0.5, -5.0, 46)


def _thresholds(tallies: Tallies) -> dict[str, Any]:
    """Return score thresholds: hundredths, and quantiles of the scores, denser at the top.

    Quantiles keep curves smooth for any distribution. They come from a sample of scores, which only
    affects the choice of thresholds.
    """
    scores = _some_scores(tallies)
    chosen = (
        np.unique(np.quantile(scores, np.r_[_EVEN, _TAIL], method="lower"))
        if scores.size
        else scores
    )
    return {"score_thresholds": tuple(np.unique(np.r_[HUNDREDTHS, chosen]).tolist())}


def _some_scores(tallies: Tallies) -> np.ndarray[Any, Any]:
    scored = tallies.scored
    if tallies.parts is not None:  # of datums by hash: any part is a sample
        scored = next(iter(tallies.parts)).rows.wide
    if scored is None or not scored.parts:
        return np.zeros(0)
    scores = scored.score
    some = np.asarray(scores[:: max(1, scores.size // _SAMPLE)], np.float64)
    return some[np.isfinite(some)]


PAGE = (
    PageFrame(name="thresholds", metrics=("PrecisionRecallCurve",), options=_thresholds),
    PageFrame(name="confusion", metrics=("ConfusionMatrix",)),
    PageFrame(name="reliability", metrics=("Reliability",), tallied=False),
)


# The metrics that the tables at hand can carry: those that need scores need a column of them.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, requested: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics that can be computed, and notes on the others.

    Args:
        requested: the user named the metrics; then each omission is reported.

    Raises:
        InputError: named metrics need scores, and there are none.
    """
    side = frames.predictions if frames.table is None else frames.table
    if (
        frames.table is not None
        and settings.positive_label is None
        and "score" in side.columns
        and "predicted" not in side.columns
        and side.schema["actual"] == pl.String
        and side.height
    ):  # known from the first rows, so that plans of parts refuse it, too
        raise unclear(side["actual"].unique().sort())
    if frames.score_labels is not None or "score" in side.columns:
        return metrics, []
    needy = [metric.name for metric in metrics if "scores" in metric.needs]
    if not needy:
        return metrics, []
    names = listing(needy)
    if requested:
        raise InputError(
            f"{names}: no column 'score', which {'it needs' if len(needy) == 1 else 'they need'}."
            f" A column with another name is given by {option('columns', {'mine': 'score'})}, one"
            f" column per label by {option('score_columns')}; or remove these metrics."
        )
    note = Note("no_scores", f"no column 'score': skipped {names}.", len(needy))
    return tuple(metric for metric in metrics if metric.name not in needy), [note]


# The plan of a classification run in words.

_STEPS = {
    "hard": "hard predictions (argmax, or the predicted column) against truths",
    "scores": "scored labels against truths, sorted once per label",
    "probabilities": "log loss, Brier and calibration sums per datum",
    "ranks": "rank of the true label per datum",
}


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    lines = [f"match     {step}" for need, step in _STEPS.items() if need in needs]
    lines.append(
        f"tally     {len(settings.score_thresholds)} score thresholds,"
        f" {'several labels' if settings.multilabel else 'one label'} a datum and key"
    )
    return lines


TASK = Task(
    name="classification",
    settings=Settings,
    fit=fit,
    tally=tally,
    merge=merge,
    fairness=FAIRNESS,
    view=view,
    cells_per_group=cells_per_group,
    own_frames=own_frames,
    explain=explain,
    samples=samples,
    losses=losses,
    contents=Contents(of_tally=contents),
    no_limits="equal scores share a threshold and count half in areas, so their order only decides"
    " which of a datum's equal top labels is predicted: that of the first row",
    drawn=ScoredDraws,
    one_draw=one_draw,
    plain_growth=3.5,
    curve=curve_of,
    drawn_curves=drawn_curves,
    truth=truth,
    weights=weights,
    warm=("scores", "parts", "fits"),
    late_notes=LateNotes(
        (
            "zero_weights",
            "scores_of_predicted",
            "cut_logits",
            "cut_offs_of_all_labels",
            "threshold_beyond_scores",
        ),
        merged_notes,
    ),
    in_parts=InParts(part_things, of_parts, bytes_on_disk, judged=judged),
    ranking=Ranking(by_rank, by_value),
    page=PAGE,
)
