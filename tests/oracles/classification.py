"""Reference of classification metrics, with dictionaries, loops and fractions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

Label = tuple[str, Any]
"""Label key and label value."""
Unit = tuple[Any, str]
"""Datum and label key."""
Number = Fraction | None
_HALF = Fraction(1, 2)


def over(top: Any, bottom: Any) -> Number:
    """Divide; None if the denominator is 0."""
    return None if bottom == 0 else Fraction(top) / Fraction(bottom)


def mean(values: Sequence[Number], weights: Sequence[Any] | None = None) -> Number:
    """Compute the mean of defined values."""
    weights = [1] * len(values) if weights is None else weights
    defined = [(v, Fraction(w)) for v, w in zip(values, weights, strict=True) if v is not None]
    return over(sum(v * w for v, w in defined), sum(w for _, w in defined))


@dataclass
class Oracle:
    """Metrics of plain rows under the dialect ``standard``.

    Attributes:
        predictions: (datum, key, value, score), in input order.
        truths: (datum, key, value).
        weights: weight per datum; 1 if missing.
        several: True if a datum may have several labels of one key.
        decision: minimum score of predicted labels if a datum may have several.
        n_labels: number of labels per key in the whole run, if these rows are a part of it.
    """

    predictions: Sequence[tuple[Any, str, Any, float]]
    truths: Sequence[tuple[Any, str, Any]]
    weights: Mapping[Any, Any] = field(default_factory=dict)
    several: bool = False
    decision: float = 0.5
    n_labels: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scores: dict[Unit, dict[Any, float]] = {}
        for datum, key, value, score in self.predictions:
            self.scores.setdefault((datum, key), {})[value] = score
        self.true: dict[Unit, set[Any]] = {}
        for datum, key, value in self.truths:
            self.true.setdefault((datum, key), set()).add(value)
        self.units = sorted({*self.scores, *self.true}, key=repr)
        self.labels: list[Label] = sorted(
            {(key, value) for _, key, value, *_ in [*self.predictions, *self.truths]}, key=repr
        )
        self.keys = sorted({key for key, _ in self.labels})
        self.judged = self.units if self.several else [u for u in self.units if u in self.true]

    def weight(self, unit: Unit) -> Fraction:
        """Return the weight of a unit."""
        return Fraction(self.weights.get(unit[0], 1))

    def of_key(self, key: str, units: Sequence[Unit] | None = None) -> list[Unit]:
        """Return the units of a key."""
        return [unit for unit in (self.units if units is None else units) if unit[1] == key]

    def total(self, units: Sequence[Unit]) -> Fraction:
        """Return the total weight of units."""
        return sum((self.weight(unit) for unit in units), Fraction(0))

    def is_true(self, unit: Unit, value: Any) -> bool:
        """Return True if a label is a ground truth of a unit."""
        return value in self.true.get(unit, set())

    def predicted(self, unit: Unit) -> set[Any]:
        """Return the first label of highest score, or all labels at or above the decision."""
        scores = self.scores.get(unit, {})
        if self.several:
            return {value for value, score in scores.items() if score >= self.decision}
        best = max(scores.values(), default=None)
        return set([value for value, score in scores.items() if score == best][:1])

    def counts(self, label: Label) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        """Count tp, fp, fn and tn of the predicted labels."""
        key, value = label
        cells = [Fraction(0)] * 4
        for unit in self.of_key(key):
            here, there = value in self.predicted(unit), self.is_true(unit, value)
            cells[(0 if there else 1) if here else (2 if there else 3)] += self.weight(unit)
        return cells[0], cells[1], cells[2], cells[3]

    def ratios(self) -> dict[tuple[Any, ...], Number]:
        """Compute (metric, key, value, average) -> number of every ratio."""
        out: dict[tuple[Any, ...], Number] = {}
        for name, of in RATIOS.items():
            for key in self.keys:
                labels = [label for label in self.labels if label[0] == key]
                each = {label: self.counts(label)[:3] for label in labels}
                used = [label for label in labels if any(each[label])]
                values = [of(*each[label]) for label in used]
                sums = [sum((each[label][i] for label in used), Fraction(0)) for i in range(3)]
                actual = [each[label][0] + each[label][2] for label in used]
                for label in labels:
                    out[name, key, label[1], None] = of(*each[label])
                if not self.total(self.of_key(key)):
                    continue
                out[name, key, None, "macro"] = mean(values)
                out[name, key, None, "weighted"] = mean(values, actual)
                out[name, key, None, "micro"] = of(*sums)
                if self.several:
                    units = self.of_key(key)
                    each_unit = []
                    for unit in units:
                        mine, truth = self.predicted(unit), self.true.get(unit, set())
                        each_unit.append(
                            of(len(mine & truth), len(mine - truth), len(truth - mine))
                        )
                    out[name, key, None, "samples"] = mean(each_unit, [*map(self.weight, units)])
        return out

    def accuracy(self, key: str) -> Number:
        """Compute the share of judged units whose predicted labels equal the true ones."""
        units = self.of_key(key, self.judged)
        right = [unit for unit in units if self.predicted(unit) == self.true.get(unit, set())]
        return over(self.total(right), self.total(units))

    def sides(self, label: Label) -> tuple[list[tuple[float, Fraction]], ...]:
        """Return (score, weight) of positives and of negatives; the score is -inf if missing."""
        key, value = label
        out: tuple[list[tuple[float, Fraction]], ...] = ([], [])
        for unit in self.of_key(key, self.judged):
            score = self.scores.get(unit, {}).get(value, -math.inf)
            out[0 if self.is_true(unit, value) else 1].append((score, self.weight(unit)))
        return out

    def area(self, label: Label) -> Number:
        """Compute the Mann-Whitney statistic: the share of pairs won by the positive, ties 1/2."""
        positives, negatives = self.sides(label)
        won = all_pairs = Fraction(0)
        for score, weight in positives:
            for other, other_weight in negatives:
                all_pairs += weight * other_weight
                won += weight * other_weight * (_HALF if score == other else int(score > other))
        return over(won, all_pairs)

    def average_precision(self, label: Label) -> Number:
        """Sum precision times the gain in recall over distinct scores."""
        positives, negatives = self.sides(label)
        everything = sum((weight for _, weight in positives), Fraction(0))
        if not everything:
            return None
        total = before = Fraction(0)
        for threshold in sorted({s for s, _ in [*positives, *negatives]}, reverse=True):
            tp = sum((w for s, w in positives if s >= threshold), Fraction(0))
            fp = sum((w for s, w in negatives if s >= threshold), Fraction(0))
            if tp + fp:
                total += (tp - before) / everything * tp / (tp + fp)
            before = tp
        return total

    def cells(self, label: Label, threshold: float) -> Counter[tuple[str, str]]:
        """Count outcomes and observations of the key's units, as in the detailed curve."""
        key, value = label
        out: Counter[tuple[str, str]] = Counter()
        for unit in self.of_key(key):
            scores = self.scores.get(unit, {})
            here = scores.get(value, -math.inf) >= threshold
            true = self.is_true(unit, value)
            if here and true:
                cell = ("tp", "all")
            elif here:
                cell = ("fp", "misclassifications" if unit in self.true else "hallucinations")
            elif true:
                other = any(score >= threshold for score in scores.values())
                cell = ("fn", "misclassifications" if other else "no_predictions")
            else:
                cell = ("tn", "all")
            out[cell] += self.weight(unit)  # type: ignore[assignment]
        return out

    def confusion(self) -> dict[tuple[Any, ...], Fraction]:
        """Compute (key, actual, predicted) -> weight; None represents missing."""
        out: dict[tuple[Any, ...], Fraction] = {}
        for unit in self.units:
            actual = next(iter(self.true.get(unit, ())), None)
            predicted = next(iter(self.predicted(unit)), None)
            cell = (unit[1], actual, predicted)
            out[cell] = out.get(cell, Fraction(0)) + self.weight(unit)
        return out

    def outcomes(self) -> Counter[tuple[Any, ...]]:
        """Count (datum, key, value, outcome, score) of predictions and missed truths."""
        out: Counter[tuple[Any, ...]] = Counter()
        for unit in self.units:
            truth, mine = self.true.get(unit, set()), self.predicted(unit)
            for value in mine:
                score = self.scores[unit][value]
                name = "fp_misclassified" if truth else "fp_hallucination"
                out[*unit, value, "tp" if value in truth else name, score] += 1
            for value in truth - mine:
                out[*unit, value, "fn_misclassified" if mine else "fn_missed", None] += 1
        return out

    def losses(self, key: str) -> dict[str, float | None]:
        """Compute log loss, Brier score (halved for two labels) and top-1 and top-2 accuracy."""
        units = self.of_key(key, self.judged)
        weight = float(self.total(units))
        if not weight:
            return dict.fromkeys(("LogLoss", "Brier", 1, 2))
        n_labels = self.n_labels.get(key, sum(label[0] == key for label in self.labels))
        out: dict[Any, float] = dict.fromkeys(("LogLoss", "Brier", 1, 2), 0.0)
        for unit in units:
            share = float(self.weight(unit)) / weight
            (truth,) = self.true[unit]
            scores = self.scores.get(unit, {})
            p = min(max(scores.get(truth, 0.0), 2.0**-52), 1 - 2.0**-52)
            out["LogLoss"] -= share * math.log(p)
            squared = sum(
                (scores.get(value, 0.0) - (value == truth)) ** 2 for value in {*scores, truth}
            )
            out["Brier"] += share * squared / (2 if n_labels == 2 else 1)
            ranked = sorted(scores, key=lambda value: -scores[value])
            for k in (1, 2):
                out[k] += share * (truth in ranked[:k])
        return out  # type: ignore[return-value]


def f_of(beta: int, tp: Any, fp: Any, fn: Any) -> Number:
    """Compute F-beta from counts."""
    return over((1 + beta**2) * tp, (1 + beta**2) * tp + beta**2 * fn + fp)


RATIOS: dict[str, Any] = {
    "Precision": lambda tp, fp, fn: over(tp, tp + fp),
    "Recall": lambda tp, fp, fn: over(tp, tp + fn),
    "F1": lambda tp, fp, fn: f_of(1, tp, fp, fn),
    "F2": lambda tp, fp, fn: f_of(2, tp, fp, fn),
    "Jaccard": lambda tp, fp, fn: over(tp, tp + fp + fn),
}
"""Metric -> function of true positives, false positives and false negatives."""
