"""Metrics of optimal score thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from ....metrics.averages import UNREACHED, by_key, label_cells, scored_rows
from ....metrics.registry import Metric
from ....metrics.thresholds import NOTHING, RULES, Curve, Rule, best_of
from ....schemas.arrays import Array
from ....schemas.errors import ResultError
from ....schemas.option_values import in_name
from ....schemas.wording import option
from ....tally.cells import Cells
from ....tally.draws import Draws
from ....tally.scored_parts import PartsDraws, PartsView
from ....tally.scored_view import ScoredView
from .parts import metric

if TYPE_CHECKING:
    from ..settings import Settings


_NO_TRUTH = "no ground truth of the label"
_NO_SCORE = "no score of the label on a datum with ground truth"
_NO_NEGATIVE = "no negative datum of the label"
_NO_RATE = {"recall": _NO_TRUTH, "fpr": _NO_NEGATIVE}
"""Why a rate is undefined at a threshold that was chosen: it is one over no datum at all."""
_LACKING = {"positives": _NO_TRUTH, "negatives": _NO_NEGATIVE}


def curve_of(view: ScoredView, settings: Settings, *, pooled: bool = False) -> Curve:
    """The points of every (group, label), or of all labels of a key as one."""
    if not view.has_scores:
        raise ResultError(
            f"the run keeps no scores: score it with {option('metrics', 'ROCAUC')}.",
            code="not_kept",
        )
    of = view.pooled if pooled else view

    def shown() -> Array:
        here = scored_rows(view)
        return (by_key(view, here) > 1 if pooled else here).ravel()

    return Curve(
        of.point_blocks,
        of.positives.ravel(),
        of.negatives.ravel(),
        shown,
        exclusive=not settings.multilabel,
    )


def drawn_curves(
    view: PartsView, settings: Settings, draws: Draws
) -> Iterator[tuple[Curve, Curve]] | None:
    """Yield the curves of each resample of a block, per label and per key pooled, from files.

    None if rows have weights, which are not stored with the keys.
    """
    if view.units.weight is not None:
        return None
    block = PartsDraws(view, draws)
    sides = (block.positives, block.negatives), block.classes_of_keys
    levels = [[one.reshape(len(draws), -1) for one in both] for both in sides]
    views = view, view.pooled
    whole = [curve_of(view, settings, pooled=pooled) for pooled in (False, True)]

    def curve(d: int, level: int) -> Curve:
        of = views[level]
        assert isinstance(of, PartsView)
        return msgspec.structs.replace(
            whole[level],
            blocks=partial(of.drawn_points, draws, d),
            positives=levels[level][0][d],
            negatives=levels[level][1][d],
        )

    return ((curve(d, 0), curve(d, 1)) for d in range(len(draws)))


def _unchosen(view: ScoredView, unscored: Array, lacking: str) -> Array:
    """Why no threshold of a label was chosen, [group, label]; objects, as fixed widths are slow."""
    missing = {"positives": view.positives <= 0, "negatives": view.negatives <= 0}
    why = np.full(view.shape, UNREACHED, dtype=object)
    if lacking:
        why[missing[lacking]] = _LACKING[lacking]
    why[unscored.reshape(view.shape)] = _NO_SCORE
    return why


def _best(view: ScoredView, settings: Settings, rule: Rule) -> list[Cells]:
    """Compute the threshold that a rule chooses for every label, and its rates."""
    curve = curve_of(view, settings)
    best, at, told = best_of(curve, rule, settings.aims)
    chosen = ~np.isnan(best.threshold).reshape(view.shape)
    why = _unchosen(view, best.unscored, rule.lacking)
    keep = curve.shown().reshape(view.shape)
    named = {"threshold": best.threshold, "precision": at.precision, "recall": at.recall,
             "fpr": at.fpr, f"f{in_name(settings.beta)}": at.f}  # fmt: skip
    cells = []
    for statistic, value in named.items():
        reason = why.copy()
        reason[chosen] = _NO_RATE.get(statistic, "no weight at the threshold")
        if rule.nothing and statistic not in _NO_RATE:
            reason[chosen & (best.tp + best.fp == 0).reshape(view.shape)] = NOTHING
        cells.append(
            label_cells(
                view,
                value.reshape(view.shape),
                keep,
                reason,
                view.positives,
                statistic=statistic,
                parameters=told,
            )
        )
    return cells


def _threshold_metric(rule: Rule) -> Metric:
    """A metric of a chosen threshold."""
    return metric(
        rule.metric,
        rule.definition,
        rule.source,
        partial(_best, rule=rule),
        params=(*rule.params, "beta"),
        range=(-np.inf, np.inf),
        better="neither",
        needs=("scores",),
        formula=rule.formula,
    )


METRICS = tuple(map(_threshold_metric, RULES))
