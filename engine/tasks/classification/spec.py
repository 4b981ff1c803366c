"""Classification: labels are encoded, matched and tallied here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ...ingest.frames import Frames
from ...ingest.problems import Note, listing
from ...metrics.registry import Metric
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
from ...tallies.score_runs import ScoredRows
from ...tallies.scored_view import ScoredDraws
from ...tallies.stored import SHOWN, Place, parts_of, things_of_part
from ...tallies.tables import combined
from ...tallies.units import Scored, Units
from ..contents import Contents
from ..counted import HUNDREDTHS
from ..task import InParts, LateNotes, PageFrame, Ranking, Sample, Task
from .dialects import Settings
from .encode import unclear
from .frames import cells_per_group, one_draw, own_frames, view
from .losses import contents, losses
from .metrics.counts import FAIRNESS
from .metrics.scores import curve_of, drawn_curves
from .tallies import Tallies, by_rank, by_value, merged_notes, tally, truth, weights

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
    shown = np.any([part.labels for part in filled], axis=0)
    return msgspec.structs.replace(filled[0], single=single, labels=shown)


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
    shown = _shows_datums(metrics, settings)
    return Bytes(unit + _SHOWN_UNIT * shown, score + _SHOWN_SCORE * shown)


_UNIT, _SCORE, _COLUMN, _WEIGHT, _FACTS = 28, 26, 4, 8, 20
_RUN = 8  # of a part's run, and of that of all parts
_SHOWN_UNIT, _SHOWN_SCORE = 60, 30  # in frames of single datums, in addition to ids


def _shows_datums(metrics: Sequence[Metric], settings: Settings) -> bool:
    """Return True if frames show single datums: outcomes, sequences, and examples of cells."""
    examples = settings.examples_given and any("confusion" in metric.needs for metric in metrics)
    return examples or any(metric.frame in _OF_DATUMS for metric in metrics)


_OF_DATUMS = ("examples", "label_errors", "outcomes", "per_datum")


def part_things(tallies: Tallies, settings: Settings, metrics: Sequence[Metric]) -> dict[str, Any]:
    """Return the file entries of one part's tally, by name."""
    units, scored = tallies.units, tallies.scored
    bare = msgspec.structs.replace(
        tallies,
        units=_without_rows(units),
        scored=None if scored is None else without_scores(scored),
    )
    scores = 0 if scored is None else len(scored)
    entries = things_of_part(tallies, bare, ScoredRows.narrowed(units, scored), scores=scores)
    if _shows_datums(metrics, settings) or tallies.beside:
        scores = tallies.details or any(metric.frame == "label_errors" for metric in metrics)
        # Sequences are scored one by one, and single datums are assessed: both need the whole part.
        complete = tallies.beside or any(metric.frame == "per_datum" for metric in metrics)
        entries[SHOWN] = (
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
    bare = tallies.scored
    single = bare is None or not bare.several or settings.multilabel
    if single or tallies.units.truth_start is not None:
        return merge([*tallies.parts.shown()], settings)
    few = (msgspec.structs.replace(part, scored=None) for part in tallies.parts.shown())
    return msgspec.structs.replace(merge([*few], settings), scored=bare)


def _without_rows(units: Units) -> Units:
    bare: Units = combined([units], lambda own: own[0][:0])
    if units.truth_start is None:
        return bare
    return msgspec.structs.replace(bare, truth_start=np.zeros(1, np.int64))


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
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the metrics that can be computed, and notes on the others.

    Args:
        asked_for: the user named the metrics; then each omission is reported.

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
    if asked_for:
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
    curve=curve_of,
    drawn_curves=drawn_curves,
    truth=truth,
    weights=weights,
    warm=("scores", "parts", "fits"),
    late_notes=LateNotes(("zero_weights", "scores_of_predicted"), merged_notes),
    in_parts=InParts(part_things, of_parts, bytes_on_disk, judged=judged),
    ranking=Ranking(by_rank, by_value),
    page=PAGE,
)
