"""Segmentation metrics of outlines: boundaries, and distances between outlines."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....tally.cells import Cells, parameters
from ....tally.pixels import Pixels, PixelView
from .parts import NO_LABEL, NO_PIXEL, by_key, key_cells, label_cells, metric, ratio, rows, used

if TYPE_CHECKING:
    from ..settings import Settings


ONE_SIDE = "no image that has the label on both sides"


def _mean_of_labels(view: PixelView, value: Array, inside: Array) -> Array:
    defined = inside & ~np.isnan(value)
    return ratio(by_key(view, value, defined), by_key(view, defined, defined))


def _boundary_iou(view: PixelView, settings: Settings) -> list[Cells]:
    """The boundaries of all images are summed first, as pixels are in IOU."""
    truth, found, shared = (view.edges(name) for name in ("edge_truth", "edge_found", "edge_right"))
    value = ratio(shared, truth + found - shared)
    mean = _mean_of_labels(view, value, used(view))
    cells = [
        label_cells(view, settings, value, NO_PIXEL),
        key_cells(view, mean, NO_LABEL, average="macro"),
    ]
    return _told(cells, boundary_ratio=settings.boundary_ratio)


def _told(cells: list[Cells], **values: Any) -> list[Cells]:
    """Return cells with parameters."""
    made = parameters(**values)
    return [
        msgspec.structs.replace(one, columns={**one.columns, "parameters": made}) for one in cells
    ]


def _mean(name: str, options: tuple[str, ...], view: PixelView, settings: Settings) -> list[Cells]:
    """The mean over images, then over labels."""

    def column(pixels: Pixels) -> tuple[Array, Array, Array]:
        own = pixels.surfaces
        return own.datum, own.label, getattr(own, name)

    def there(pixels: Pixels) -> tuple[Array, Array, Array]:
        own = pixels.surfaces
        return own.datum, own.label, own.edge_truth + own.edge_found > 0

    total, many = view.exact_total(column, len(view.labels))
    images = view.summed(there, len(view.labels))
    value = ratio(total, many)
    mean = _mean_of_labels(view, value, images > 0)
    cells = [
        Cells(
            axes=("group", "label"),
            shape=value.shape,
            keep=rows(view, settings),
            columns={"value": value, "support": images, "scored": many.astype(np.int64)},
            reason=np.where(images > 0, ONE_SIDE, NO_PIXEL),
        ),
        key_cells(
            view,
            mean,
            NO_LABEL,
            average="macro",
            support=by_key(view, images, images > 0),
            scored=by_key(view, many.astype(np.int64), images > 0),
        ),
    ]
    return _told(cells, **{name: getattr(settings, name) for name in options})


def _metric(
    name: str, definition: str, source: str, column: str, *options: str, **more: Any
) -> Metric:
    given = ("pixel_spacing", *options)
    return metric(
        name,
        definition,
        source,
        partial(_mean, column, given),
        averages=("macro",),
        needs=("areas", "surfaces"),
        params=given,
        **more,
    )


_FAR: dict[str, Any] = {"range": (0.0, float("inf")), "better": "lower"}
_TWO = "outlines of a label, mean over the images that have it on both sides"
_EITHER = "mean over the images that have the label on either side, 0 where one side lacks it"

METRICS = (
    metric(
        "BoundaryIOU",
        "IOU of the boundaries of a label: its pixels within boundary_ratio of the image's diagonal"
        " from their outline; over the boundaries of all datums, and its mean over labels.",
        "Cheng et al. 2021, Boundary IoU",
        _boundary_iou,
        averages=("macro",),
        needs=("areas", "surfaces"),
        params=("boundary_ratio",),
        aliases=("BoundaryIoU", "mBIoU"),
        formula=r"\frac{|B \cap \hat{B}|}{|B \cup \hat{B}|}",
    ),
    _metric(
        "BoundaryF1",
        "F1 of outlines: shares of the predicted and of the true outline that lie within"
        f" surface_tolerance of the other; {_EITHER}.",
        "Csurka et al. 2013, What is a good evaluation measure for semantic segmentation?",
        "f1",
        "surface_tolerance",
        aliases=("BFScore", "BoundaryF"),
        formula=r"\frac{1}{n} \sum_d \frac{2\, p_d\, r_d}{p_d + r_d}, \quad p ="
        r" \frac{1}{|\hat{S}|} \sum_{x \in \hat{S}} [\delta(x, S) \le \tau],"
        r" \quad r = \frac{1}{|S|} \sum_{x \in S} [\delta(x, \hat{S}) \le"
        r" \tau]",
    ),
    _metric(
        "HD95",
        f"The larger of the 95th percentiles of distances between the two {_TWO}; of all distances"
        " together in dialect medpy.",
        "MONAI 1.6 HausdorffDistanceMetric (percentile=95); medpy 0.5 hd95",
        "hd95",
        aliases=("HausdorffDistance95",),
        formula=r"\frac{1}{n} \sum_d \max\left(q_{95}\{\delta(x, \hat{S}) : x \in S"
        r"\}, q_{95}\{\delta(x, S) : x \in \hat{S}\}\right)",
        **_FAR,
    ),
    _metric(
        "HausdorffDistance",
        f"The largest distance from either to the other of the {_TWO}.",
        "Huttenlocher et al. 1993; MONAI 1.6 HausdorffDistanceMetric",
        "hausdorff",
        aliases=("HD", "Hausdorff"),
        formula=r"\frac{1}{n} \sum_d \max\left(\max_{x \in S} \delta(x, \hat{S}),"
        r" \max_{x \in \hat{S}} \delta(x, S)\right)",
        **_FAR,
    ),
    _metric(
        "ASSD",
        f"Mean distance of all pixels of both {_TWO}.",
        "MONAI 1.6 SurfaceDistanceMetric (symmetric=True); medpy 0.5 assd",
        "assd",
        aliases=("AverageSymmetricSurfaceDistance",),
        formula=r"\frac{1}{n} \sum_d \frac{\sum_{x \in S} \delta(x, \hat{S}) +"
        r" \sum_{x \in \hat{S}} \delta(x, S)}{|S| + |\hat{S}|}",
        **_FAR,
    ),
    _metric(
        "NSD",
        "Share of the pixels of both outlines that lie within surface_tolerance of the other;"
        f" {_EITHER}.",
        "Nikolov et al. 2018; MONAI 1.6 SurfaceDiceMetric",
        "nsd",
        "surface_tolerance",
        aliases=("SurfaceDice", "NormalizedSurfaceDice"),
        formula=r"\frac{1}{n} \sum_d \frac{\sum_{x \in S} [\delta(x, \hat{S}) \le"
        r" \tau] + \sum_{x \in \hat{S}} [\delta(x, S) \le \tau]}{|S| +"
        r" |\hat{S}|}",
    ),
)
