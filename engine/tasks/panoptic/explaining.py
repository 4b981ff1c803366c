"""The plan of a panoptic run in words."""

from __future__ import annotations

from .settings import Settings


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """One line a step.

    Args:
        settings: the run's settings.
        needs: what must be tallied.
    """
    rules = settings.rules
    what = "IoU of whole segments"
    if settings.boundary_ratio is not None:
        what = (
            "the smaller of the IoU of segments and of their boundaries, of"
            f" {settings.boundary_ratio:g} of the diagonal"
        )
    void = "of either side" if rules.void_predictions else "of the ground truths"
    areas = "annotated" if rules.annotated_areas else "counted"
    return [
        f"match     {what} above 0.5; void {void} taken off; areas of ground truths {areas}",
        f"tally     {', '.join(sorted(needs))} by datum and label",
        "mean      over labels with segments: all, things, stuff",
    ]
