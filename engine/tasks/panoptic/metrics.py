"""Panoptic quality."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ...metrics.averages import ratio
from ...metrics.registry import define
from ...schemas.arrays import Array
from ...tallies.counts import STUFF, THING, UNKNOWN, SegmentRows, SegmentView
from ...tallies.datums import Cells
from .dialects import Settings

# Panoptic quality: how many segments are found, how well, and both in one number.

Quality = Callable[[Array, Array, Array, Array], tuple[Array, Array]]
"""From tp, fp, fn and the sum of IoU to numerator and denominator."""

NO_SEGMENT = "no segment of this label on either side"
NO_LABEL = "no label with segments to average over"
KINDS = (("things", THING), ("stuff", STUFF))
"""Averages over labels of one kind."""


def pq(tp: Array, fp: Array, fn: Array, iou: Array) -> tuple[Array, Array]:
    """Return the sum of IoU over matches, and matches + half of the unmatched on both sides."""
    return iou, tp + 0.5 * fp + 0.5 * fn


def sq(tp: Array, fp: Array, fn: Array, iou: Array) -> tuple[Array, Array]:
    """Mean IoU of matches; 0 of a label that has segments and no match."""
    return iou, np.where(tp > 0, tp, np.where(fp + fn > 0, 1, 0))


def rq(tp: Array, fp: Array, fn: Array, iou: Array) -> tuple[Array, Array]:
    """F1 of segments."""
    return tp, tp + 0.5 * fp + 0.5 * fn


def _mean(values: Array, chosen: Array) -> Array:
    """Return means over the chosen labels whose value is defined, [group].

    Values are added one by one, as in panopticapi, so that labels without a value do not change any
    bit.
    """
    here = chosen & ~np.isnan(values)
    if not values.shape[1]:
        return np.full(values.shape[0], np.nan)
    return ratio(np.cumsum(np.where(here, values, 0.0), axis=1)[:, -1], here.sum(axis=1))


def _cells(value: Array, view: SegmentView, support: Array) -> list[Cells]:
    """Return one row per label, and the means over all labels, things and stuff.

    ``support`` is ground truths of a label, and labels of a mean.
    """
    kind = view.whole.kind
    everything = np.ones(kind.size, bool)
    cells = [
        Cells(
            axes=("group", "label"),
            shape=value.shape,
            keep=~np.isnan(value) | (view.tp + view.fp + view.fn > 0) | view.whole.declared,
            columns={"value": value, "support": support},
            reason=NO_SEGMENT,
        )
    ]
    chosen: list[tuple[str | None, Array]] = [(None, everything)]
    if (kind != UNKNOWN).any():
        chosen += [(name, kind == code) for name, code in KINDS]
    for name, of in chosen:
        mean = _mean(value, of)
        cells.append(
            Cells(
                axes=("group", "key"),
                shape=(mean.size, 1),
                columns={
                    "value": mean[:, None],
                    "average": name,
                    "support": (of & ~np.isnan(value)).sum(axis=1)[:, None],
                },
                reason=NO_LABEL,
            )
        )
    return cells


def _quality(of: Quality, view: SegmentView, settings: Settings) -> list[Cells]:
    counts = view.tp, view.fp, view.fn
    return _cells(ratio(*of(*counts, view.iou)), view, view.tp + view.fn)


def _dagger(view: SegmentView, settings: Settings) -> list[Cells]:
    """PQ of things; of stuff the mean IoU of its ground truths, whatever that is."""
    truth = view.sums("rows", "truth")
    stuff = view.whole.kind == STUFF
    things = ratio(*pq(view.tp, view.fp, view.fn, view.iou))
    value = np.where(stuff, ratio(view.sums("rows", "touched"), truth), things)
    return _cells(value, view, np.where(stuff, truth, view.tp + view.fn))


def _counts(view: SegmentView, settings: Settings) -> list[Cells]:
    return [
        Cells(
            axes=("group", "label"),
            shape=values.shape,
            keep=(view.tp + view.fp + view.fn > 0) | view.whole.declared,
            columns={
                "value": values.astype(np.float64),
                "statistic": name,
                "support": view.tp + view.fn,
            },
        )
        for name, values in (("tp", view.tp), ("fp", view.fp), ("fn", view.fn))
    ]


def _of_image(of: Quality, rows: SegmentRows, n_datums: int) -> Array:
    """The mean over the labels of every datum, float64 [n_datums]."""
    value = ratio(*of(rows.tp, rows.fp, rows.fn, rows.iou))
    here = ~np.isnan(value)
    total = np.bincount(rows.datum[here], value[here], minlength=n_datums)
    return ratio(total, np.bincount(rows.datum[here], minlength=n_datums))


OF_IMAGE = tuple(
    (name, partial(_of_image, of), "no segment on either side")
    for name, of in (("PQ", pq), ("SQ", sq), ("RQ", rq))
)
"""Metrics of every image in ``per_datum``."""

_MEANS = "; its mean over all labels with segments, things and stuff"
_SOURCE = "Kirillov et al. 2019, Panoptic Segmentation; panopticapi"


_metric = partial(
    define,
    "panoptic",
    source=_SOURCE,
    averages=tuple(name for name, _ in KINDS),
    needs=("segments",),
    params=("iou_type", "boundary_ratio"),
)

_QUALITY_METRICS = (
    _metric(
        "PQ",
        "Panoptic quality: sum of IoU over matched segments of a label / (tp + fp / 2 + fn / 2), a"
        f" match being an IoU above 0.5{_MEANS}.",
        compute=partial(_quality, pq),
        aliases=("PanopticQuality",),
        formula=r"\frac{\sum_{(g, p)} \text{IoU}(g, p)}{\text{tp} + \tfrac{1}{2} \text{fp} +"
        r" \tfrac{1}{2} \text{fn}}",
    ),
    _metric(
        "SQ",
        "Segmentation quality: mean IoU of matched segments of a label, 0 if none matches"
        f"{_MEANS}.",
        compute=partial(_quality, sq),
        aliases=("SegmentationQuality",),
        formula=r"\frac{\sum_{(g, p)} \text{IoU}(g, p)}{\text{tp}}",
    ),
    _metric(
        "RQ",
        f"Recognition quality: tp / (tp + fp / 2 + fn / 2) of segments of a label{_MEANS}.",
        compute=partial(_quality, rq),
        aliases=("RecognitionQuality",),
        formula=r"\frac{\text{tp}}{\text{tp} + \tfrac{1}{2} \text{fp} + \tfrac{1}{2} \text{fn}}",
    ),
    _metric(
        "PQDagger",
        "PQ of things; of stuff the sum of IoU over all segments of the label that share pixels /"
        " ground truths, since stuff is not counted: its mean over all labels, things and stuff.",
        compute=_dagger,
        aliases=("ModifiedPanopticQuality", "ModifiedPQ"),
        source="Porzi et al. 2019, Seamless Scene Segmentation; torchmetrics"
        " ModifiedPanopticQuality",
        formula=r"\text{PQ} \text{ of things}, \quad \frac{1}{G} \sum_{(g, p) \text{ that"
        r" overlap}} \text{IoU}(g, p) \text{ of stuff}",
    ),
    _metric(
        "Counts",
        "Matched segments of a label (tp), predicted ones without a match (fp) and ground truths"
        " without one (fn).",
        compute=_counts,
        averages=(),
        range=(0.0, float("inf")),
        better="neither",
        counts=True,
        formula=r"\text{tp} = |\{(g, p) : \text{IoU}(g, p) > 0.5\}|, \quad \text{fp} = |\{p\}| -"
        r" \text{tp}, \quad \text{fn} = |\{g\}| - \text{tp}",
    ),
)


# Panoptic outputs with separate frames.

_frame_metric = partial(
    _metric, compute=None, averages=(), range=(0.0, float("inf")), better="neither"
)

_FRAMES_METRICS = (
    _frame_metric(
        "ConfusionMatrix",
        "Segments by true and predicted label: matches within the label first, then the rest whose"
        " IoU exceeds 0.5 across labels; null for unmatched.",
        frame="confusion",
        needs=("segments", "crossings"),
        formula=r"C_{ij} = |\{(g, p) \text{ matched} : \ell_g = i, \ell_p = j\}|",
        source="evalengine; the diagonal is the true positives",
    ),
    _frame_metric(
        "Outcomes",
        "One row per predicted segment or missed ground truth, with its outcome.",
        frame="outcomes",
        needs=("segments", "outcomes"),
        source="evalengine",
    ),
)


SYMBOLS = {
    r"(g, p)": (
        "a ground truth and a predicted segment of one label that match: their IoU is above 0.5"
    ),
    r"\text{tp}": "matched segments",
    r"\text{fp}": "predicted segments without a match",
    r"\text{fn}": "ground truths without a match",
    r"G": "ground truths of the label",
    r"\ell_g": "label of a ground truth",
    r"\ell_p": "label of the segment that matches it",
}
"""Meaning of the symbols in formulas, in TeX."""

CLOSE: dict[str, str] = {
    name: f"They are the rows of 'PQ' with average '{average}'."
    for name, average in (("pqth", "things"), ("pqst", "stuff"))
}
"""Names in other tools, squeezed -> how our number differs, or which option it takes."""


METRICS = (*_QUALITY_METRICS, *_FRAMES_METRICS)
