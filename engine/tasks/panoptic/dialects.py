"""Panoptic dialects: treatment of void, crowds and areas."""

from __future__ import annotations

import msgspec

from ...dialects import Dialect
from ...schemas.layouts import Layout


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


class PanopticDefaults(msgspec.Struct, frozen=True, kw_only=True):
    """Default values of options.

    Attributes:
        metrics: default set.
    """

    metrics: tuple[str, ...] = ("PQ", "SQ", "RQ")


DIALECTS: dict[str, Dialect] = {
    "standard": Dialect(
        name="standard",
        task="panoptic",
        about="panoptic quality by its paper: areas counted from pixels, every crowd absorbs",
        rules=PanopticRules(),
        defaults=PanopticDefaults(),
        undefined=None,
    ),
    "coco": Dialect(
        name="coco",
        task="panoptic",
        about="panopticapi: annotated areas, one crowd per label and image, only images of the"
        " ground truths",
        rules=PanopticRules(annotated_areas=True, one_crowd=True, unannotated=False),
        defaults=PanopticDefaults(),
        undefined=None,
        export="panoptic",
    ),
    "torchmetrics": Dialect(
        name="torchmetrics",
        task="panoptic",
        about="torchmetrics 1.9 PanopticQuality: void of both sides, stuff joined by label, no"
        " crowds",
        rules=PanopticRules(crowds=False, void_predictions=True, joined_stuff=True),
        defaults=PanopticDefaults(),
        undefined=None,
    ),
}
"""The dialects of panoptic segmentation."""


# Layout of panoptic results: the metrics in their order.

LAYOUTS: dict[str | None, Layout] = {}
