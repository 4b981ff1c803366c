"""Segmentation dialects and settings: labels that count, and values of labels without pixels."""

from __future__ import annotations

from typing import Any

import msgspec

from ...dialects import Dialect, TaskSettings, of_task
from ...schemas.display import Entry, Layout
from ...schemas.errors import invalid
from ...schemas.options import Options
from ...schemas.wording import option

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
        equal_images: images have equal weight in mIOUPerImage; otherwise every label of every
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
    equal_images: bool = True
    pooled_distances: bool = False


class Settings(TaskSettings, frozen=True, kw_only=True):
    """Settings of a segmentation run: the dialect's rules, and options with defaults filled in.

    Attributes:
        label_map: as given; applied to label maps once their labels are known.
        label_format: its steps are added to predicted indices.
        k: no cut-offs.
    """

    rules: SegmentationRules
    ignore_index: int | None
    background: int | None
    resample: bool
    invalid_polygons: str
    boundary_ratio: float
    pixel_spacing: tuple[float, float]
    surface_tolerance: float
    label_map: Any
    label_format: tuple[str, ...] | None
    k: tuple[int | None, ...] = ()

    @staticmethod
    def derive(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
        background, spacing = values["background"], values["pixel_spacing"]
        if background is not None and background == options.ignore_index:
            raise invalid(
                "ignore_index",
                background,
                f"this index is background in dialect"
                f" {dialect.name!r} or by {option('background')}. Ignored pixels never count,"
                " background counts if the other side has a label; choose one.",
                code="options_conflict",
            )
        if len(spacing) > 2:
            raise invalid("pixel_spacing", spacing, "write height and width, or one number.")
        values["pixel_spacing"] = spacing[0], spacing[-1]
        values["label_map"] = options.label_map
        values["label_format"] = options.label_format


_VALOR = ("IOU", "mIOU", "Precision", "Recall", "F1")

DIALECTS = of_task(
    "segmentation",
    Dialect(
        name="standard",
        about="pixels summed over the data set; labels without any pixel are undefined; means skip"
        " them",
        rules=SegmentationRules(),
        metrics=(*_VALOR, "PixelAccuracy", "Dice"),
        export="valor",
    ),
    Dialect(
        name="valor",
        about="Valor's service: only labels with ground truth; index 0 is background",
        rules=SegmentationRules(rows=TRUE, means=TRUE, undefined=0.0, background=0),
        metrics=_VALOR,
        undefined=0.0,
        export="valor",
    ),
    Dialect(
        name="valor-lite",
        about="valor-lite 0.39: all declared labels, undefined is 0; index 0 is background",
        rules=SegmentationRules(rows=DECLARED, means=DECLARED, undefined=0.0, background=0),
        metrics=(*_VALOR, "PixelAccuracy", "ConfusionMatrix"),
        undefined=0.0,
        export="valor",
    ),
    Dialect(
        name="torchmetrics",
        about="torchmetrics 1.9: JaccardIndex is 0 for a label without any pixel; means skip it",
        rules=SegmentationRules(absent_iou=0.0, ignored_in_iou=False, equal_images=False),
        metrics=(*_VALOR, "PixelAccuracy", "Dice"),
        export="valor",
    ),
    Dialect(
        name="medpy",
        about="medpy 0.5: HD95 of the distances of both outlines together; else standard",
        rules=SegmentationRules(pooled_distances=True),
        metrics=("Dice", "IOU", "HD95", "HausdorffDistance", "ASSD"),
        export="valor",
    ),
)
"""The dialects of segmentation."""


# Layout of segmentation results: IoU and pixel accuracy.

_PIXELS = Layout(
    headline=(Entry("mIOU", "mIOU"), Entry("PixelAccuracy", "PixelAccuracy")),
    label_columns=(),
    slice_columns=(Entry("mIOU", "mIOU"), Entry("PixelAccuracy", "PixelAccuracy")),
)

LAYOUTS: dict[str | None, Layout] = {None: _PIXELS}
"""Dialect -> layout; None is the task's own."""
