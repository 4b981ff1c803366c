"""Shapes of pycocotools, LVIS, panopticapi and KITTI."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import polars as pl

from ..schemas.arrays import Array
from ..schemas.errors import ResultError
from ..scorecard.card import Scorecard
from ..tallies.ranked_view import RankedView
from ..tasks.detection.dialects import DIALECTS
from ..tasks.detection.geometry import POINTS
from ..tasks.detection.metrics.averages import (
    FREQUENCIES,
    mean_precision,
    mean_recall,
    of_frequency,
)
from ..tasks.detection.settings import Settings

# COCO's shape: its numbers, twelve or ten, and the precision, recall and score arrays.

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
        values = mean_recall(view, settings, ious)
        return first(values[:, :, cap, areas[name]]) if ious else -1.0

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
    arrays = {"precision": np.full(shape, -1.0), "scores": np.full(shape, -1.0)}
    arrays["recall"] = np.full((shape[0], *shape[2:]), -1.0)
    for m, cap in enumerate(caps):
        q, s, true = (array[0] for array in view.sampled_with_scores(cap))
        np.nan_to_num(s, copy=False)  # pycocotools has 0 if a level is not reached
        with np.errstate(invalid="ignore", divide="ignore"):
            r = true[:, 0] / view.positives[0][..., None]
        for name, array in (("precision", q), ("scores", s), ("recall", r)):
            ordered = np.moveaxis(array if at == every else array[:, :, at], (0, 1), (-2, -1))
            np.copyto(arrays[name][..., m], ordered, where=defined)
    return arrays


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


def coco_from_view(view: RankedView, settings: Settings) -> CocoResult:
    """Build COCO's result from a run.

    Returns:
        names, stats (Python floats), precision float64 [T, R, K, A, M], recall [T, K, A, M], scores
        [T, R, K, A, M] and params; K is the labels in ascending order. Undefined is -1.
    """
    arrays = cache(lambda: arrays_of(view, settings.iou_thresholds))
    return _result(
        lambda: _summary(view, settings),
        {
            "precision": lambda: arrays()["precision"],
            "recall": lambda: arrays()["recall"],
            "scores": lambda: arrays()["scores"],
            "params": lambda: _params(view, settings),
        },
    )


def _result(
    numbers: Callable[[], dict[str, float]], others: Mapping[str, Callable[[], Any]]
) -> CocoResult:
    """A result with names and stats, and further keys."""
    numbers = cache(numbers)
    names = {"names": lambda: list(numbers()), "stats": lambda: list(numbers().values())}
    return CocoResult({**names, **others})


def _not_stored(tool: str, *keys: str) -> dict[str, Callable[[], Any]]:
    """Return a function per key that refuses, since a stored scorecard has no arrays."""

    def missing() -> Any:
        raise ResultError(
            f"A stored scorecard has frames, but not {tool}'s arrays: score again to get them."
        )

    return dict.fromkeys(keys, missing)


def coco_from_frames(card: Scorecard) -> CocoResult:
    """Build COCO's result from a stored scorecard: only names and stats.

    Raises:
        ResultError: on access to an array, which is not stored.
    """
    from ..report.summary import coco_numbers

    return CocoResult(
        {
            "names": lambda: [name for name, _ in coco_numbers(card)],
            "stats": lambda: [-1.0 if v is None else v for _, v in coco_numbers(card)],
            **_not_stored("COCO", "precision", "recall", "scores", "params"),
        }
    )


# LVIS's shape: the thirteen numbers of ``LVISEval``, and its precision and recall arrays.

_MOST = 300
"""Default of ``Params.max_dets``, which names recall without a cap."""


def _named(coco_names: Mapping[str, float], frequent: Mapping[str, float]) -> dict[str, float]:
    """LVIS's names in LVIS's order, from COCO's: APsmall is APs, the last AR is AR@300."""
    out: dict[str, float] = {}
    cap = str(_MOST)
    for name, value in coco_names.items():
        kind, rest = name[:2], name[2:]
        if kind == "AR" and (not rest or rest.isdecimal()):
            if not out.keys() & frequent.keys():
                out.update(frequent)
            cap = rest or cap
            out[f"AR@{cap}"] = value
            continue
        short = rest[:1] if rest in ("small", "medium", "large") else rest
        out[f"{kind}{short}" + (f"@{cap}" if kind == "AR" else "")] = value
    return out


def lvis_from_view(view: RankedView, settings: Settings) -> CocoResult:
    """Build LVIS's result from a run.

    Returns:
        names, stats (Python floats), precision float64 [T, R, K, A], recall [T, K, A] and params; K
        is the labels in ascending order. Undefined is -1.
    """
    result = coco_from_view(view, settings)

    def numbers() -> dict[str, float]:
        frequent = {
            f"AP{name}": first(of_frequency(view, settings, name)[0][..., 0])
            for name in FREQUENCIES
        }
        return _named(dict(zip(result["names"], result["stats"], strict=True)), frequent)

    return _result(
        numbers,
        {
            "precision": lambda: result["precision"][..., -1],
            "recall": lambda: result["recall"][..., -1],
            "params": lambda: result["params"],
        },
    )


def lvis_from_frames(card: Scorecard) -> CocoResult:
    """Build LVIS's result from a stored scorecard: only names and stats.

    Raises:
        ResultError: on access to an array, which is not stored.
    """
    result = coco_from_frames(card)

    def numbers() -> dict[str, float]:
        rows = card.metrics.filter(
            pl.col("slice").is_null() & (pl.col("area").is_null() | (pl.col("area") == "all"))
        )
        of = dict(rows.select("metric", "value").iter_rows())
        frequent = {
            f"AP{name}": -1.0 if of.get(f"AP{name}") is None else of[f"AP{name}"]
            for name in FREQUENCIES
        }
        return _named(dict(zip(result["names"], result["stats"], strict=True)), frequent)

    return _result(numbers, _not_stored("LVIS", "precision", "recall", "params"))


# panopticapi's shape: PQ, SQ, RQ and n of all labels, things and stuff, and of each class.

_QUALITIES = ("PQ", "SQ", "RQ")
_GROUPS = {None: "All", "things": "Things", "stuff": "Stuff"}
_UNDEFINED = 0.0
"""panopticapi's value for a class without segments."""


def to_panoptic(card: Scorecard) -> dict[str, Any]:
    """Convert to the result of ``pq_compute``: ``All``, ``Things``, ``Stuff`` and ``per_class``.

    Returns:
        pq, sq, rq and n of each; None without segments, for which panopticapi divides by 0.

    Raises:
        ResultError: PQ, SQ or RQ was not computed.
    """
    overall = card.metrics.filter(pl.col("slice").is_null(), pl.col("metric").is_in(_QUALITIES))
    missing = [name for name in _QUALITIES if name not in overall["metric"]]
    if missing:
        raise ResultError(
            f"to_panoptic() shows PQ, SQ and RQ, and this run has no {missing[0]}: ask for all"
            " three, or for no metric by name."
        )
    means = overall.filter(pl.col("label_value").is_null())
    groups: dict[str, Any] = {name: {} for name in _GROUPS.values()}
    for row in means.iter_rows(named=True):
        group = groups[_GROUPS[row["average"]]]
        group[row["metric"].lower()] = row["value"]
        group["n"] = group.pop("n", row["support"])
    groups = {name: group for name, group in groups.items() if group}
    classes: dict[Any, dict[str, float]] = {}
    for row in overall.filter(pl.col("label_value").is_not_null()).iter_rows(named=True):
        value = _UNDEFINED if row["value"] is None else row["value"]
        classes.setdefault(row["label_value"], {})[row["metric"].lower()] = value
    return groups | {"per_class": classes}


# KITTI's numbers in percent, under the names that OpenPCDet gives them.

_COMPARED = {"bbox": "image", "bev": "bev", "3d": "3d"}
_SUFFIX = {"kitti": "_R40", "kitti-r11": ""}


def to_kitti(card: Scorecard) -> dict[str, float]:
    """Convert to each label's AP, and AOS if computed, easy first.

    Args:
        card: a scorecard of dialect ``kitti`` or ``kitti-r11``.

    Returns:
        ``Car_3d/easy_R40`` and so on, in percent; 0 without ground truths.

    Raises:
        ResultError: AP was not computed, or has several IoU thresholds per label.
    """
    unscored = DIALECTS[card.dialect].rules.unscored
    rows = card.metrics.filter(
        ~pl.col("label_value").cast(pl.String).is_in(unscored),
        pl.col("slice").is_null(),
        pl.col("metric").is_in(["AP", "AOS"]),
        pl.col("area") != "all",
    )
    if "AP" not in rows["metric"]:
        raise ResultError("to_kitti() shows AP, and this run has none: ask for AP.")
    if rows.select("label_key", "label_value", "metric", "area").is_duplicated().any():
        raise ResultError(
            "to_kitti() shows one IoU threshold per label, and this run has several: omit"
            " iou_thresholds, or give one."
        )
    kinds = {"AP": _COMPARED[card.options.iou_type or "bbox"], "AOS": "aos"}
    result = {}
    for row in rows.iter_rows(named=True):
        name = f"{row['label_value']}_{kinds[row['metric']]}/{row['area']}{_SUFFIX[card.dialect]}"
        result[name] = 100 * (row["value"] or 0.0)
    return result
