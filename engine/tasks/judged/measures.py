"""Measures: one value per datum and ground truth, from the values of verdicts.

A measure is data: its parts, possible empty parts, and the formula over arrays of counts with one
entry per datum and ground truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import msgspec
import numpy as np
import polars as pl

from ...metrics.averages import ratio
from ...schemas.arrays import Array
from .dialects import Settings

Counts = Mapping[str, Array]
"""``<part>.yes`` and ``<part>.no``, float64 [n]: verdicts that count, and all others."""
Formula = Callable[[Counts, Settings], Array]

PLACE = ["datum", "reference"]


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """Definition of the measure of one need.

    Attributes:
        parts: parts judged separately; verdicts of a measure with one part need no step.
        empties: parts that may be empty, as ``step`` names them in rows of status empty; the first
            is the default.
        called: values of ``step`` allowed with verdicts of a measure with one part.
        whole: those of ``empties`` that mean all parts at once, for a measure with several; with
            the
            first, as with every part, the formula decides the value.
        formula: maps counts to values, NaN if undefined.
        listed: parts for which the table only needs the negative verdicts.
        ranked: verdicts are by rank, over all ground truths at once.
        single: exactly one verdict per datum, whose count is the value.
        spared: mode of FactualCorrectness -> parts that it does not use.
    """

    parts: tuple[str, ...] = ("verdicts",)
    empties: tuple[str, ...]
    called: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    formula: Formula
    listed: tuple[str, ...] = ()
    ranked: bool = False
    single: bool = False
    spared: dict[str, tuple[str, ...]] = {}

    def required(self, settings: Settings) -> tuple[str, ...]:
        """Return the parts required for a value, since their absence would look like 0."""
        spared = (*self.listed, *self.spared_by(settings))
        return tuple(part for part in self.parts if part not in spared)

    def spared_by(self, settings: Settings) -> tuple[str, ...]:
        """Return the parts that this run does not use."""
        return self.spared.get(settings.mode, ())


def share(counts: Counts, settings: Settings) -> Array:
    """Verdicts that count / all; undefined without any."""
    yes, no = counts["verdicts.yes"], counts["verdicts.no"]
    return ratio(yes, yes + no)


def answer_correctness(counts: Counts, settings: Settings) -> Array:
    """Compute TP / (TP + (FP + FN) / 2), 0 if TP is 0 (Valor, answer correctness)."""
    tp, fp = counts["response.yes"], counts["response.no"]
    below = tp + 0.5 * (fp + counts["reference.no"])
    return np.where(tp > 0, ratio(tp, below), 0.0)


def factual_correctness(counts: Counts, settings: Settings) -> Array:
    """Compute F-beta, precision or recall of claims (ragas, factual correctness).

    The plain form of F is (1 + b^2) TP / ((1 + b^2) TP + b^2 FN + FP). If a dialect adds to
    denominators, F is computed from precision and recall as in the reference.
    """
    tp, fp, fn = counts["response.yes"], counts["response.no"], counts["reference.no"]
    added = settings.rules.smoothing.get("factual_correctness", 0.0)
    precision, recall = ratio(tp, tp + fp + added), ratio(tp, tp + fn + added)
    squared = settings.beta**2
    if added:
        f = ratio((1 + squared) * precision * recall, squared * precision + recall + added)
    else:
        f = ratio((1 + squared) * tp, (1 + squared) * tp + squared * fn + fp)
    value = {"precision": precision, "recall": recall, "f1": f}[settings.mode]
    return np.nan_to_num(value, nan=0.0) if settings.rules.none_is_zero else value


def _rated(counts: Counts, settings: Settings) -> Array:
    return counts["verdicts.yes"]


_CONTEXTS = ("contexts", "references")
_STATEMENTS = ("statements", "references", "contexts")
MEASURES: dict[str, Measure] = {
    "answer_correctness": Measure(
        parts=("response", "reference"),
        empties=("response", "reference", "statements", "references"),
        whole=("statements", "references"),
        formula=answer_correctness,
        listed=("reference",),
    ),
    "answer_relevance": Measure(empties=("statements",), called=("statements",), formula=share),
    "bias": Measure(empties=("opinions",), called=("opinions",), formula=share),
    "toxicity": Measure(empties=("opinions",), called=("opinions",), formula=share),
    "coherence": Measure(empties=("text",), called=("rating",), formula=_rated, single=True),
    "summary_coherence": Measure(
        empties=("text", "source"), called=("rating",), formula=_rated, single=True
    ),
    "context_precision": Measure(
        empties=_CONTEXTS, called=("contexts",), formula=share, ranked=True
    ),
    "context_recall": Measure(empties=_STATEMENTS, called=("statements",), formula=share),
    "context_relevance": Measure(empties=("contexts",), called=("contexts",), formula=share),
    "faithfulness": Measure(
        empties=("claims", "contexts"), called=("claims", "statements"), formula=share
    ),
    "hallucination": Measure(empties=("contexts",), called=("contexts",), formula=share),
    "llm_context_recall": Measure(empties=_STATEMENTS, called=("statements",), formula=share),
    "factual_correctness": Measure(
        parts=("response", "reference"),
        empties=("response", "reference", "claims", "references"),
        whole=("claims", "references"),
        formula=factual_correctness,
        spared={"precision": ("reference",)},
    ),
}
"""Need -> how it is measured."""


def values_of(need: str, rows: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Return one value per datum and ground truth of valid verdicts.

    Args:
        rows: rows of the need with a count, without those of status empty.

    Returns:
        datum, reference and value, NaN if undefined.
    """
    measure = MEASURES[need]
    if measure.ranked:
        return _by_rank(need, rows, settings)
    if measure.single:
        return rows.group_by(PLACE, maintain_order=True).agg(pl.col("count").first().alias("value"))
    column = pl.col("count")
    counts = rows.group_by(PLACE, maintain_order=True).agg(
        expr
        for part in measure.parts
        for mine in (column.filter(pl.col("part") == part),)
        for expr in (mine.sum().alias(f"{part}.yes"), (mine.len() - mine.sum()).alias(f"{part}.no"))
    )
    arrays = {name: counts[name].to_numpy() for name in counts.columns if name not in PLACE}
    return counts.select(PLACE).with_columns(
        pl.Series("value", measure.formula(arrays, settings), dtype=pl.Float64)
    )


def _by_rank(need: str, rows: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Mean of the precision at the rank of every useful context; useful to any ground truth."""
    useful = (
        rows.group_by("datum", "item")
        .agg(pl.col("count").max().alias("useful"))
        .sort("datum", "item")
        .with_columns(
            pl.col("useful").cum_sum().over("datum").alias("so_far"),
            pl.int_range(1, pl.len() + 1).over("datum").alias("rank"),
        )
    )
    added = settings.rules.smoothing.get(need, 0.0)
    total = (pl.col("useful") * pl.col("so_far") / pl.col("rank")).sum()
    many = pl.col("useful").sum()
    return useful.group_by("datum", maintain_order=True).agg(
        pl.lit(0, dtype=pl.Int64).alias("reference"),
        pl.when(many > 0).then(total / (many + added)).otherwise(0.0).alias("value"),
    )
