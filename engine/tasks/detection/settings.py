"""Settings: options of a detection run with defaults filled in."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ...dialects import Aims, Dialect, check_costs
from ...ingest.geometry import ANGLES
from ...schemas.arrays import Array
from ...schemas.errors import InputError, OptionError, invalid
from ...schemas.option_values import LabelThresholds, as_sigmas, chosen_thresholds
from ...schemas.options import INSIDE, POSITIVE_SHARE, Options, Range
from ...schemas.wording import option
from ...tallies.datums import Labels
from ...tallies.ranked_points import BoxBins
from .dialects import SHARES, DetectionRules
from .layers import FARTHEST, metres, similarity

# Sigmas of keypoints, relative to a person's size: pycocotools (divided by ten as there),
# xtcocotools and crowdposetools; ``even`` is 1 / k for k points, as in Ultralytics.

_HUNDREDTHS = {
    "coco": "26 25 25 35 35 79 79 72 72 62 62 107 107 87 87 89 89",
    "crowdpose": "79 79 72 72 62 62 107 107 87 87 89 89 79 79",
}
NAMED = {
    name: tuple(int(number) / 100 / 10.0 for number in numbers.split())
    for name, numbers in _HUNDREDTHS.items()
}
"""Sigmas of known sets of points, in their order."""
EVEN = "even"

Sigma = float | str | tuple[float, ...]


class Sigmas(msgspec.Struct, frozen=True):
    """Sigmas by label.

    Attributes:
        usual: default for labels: numbers, one number for all points, or the name of a set; None
            for
            COCO's, which only fit 17 points.
        own: label value, as text -> its sigmas.
    """

    usual: Sigma | None = None
    own: Mapping[str, Sigma] = {}

    def variances(self, labels: Labels, n_points: Array) -> tuple[Array, Array]:
        """Return (2 sigma)^2 of every point.

        Args:
            n_points: int64 [labels], points of each label's rows; 0 if no row has any.

        Returns:
            int64 [labels], offset of each label; float64, the variances.

        Raises:
            InputError: the number of points differs from the number of sigmas.
        """
        at: list[int] = []
        parts, n = [np.zeros(0)], 0
        named = labels.frame["label_name"] if "label_name" in labels.frame.columns else None
        for i, value in enumerate(labels.frame["label_value"].to_list()):
            names = (str(value), "" if named is None else str(named[i]))
            sigma = next((self.own[name] for name in names if name in self.own), self.usual)
            at.append(n)
            if n_points[i]:
                parts.append((_sigma(sigma, int(n_points[i]), value) * 2) ** 2)
                n += parts[-1].size
        return np.array(at, np.int64), np.concatenate(parts)


def _sigma(sigma: Sigma | None, n: int, label: Any) -> Array:
    if sigma == EVEN:
        return np.full(n, 1 / n)
    if isinstance(sigma, float):
        return np.full(n, sigma)
    numbers = NAMED[sigma or "coco"] if sigma is None or isinstance(sigma, str) else sigma
    if len(numbers) != n:
        whose = "" if isinstance(sigma, tuple) else f"{sigma or 'coco'}'s "
        fits = [name for name, sigmas in NAMED.items() if len(sigmas) == n]
        forms = [option("keypoint_sigmas", name) for name in (*fits, EVEN, 0.05)]
        raise InputError(
            f"rows of label {label!r} have {n} keypoints, and keypoint_sigmas are"
            f" {whose}{len(numbers)}. Write {n} numbers, or {', '.join(forms[:-1])} or one number"
            f" for all such as {forms[-1]}."
        )
    return np.array(numbers, np.float64)


def read_sigmas(sigmas: Any) -> Sigmas:
    """Parse the sigmas option and read its files.

    Args:
        sigmas: None; a number; a name or the path of a JSON file; numbers; or a mapping of labels
            to any of these.

    Raises:
        OptionError: no such name or file, or a file with other content.
    """
    sigmas = _loaded(sigmas)
    if isinstance(sigmas, Mapping):
        return Sigmas(None, {str(label): _loaded(value) for label, value in sigmas.items()})
    return Sigmas(sigmas)


def _loaded(value: Any) -> Any:
    """Replace the path of a JSON file by its content."""
    if not isinstance(value, str) or value in (*NAMED, EVEN):
        return value
    try:
        content = json.loads(Path(value).expanduser().read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        why = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise invalid(
            "keypoint_sigmas",
            value,
            f"{why}. Write {', '.join(NAMED)}, {EVEN}, numbers, or the path of a JSON file"
            " with a list of numbers or a mapping of labels to lists.",
        ) from None
    if isinstance(content, str):
        raise invalid("keypoint_sigmas", value, f"the file contains {content!r}, not numbers.")
    return as_sigmas(content)


# Settings: the options of a detection run with every default filled in.

Area = tuple[str | None, float, float]

DISTANCE = "distance"
"""Comparison by distance of centres; thresholds are in metres."""

IOU_TYPES = {
    "bbox": "box",
    "obb": "obb",
    "probiou": "obb",
    "segm": "mask",
    "boundary": "mask",
    "keypoints": "points",
    "3d": "solid",
    "bev": "solid",
    DISTANCE: "solid",
}
"""Values of ``iou_type``, and the compared geometry."""

GEOMETRIES = {"box": "box", "obb": "obb", "polygon": "polygon", "mask": "mask", "raster": "mask"}
"""Values of ``convert_to``."""

PROBIOU = "probiou"
"""Comparison of oriented boxes by ProbIoU."""

_SINGLE = ("detectron2", "mmcv")  # IoU in single precision
_FIXED = (PROBIOU, "3d", "bev", DISTANCE)
"""Comparisons with a fixed method in all dialects."""


class Settings(Aims, frozen=True, kw_only=True):
    """Settings of a detection run: the dialect's rules, and options with defaults filled in.

    Attributes:
        areas: (name, low, high); one unnamed unbounded range if not requested.
        spot_ious: thresholds of the confusion matrix and outcomes: ``iou_thresholds`` if given,
            else ``pr_curve_iou_threshold``.
        outcome_scores: score thresholds of outcomes: ``score_thresholds`` if given, else -inf for
            every prediction.
        geometry: box, obb, polygon, mask, points or solid if requested; None to choose by the
            tables.
        geometry_by: the option that requested it, for notes.
        boundary_ratio: None if boundaries are not compared.
        sigmas: of keypoints.
        mirrored: pairs of ``mirrored_keypoints``.
        angle: factor from angles to radians, clockwise as the image is seen.
        iou_kind: similarity of oriented boxes, or of 3-D ones.
        box_bins: bins of calibration by position and size.
        label_ious: label -> the single threshold of its AP, the lowest being that of others; empty
            to use all thresholds.
        collar: differences allowed to ends of events: seconds, and a share of the true length.
    """

    rules: DetectionRules
    iou_thresholds: tuple[float, ...]
    iou_thresholds_to_return: tuple[float, ...]
    score_thresholds: tuple[float, ...]
    recall_score_threshold: float | None
    pr_curve_iou_threshold: float
    pr_curve_max_examples: int
    max_detections: tuple[int, ...]
    areas: tuple[Area, ...]
    spot_ious: tuple[float, ...]
    outcome_scores: tuple[float, ...]
    geometry: str | None = None
    geometry_by: str = ""
    invalid_polygons: str = "refuse"
    boundary_ratio: float | None = None
    sigmas: Sigmas = Sigmas()
    pck_threshold: float | None = None
    head_segment: tuple[int, ...] | None = None
    mirrored: tuple[tuple[int, int], ...] | None = None
    background_iou: float = 0.1
    angle: float = 1.0
    iou_kind: str = "exact"
    n_bins: int = 15
    box_bins: BoxBins = BoxBins(5, 5, 8)
    thresholds: LabelThresholds = ()
    label_ious: dict[str, float]
    region_overlap: float | None = None
    collar: tuple[float, float] = (0.0, 0.0)

    @property
    def by_distance(self) -> bool:
        """True if the distance of centres replaces IoU."""
        return self.iou_kind == DISTANCE

    def in_user_unit(self, iou: float) -> float:
        """Return a threshold in the user's unit: metres for distances."""
        return round(float(metres(iou)) if self.by_distance else iou, 10)

    def internal_threshold(self, threshold: float) -> float:
        """Return the internal threshold for one in the user's unit."""
        if not self.by_distance:
            return threshold
        return _reached(float(similarity(threshold)), self.rules)

    @property
    def ious_of_needs(self) -> dict[str, tuple[float, ...]]:
        """Needs that are counted at IoU thresholds, and these."""
        return {
            "iou_thresholds": self.iou_thresholds,
            "pr_curve_iou_threshold": (self.pr_curve_iou_threshold,),
            "spot_ious": self.spot_ious,
        }

    @property
    def thresholds_in_user_unit(self) -> tuple[float, ...]:
        """Thresholds of averages, as users write them."""
        thresholds = self.iou_thresholds
        return tuple(map(self.in_user_unit, thresholds)) if self.by_distance else thresholds

    def in_user_units(self, iou: Array) -> Array:
        """Return IoUs in the user's unit, float64 [k]; metres if distances are compared.

        For dialects with single-precision IoU, the increment that the layer adds for thresholds is
        removed.
        """
        if self.by_distance:
            return metres(iou)
        return iou.astype(np.float32).astype(np.float64) if self.iou_kind in _SINGLE else iou

    @property
    def ranged(self) -> bool:
        """True if some area range excludes areas."""
        return any(low > 0 or high < math.inf for _, low, high in self.areas)

    @property
    def has_overall_range(self) -> bool:
        """True if the first area range covers all sizes, as outputs without ranges need."""
        return self.areas[0][0] in (None, "all")

    def share_of(self, need: str) -> float:
        """Share of a person's size within which a keypoint is found."""
        return SHARES[need] if self.pck_threshold is None else self.pck_threshold

    @property
    def cap(self) -> int | None:
        """The largest cap, which matching itself obeys."""
        return self.max_detections[-1] if self.max_detections else None

    @staticmethod
    def derive(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
        check_costs(values)
        _derive_geometry(values, options, dialect)
        _derive_thresholds(values, options, dialect.rules)
        _derive_ranges(values, options, dialect)
        boxes = values["box_bins"]
        scores = boxes if options.n_bins is None else options.n_bins
        values["box_bins"] = BoxBins(scores, boxes, values["least_in_bin"])


def _reached(iou: float, rules: DetectionRules) -> float:
    """The least IoU that hits at a threshold."""
    return math.nextafter(iou, math.inf) if rules.above else iou


def _similarities(values: Iterable[float]) -> tuple[float, ...]:
    """Distances as similarities, ascending."""
    return tuple(sorted(float(similarity(value)) for value in values))


def _derive_thresholds(values: dict[str, Any], options: Options, rules: DetectionRules) -> None:
    """Check thresholds; distances become similarities, and hits at them are exact."""
    far = options.iou_type == DISTANCE
    limits = Range(0, FARTHEST, above=True) if far else POSITIVE_SHARE
    thresholds, shared = values["iou_thresholds"], values["iou_thresholds_to_return"]
    at, background = values["pr_curve_iou_threshold"], values["background_iou"]
    limits.check("iou_thresholds", *thresholds)
    limits.check("pr_curve_iou_threshold", at)
    (limits if far else INSIDE).check("background_iou", background)
    if far:
        thresholds, shared = _similarities(thresholds), _similarities(shared)
        at, background = float(similarity(at)), float(similarity(background))
    reached = partial(_reached, rules=rules)
    thresholds = tuple(map(reached, thresholds))
    if options.iou_thresholds_to_return is not None:
        shared = chosen_thresholds(shared, thresholds)
    elif far or options.iou_thresholds is not None:
        shared = thresholds
    else:
        shared = chosen_thresholds(shared, thresholds, strict=False)
    at = (*chosen_thresholds((at,), thresholds, strict=False), reached(at))[0]
    label_ious = {} if options.iou_thresholds else rules.label_ious
    values.update(
        iou_thresholds=thresholds,
        iou_thresholds_to_return=shared,
        pr_curve_iou_threshold=at,
        background_iou=background,
        label_ious={label: reached(iou) for label, iou in label_ious.items()},
        spot_ious=(at,) if options.iou_thresholds is None else thresholds,
        outcome_scores=values["score_thresholds"] if options.score_thresholds else (-math.inf,),
    )


def _derive_ranges(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
    """Check area ranges and caps with the dialect, and order the ranges: "all" comes first."""
    rules, ranges, caps = dialect.rules, values["area_ranges"], values["max_detections"]
    for name, bounds in ranges.items():
        if not 0 <= bounds[0] <= bounds[1]:
            rule = "an area is 0 or more, and low comes first."
            raise invalid("area_ranges", {name: list(bounds)}, rule)
    without_ranges = rules.linear is not None or rules.difficulties
    has_regions = options.region_overlap is not None or options.regions is not None
    for name, wrong, has in (
        (
            "regions" if options.regions is not None else "region_overlap",
            has_regions and (rules.difficulties or values.get("region_overlap") is None),
            "none of that kind: write standard, visdrone, or region_overlap with it",
        ),
        ("area_ranges", without_ranges and ranges, "none"),
        ("max_detections", rules.positions and caps, "none"),
        ("max_detections", rules.cap_of_datum and len(caps) > 1, "one, on all rows of a datum"),
    ):
        if wrong:
            raise OptionError(
                f"{option(name)}: dialect {dialect.name} has {has}.",
                code="option_unfit",
                option=name,
            )
    if rules.difficulties:
        ranges = {one.name: (-math.inf, math.inf) for one in rules.difficulties}
    areas = sorted(
        ((name, *bounds) for name, bounds in ranges.items()), key=lambda one: one[0] != "all"
    )
    values["areas"] = tuple(areas) or ((None, -math.inf, math.inf),)


def _derive_geometry(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
    """Check options of geometry together; add what is compared, and how."""
    kind, rules = options.iou_type, dialect.rules
    if (kind or "bbox") not in rules.compares:
        names = " or ".join(option("iou_type", name) for name in rules.compares)
        chosen = option("iou_type", kind) if kind else "no iou_type"
        raise OptionError(
            f"dialect {dialect.name} and {chosen}: write {names}, or another dialect.",
            code="options_conflict",
            options=["dialect", "iou_type"],
        )
    by_type, by_name = IOU_TYPES.get(kind or ""), GEOMETRIES.get(options.convert_to or "")
    if by_type and by_name and by_type != by_name:
        raise OptionError(
            f"{option('iou_type', kind)} and {option('convert_to', options.convert_to)} ask for"
            " different geometry: remove one.",
            code="options_conflict",
            options=["iou_type", "convert_to"],
        )
    choices = {"iou_type": kind, "convert_to": options.convert_to}
    given = [option(name, value) for name, value in choices.items() if value is not None]
    mirrored = options.mirrored_keypoints
    pairs: list[tuple[str, tuple[int, ...]]]
    pairs = [("mirrored_keypoints", pair) for pair in (mirrored or {}).items()]
    if options.head_segment is not None:
        pairs.append(("head_segment", options.head_segment))
    for name, pair in pairs:
        if len(pair) != 2 or min(pair) < 1 or pair[0] == pair[1]:
            raise invalid(name, list(pair), "write two keypoints, counted from 1.")
    values.update(
        geometry=by_type or by_name,
        geometry_by=f"asked for by {' and '.join(given)}" if given else "",
        iou_kind=kind if kind in _FIXED else rules.iou_kind,
        angle=ANGLES.get(options.angle_format or "", 1.0),
        boundary_ratio=values["boundary_ratio"] if kind == "boundary" else None,
        sigmas=read_sigmas(values["keypoint_sigmas"]),
        mirrored=None if mirrored is None else tuple(mirrored.items()),
    )
