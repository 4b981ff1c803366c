"""Panoptic dialects and settings: treatment of void, crowds and areas."""

from __future__ import annotations

from typing import Any

import msgspec

from ...dialects import Dialect, TaskSettings, of_task
from ...schemas.errors import invalid
from ...schemas.options import Options
from ...schemas.wording import option


class PanopticRules(msgspec.Struct, frozen=True, kw_only=True):
    """Rules on which the references disagree.

    Attributes:
        annotated_areas: areas of ground truths come from the column ``area``, if present; otherwise
            from their pixels.
        one_crowd: among several crowds of a label in an image only the last absorbs predictions.
        crowds: crowds are supported; otherwise they are ordinary segments.
        void_predictions: pixels of void predictions are subtracted from ground truths, and ground
            truths that are more than half void in the prediction are not missed.
        joined_stuff: segments of one stuff label of an image are one segment.
        unannotated: predictions of images without ground truths are wrong; otherwise they are
            ignored.
    """

    annotated_areas: bool = False
    one_crowd: bool = False
    crowds: bool = True
    void_predictions: bool = False
    joined_stuff: bool = False
    unannotated: bool = True


class Settings(TaskSettings, frozen=True, kw_only=True):
    """Settings of a panoptic run: the dialect's rules, and options with defaults filled in.

    Attributes:
        boundary_ratio: None if only whole segments are compared.
        k: no cut-offs.
    """

    rules: PanopticRules
    boundary_ratio: float | None = None
    k: tuple[int | None, ...] = ()

    @staticmethod
    def derive(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
        if values["iou_type"] != "boundary":
            values["boundary_ratio"] = None
        elif dialect.rules.joined_stuff:
            raise invalid(
                "iou_type",
                "boundary",
                f"dialect {dialect.name!r} joins segments of"
                f" stuff, whose boundaries no reference defines. Write {option('dialect', 'coco')}"
                " or remove it.",
                code="options_conflict",
            )


_METRICS = ("PQ", "SQ", "RQ")

DIALECTS = of_task(
    "panoptic",
    Dialect(
        name="standard",
        about="panoptic quality by its paper: areas counted from pixels, every crowd absorbs",
        rules=PanopticRules(),
        metrics=_METRICS,
    ),
    Dialect(
        name="coco",
        about="panopticapi: annotated areas, one crowd per label and image, only images of the"
        " ground truths",
        rules=PanopticRules(annotated_areas=True, one_crowd=True, unannotated=False),
        metrics=_METRICS,
        export="panoptic",
    ),
    Dialect(
        name="torchmetrics",
        about="torchmetrics 1.9 PanopticQuality: void of both sides, stuff joined by label, no"
        " crowds",
        rules=PanopticRules(crowds=False, void_predictions=True, joined_stuff=True),
        metrics=_METRICS,
    ),
)
"""The dialects of panoptic segmentation."""
