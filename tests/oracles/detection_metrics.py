"""Reference of detection metrics for every dialect except LVIS, from plain rows.

Results are keyed by the columns that identify a row, so that whole frames can be compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .average_precision import interpolated_coco, interpolated_exact
from .detection_rows import Fate, Label, Sides, mean
from .greedy_matching import match_greedy
from .locked_matching import match_locked
from .pool_matching import match_pool

Limits = tuple[float, float] | None
Key = tuple[Any, ...]
"""metric, statistic, label key, label value, average, IoU, score, area, max_detections."""


@dataclass(frozen=True)
class DetectionRuleSet:
    """Rules of a dialect.

    Attributes:
        match: matching of predictions and ground truths.
        interpolate: 101-point curve.
        crowd: True if crowd regions are used.
        unannotated_is_zero: True if labels without ground truths are 0 instead of undefined.
    """

    match: Callable[[Sides, float, Limits], list[Fate]]
    interpolate: Callable[..., tuple[list[float], list[float | None]]]
    crowd: bool
    unannotated_is_zero: bool = False


DIALECTS = {
    "standard": DetectionRuleSet(match_greedy, interpolated_coco, crowd=True),
    "coco": DetectionRuleSet(match_greedy, interpolated_coco, crowd=True),
    "valor": DetectionRuleSet(match_locked, interpolated_exact, crowd=False),
    "valor-lite": DetectionRuleSet(match_locked, interpolated_exact, False, True),
    "valor-docs": DetectionRuleSet(match_pool, interpolated_exact, crowd=False),
}


@dataclass(frozen=True)
class Asked:
    """Options of an evaluation."""

    iou_thresholds: tuple[float, ...]
    returned: tuple[float, ...]
    score_thresholds: tuple[float, ...]
    recall_score_threshold: float = 0.0
    pr_curve_iou_threshold: float = 0.5
    area_ranges: tuple[tuple[str | None, Limits], ...] = ((None, None),)
    max_detections: tuple[int | None, ...] = (None,)

    @property
    def cap(self) -> int | None:
        """The largest number of detections per datum and label."""
        return self.max_detections[-1]


@dataclass(frozen=True)
class Tally:
    """True positives, false positives and misses of one cell."""

    tp: int
    fp: int
    fn: int

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.tp + other.tp, self.fp + other.fp, self.fn + other.fn)

    @property
    def rates(self) -> dict[str, float | None]:
        """Precision, recall, F1 and accuracy; None if the denominator is 0."""
        tp, fp, fn = self.tp, self.fp, self.fn
        return {
            "Precision": tp / (tp + fp) if tp + fp else None,
            "Recall": tp / (tp + fn) if tp + fn else None,
            "F1": 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None,
            "Accuracy": tp / (tp + fp + fn) if tp + fp + fn else None,
        }


class DetectionOracle:
    """Evaluation that caches matches per label, IoU and area range."""

    def __init__(self, sides: Sides, dialect: str, asked: Asked) -> None:
        self.sides = sides
        self.rules = DIALECTS[dialect]
        self.asked = asked
        self._fates: dict[tuple[Label, float, Limits], list[Fate]] = {}

    def fates(
        self, label: Label, iou: float, limits: Limits = None, cap: int | None = None
    ) -> list[Fate]:
        """Return the fates of a label's predictions with rank below the cap, in ranked order."""
        key = (label, iou, limits)
        if key not in self._fates:
            self._fates[key] = self.rules.match(self.sides.of(label), iou, limits)
        return [f for f in self._fates[key] if cap is None or f.rank < cap]

    def n_truths(self, label: Label, limits: Limits = None) -> int:
        """Count the ground truths that are neither crowds nor outside the area range."""
        return sum(
            not g.crowd and (limits is None or limits[0] <= g.area <= limits[1])
            for g in self.sides.of(label).truths
        )

    def curve(
        self, label: Label, iou: float, limits: Limits = None
    ) -> tuple[list[float], list[float | None]] | None:
        """Compute precisions and scores at 101 levels of recall; None without ground truths.

        If labels without ground truths are 0, the best score is at recall 0.
        """
        n = self.n_truths(label, limits)
        counted = [f for f in self.fates(label, iou, limits, self.asked.cap) if not f.left_out]
        if n == 0:
            best = max((f.prediction.score for f in counted), default=None)
            zeros = [0.0] * 101, [best, *[None] * 100]
            return zeros if self.rules.unannotated_is_zero else None
        hits = [None if f.status == "ignored" else f.status == "tp" for f in counted]
        return self.rules.interpolate(hits, [f.prediction.score for f in counted], n)

    def average_precision(self, label: Label, iou: float, limits: Limits) -> float | None:
        """Compute the mean of the 101 precisions."""
        curve = self.curve(label, iou, limits)
        if curve is None:
            return None
        return sum(curve[0]) / len(curve[0])

    def recall(self, label: Label, iou: float, limits: Limits, cap: int | None) -> float | None:
        """Compute the share of ground truths matched with at least recall_score_threshold."""
        n = self.n_truths(label, limits)
        if n == 0:
            return 0.0 if self.rules.unannotated_is_zero else None
        fates = self.fates(label, iou, limits, cap)
        lowest = self.asked.recall_score_threshold
        return sum(f.status == "tp" and f.prediction.score >= lowest for f in fates) / n

    def tally(self, label: Label, iou: float, score: float, limits: Limits = None) -> Tally:
        """Count at one IoU and score threshold."""
        fates = self.fates(label, iou, limits, self.asked.cap)
        seen = [f.status for f in fates if f.prediction.score >= score]
        tp = seen.count("tp")
        return Tally(tp, seen.count("fp"), self.n_truths(label, limits) - tp)

    def averaged(self) -> dict[Key, float | None]:
        """Compute AP, AR and their means."""
        asked = self.asked
        out: dict[Key, float | None] = {}
        keys = sorted({key for key, _ in self.sides.labels})
        for area, limits in asked.area_ranges:
            ap: dict[Label, dict[float, float | None]] = {
                label: {t: self.average_precision(label, t, limits) for t in asked.iou_thresholds}
                for label in self.sides.labels
            }
            tail = (None, area, asked.cap)
            for (key, value), by_iou in ap.items():
                for t in asked.returned:
                    out["AP", None, key, value, None, t, *tail] = by_iou[t]
                every = mean(list(by_iou.values()))
                out["APAveragedOverIOUs", None, key, value, None, None, *tail] = every
            for key in keys:
                mine = [by_iou for label, by_iou in ap.items() if label[0] == key]
                for t in asked.returned:
                    average = mean([by_iou[t] for by_iou in mine])
                    out["mAP", None, key, None, None, t, *tail] = average
                cells = mean([v for by_iou in mine for v in by_iou.values()])
                out["mAPAveragedOverIOUs", None, key, None, None, None, *tail] = cells
            for cap in asked.max_detections:
                out |= self._recalls(area, limits, cap, keys)
        return out

    def _recalls(
        self, area: str | None, limits: Limits, cap: int | None, keys: list[str]
    ) -> dict[Key, float | None]:
        out: dict[Key, float | None] = {}
        ar = {
            label: mean([self.recall(label, t, limits, cap) for t in self.asked.iou_thresholds])
            for label in self.sides.labels
        }
        for (key, value), recall in ar.items():
            out["AR", None, key, value, None, None, None, area, cap] = recall
        for key in keys:
            average = mean([recall for label, recall in ar.items() if label[0] == key])
            out["mAR", None, key, None, None, None, None, area, cap] = average
        return out

    def counted(self) -> dict[Key, float | None]:
        """Compute counts, precision, recall, F1 and accuracy, per label and averaged by key."""
        out: dict[Key, float | None] = {}
        for area, limits in self.asked.area_ranges:
            for t in self.asked.iou_thresholds:
                for s in self.asked.score_thresholds:
                    tail = (t, s, area, self.asked.cap)
                    tallies = {
                        label: self.tally(label, t, s, limits) for label in self.sides.labels
                    }
                    out |= _counted(tallies, tail)
        return out

    def score_curve(self) -> dict[Key, tuple[Tally, dict[str, float | None]]]:
        """Map (label key, label value, score) to counts and rates, as in PrecisionRecallCurve."""
        t = self.asked.pr_curve_iou_threshold
        out = {}
        for label in self.sides.labels:
            for s in self.asked.score_thresholds:
                tally = self.tally(label, t, s, self.asked.area_ranges[0][1])
                out[*label, s] = (tally, tally.rates)
        return out


def _counted(tallies: dict[Label, Tally], tail: Key) -> dict[Key, float | None]:
    out: dict[Key, float | None] = {}
    for (key, value), tally in tallies.items():
        for name in ("tp", "fp", "fn"):
            out["Counts", name, key, value, None, *tail] = getattr(tally, name)
        for metric, rate in tally.rates.items():
            out[metric, None, key, value, None, *tail] = rate
    for key in {key for key, _ in tallies}:
        mine = [tally for label, tally in tallies.items() if label[0] == key]
        pooled = sum(mine, Tally(0, 0, 0)).rates
        for metric, micro in pooled.items():
            macro = mean([tally.rates[metric] for tally in mine])
            out[metric, None, key, None, "macro", *tail] = macro
            out[metric, None, key, None, "micro", *tail] = micro
    return out
