"""Views of a detection tally, and the frames that are not made of cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from ...schemas.arrays import Array
from ...schemas.results import empty_frame
from ...tally.draws import Draws
from ...tally.interpolation import Beside, Interpolation
from ...tally.ranked_draws import RankedDraws
from ...tally.ranked_groups import GroupedView, RankedGroups
from ...tally.ranked_view import RankedView
from ..workers import Workers
from .confusion import confusion_frame
from .errors import beside, errors_frame
from .examples import examples_frame
from .found_errors import FOUND
from .label_errors import label_errors_frame
from .point_marks import POINTS
from .settings import Settings
from .tallies import Tallies

_NO_CAP = int(np.iinfo(np.int32).max)


def view(
    tallies: Tallies,
    settings: Settings,
    group: Array | None = None,
    n_groups: int = 1,
    weights: Array | None = None,
    threads: Workers | None = None,
) -> RankedView:
    """Return the tally by groups of datums.

    Args:
        group: int32 [n_datums], -1 for none; None for a single group.
        weights: int64 [n_datums], multiplicity of each datum, or None.
        threads: used for the view's kernels; serial if None.
    """
    ranked: Any = tallies.ranked
    rules = settings.rules
    how = Interpolation(
        np.asarray(rules.levels),
        rules.every_point,
        rules.integer_grid,
        rules.epsilon,
        rules.linear,
        rules.positions,
    )
    kind: Any = GroupedView if isinstance(ranked, RankedGroups) else RankedView
    made: RankedView = kind(
        ranked,
        tallies.labels,
        interpolation=how,
        caps=np.array(settings.max_detections or (_NO_CAP,), np.int64),
        crossed=tallies.crossed,
        tallies=beside(tallies.errors, rules, how)
        | ({} if tallies.points is None else {POINTS: Beside(tallies.points.ranked, how)})
        | ({} if tallies.found is None else {FOUND: Beside(tallies.found, how)}),
        group=group,
        n_groups=n_groups,
        weights=weights,
        **({} if threads is None else {"over": threads.over}),
    )
    return made


def drawn(view: RankedView, draws: Draws) -> GroupedView | RankedDraws:
    """Return the view of a block of resamples."""
    return view.drawn(draws) if isinstance(view, GroupedView) else RankedDraws(view, draws)


def one_draw(of: RankedView, weights: Array) -> RankedView:
    """Return the view of one resample, which shares the rows used for points.

    Args:
        weights: int64 [n_datums], multiplicity of each datum.
    """
    return of.weighing(weights)


def own_frames(
    frame: str,
    tallies: Tallies,
    settings: Settings,
    each_view: Callable[[Callable[..., pl.DataFrame]], list[pl.DataFrame]],
    *,
    cuts: Mapping[str, set[int | None]],
) -> pl.DataFrame:
    """See :class:`..task.OwnFrames`: examples, confusion, outcomes, errors or label errors."""
    if frame == "outcomes" and tallies.outcomes is not None:
        return tallies.outcomes
    if frame == "errors":
        return errors_frame(tallies.errors, tallies.labels.dtype, tallies.datums.id_dtype)
    if frame == "label_errors":
        ours = tallies.label_errors
        return label_errors_frame(ours, tallies.labels.dtype, tallies.datums.id_dtype)
    if frame == "examples" and tallies.examples is not None:
        return examples_frame(
            tallies.examples,
            tallies.datums,
            tallies.labels,
            settings.told(settings.pr_curve_iou_threshold),
            settings.score_thresholds,
        )
    if frame == "confusion" and tallies.crossed is not None:
        return pl.concat(
            each_view(lambda column, names, v: confusion_frame(v, settings, column, names))
        )
    return empty_frame(frame, label=tallies.labels.dtype, datum=tallies.datums.id_dtype)


def cells_per_group(tallies: Tallies, settings: Settings) -> int:
    """Return the sampled precisions per group of datums, which limits the groups in memory."""
    variants = tallies.ranked.variants
    n_levels = len(settings.rules.levels)
    return len(tallies.labels) * len(variants.areas) * len(variants.thresholds) * n_levels
