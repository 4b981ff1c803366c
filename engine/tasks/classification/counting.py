"""Counting in bounded memory: of a bucket's units and scored labels whole numbers are kept.

Accuracy, precision, recall, ROC areas and counts at thresholds without weights are made of sums of
ones, which come out alike in whatever order. What else is computed needs rows of single datums.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...metrics.registry import Metric
from ...schemas.errors import InputError
from ...tally.counted_view import Counted, UnitSums, add_units, sum_units
from ...tally.datums import Datums
from ...tally.merging import merge_labels, merged_seconds, one_precision
from ...tally.merging_units import merge_places
from ...tally.score_counts import (
    Kind,
    Run,
    ScoreSums,
    SlabSums,
    add_scores,
    count_scores,
    no_scores,
)
from ...tally.scored_view import ScoredView
from ...tally.units import Scored, Units
from ..workers import Workers
from .merging import without_scores
from .settings import Settings
from .tallies import Tallies

Array = np.ndarray[Any, Any]

_ROWS = ("weight", "dataset")  # columns of which single datums are known in the end
_POOLED = ("micro", "samples")


def counts_suffice(
    metrics: Sequence[Metric],
    settings: Settings,
    heads: Mapping[str, pl.DataFrame],
    by: Sequence[Any],
) -> bool:
    """Whether all that is asked for is made of counts.

    Args:
        metrics: those of the run.
        settings: the run's settings.
        heads: the first rows of every table.
        by: columns of slices.
    """
    columns = {name: dtype for head in heads.values() for name, dtype in head.schema.items()}
    return (
        all(metric.by_counts for metric in metrics)
        and not settings.multilabel
        and settings.average not in _POOLED
        and not by
        and not any(name in columns for name in _ROWS)
        and not any(dtype.is_nested() for dtype in columns.values())  # sequences of labels
    )


def count(
    tallies: Tallies, settings: Settings, threads: Workers
) -> tuple[Tallies, UnitSums, ScoreSums | None, dict[Kind, Run]]:
    """A tally without its rows, what is counted of them, and scores of which pairs are to be.

    Args:
        tallies: of one bucket, used up here.
        settings: the run's settings.
        threads: where scores are sorted.
    """
    labels, scored = tallies.labels, tallies.scored
    view = ScoredView(
        tallies.units,
        scored,
        labels,
        decision=settings.decision_threshold,
        over=threads.over,
    )
    units = sum_units(view, len(tallies.datums))
    scores: ScoreSums | None = None
    runs: dict[Kind, Run] = {}
    if scored is not None and scored.ranked:
        thresholds = thresholds_of(settings, single=scored.single)
        scores, runs = count_scores(view.sorted, view.slots, len(labels), thresholds)
    none = np.zeros(0, np.int32)
    hard = tallies.units.hard
    bare = msgspec.structs.replace(
        tallies,
        datums=Datums(None, pl.DataFrame()),
        units=Units(None, None, none, None, None if hard is None else none, None, None),
        scored=None if scored is None else without_scores(scored),
    )
    return bare, units, scores, runs


def thresholds_of(settings: Settings, *, single: bool) -> Array:
    """Thresholds at which scores are counted, float64 [t], ascending.

    Args:
        settings: the run's settings.
        single: whether scores came in single precision.
    """
    from ...tally.precision import comparable

    wanted = (*settings.score_thresholds, settings.decision_threshold)
    return np.unique([comparable(threshold, single=single) for threshold in wanted])


def merge_counted(
    parts: Sequence[Tallies],
    units: Sequence[UnitSums],
    scores: Sequence[ScoreSums | None],
    slabs: Sequence[SlabSums],
    settings: Settings,
) -> Tallies:
    """The tally of all parts.

    Args:
        parts: tallies of disjoint sets of datums, without their rows.
        units: what was counted of their units.
        scores: what was counted of the scored labels of each part; None where it has none.
        slabs: pairs of the scored labels of all parts, in the order of slabs.
        settings: the run's settings.

    Raises:
        InputError: parts that do not go together.
    """
    labels, codes = merge_labels([part.labels for part in parts])
    if any(code.size != len(labels) for code in codes):
        raise InputError("partitions know different labels: declare all of them with labels=.")
    rows = [0 if one is None else int(one.rows.sum()) for one in scores]
    scored = merge_heads([part.scored for part in parts], rows)
    single = scored is not None and scored.single
    thresholds = thresholds_of(settings, single=single)
    # Parts without rows may be of another precision: their thresholds are others, their sums 0.
    filled = [one for one, n in zip(scores, rows, strict=True) if one is not None and n]
    none = no_scores(len(labels), thresholds)
    sums = None if scored is None else add_scores([none, *filled], slabs)
    counted = Counted(add_units(units), sums, thresholds)
    places = [(part.declared, part.labels) for part in parts]
    first = next((part for part, n in zip(parts, units, strict=True) if n.datums), parts[0])
    return msgspec.structs.replace(
        first,
        datums=Datums(None, pl.DataFrame(), None, counted.units.datums),
        labels=labels,
        declared=merge_places(places, codes, labels, keyed=parts[0].keyed),
        scored=scored,
        seconds=merged_seconds(parts),
        counted=counted,
    )


def merge_heads(parts: Sequence[Scored | None], rows: Sequence[int]) -> Scored | None:
    """Scored labels of all parts, without their rows.

    Args:
        parts: those of each part, without their rows.
        rows: how many rows each had.

    Raises:
        InputError: parts that were scored differently.
    """
    found = [(part, n) for part, n in zip(parts, rows, strict=True) if part is not None]
    if not found:
        return None
    filled = [part for part, n in found if n] or [found[0][0]]
    if len({(part.several, part.only, part.ranked) for part in filled}) > 1:
        raise InputError(
            "score columns were read differently in the partitions: as that of one label and as"
            " those of several, or of different labels. Name all labels with labels=, and"
            " positive_label= where there is one."
        )
    single = one_precision([(part.single, n) for part, n in found])
    shown = np.any([part.labels for part in filled], axis=0)
    return msgspec.structs.replace(filled[0], single=single, labels=shown)
