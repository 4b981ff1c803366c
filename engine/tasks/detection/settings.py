"""Settings: options of a detection run with defaults filled in."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ...dialects import Dialect
from ...ingest.geometry import ANGLES
from ...metrics.thresholds import Aims, aims_of
from ...schemas.arrays import Array
from ...schemas.errors import InputError, OptionError, invalid, unknown
from ...schemas.option_values import LabelThresholds
from ...schemas.options import Options
from ...schemas.wording import option
from ...tally.datums import Labels
from ...tally.ranked_points import BoxBins
from .dialects import SHARES, DetectionDefaults, DetectionRules
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
            own = next((self.own[name] for name in names if name in self.own), self.usual)
            at.append(n)
            if n_points[i]:
                parts.append((_sigma(own, int(n_points[i]), value) * 2) ** 2)
                n += parts[-1].size
        return np.array(at, np.int64), np.concatenate(parts)


def _sigma(given: Sigma | None, n: int, label: Any) -> Array:
    if given == EVEN:
        return np.full(n, 1 / n)
    if isinstance(given, float):
        return np.full(n, given)
    numbers = NAMED[given or "coco"] if given is None or isinstance(given, str) else given
    if len(numbers) != n:
        whose = "" if isinstance(given, tuple) else f"{given or 'coco'}'s "
        fits = [name for name, own in NAMED.items() if len(own) == n]
        ways = [option("keypoint_sigmas", name) for name in (*fits, EVEN, 0.05)]
        raise InputError(
            f"rows of label {label!r} have {n} keypoints, and keypoint_sigmas are"
            f" {whose}{len(numbers)}. Write {n} numbers, or {', '.join(ways[:-1])} or one number"
            f" for all such as {ways[-1]}."
        )
    return np.array(numbers, np.float64)


def read_sigmas(given: Any) -> Sigmas:
    """Parse the sigmas option and read its files.

    Args:
        given: None; a number; a name or the path of a JSON file; numbers; or a mapping of labels
            to any of these.

    Raises:
        OptionError: no such name or file, or a file with other content.
    """
    if isinstance(given, str) and given not in (*NAMED, EVEN):
        given = _file(given)
    if isinstance(given, Mapping):
        own = {str(label): _one(value) for label, value in given.items()}
        return Sigmas(None, {label: value for label, value in own.items() if value is not None})
    return Sigmas(_one(given))


def _one(given: Any) -> Sigma | None:
    if isinstance(given, str) and given not in (*NAMED, EVEN):
        given = _file(given)
    if given is None or isinstance(given, str):
        return given
    several = isinstance(given, (list, tuple))
    for one in given if several else (given,):
        if isinstance(one, bool) or not isinstance(one, (int, float)) or not 0 < one < np.inf:
            raise OptionError(f"keypoint_sigmas: {one!r} is not a sigma; write numbers above 0.")
    return tuple(map(float, given)) if several else float(given)


def _file(path: str) -> Any:
    try:
        values = json.loads(Path(path).expanduser().read_text("utf-8-sig"))
    except (OSError, ValueError) as error:
        why = "no such file" if isinstance(error, FileNotFoundError) else str(error)
        raise invalid(
            "keypoint_sigmas",
            path,
            f"{why}. Write {', '.join(NAMED)}, {EVEN}, numbers, or the path of a JSON file"
            " with a list of numbers or a mapping of labels to lists.",
        ) from None
    if isinstance(values, str):
        written = option("keypoint_sigmas", path)
        raise OptionError(f"{written}: the file contains {values!r}, not numbers.")
    return values


# Settings: the options of a detection run with every default filled in.

Range = tuple[str | None, float, float]

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
_ALIKE = (PROBIOU, "3d", "bev", DISTANCE)
"""Comparisons with a fixed method in all dialects."""

_MOST_BOX_BINS = 100
INVALID = ("refuse", "repair")
"""Values of ``invalid_polygons``."""


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of a detection run.

    Attributes:
        rules: the dialect's rules.
        iou_thresholds: ascending IoU thresholds of averages and counts.
        iou_thresholds_to_return: those with separate AP and mAP rows.
        score_thresholds: ascending thresholds of curves and counts.
        recall_score_threshold: lowest score of a true positive in AR; None for no limit.
        pr_curve_iou_threshold: IoU threshold of the score-threshold curves.
        pr_curve_max_examples: examples per cell of the detailed curves.
        max_detections: ascending caps per datum and label; empty for none.
        areas: (name, low, high); one unnamed unbounded range if not requested.
        spot_ious: thresholds of the confusion matrix and outcomes: ``iou_thresholds`` if given,
            else
            ``pr_curve_iou_threshold``.
        outcome_scores: score thresholds of outcomes: ``score_thresholds`` if given, else -inf for
            every prediction.
        geometry: box, obb, polygon, mask, points or solid if requested; None to choose by the
            tables.
        geometry_said: the option that requested it, for notes.
        invalid_polygons: refuse or repair.
        boundary_ratio: width of boundaries as a share of the image's diagonal; None if boundaries
            are not compared.
        sigmas: of keypoints.
        alike: similarity of oriented boxes, or of 3-D ones.
        angle: factor from angles to radians, clockwise as the image is seen.
        background_iou: IoU up to which a wrong prediction is on background.
        aims: targets of the chosen thresholds.
        n_bins: equal bins of scores in [0, 1], for calibration.
        box_bins: bins of calibration by position and size.
        thresholds: scores from which predictions of labels count.
        label_ious: label -> the single threshold of its AP, the lowest being that of others; empty
            to use all thresholds.
    """

    rules: DetectionRules
    iou_thresholds: tuple[float, ...]
    iou_thresholds_to_return: tuple[float, ...]
    score_thresholds: tuple[float, ...]
    recall_score_threshold: float | None
    pr_curve_iou_threshold: float
    pr_curve_max_examples: int
    max_detections: tuple[int, ...]
    areas: tuple[Range, ...]
    spot_ious: tuple[float, ...]
    outcome_scores: tuple[float, ...]
    geometry: str | None = None
    geometry_said: str = ""
    invalid_polygons: str = "refuse"
    boundary_ratio: float | None = None
    sigmas: Sigmas = Sigmas()
    pck_threshold: float | None = None
    head_segment: tuple[int, ...] | None = None
    mirrored: tuple[tuple[int, int], ...] | None = None
    background_iou: float = 0.1
    angle: float = 1.0
    alike: str = "exact"
    aims: Aims = Aims()
    n_bins: int = 15
    box_bins: BoxBins = BoxBins(5, 5, 8)
    thresholds: LabelThresholds = ()
    label_ious: dict[str, float] = {}

    @property
    def by_distance(self) -> bool:
        """True if the distance of centres replaces IoU."""
        return self.alike == DISTANCE

    def told(self, iou: float) -> float:
        """Return a threshold in the user's unit: metres for distances."""
        return round(float(metres(iou)) if self.by_distance else iou, 10)

    def meant(self, told: float) -> float:
        """Return the internal threshold for one in the user's unit; inverse of :meth:`told`."""
        if not self.by_distance:
            return told
        return _reached(float(similarity(told)), self.rules)

    @property
    def told_thresholds(self) -> tuple[float, ...]:
        """Thresholds of averages, as users write them."""
        given = self.iou_thresholds
        return tuple(map(self.told, given)) if self.by_distance else given

    def shown(self, iou: Array) -> Array:
        """Return IoUs in the user's unit, float64 [k]; metres if distances are compared.

        For dialects with single-precision IoU, the increment that the layer adds for thresholds is
        removed.
        """
        if self.by_distance:
            return metres(iou)
        return iou.astype(np.float32).astype(np.float64) if self.alike in _SINGLE else iou

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


def _distinct(name: str, values: tuple[float, ...]) -> tuple[float, ...]:
    if not values:
        raise OptionError(f"{name} is empty: give at least one value.")
    return tuple(sorted(set(values)))


def _check_ious(name: str, values: tuple[float, ...], *, far: bool) -> None:
    wrong = [v for v in values if not 0 < v <= (FARTHEST if far else 1)]
    if wrong and far:
        raise invalid(name, wrong[0], "a distance is above 0 and at most 4096 m.")
    if wrong:
        raise invalid(name, wrong[0], "an IoU threshold is above 0 and at most 1.")


def _alike(values: tuple[float, ...], *, far: bool) -> tuple[float, ...]:
    """Thresholds as similarities, ascending."""
    return tuple(sorted(float(similarity(v)) for v in values)) if far else values


def _to_return(
    options: Options, thresholds: tuple[float, ...], defaults: DetectionDefaults, *, far: bool
) -> tuple[float, ...]:
    given = options.iou_thresholds_to_return
    if given is not None and far:
        given = _alike(given, far=far)
    if given is None and far:
        return thresholds
    if given is None:
        return (
            thresholds
            if options.iou_thresholds is not None
            else _snapped(defaults.iou_thresholds_to_return, thresholds)
        )
    missing = [t for t in given if not any(math.isclose(t, c, abs_tol=1e-9) for c in thresholds)]
    if missing:
        raise OptionError(
            f"{option('iou_thresholds_to_return', missing[0])} is not among iou_thresholds"
            f" {[round(t, 10) for t in thresholds]}: add it there.",
            code="option_value",
            option="iou_thresholds_to_return",
            value=missing[0],
        )
    return _snapped(_distinct("iou_thresholds_to_return", given), thresholds)


def _reached(iou: float, rules: DetectionRules) -> float:
    """The least IoU that hits at a threshold."""
    return math.nextafter(iou, math.inf) if rules.above else iou


def _label_ious(rules: DetectionRules) -> dict[str, float]:
    return {label: _reached(iou, rules) for label, iou in rules.label_ious.items()}


def _snapped(wanted: tuple[float, ...], grid: tuple[float, ...]) -> tuple[float, ...]:
    """Return the grid values nearest to the requested ones (0.9 may be 0.8999...9 in the grid)."""
    return tuple(c for c in grid if any(math.isclose(c, w, abs_tol=1e-9) for w in wanted))


def _all_first(area: Range) -> bool:
    """Sort key that puts the range "all" first and keeps the order of the others."""
    return area[0] != "all"


def _known(name: str, value: str | None, known: Iterable[str]) -> None:
    if value is not None and value not in known:
        raise unknown(name, value, known)


def _geometry(options: Options, dialect: Dialect) -> dict[str, Any]:
    """Return the settings of geometry.

    Raises:
        OptionError: values that do not exist or contradict each other.
    """
    _known("iou_type", options.iou_type, IOU_TYPES)
    compares = dialect.rules.compares
    if (options.iou_type or "bbox") not in compares:
        ways = " or ".join(option("iou_type", name) for name in compares)
        given = option("iou_type", options.iou_type) if options.iou_type else "no iou_type"
        raise OptionError(f"dialect {dialect.name} and {given}: write {ways}, or another dialect.")
    _known("convert_to", options.convert_to, GEOMETRIES)
    _known("invalid_polygons", options.invalid_polygons, INVALID)
    by_type = IOU_TYPES.get(options.iou_type or "")
    by_name = GEOMETRIES.get(options.convert_to or "")
    if by_type and by_name and by_type != by_name:
        raise OptionError(
            f"{option('iou_type', options.iou_type)} and"
            f" {option('convert_to', options.convert_to)} ask for different geometry: remove one."
        )
    ratio = 0.02 if options.boundary_ratio is None else options.boundary_ratio
    if not 0 < ratio < 1:
        raise invalid(
            "boundary_ratio", ratio, "the width is a share of the diagonal, above 0 and below 1."
        )
    said = {"iou_type": options.iou_type, "convert_to": options.convert_to}
    asked = [option(name, value) for name, value in said.items() if value is not None]
    return {
        "geometry": by_type or by_name,
        "geometry_said": f"asked for by {' and '.join(asked)}" if asked else "",
        "alike": options.iou_type if options.iou_type in _ALIKE else dialect.rules.alike,
        "invalid_polygons": options.invalid_polygons or "refuse",
        "angle": ANGLES.get(options.angle_format or "", 1.0),
        "boundary_ratio": ratio if options.iou_type == "boundary" else None,
        "sigmas": read_sigmas(
            dialect.defaults.keypoint_sigmas
            if options.keypoint_sigmas is None
            else options.keypoint_sigmas
        ),
    }


def _of_points(options: Options) -> dict[str, Any]:
    """Return the settings of single keypoints.

    Raises:
        OptionError: a share that is not above 0, or an invalid pair of points.
    """
    share, segment = options.pck_threshold, options.head_segment
    if share is not None and not 0 < share < math.inf:
        raise invalid("pck_threshold", share, "write a share above 0.")
    given = options.mirrored_keypoints
    mirrored = None if given is None else tuple(given.items())
    for pair, said in (
        *([] if segment is None else [(segment, option("head_segment", [*segment]))]),
        *((pair, option("mirrored_keypoints", dict([pair]))) for pair in mirrored or ()),
    ):
        if len(pair) != 2 or min(pair) < 1 or pair[0] == pair[1]:
            raise OptionError(f"{said}: write two keypoints, counted from 1.")
    return {"pck_threshold": share, "head_segment": segment, "mirrored": mirrored}


def _box_bins(options: Options) -> BoxBins:
    """Return the bins of calibration by position and size, by default as many for scores.

    Raises:
        OptionError: no bins, too many, or a minimum below one row.
    """
    boxes = 5 if options.box_bins is None else options.box_bins
    least = 8 if options.least_in_bin is None else options.least_in_bin
    if not 1 <= boxes <= _MOST_BOX_BINS:
        raise invalid("box_bins", boxes, f"write 1 to {_MOST_BOX_BINS}.")
    if least < 1:
        raise invalid("least_in_bin", least, "write 1 or more.")
    return BoxBins(boxes if options.n_bins is None else options.n_bins, boxes, least)


def resolve(options: Options, dialect: Dialect) -> Settings:
    """Fill in defaults and validate options.

    Raises:
        OptionError: a threshold out of range, an empty list, a range upside down.
    """
    defaults: DetectionDefaults = dialect.defaults
    geometry = _geometry(options, dialect)
    thresholds = _distinct(
        "iou_thresholds",
        defaults.iou_thresholds if options.iou_thresholds is None else options.iou_thresholds,
    )
    far = options.iou_type == DISTANCE
    _check_ious("iou_thresholds", thresholds, far=far)
    thresholds = tuple(_reached(iou, dialect.rules) for iou in _alike(thresholds, far=far))
    scores = (
        defaults.score_thresholds if options.score_thresholds is None else options.score_thresholds
    )
    scores = _distinct("score_thresholds", scores)
    if not all(math.isfinite(s) for s in scores):
        raise OptionError("score_thresholds contains NaN or infinity.")
    at = defaults.pr_curve_iou_threshold
    if options.pr_curve_iou_threshold is not None:
        at = options.pr_curve_iou_threshold
    _check_ious("pr_curve_iou_threshold", (at,), far=far)
    at = _alike((at,), far=far)[0]
    at = (_snapped((at,), thresholds) or (_reached(at, dialect.rules),))[0]
    examples = defaults.pr_curve_max_examples
    if options.pr_curve_max_examples is not None:
        examples = options.pr_curve_max_examples
    if examples < 0:
        raise invalid("pr_curve_max_examples", examples, "write 0 or more.")
    caps = defaults.max_detections if options.max_detections is None else options.max_detections
    if any(cap < 1 for cap in caps):
        raise invalid("max_detections", list(caps), "a cap is 1 or more.")
    ranges = defaults.area_ranges if options.area_ranges is None else options.area_ranges
    for name, (low, high) in ranges.items():
        if not low <= high:
            raise OptionError(f"area_ranges: {name!r} runs from {low} to {high}; low comes first.")
        if low < 0:
            raise OptionError(f"area_ranges: {name!r} starts at {low}; an area is 0 or more.")
    if (dialect.rules.linear is not None or dialect.rules.difficulties) and ranges:
        raise OptionError(f"area_ranges: dialect {dialect.name} has none.")
    if dialect.rules.positions and caps:
        raise OptionError(f"max_detections: dialect {dialect.name} has none.")
    if dialect.rules.difficulties:
        ranges = {one.name: (-math.inf, math.inf) for one in dialect.rules.difficulties}
    if dialect.rules.cap_of_datum and len(set(caps)) > 1:
        raise OptionError(
            f"max_detections {sorted(set(caps))}: dialect {dialect.name} has one cap, on all"
            " predictions of a datum."
        )
    background = defaults.background_iou
    if options.background_iou is not None:
        background = options.background_iou
    if far:
        _check_ious("background_iou", (background,), far=far)
        background = _alike((background,), far=far)[0]
    elif not 0 < background < 1:
        raise invalid("background_iou", background, "write an IoU above 0 and below 1.")
    bins = 15 if options.n_bins is None else options.n_bins
    if bins < 1:
        raise invalid("n_bins", bins, "write 1 or more.")
    limit = options.recall_score_threshold
    if limit is not None and not math.isfinite(limit):
        raise invalid("recall_score_threshold", limit, "write a finite number.")
    return Settings(
        **_of_points(options),
        rules=dialect.rules,
        background_iou=background,
        aims=aims_of(options),
        n_bins=bins,
        box_bins=_box_bins(options),
        thresholds=options.thresholds or (),
        label_ious={} if options.iou_thresholds else _label_ious(dialect.rules),
        iou_thresholds=thresholds,
        iou_thresholds_to_return=_to_return(options, thresholds, defaults, far=far),
        score_thresholds=scores,
        recall_score_threshold=options.recall_score_threshold,
        pr_curve_iou_threshold=at,
        pr_curve_max_examples=examples,
        max_detections=tuple(sorted(set(caps))),
        areas=tuple(sorted(((name, *ends) for name, ends in ranges.items()), key=_all_first))
        or ((None, -math.inf, math.inf),),
        spot_ious=thresholds if options.iou_thresholds is not None else (at,),
        outcome_scores=scores if options.score_thresholds is not None else (-math.inf,),
        **geometry,
    )


def default_metrics(settings: Settings, dialect: Dialect) -> tuple[str, ...]:
    """The dialect's default set."""
    defaults: DetectionDefaults = dialect.defaults
    return defaults.metrics
