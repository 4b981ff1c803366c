"""Random tables of the merging tests, with only the options that change hits."""

from __future__ import annotations

from merging.parts import Case
from merging.test_parts import CASES


def plain(name: str, seed: int) -> Case:
    """Keep only the options of a case that change which predictions are hits.

    Datums without truth are removed: their scores are false positives only to the curve.
    """
    case = CASES[name][1](seed)
    if name == "classification":
        keys = [one for one in ("datum_id", "label_key") if one in case.sides[1].columns]
        scored = case.sides[0].join(case.sides[1].select(keys), on=keys, how="semi")
        case = Case((scored, case.sides[1]), case.options, case.datum, case.tables)
    sides = tuple(side.drop("weight", strict=False) for side in case.sides)
    relevant = {
        "dialect",
        "iou_type",
        "keypoint_sigmas",
        "max_detections",
        "multilabel",
        "area_ranges",
    }
    return Case(
        sides, {k: v for k, v in case.options.items() if k in relevant}, case.datum, case.tables
    )
