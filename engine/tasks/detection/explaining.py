"""The detection part of a plan, in words."""

from __future__ import annotations

from .geometry import POINTS, SOLID
from .rules import DetectionRules
from .settings import Settings
from .tallies import variants

_MATCHING = {
    "greedy": "per threshold, by descending score, the best ground truth still free (COCO)",
    "nearest": "per threshold, by descending score, the nearest ground truth still free (nuScenes)",
    "locked": "each prediction keeps its best ground truth, free or not (Valor's code)",
    "best": "each prediction has its best ground truth or none (Pascal VOC)",
    "anew": "at each score anew, each ground truth the prediction that it overlaps most (KITTI)",
    "pool": "pairs leave the pool whatever the threshold (Valor's document)",
}
_GEOMETRY = {
    None: "boxes, oriented boxes, polygons or masks",
    "box": "boxes",
    "obb": "oriented boxes",
    "polygon": "polygons",
    "mask": "masks",
    POINTS: "keypoints (OKS in place of IoU)",
    SOLID: "3-D boxes",
}
_OVERLAPS = {"detailed": "detailed curve", "confusion": "confusion matrix", "outcomes": "outcomes"}


def _averaged(rules: DetectionRules) -> str:
    """What average precision is of."""
    if rules.every_point:
        return "AP is the area under interpolated precision"
    if rules.positions:
        return (
            f"AP is the mean of interpolated precision at {len(rules.positions)} recall positions"
        )
    said = f"precision at {len(rules.levels)} recall levels"
    if rules.linear is None:
        return f"AP is the mean of interpolated {said}"
    return f"AP is of {said}, on lines between points: what lies above {rules.linear:g}"


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """One line a step.

    Args:
        settings: the run's settings.
        needs: what the metrics need.
    """
    grid = variants(settings, needs)
    ious = ", ".join(f"{settings.told(iou):g}" for iou in grid.thresholds)
    what = "metres" if settings.by_distance else "IoU"
    areas = ", ".join(name or "any size" for name, _, _ in settings.areas)
    passes = len(grid.words)
    geometry = settings.geometry_said or "the most detailed that every row of both sides has"
    lines = [
        "encode    ids and labels to codes; rows by label, then datum",
        f"geometry  {_GEOMETRY[settings.geometry]}, {geometry}",
        f"match     {_MATCHING[settings.rules.matching]}",
        f"          {what} {ious} x area {areas} in {passes} pass{'es' if passes > 1 else ''}",
    ]
    if settings.cap is not None:
        lines.append(f"          at most {settings.cap} predictions per datum and label")
    used = [name for need, name in _OVERLAPS.items() if need in needs]
    if used:
        lines.append(f"overlaps  across labels, for {', '.join(used)}")
    if "iou_thresholds" in needs:
        lines.append(f"average   {_averaged(settings.rules)}")
    scores = settings.score_thresholds
    lines.append(f"tally     ranked outcomes; counts at {len(scores)} score thresholds on demand")
    return lines
