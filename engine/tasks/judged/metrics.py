"""Judged metrics: one value per datum and ground truth from verdicts, and means over datums."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np

from ... import metrics
from ...metrics.averages import MEANS, mean_metric, ratio
from ...metrics.registry import Metric, snake_case
from ...schemas.arrays import Array
from ...tallies.datums import Cells
from ...tallies.stats import Column, StatsView
from .dialects import Settings

# Measures: one value per datum and ground truth, from the values of verdicts. A measure is data:
# its parts, possible empty parts, and the formula over arrays of counts, one entry per value.

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
            the first, as with every part, the formula decides the value.
        formula: maps counts to values, NaN if undefined.
        listed: parts for which the table only needs the negative verdicts.
        ranked: verdicts are by rank, over all ground truths at once.
        single: exactly one verdict per datum, whose count is the value.
        unused: mode of FactualCorrectness -> parts that it does not use.
    """

    parts: tuple[str, ...] = ("verdicts",)
    empties: tuple[str, ...]
    called: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()
    formula: Formula
    listed: tuple[str, ...] = ()
    ranked: bool = False
    single: bool = False
    unused: dict[str, tuple[str, ...]] = {}

    def required(self, settings: Settings) -> tuple[str, ...]:
        """Return the parts required for a value, since their absence would look like 0."""
        unused = (*self.listed, *self.unused_by(settings))
        return tuple(part for part in self.parts if part not in unused)

    def unused_by(self, settings: Settings) -> tuple[str, ...]:
        """Return the parts that this run does not use."""
        return self.unused.get(settings.mode, ())


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


def rated(counts: Counts, settings: Settings) -> Array:
    return counts["verdicts.yes"]


class Verdicts(msgspec.Struct):
    """Rows of one measure as arrays.

    Attributes:
        n: number of datums.
        datum: int [n_rows], code of the datum.
        place: int [n_rows], code of datum and ground truth.
        datum_of: int [n_places], datum of each place.
        item: int64 [n_rows], from 0.
        items: int64 [n_rows], number of items, -1 for none.
        part: int32 [n_rows], place in ``Measure.parts``, -1 for none.
        count: float64 [n_rows], value of the verdict, NaN for none.
        kind: int32 [n_rows], place in ``kinds``, -1 for none.
        none: int32 [n_rows], place of the empty part in ``Measure.empties``, sorted; -1 for none.
        kinds: kinds of errors.
    """

    n: int
    datum: Array
    place: Array
    datum_of: Array
    item: Array
    items: Array
    part: Array
    count: Array
    kind: Array
    none: Array
    kinds: list[str]


def values_of(need: str, verdicts: Verdicts, rows: Array, settings: Settings) -> Array:
    """Return the value of every datum, the highest over ground truths; NaN if undefined.

    Args:
        rows: the valid verdicts, without those of status empty.
    """
    measure = metrics.measures("judged")[need]
    place, count = verdicts.place[rows], verdicts.count[rows]
    if measure.ranked:
        return _by_rank(
            need, verdicts.datum[rows], verdicts.item[rows], count, verdicts.n, settings
        )
    n = verdicts.datum_of.size
    value = np.full(n, np.nan)
    if measure.single:
        value[place[::-1]] = count[::-1]  # the first of each place
    else:
        judged = np.bincount(place, minlength=n) > 0
        counts: dict[str, Array] = {}
        for code, name in enumerate(measure.parts):
            at = verdicts.part[rows] == code
            yes = np.bincount(place[at], count[at], n)[judged]
            no = np.bincount(place[at], minlength=n)[judged] - yes
            counts |= {f"{name}.yes": yes, f"{name}.no": no}
        value[judged] = measure.formula(counts, settings)
    best = np.full(verdicts.n, np.nan)
    np.fmax.at(best, verdicts.datum_of, value)
    return best


def _by_rank(
    need: str, datum: Array, item: Array, count: Array, n: int, settings: Settings
) -> Array:
    """Mean of the precision at the rank of every useful context; useful to any ground truth."""
    order = np.lexsort((item, datum))
    datum, item, count = datum[order], item[order], count[order]
    first = np.ones(datum.size, bool)
    first[1:] = (datum[1:] != datum[:-1]) | (item[1:] != item[:-1])
    useful = np.maximum.reduceat(count, np.flatnonzero(first)) if datum.size else count
    datum = datum[first]
    of_datum = np.bincount(datum, minlength=n)
    start = np.repeat(np.cumsum(of_datum) - of_datum, of_datum)
    so_far = np.cumsum(useful)
    so_far -= (so_far - useful)[start]
    rank = np.arange(datum.size) - start + 1
    total = np.bincount(datum, useful * so_far / rank, n)
    many = np.bincount(datum, useful, n)
    value = np.where(of_datum > 0, 0.0, np.nan)
    added = settings.rules.smoothing.get(need, 0.0)
    np.divide(total, many + added, out=value, where=many > 0)
    return value


# Means over judged datums, with counts of those without a value.

SCORED, NOT_JUDGED = "scored", "not_judged"
"""Standing of a datum that has a value, and of one that has no row of the metric."""
_MOST_KINDS = 10


def mean_of_judged(need: str) -> Callable[[StatsView, Any], list[Cells]]:
    """Return a function that computes the mean over datums with a value, and reasons for the rest.

    ``support`` counts the datums with rows of the metric, ``scored`` those of them with a
    value, ``reason`` the rest by kind; ``parameters`` contain the better direction.
    """

    def compute(view: StatsView, settings: Any) -> list[Cells]:
        return [_cells(column, view, settings) for column in view.columns[need]]

    return compute


def _cells(column: Column, view: StatsView, settings: Any) -> Cells:
    assert column.status is not None
    names, _ = column.status
    total, scored = (part[:, 0, 0] for part in view.total(column))
    value = np.full(total.shape, np.nan)
    np.divide(total, scored, out=value, where=scored > 0)
    group, code, count = view.standings(column)
    out = code == names.index(NOT_JUDGED)
    absent = np.bincount(group[out], count[out], view.n_groups)
    support = np.bincount(group[~out], count[~out], view.n_groups)
    unscored: list[dict[str, int]] = [{} for _ in range(view.n_groups)]
    for i in np.flatnonzero(~out & (code != names.index(SCORED)) & (count > 0)):
        unscored[group[i]][names[code[i]]] = int(count[i])
    reasons = [
        _reason(int(support[group]), int(absent[group]), kinds)
        for group, kinds in enumerate(unscored)
    ]
    return Cells(
        axes=("group",),
        columns={
            "metric": column.metric,
            "value": value,
            "support": support,
            "scored": scored,
            "parameters": json.dumps(settings.parameters_of(column.metric)),
        },
        shape=value.shape,
        reason=np.array(reasons, dtype=np.str_),
        always=True,
    )


def _reason(rows: int, absent: int, unscored: dict[str, int]) -> str:
    """Return why a mean is undefined, or which datums are not in it, based on counts."""
    if not rows:
        return "no verdict of this metric" if absent else "no datum to average over"
    left = sum(unscored.values())
    return f"{left} of {_rows(rows)} not scored: {kinds_of(unscored)}" if left else ""


def kinds_of(unscored: dict[str, int]) -> str:
    """Format counts per kind as ``timeout 3, refused 1``, the most frequent kinds first."""
    first = sorted(unscored.items(), key=lambda kind: (-kind[1], kind[0]))
    counts = [f"{name} {count}" for name, count in first[:_MOST_KINDS]]
    rest = [count for _, count in first[_MOST_KINDS:]]
    if rest:
        kinds = "another kind" if len(rest) == 1 else f"{len(rest):,} other kinds"
        counts.append(f"{sum(rest):,} of {kinds}")
    return ", ".join(counts)


def _rows(rows: int) -> str:
    return f"{rows:,} row{'' if rows == 1 else 's'}"


def metric(
    name: str, measure: Measure, *, formula: str, aliases: tuple[str, ...] = (), **rest: Any
) -> Metric:
    """Define a judged metric: the mean over datums of its need's value."""
    need = snake_case(name)
    fields = {"compute": mean_of_judged(need), "measures": {need: measure}, **rest}
    fields["aliases"] = need, *aliases
    return mean_metric("judged", name, need, formula=MEANS["d"] + formula, **fields)


_CONTEXTS = ("contexts", "references")
_STATEMENTS = ("statements", "references", "contexts")

# Judged metrics of a response, by itself or compared with the question or the ground truth.

_VALOR = "Valor; valor-lite 0.39"

_ANSWERS_METRICS = (
    metric(
        "AnswerCorrectness",
        Measure(
            parts=("response", "reference"),
            empties=("response", "reference", "statements", "references"),
            whole=("statements", "references"),
            formula=answer_correctness,
            listed=("reference",),
        ),
        definition="highest over ground truths of TP / (TP + (FP + FN) / 2), of statements of the"
        " response (TP, FP) and of the ground truth (FN); 0 if TP is 0",
        formula=r"\max_g \frac{\text{TP}}{\text{TP} + \tfrac{1}{2} (\text{FP} + \text{FN})}",
        source=_VALOR,
    ),
    metric(
        "AnswerRelevance",
        Measure(empties=("statements",), called=("statements",), formula=share),
        definition="statements of the response that are relevant to the query / all; idk counts"
        " against",
        formula=r"\frac{|\{\text{relevant statements}\}|}{|\{\text{statements}\}|}",
        source=_VALOR,
        aliases=("AnswerRelevancy", "answer_relevancy"),
        params=("strict_mode",),
    ),
    metric(
        "Bias",
        Measure(empties=("opinions",), called=("opinions",), formula=share),
        definition="biased opinions of the text / all opinions",
        formula=r"\frac{|\{\text{biased opinions}\}|}{|\{\text{opinions}\}|}",
        source=_VALOR,
        better="lower",
        params=("strict_mode",),
    ),
    metric(
        "Toxicity",
        Measure(empties=("opinions",), called=("opinions",), formula=share),
        definition="toxic opinions of the text / all opinions",
        formula=r"\frac{|\{\text{toxic opinions}\}|}{|\{\text{opinions}\}|}",
        source=_VALOR,
        better="lower",
        params=("strict_mode",),
    ),
    metric(
        "Coherence",
        Measure(empties=("text",), called=("rating",), formula=rated, single=True),
        definition="rating of only the text, as a whole, 1 to 5",
        formula=r"\text{rating}_d",
        source="Valor's document",
        range=(1.0, 5.0),
    ),
    metric(
        "SummaryCoherence",
        Measure(empties=("text", "source"), called=("rating",), formula=rated, single=True),
        definition="rating of a summary next to its text, 1 to 5",
        formula=r"\text{rating}_d",
        source=_VALOR,
        range=(1.0, 5.0),
    ),
)


# Judged metrics of retrieved contexts, and of responses compared with them.

_CONTEXTS_METRICS = (
    metric(
        "ContextPrecision",
        Measure(empties=_CONTEXTS, called=("contexts",), formula=share, ranked=True),
        definition="mean of the precision at the rank of every useful context; useful to any ground"
        " truth; 0 if none is",
        formula=r"\frac{1}{\sum_i u_i} \sum_i u_i \frac{\sum_{j \le i} u_j}{i}",
        source=_VALOR,
        aliases=("ContextualPrecision", "contextual_precision"),
        params=("strict_mode",),
    ),
    metric(
        "ContextRecall",
        Measure(empties=_STATEMENTS, called=("statements",), formula=share),
        definition="highest over ground truths of its statements that the contexts support / all",
        formula=r"\max_g \frac{|\{\text{statements of g that contexts"
        r" support}\}|}{|\{\text{statements of g}\}|}",
        source=_VALOR,
        aliases=("ContextualRecall", "contextual_recall"),
        params=("strict_mode",),
    ),
    metric(
        "ContextRelevance",
        Measure(empties=("contexts",), called=("contexts",), formula=share),
        definition="contexts of which any part is relevant to the query / all contexts",
        formula=r"\frac{|\{\text{relevant contexts}\}|}{|\{\text{contexts}\}|}",
        source=_VALOR,
        aliases=("ContextualRelevancy", "contextual_relevancy"),
        params=("strict_mode",),
    ),
    metric(
        "Faithfulness",
        Measure(empties=("claims", "contexts"), called=("claims", "statements"), formula=share),
        definition="claims of the response that the contexts imply / all claims",
        formula=r"\frac{|\{\text{claims that contexts imply}\}|}{|\{\text{claims}\}|}",
        source=_VALOR,
        params=("strict_mode", "penalize_ambiguous"),
    ),
    metric(
        "Hallucination",
        Measure(empties=("contexts",), called=("contexts",), formula=share),
        definition="contexts that the response contradicts / all contexts",
        formula=r"\frac{|\{\text{contexts that the response"
        r" contradicts}\}|}{|\{\text{contexts}\}|}",
        source=_VALOR,
        better="lower",
        params=("strict_mode",),
    ),
)


# Judged metrics of ragas: overlap of a reference with its contexts or the response.

_RAGAS = "ragas 0.4.3"

_RAGAS_METRICS = (
    metric(
        "LLMContextRecall",
        Measure(empties=_STATEMENTS, called=("statements",), formula=share),
        definition="statements of the reference that are attributed to the contexts / all; highest"
        " over references",
        formula=r"\max_g \frac{|\{\text{statements of g attributed to"
        r" contexts}\}|}{|\{\text{statements of g}\}|}",
        source=_RAGAS,
    ),
    metric(
        "FactualCorrectness",
        Measure(
            parts=("response", "reference"),
            empties=("response", "reference", "claims", "references"),
            whole=("claims", "references"),
            formula=factual_correctness,
            unused={"precision": ("reference",)},
        ),
        definition="F-beta, precision or recall of claims: TP and FP of the response's, FN of the"
        " reference's missing in the response; highest over references",
        formula=r"\max_g \frac{(1 + \beta^2)\, \text{TP}}{(1 + \beta^2)\, \text{TP} + \beta^2\,"
        r" \text{FN} + \text{FP}}",
        source=_RAGAS,
        params=("mode", "beta", "atomicity", "coverage"),
    ),
)


SYMBOLS = {
    r"n": "datums that could be scored",
    r"g": "a ground truth",
    r"\text{TP}": "statements or claims of the response that the ground truth bears out",
    r"\text{FP}": "those that it does not",
    r"\text{FN}": "those of the ground truth missing in the response",
    r"u_i": "1 if the context at rank i is useful, else 0",
    r"\beta": "weight of recall",
}
"""Meaning of the symbols in formulas, in TeX."""

SAME = (
    "AnswerRelevance=responserelevancy,answerrelevancymetric Faithfulness=faithfulnessmetric"
    " Hallucination=hallucinationmetric Bias=biasmetric Toxicity=toxicitymetric"
    " ContextPrecision=contextualprecisionmetric ContextRecall=contextualrecallmetric"
    " ContextRelevance=contextualrelevancymetric"
)
"""Metrics, each with its names in other tools, squeezed."""


METRICS = (*_ANSWERS_METRICS, *_CONTEXTS_METRICS, *_RAGAS_METRICS)
