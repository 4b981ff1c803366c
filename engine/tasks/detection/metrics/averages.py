"""Average precision and average recall, per label and per label key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import polars as pl

from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....tallies.datums import Cells, parameters
from ....tallies.ranked_view import RankedView

if TYPE_CHECKING:
    from ..settings import Settings

# Labels that enter a mean, and means over them.


def present(view: RankedView) -> Array:
    """Labels with a prediction or a ground truth, bool [group, label]."""
    predictions, truths, _ = view.sizes
    return np.asarray(predictions + truths) > 0


def present_keys(view: RankedView) -> Array:
    """Label keys with a label present, bool [group, key]."""
    return sum_by_key(view, present(view)) > 0


def sum_by_key(view: RankedView, array: Array) -> Array:
    """Return sums over the labels of each key, ignoring NaN: [group, label, ...] to key."""
    keys = key_members(view)
    out = np.zeros((array.shape[0], len(keys), *array.shape[2:]), np.result_type(array, np.int64))
    for k, members in enumerate(keys):
        out[:, k] = np.nansum(array[:, members], axis=1)
    return out


def key_members(view: RankedView) -> list[Array]:
    """Label codes of each key."""
    labels = view.labels
    return [np.flatnonzero(labels.key == k) for k in range(len(labels.key_names))]


def shape_of(view: RankedView, axis: str) -> tuple[int, int]:
    """Numbers of groups, and of labels or label keys."""
    return view.n_groups, len(view.labels) if axis == "label" else len(view.labels.key_names)


def at_ious(view: RankedView, ious: tuple[float, ...]) -> list[int]:
    return [*map(view.tally.variants.threshold_index, ious)]


def fill(settings: Settings) -> float:
    """Return the value of an unannotated label: 0, or NaN for undefined."""
    return 0.0 if settings.rules.unannotated_labels_are_zero else np.nan


def members(
    view: RankedView, settings: Settings, area: int, key: Array
) -> Iterator[tuple[Array, Array]]:
    """Yield the labels of a key that enter its means, for groups with equally many labels.

    Yields:
        int64 [g], groups; int64 [g, labels], at least one each.
    """
    if settings.rules.every_label:
        inside = np.ones((view.n_groups, key.size), bool)
    elif settings.rules.unannotated_labels_are_zero:
        inside = present(view)[:, key]
    else:
        inside = view.positives[:, key, area] > 0
    many = inside.sum(axis=1)
    for n in np.unique(many[many > 0]):
        groups = np.flatnonzero(many == n)
        yield groups, key[np.nonzero(inside[groups])[1].reshape(groups.size, n)]


def row_means(values: Array) -> Array:
    """Return means over the last axis, independent of the other axes.

    NumPy sums non-contiguous arrays in an order that depends on the other axes: the last bit of a
    label's mean would depend on other labels, slices or areas.
    """
    return np.ascontiguousarray(values).mean(axis=-1)


# Average precision of labels with individual IoU thresholds, as in KITTI.


def own_thresholds(view: RankedView, settings: Settings) -> Array | None:
    """Return the index in iou_thresholds of each label's threshold, int64 [label], or None."""
    if not settings.label_ious:
        return None
    names = view.labels.frame["label_value"].cast(pl.String).to_list()
    indices = {
        name: settings.iou_thresholds.index(iou) for name, iou in settings.label_ious.items()
    }
    return np.array([indices.get(name, 0) for name in names], np.int64)


def at_own(cells: Cells, own: Array, n_ious: int) -> Cells:
    """Restrict cells by group, label, area and threshold to each label's threshold."""
    assert cells.keep is not None
    keep = cells.keep & (own[:, None, None] == np.arange(n_ious))
    return msgspec.structs.replace(cells, keep=keep)


def own_precision(view: RankedView, settings: Settings, own: Array, precision: Array) -> Array:
    """Means over levels of each label's precision at its own threshold, [group, label, area]."""
    at = at_ious(view, settings.iou_thresholds)
    each = np.array(at)[own][None, :, None, None, None]
    cells = np.take_along_axis(precision, each, axis=3)[:, :, :, 0]
    return np.where(view.positives > 0, row_means(cells), fill(settings))


def mean_of_labels(view: RankedView, settings: Settings, values: Array) -> Array:
    """Return means over labels, [group, label, area] to key."""
    keys = key_members(view)
    out = np.full((view.n_groups, len(keys), values.shape[-1]), np.nan)
    for k, a in np.ndindex(*out.shape[1:]):
        for groups, labels in members(view, settings, a, keys[k]):
            out[groups, k, a] = row_means(values[groups[:, None], labels, a])
    return out


# Average precision and average recall of detection, per label and per label key.

FREQUENCIES = {"r": "rare", "c": "common", "f": "frequent"}
"""LVIS's: of fewer than 10, of 10 to 99, and of 100 or more images of its training set."""

NO_TRUTH = "no ground truth that counts"
NO_LABEL = "no label with ground truth that counts"
_COCO = "pycocotools COCOeval.accumulate and summarize"
_VALOR = "Valor metrics document, Average Precision / Average Recall"


def label_precision(view: RankedView, settings: Settings, ious: tuple[float, ...]) -> Array:
    """AP per label, [group, label, area, iou]; NaN without ground truth."""
    some = np.nonzero(view.positives > 0)
    ap = np.full((*view.positives.shape, len(ious)), fill(settings))
    ap[some] = row_means(_precision_of(view, some, ious))
    return ap


def _precision_of(view: RankedView, some: tuple[Array, ...], ious: tuple[float, ...]) -> Array:
    """Return the precision of selected labels, since groups of single datums have few labels.

    Args:
        some: int64 [rows] each, groups, labels and areas.
        ious: thresholds.

    Returns:
        [row, iou, level].
    """
    group, label, area = np.stack(some)[:, :, None]
    return view.precision[group, label, area, at_ious(view, ious)]


def mean_precision(
    view: RankedView,
    settings: Settings,
    several: Sequence[tuple[float, ...]],
    chosen: Array | None = None,
) -> Array:
    """Return means over labels, recall levels and each of several sets of IoU thresholds.

    Args:
        several: sets of IoU thresholds.
        chosen: bool [label], labels that count; None for all.

    Returns:
        [group, key, area, set].
    """
    each = [at_ious(view, ious) for ious in several]
    keys = key_members(view)
    if chosen is not None:
        keys = [key[chosen[key]] for key in keys]
    out = np.full((view.n_groups, len(keys), len(settings.areas), len(each)), np.nan)
    for k, a in np.ndindex(*out.shape[1:3]):
        for groups, labels in members(view, settings, a, keys[k]):
            for i, at in enumerate(each):
                # group, label, threshold, level
                cubes = view.precision[groups[:, None, None], labels[..., None], a, at]
                if settings.rules.mean_over_cells:
                    # pycocotools takes one mean over [threshold, level, label] laid out so
                    values = cubes.transpose(0, 2, 3, 1).reshape(groups.size, -1)
                    out[groups, k, a, i] = row_means(values)
                else:
                    out[groups, k, a, i] = row_means(row_means(row_means(cubes)))
    return out


def recalls(view: RankedView, settings: Settings, ious: tuple[float, ...]) -> Array:
    """Recall at IoU thresholds, [group, label, cap, area, iou]; NaN undefined."""
    at = at_ious(view, ious)
    true = view.true_positives(settings.recall_score_threshold)[:, :][..., at]
    positives = view.positives[:, :, None, :, None]
    recall = np.full(true.shape, fill(settings))
    np.divide(true, positives, out=recall, where=positives > 0)
    return recall


def mean_recall(view: RankedView, settings: Settings, ious: tuple[float, ...]) -> Array:
    """Mean recall over labels and IoU thresholds, [group, key, cap, area]."""
    true, at = view.true_positives(settings.recall_score_threshold), at_ious(view, ious)
    keys = key_members(view)
    out = np.full((view.n_groups, len(keys), view.caps.size, len(settings.areas)), np.nan)
    for k, a in np.ndindex(len(keys), len(settings.areas)):
        for groups, labels in members(view, settings, a, keys[k]):
            positives = view.positives[groups[:, None], labels, a][..., None]
            for m in range(view.caps.size):
                # group, label, threshold
                cubes = np.full((*labels.shape, len(at)), fill(settings))
                several = true[groups[:, None, None], labels[..., None], m, a, at]
                np.divide(several, positives, out=cubes, where=positives > 0)
                if settings.rules.mean_over_cells:
                    means = row_means(cubes.transpose(0, 2, 1).reshape(groups.size, -1))
                else:
                    means = row_means(row_means(cubes))
                out[groups, k, m, a] = means
    return out


def axis_values(settings: Settings, ious: tuple[float, ...] = ()) -> dict[str, Sequence[Any]]:
    """Return the values of the axes of detection cells; IoU thresholds as round decimals."""
    return {
        "area": [*map(itemgetter(0), settings.areas)],
        "iou_threshold": [*map(settings.in_user_unit, ious)],
        "score_threshold": settings.score_thresholds,
        "max_detections": settings.max_detections or (None,),
    }


def cells_of(
    view: RankedView,
    settings: Settings,
    axes: tuple[str, ...],
    value: Array,
    support: Array,
    ious: tuple[float, ...] = (),
    reason: str | Array | None = None,
    keep: Array | None = None,
    values: Mapping[str, Sequence[Any]] | None = None,
    **columns: Any,
) -> Cells:
    """Return cells by label or key, as in the second axis; ``support`` has no later axes.

    Args:
        keep: cells that make rows; the labels or keys that are present by default.
        values: values of axes other than those of :func:`axis_values`.
    """
    per_label = axes[1] == "label"
    if keep is None:
        here = present(view) if per_label else present_keys(view)
        keep = here.reshape(*here.shape, *[1] * (value.ndim - 2))
    if reason is None:
        reason = NO_TRUTH if per_label else NO_LABEL
    return Cells(
        axes=axes,
        values={**axis_values(settings, ious), **(values or {})},
        shape=value.shape,
        keep=keep,
        columns={"value": value, "support": support, **columns},
        reason=reason,
    )


def _ap(view: RankedView, settings: Settings) -> list[Cells]:
    thresholds = own_thresholds(view, settings)
    ious = settings.iou_thresholds_to_return if thresholds is None else settings.iou_thresholds
    value = label_precision(view, settings, ious)
    axes = ("group", "label", "area", "iou_threshold")
    support = view.positives[..., None]
    cells = cells_of(view, settings, axes, value, support, ious, max_detections=settings.cap)
    return [cells if thresholds is None else at_own(cells, thresholds, len(ious))]


def _map(view: RankedView, settings: Settings) -> list[Cells]:
    ious = settings.iou_thresholds_to_return
    value = mean_precision(view, settings, [(iou,) for iou in ious])
    axes = ("group", "key", "area", "iou_threshold")
    support = sum_by_key(view, view.positives)[..., None]
    return [cells_of(view, settings, axes, value, support, ious, max_detections=settings.cap)]


def _over_ious(settings: Settings) -> dict[str, Any]:
    """Columns of means of AP over IoU thresholds."""
    return {
        "max_detections": settings.cap,
        "parameters": parameters(iou_thresholds=settings.thresholds_in_user_unit),
    }


def _ap_averaged(view: RankedView, settings: Settings) -> list[Cells]:
    ious = settings.iou_thresholds
    thresholds = own_thresholds(view, settings)
    if thresholds is not None:
        value = own_precision(view, settings, thresholds, np.asarray(view.precision))
    elif settings.rules.mean_over_cells:  # one mean over thresholds and levels, as of COCO's arrays
        some = np.nonzero(view.positives > 0)
        value = np.full(view.positives.shape, fill(settings))
        cells = _precision_of(view, some, ious)
        value[some] = row_means(cells.reshape(len(cells), len(ious) * cells.shape[-1]))
    else:
        value = row_means(label_precision(view, settings, ious))
    axes = ("group", "label", "area")
    return [cells_of(view, settings, axes, value, view.positives, **_over_ious(settings))]


def _map_averaged(view: RankedView, settings: Settings) -> list[Cells]:
    thresholds = own_thresholds(view, settings)
    if thresholds is None:
        value = mean_precision(view, settings, [settings.iou_thresholds])[..., 0]
    else:
        each = own_precision(view, settings, thresholds, np.asarray(view.precision))
        value = mean_of_labels(view, settings, each)
    axes = ("group", "key", "area")
    support = sum_by_key(view, view.positives)
    return [cells_of(view, settings, axes, value, support, **_over_ious(settings))]


def of_frequency(view: RankedView, settings: Settings, frequency: str) -> tuple[Array, Array]:
    """Return mean precision over the labels of one frequency and all IoU thresholds, and positives.

    Returns:
        [group, key, area] each.
    """
    frequencies = view.labels.frequency
    chosen = np.zeros(len(view.labels), bool)
    if frequencies is not None:
        chosen = (frequencies == frequency).fill_null(value=False).to_numpy()
    value = mean_precision(view, settings, [settings.iou_thresholds], chosen)[..., 0]
    return value, sum_by_key(view, view.positives * chosen[:, None])


def _by_frequency(view: RankedView, settings: Settings, frequency: str) -> list[Cells]:
    value, support = of_frequency(view, settings, frequency)
    reason = f"{NO_LABEL[:8]} of frequency {frequency!r} with ground truth that counts"
    axes = ("group", "key", "area")
    return [cells_of(view, settings, axes, value, support, reason=reason, **_over_ious(settings))]


def _recall(by_key: bool, view: RankedView, settings: Settings) -> list[Cells]:
    """AR of labels, or its mean over the labels of a key."""
    ious = settings.iou_thresholds
    value = (
        mean_recall(view, settings, ious) if by_key else row_means(recalls(view, settings, ious))
    )
    support = sum_by_key(view, view.positives) if by_key else view.positives
    axes = ("group", "key" if by_key else "label", "max_detections", "area")
    params = parameters(
        iou_thresholds=settings.thresholds_in_user_unit,
        recall_score_threshold=settings.recall_score_threshold,
    )
    return [cells_of(view, settings, axes, value, support[:, :, None, :], parameters=params)]


def _mar_at_iou(view: RankedView, settings: Settings) -> list[Cells]:
    ious = settings.iou_thresholds_to_return
    each = [mean_recall(view, settings, (iou,)) for iou in ious]
    caps = settings.max_detections or (None,)
    shape = view.n_groups, len(key_members(view)), len(caps), len(settings.areas), 0
    value = np.stack(each, axis=-1) if each else np.empty(shape)
    axes = ("group", "key", "max_detections", "area", "iou_threshold")
    support = sum_by_key(view, view.positives)[:, :, None, :, None]
    settings_json = parameters(recall_score_threshold=settings.recall_score_threshold)
    return [cells_of(view, settings, axes, value, support, ious, parameters=settings_json)]


def _interpolated(view: RankedView, settings: Settings) -> list[Cells]:
    cap = np.iinfo(np.int32).max if settings.cap is None else settings.cap
    at = at_ious(view, settings.iou_thresholds)
    precision, scores, _ = view.sampled_with_scores(cap)
    precision, scores = precision[:, :, :, at], scores[:, :, :, at]
    zero = settings.rules.unannotated_labels_are_zero
    keep = present(view)[..., None] if zero else view.positives > 0
    return [
        Cells(
            axes=("group", "label", "area", "iou_threshold", "level"),
            values=axis_values(settings, settings.iou_thresholds),
            shape=precision.shape,
            keep=keep[..., None, None],
            columns={
                "precision": precision,
                "recall": view.levels,
                "score_threshold": scores,
                "max_detections": settings.cap,
            },
        )
    ]


INTERPOLATED = (
    r"\frac{1}{101} \sum_{r \in \{0, 0.01, \ldots, 1\}} \max_{\tilde{r} \ge r}"
    r" p(\tilde{r})"
)
"""AP in TeX."""

_MEAN_OF_ALL = r"\frac{1}{|T|} \sum_{t \in T} \frac{1}{L} \sum_\ell \text{AP}_{\ell t}"
_IOUS = ("iou_thresholds", "max_detections", "area_ranges")


def _average(
    name: str,
    definition: str,
    source: str,
    compute: Any,
    params: tuple[str, ...] = (),
    interval: str = "recentred",
    aliases: tuple[str, ...] = (),
    *,
    formula: str,
    excess_of: str = "",
) -> Metric:
    return Metric(
        name=name,
        task="detection",
        needs=("iou_thresholds",),
        params=(*_IOUS, *params),
        definition=definition,
        source=source,
        interval=interval,
        excess_of=excess_of,
        aliases=aliases,
        formula=formula,
        compute=compute,
        ranks=True,
    )


_RETURNED = ("iou_thresholds_to_return",)
_SCORED = ("recall_score_threshold",)
_BOTH = f"{_COCO}; {_VALOR}"

_RANGES = ("[.5:.95]", "[0.5:0.95]", ".5:.95", "0.5:0.95", "50:95", "50-95")
"""COCO's IoU thresholds, as papers write them."""

METRICS = (
    _average(
        "AP",
        "Mean of interpolated precisions p(r) = max precision at recall >= r, at the recall levels"
        " of the dialect (r = 0, 0.01, ..., 1 unless it has others), of one label at one IoU"
        " threshold.",
        _BOTH,
        _ap,
        _RETURNED,
        formula=INTERPOLATED,
    ),
    _average(
        "APAveragedOverIOUs",
        "Mean of a label's AP over iou_thresholds.",
        _VALOR,
        _ap_averaged,
        formula=r"\frac{1}{|T|} \sum_{t \in T} \text{AP}_t",
    ),
    _average(
        "mAP",
        "Mean of AP over the labels of a key that have ground truth.",
        _BOTH,
        _map,
        _RETURNED,
        formula=r"\frac{1}{L} \sum_\ell \text{AP}_\ell",
        excess_of="AP",
    ),
    _average(
        "mAPAveragedOverIOUs",
        "Mean of mAP over iou_thresholds: COCO's AP.",
        _BOTH,
        _map_averaged,
        aliases=("mAP50-95", "mAP50:95", *(f"mAP@{one}" for one in _RANGES)),
        formula=_MEAN_OF_ALL,
        excess_of="APAveragedOverIOUs",
    ),
    _average(
        "AR",
        "Mean over iou_thresholds of a label's recall tp / ground truths, counting matches with"
        " score >= recall_score_threshold.",
        _VALOR,
        partial(_recall, False),
        _SCORED,
        "percentile",
        formula=r"\frac{1}{|T|} \sum_{t \in T} \frac{\text{tp}_t}{G}",
    ),
    _average(
        "mAR",
        "Mean of AR over the labels of a key that have ground truth: COCO's AR.",
        _BOTH,
        partial(_recall, True),
        _SCORED,
        "percentile",
        formula=r"\frac{1}{L} \sum_\ell \frac{1}{|T|} \sum_{t \in T} \frac{\text{tp}_{\ell"
        r" t}}{G_\ell}",
    ),
    _average(
        "mARAtIOU",
        "Mean of recall at one IoU threshold over the labels of a key that have ground truth:"
        " COCO's AR50 and AR75 of keypoints.",
        _COCO,
        _mar_at_iou,
        (*_RETURNED, *_SCORED),
        "percentile",
        formula=r"\frac{1}{L} \sum_\ell \frac{\text{tp}_\ell}{G_\ell}",
    ),
    *(
        _average(
            f"AP{frequency}",
            f"Mean of mAPAveragedOverIOUs' cells over the labels whose frequency is"
            f" {frequency!r}: LVIS's AP of {word} labels.",
            "lvis-api LVISEval.summarize",
            partial(_by_frequency, frequency=frequency),
            formula=_MEAN_OF_ALL,
        )
        for frequency, word in FREQUENCIES.items()
    ),
    Metric(
        name="InterpolatedPrecisionRecallCurve",
        task="detection",
        frame="curves",
        needs=("iou_thresholds",),
        params=_IOUS,
        better="neither",
        definition="The 101 points behind AP: interpolated precision at each recall, and the"
        " score at which that recall is reached: at recall 0 the best of all.",
        formula=r"p_{\text{interpolated}}(r) = \max_{\tilde{r} \ge r} p(\tilde{r})",
        source=_COCO,
        compute=_interpolated,
    ),
)
