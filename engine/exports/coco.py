"""COCO's shape: its numbers, twelve or ten, and the precision, recall and score arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..schemas.arrays import Array
from ..schemas.errors import ResultError
from ..tasks.detection.geometry import POINTS
from ..tasks.detection.metrics.averages import mean_precision, mean_recall

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard
    from ..tally.ranked_view import RankedView
    from ..tasks.detection.settings import Settings


_SHORT = {0.5: "AP50", 0.75: "AP75"}


class CocoResult(Mapping[str, Any]):
    """Mapping whose arrays are computed on first access.

    Args:
        makers: key to a function that computes its value.
    """

    def __init__(self, makers: Mapping[str, Callable[[], Any]]) -> None:
        self._makers = dict(makers)
        self._made: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if key not in self._made:
            self._made[key] = self._makers[key]()
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._makers)

    def __len__(self) -> int:
        return len(self._makers)

    def __repr__(self) -> str:
        return f"CocoResult({', '.join(self._makers)})"


def _summary(view: RankedView, settings: Settings) -> dict[str, float]:
    """Return the numbers that COCOeval.summarize prints, -1 if undefined.

    Numbers over all sizes need a range called "all" (or no ranges).

    Raises:
        ResultError: several label keys, which COCO does not have.
    """
    keys = view.labels.key_names
    if len(keys) > 1:
        raise ResultError(
            f"COCO's numbers are of one label key, and this result has {len(keys)}:"
            f' {", ".join(map(repr, keys))}. Choose one with where="label_key = {keys[0]!r}".'
        )
    areas = {name or "all": a for a, (name, _, _) in enumerate(settings.areas)}
    caps = settings.max_detections
    every = settings.iou_thresholds
    some = {iou: tuple(t for t in every if math.isclose(t, iou)) for iou in _SHORT}
    several = list(dict.fromkeys([every, *filter(None, some.values())]))
    precisions = mean_precision(view, settings, several)

    def precision(name: str, ious: tuple[float, ...]) -> float:
        return first(precisions[..., areas[name], several.index(ious)]) if ious else -1.0

    def recall(name: str, ious: tuple[float, ...], cap: int = -1) -> float:
        found = mean_recall(view, settings, ious)
        return first(found[:, :, cap, areas[name]]) if ious else -1.0

    out: dict[str, float] = {}
    if "all" in areas:
        out["AP"] = precision("all", every)
        for iou, title in _SHORT.items():
            out[title] = precision("all", some[iou])
    others = [name for name in areas if name != "all"]
    out.update({f"AP{name}": precision(name, every) for name in others})
    if "all" in areas and settings.geometry == POINTS:
        out["AR"] = recall("all", every)
        out.update({f"AR{title[2:]}": recall("all", some[iou]) for iou, title in _SHORT.items()})
    elif "all" in areas:
        out.update({f"AR{cap}": recall("all", every, m) for m, cap in enumerate(caps or ("",))})
    out.update({f"AR{name}": recall(name, every) for name in others})
    return out


def first(means: Array) -> float:
    """Return the number of the only group and key, -1 if missing or undefined."""
    return float(means[0, 0]) if means.size and not np.isnan(means[0, 0]) else -1.0


def arrays_of(view: RankedView, iou_thresholds: Sequence[float]) -> dict[str, Array]:
    """Compute precision and scores [T, R, K, A, M] and recall [T, K, A, M]; -1 without ground
    truth.

    Args:
        view: the whole set, with M caps.
        iou_thresholds: T matched thresholds, in any order.
    """
    at = [view.tally.variants.threshold_index(iou) for iou in iou_thresholds]
    every = [*range(len(view.tally.variants.thresholds))]
    caps = [int(cap) for cap in view.caps]
    defined = view.positives[0] > 0  # label, area
    k, a = defined.shape
    shape = len(at), view.levels.size, k, a, len(caps)
    made = {"precision": np.full(shape, -1.0), "scores": np.full(shape, -1.0)}
    made["recall"] = np.full((shape[0], *shape[2:]), -1.0)
    for m, cap in enumerate(caps):
        q, s, true = (array[0] for array in view.sampled_with_scores(cap))
        np.nan_to_num(s, copy=False)  # pycocotools has 0 where a level is not reached
        with np.errstate(invalid="ignore", divide="ignore"):
            r = true[:, 0] / view.positives[0][..., None]
        for name, array in (("precision", q), ("scores", s), ("recall", r)):
            ordered = np.moveaxis(array if at == every else array[:, :, at], (0, 1), (-2, -1))
            np.copyto(made[name][..., m], ordered, where=defined)
    return made


def _params(view: RankedView, settings: Settings) -> dict[str, Any]:
    return {
        "iouThrs": np.asarray(settings.iou_thresholds),
        "recThrs": view.levels,
        "maxDets": list(settings.max_detections),
        "areaRng": [[low, high] for _, low, high in settings.areas],
        "areaRngLbl": [name or "all" for name, _, _ in settings.areas],
        "catIds": view.labels.frame["label_value"].to_list(),
        "labelKeys": view.labels.frame["label_key"].to_list(),
    }


def from_view(view: RankedView, settings: Settings) -> CocoResult:
    """Build COCO's result from a run.

    Args:
        view: the whole set.

    Returns:
        names, stats (Python floats), precision float64 [T, R, K, A, M], recall [T, K, A, M], scores
        [T, R, K, A, M] and params; K is the labels in ascending order. Undefined is -1.
    """
    arrays: dict[str, Array] = {}

    def array(name: str) -> Array:
        if not arrays:
            arrays.update(arrays_of(view, settings.iou_thresholds))
        return arrays[name]

    summary: dict[str, float] = {}

    def numbers() -> dict[str, float]:
        if not summary:
            summary.update(_summary(view, settings))
        return summary

    return CocoResult(
        {
            "names": lambda: list(numbers()),
            "stats": lambda: list(numbers().values()),
            "precision": lambda: array("precision"),
            "recall": lambda: array("recall"),
            "scores": lambda: array("scores"),
            "params": lambda: _params(view, settings),
        }
    )


def from_frames(card: Scorecard) -> CocoResult:
    """Build COCO's result from a stored scorecard: only names and stats.

    Raises:
        ResultError: on access to an array, which is not stored.
    """
    from ..report.sections import coco_numbers

    def missing() -> Any:
        raise ResultError(
            "A stored scorecard holds frames, not COCO's arrays: score again to have them."
        )

    return CocoResult(
        {
            "names": lambda: [name for name, _ in coco_numbers(card)],
            "stats": lambda: [-1.0 if v is None else v for _, v in coco_numbers(card)],
            **dict.fromkeys(("precision", "recall", "scores", "params"), missing),
        }
    )
