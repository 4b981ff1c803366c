"""Views of detection, and its confusion matrix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from ...kernels.matching import confusion_cells
from ...schemas.arrays import Array
from ...schemas.results import empty_frame, frame_schema
from ...tallies.ranked import BITS, Interpolation, RankedAside, counted
from ...tallies.ranked_view import RankedView
from ..encoding import Workers
from .detailed import examples_frame
from .dialects import FOUND, POINTS
from .errors import beside, errors_frame, label_errors_frame
from .overlaps import label_of
from .settings import Settings
from .tallies import Tallies, variants

# Confusion matrix: true positives on the diagonal, leftovers matched across labels, rest null.


def confusion_frame(
    view: RankedView, settings: Settings, slice_name: str | None, group_names: list[str]
) -> pl.DataFrame:
    """Build the ``confusion`` frame of one view.

    Args:
        view: ranked view with confusion pairs.
        slice_name: the slice column, None for the whole set.
        group_names: names of the view's groups.
    """
    labels, crossed = view.labels, counted(view.crossed)
    if crossed is None or len(labels) == 0 or view.n_groups == 0:
        return empty_frame("confusion", label=labels.dtype)
    at = [view.tally.variants.threshold_index(iou) for iou in settings.spot_ious]
    tp, fp = (counts[:, :, 0, at] for counts in view.counts(settings.score_thresholds))
    n = crossed.datum.size
    end, (actual, predicted, iou, score, count) = confusion_cells(
        (crossed.actual, crossed.predicted, crossed.threshold, crossed.scores),
        np.zeros(n, np.int32) if view.group is None else view.group[crossed.datum],
        np.ones(n, np.int64) if view.weights is None else view.weights[crossed.datum],
        np.array([settings.in_user_unit(iou) for iou in settings.spot_ious]),
        np.asarray(settings.score_thresholds),
        (tp, fp, view.positives[:, :, 0, None, None] - tp),
    )
    blank = pl.Series([None], dtype=labels.dtype)
    values = pl.concat([labels.frame["label_value"], blank.alias("label_value")])
    group = np.repeat(np.arange(end.size, dtype=np.uint32), np.diff(end, prepend=0))
    columns = {
        "actual": values.gather(pl.Series(actual)),
        "predicted": values.gather(pl.Series(predicted)),
        "iou_threshold": iou,
        "score_threshold": score,
        "slice_value": pl.Series(group_names or [None], dtype=pl.String).gather(pl.Series(group)),
        "count": count,
    }
    constants: dict[str, str | None] = {"slice": slice_name}
    if len(labels.key_names) == 1:
        constants["label_key"] = labels.key_names[0]
    else:  # the key of whichever label is none past the last
        labelled = np.where(actual == len(labels), predicted, actual)
        columns["label_key"] = labels.frame["label_key"].gather(pl.Series(labelled))
    return pl.DataFrame(columns).select(
        pl.lit(constants[name], dtype=dtype).alias(name)
        if name in constants
        else pl.col(name).cast(dtype)
        for name, dtype in frame_schema("confusion", label=labels.dtype).items()
    )


# Views of a detection tally, and the frames that are not made of cells.

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
    rules = settings.rules
    how = Interpolation(
        np.asarray(rules.levels),
        rules.every_point,
        rules.integer_grid,
        rules.epsilon,
        rules.linear,
        rules.positions,
    )
    over: dict[str, Any] = {} if threads is None else {"over": threads.over}
    return RankedView(
        tallies.ranked,
        tallies.labels,
        interpolation=how,
        caps=np.array(settings.max_detections or (_NO_CAP,), np.int64),
        crossed=tallies.crossed,
        tallies=beside(tallies.errors, rules, how)
        | ({} if tallies.points is None else {POINTS: RankedAside(tallies.points.ranked, how)})
        | ({} if tallies.found is None else {FOUND: RankedAside(tallies.found, how)}),
        group=group,
        n_groups=n_groups,
        weights=weights,
        **over,
    )


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
            settings.in_user_unit(settings.pr_curve_iou_threshold),
            settings.score_thresholds,
        )
    if frame == "confusion" and tallies.crossed is not None:
        return pl.concat(
            each_view(lambda column, names, v: confusion_frame(v, settings, column, names))
        )
    return empty_frame(frame, label=tallies.labels.dtype, datum=tallies.datums.id_dtype)


def outcome_bytes(settings: Settings, needs: frozenset[str]) -> tuple[int, int]:
    """Return the bytes of a row's words of outcomes beyond the first; in memory also of its takers.

    A word has two bits of 64 variants. A run in memory matches again on demand, and then records
    the prediction that took each ground truth at every threshold.
    """
    matched = variants(settings, needs)
    words = 16 * (len(matched.words) - 1)
    return words, words + 4 * max(0, len(matched.thresholds) - BITS)


def cells_per_group(n_labels: int, settings: Settings, needs: frozenset[str]) -> int:
    """Return the sampled precisions per group of datums, which limits the groups in memory."""
    matched = variants(settings, needs)
    n_levels = len(settings.rules.levels)
    return n_labels * len(matched.areas) * len(matched.thresholds) * n_levels


def cells_by_datum(tallies: Tallies, settings: Settings, needs: frozenset[str]) -> Array:
    """Return :func:`cells_per_group` of each datum as a group, int64 [n_datums].

    Precisions are stored only for labels with ground truth, unless they are read from a curve;
    numbers of true positives, one for each cap, for all labels.
    """
    n_labels, n_levels = len(tallies.labels), len(settings.rules.levels)
    every = cells_per_group(n_labels, settings, needs)
    if settings.rules.linear is not None or settings.rules.positions is not None:
        return np.full(len(tallies.datums), every)
    ranked = tallies.ranked
    pair = np.unique(ranked.gt_datum * np.int64(n_labels) + label_of(ranked.gt_start))
    stored = np.bincount(pair // max(1, n_labels), minlength=len(tallies.datums))
    dense = every // n_levels * max(1, len(settings.max_detections))
    return stored * cells_per_group(1, settings, needs) + dense
