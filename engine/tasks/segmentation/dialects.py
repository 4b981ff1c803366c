"""Segmentation dialects: which labels count, and what a label without pixels is worth."""

from __future__ import annotations

import msgspec

from ...dialects.registry import Dialect

USED = "used"
TRUE = "true"
DECLARED = "declared"


class SegmentationRules(msgspec.Struct, frozen=True, kw_only=True):
    """What the references disagree about.

    Attributes:
        rows: labels that have rows: ``used`` (pixels on either side, and declared ones), ``true``
            (pixels in the ground truths) or ``declared`` (all declared, and used ones).
        means: labels that enter means: ``used`` (pixels on either side), ``true`` or ``declared``.
        undefined: value of a ratio 0 / 0; None leaves it undefined.
        absent_iou: IOU of a label without any pixel, where ``undefined`` is None; None leaves it
            undefined too. It never enters means.
        background: index of pixels without a label, where the option is not given; None for none.
        ignored_in_iou: whether predictions of the ignored index count as a label in IOU's averages.
        images_alike: whether images count alike in mIOUPerImage; else every label of every image.
        pooled_distances: whether HD95 is a percentile of the distances of both outlines together;
            else the larger of those of each.
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
    """Defaults of the options that were not given.

    Attributes:
        metrics: default set.
    """

    metrics: tuple[str, ...] = (
        "IOU",
        "mIOU",
        "Precision",
        "Recall",
        "F1",
        "PixelAccuracy",
        "Dice",
    )


_VALOR = ("IOU", "mIOU", "Precision", "Recall", "F1")

DIALECTS: dict[str, Dialect] = {
    "standard": Dialect(
        name="standard",
        task="segmentation",
        about="pixels summed over the data set; labels without any pixel are undefined and left"
        " out of means",
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
        about="torchmetrics 1.9: JaccardIndex's 0 for a label without any pixel, left out of means",
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
