"""Segmentation dialects: labels that count, and values of labels without pixels."""

from __future__ import annotations

import msgspec

from ...dialects import Dialect
from ...schemas.layouts import Entry, Layout

USED = "used"
TRUE = "true"
DECLARED = "declared"


class SegmentationRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which the references disagree.

    Attributes:
        rows: labels that have rows: ``used`` (pixels on either side, and declared ones), ``true``
            (pixels in the ground truths) or ``declared`` (all declared, and used ones).
        means: labels that enter means: ``used`` (pixels on either side), ``true`` or ``declared``.
        undefined: value of a ratio 0 / 0; None for undefined.
        absent_iou: IOU of a label without any pixel, if ``undefined`` is None; None for undefined.
            It never enters means.
        background: index of pixels without a label, if the option is not given; None for none.
        ignored_in_iou: predictions of the ignored index count as a label in IOU's averages.
        images_alike: images have equal weight in mIOUPerImage; otherwise every label of every
            image.
        pooled_distances: HD95 is a percentile of the pooled distances of both outlines; otherwise
            the larger of their percentiles.
    """

    rows: str = USED
    means: str = USED
    undefined: float | None = None
    absent_iou: float | None = None
    background: int | None = None
    ignored_in_iou: bool = True
    images_alike: bool = True
    pooled_distances: bool = False


class SegmentationDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Default values of options.

    Attributes:
        metrics: default set.
    """

    metrics: tuple[str, ...] = ("IOU", "mIOU", "Precision", "Recall", "F1", "PixelAccuracy", "Dice")


_VALOR = ("IOU", "mIOU", "Precision", "Recall", "F1")

DIALECTS: dict[str, Dialect] = {
    "standard": Dialect(
        name="standard",
        task="segmentation",
        about="pixels summed over the data set; labels without any pixel are undefined; means skip"
        " them",
        rules=SegmentationRules(),
        defaults=SegmentationDefaults(),
        undefined=None,
        export="valor",
    ),
    "valor": Dialect(
        name="valor",
        task="segmentation",
        about="Valor's service: only labels with ground truth; index 0 is background",
        rules=SegmentationRules(rows=TRUE, means=TRUE, undefined=0.0, background=0),
        defaults=SegmentationDefaults(metrics=_VALOR),
        undefined=0.0,
        export="valor",
    ),
    "valor-lite": Dialect(
        name="valor-lite",
        task="segmentation",
        about="valor-lite 0.39: all declared labels, undefined is 0; index 0 is background",
        rules=SegmentationRules(rows=DECLARED, means=DECLARED, undefined=0.0, background=0),
        defaults=SegmentationDefaults(metrics=(*_VALOR, "PixelAccuracy", "ConfusionMatrix")),
        undefined=0.0,
        export="valor",
    ),
    "torchmetrics": Dialect(
        name="torchmetrics",
        task="segmentation",
        about="torchmetrics 1.9: JaccardIndex is 0 for a label without any pixel; means skip it",
        rules=SegmentationRules(absent_iou=0.0, ignored_in_iou=False, images_alike=False),
        defaults=SegmentationDefaults(),
        undefined=None,
        export="valor",
    ),
    "medpy": Dialect(
        name="medpy",
        task="segmentation",
        about="medpy 0.5: HD95 of the distances of both outlines together; else standard",
        rules=SegmentationRules(pooled_distances=True),
        defaults=SegmentationDefaults(metrics=("Dice", "IOU", "HD95", "HausdorffDistance", "ASSD")),
        undefined=None,
        export="valor",
    ),
}
"""The dialects of segmentation."""


# Layout of segmentation results: IoU and pixel accuracy.

_PIXELS = Layout(
    headline=(Entry("mIOU", "mIOU"), Entry("PixelAccuracy", "PixelAccuracy")),
    label_columns=(),
    slice_columns=(Entry("mIOU", "mIOU"), Entry("PixelAccuracy", "PixelAccuracy")),
)

LAYOUTS: dict[str | None, Layout] = {None: _PIXELS}
"""Dialect -> layout; None is the task's own."""
