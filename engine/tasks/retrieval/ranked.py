"""Ranked lists as measures read them, and the declaration of a measure with its metric."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import msgspec
import numpy as np

from ...kernels.retrieval import count_within, log_discounts, rank_sums
from ...metrics import averages
from ...metrics.registry import Metric, snake_case
from ...schemas.arrays import Array
from ...tallies.datums import parameters
from ...tallies.stats import Column
from ..encoding import Workers
from .by_id import Lists, Ties, count
from .dialects import USUAL, Settings, unusual

# Levels, cut-offs, ranks of equal scores, weights of ranks.

WHOLE = 2**62
"""The cut-off of a whole list, beyond any rank."""
ABOVE_ZERO = 5e-324
"""The smallest positive float64: the level that anything above 0 reaches."""


def levels_of(settings: Settings) -> list[float]:
    """Lowest relevance that is relevant, of each variant."""
    return [ABOVE_ZERO if level is None else level for level in settings.relevance_levels]


ratio = partial(averages.ratio, fill=0.0)


class Weights(msgspec.Struct, frozen=True):
    """Weights by rank, index 0 unused.

    Attributes:
        weight: float64 [longest + 1].
        upto: float64 [longest + 1], running sums of the weights.
        divides: values are divided by ``weight``; then ``upto`` sums the reciprocals.
    """

    weight: Array
    upto: Array
    divides: bool = False


def even_weights(longest: int) -> Weights:
    """Every rank counts 1."""
    return Weights(np.ones(longest + 1), np.arange(longest + 1, dtype=np.float64))


def log_weights(longest: int, discount: str) -> Weights:
    """Ranks are discounted by the logarithm that the option ``discount`` names."""
    logs = log_discounts(longest, 1 if discount == "log2(rank+1)" else 0)
    return Weights(logs, np.r_[0.0, np.cumsum(1.0 / logs[1:])], divides=True)


class Ranked:
    """Ranked lists with the settings of a run.

    Args:
        lists: judged documents and judgments of each query.
        cuts: int64 [k], ascending cut-offs; ``WHOLE`` for the whole list.
    """

    def __init__(self, lists: Lists, settings: Settings, workers: Workers, cuts: Array) -> None:
        self.lists, self.settings, self.workers, self.cuts = lists, settings, workers, cuts

    @cached_property
    def places(self) -> Ties:
        """Possible ranks of the judged documents: their ranks, unless ties are averaged."""
        rank = self.lists.rank
        return self.lists.ties or Ties(rank, np.ones(rank.size, np.int32))

    @property
    def longest(self) -> int:
        """The highest of these ranks; 0 without documents."""
        return int((self.places.first + self.places.size).max(initial=1)) - 1

    @property
    def query(self) -> Array:
        """The query of each judged document, int64 [h]."""
        return np.repeat(np.arange(len(self.lists)), np.diff(self.lists.start))

    @property
    def highest(self) -> float:
        """The highest relevance of all judgments, those outside of these lists too."""
        if self.settings.highest is not None:
            return self.settings.highest
        return float(self.lists.gold.max(initial=0.0))

    @property
    def depth(self) -> Array:
        """Documents up to each cut-off, also beyond the end of short lists, int64 [q, k]."""
        return np.where(self.cuts == WHOLE, self.lists.retrieved[:, None], self.cuts)

    @property
    def retrieved_counts(self) -> Array:
        """Documents retrieved up to each cut-off, int64 [q, k]."""
        return np.minimum(self.depth, self.lists.retrieved[:, None])

    def each(
        self,
        kernel: Callable[..., Any],
        shape: tuple[int, ...],
        *arguments: Any,
        start: Array | None = None,
        outs: int = 1,
        **flags: bool,
    ) -> Array:
        """Run a kernel on ranges of queries; its last arguments are the range and the results.

        Args:
            shape: of the result of one query.
            start: int64 [q + 1], offsets of the rows that are read; None for judged documents.
            outs: number of results, the first axis if there are several.
        """
        out = np.empty((outs, len(self.lists), *shape))
        self.workers.over(
            self.lists.start if start is None else start,
            lambda begin, end: kernel(*arguments, begin, end, *out, **flags),
        )
        return out if outs > 1 else out[0]

    def sums(self, value: Array, weights: Weights, cuts: Array | None = None) -> Array:
        """Sum values of judged documents, weighted by rank, up to each cut-off, float64 [q, k].

        Args:
            value: [h].
            cuts: int64 [k], or [q, k] for cut-offs per query; ascending. None for those of the run.
        """
        cuts = np.atleast_2d(self.cuts if cuts is None else cuts)
        places = self.places.first, self.places.size
        return self.each(
            rank_sums,
            (cuts.shape[1],),
            *(self.lists.start, *places, value, weights.weight, weights.upto, cuts),
            divides=weights.divides,
        )

    def counts(self, chosen: Array, cuts: Array | None = None) -> Array:
        """Count the chosen documents, bool [h], up to each cut-off; float64 [q, k]."""
        return self.sums(chosen, even_weights(self.longest), cuts)

    def golds(self, level: float) -> Array:
        """Judgments that reach a level, int64 [q]."""
        return count(self.lists.gold_start, self.lists.gold >= level)

    def golds_within(self, level: float) -> Array:
        """Count relevant judgments found up to each cut-off, float64 [q, k].

        If ties are averaged, every document is one judgment, as for ids.
        """
        lists, cuts = self.lists, self.cuts
        if lists.ties is not None:
            return self.counts(lists.gain >= level)
        read = lists.gold_start, lists.gold, lists.gold_rank
        return self.each(count_within, cuts.shape, *read, level, cuts, start=lists.gold_start)


# Measures: from ranked lists to one row of numbers per query.


class Measure(msgspec.Struct, frozen=True, kw_only=True):
    """A measure of ranked lists, which computes the columns of a need.

    Attributes:
        name: metric of its rows.
        of: function of :class:`Ranked`, and a relevance level if there are levels, to float64 [q],
            or [q, n] with cut-offs or several parts.
        params: options of the metric. Those of ``USUAL`` are reported if they are not as usual.
        cut: has the cut-offs of the option ``k``.
        whole: has a value of the whole list.
        parts: metric and parameters of each of several numbers.
        reason: why a value is undefined.
        averaged: its mean over all orders of equal scores has a closed form here.
        scaled: scales relevance by the highest of all judgments, which is reported.
        unleveled: whether rules of the dialect make relevance levels meaningless.
    """

    name: str
    of: Callable[..., Array]
    params: tuple[str, ...]
    cut: bool
    whole: bool = True
    parts: Sequence[tuple[str, dict[str, float]]] = ()
    reason: str | None = None
    averaged: bool = True
    scaled: bool = False
    unleveled: Callable[[Any], bool] = lambda rules: False

    def __call__(self, lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
        """Return columns of float64 [n_queries, n_parameters, n_k]."""
        cutoffs = tuple(k for k in settings.k if k is not None) if self.cut else ()
        ks = (*cutoffs, *((None,) if self.whole else ()))
        cuts = np.array([WHOLE if k is None else k for k in ks], np.int64)
        ranked = Ranked(lists, settings, workers, cuts)
        if "relevance_levels" in self.params and not self.unleveled(settings.rules):
            levels: tuple[float | None, ...] = settings.relevance_levels
            each = levels_of(settings)
            values = np.stack([self.of(ranked, level) for level in each], axis=1)
        else:
            levels, values = (None,), self.of(ranked)[:, None]
        if not self.cut and not self.parts:
            values = values[:, :, None]
        stated = unusual(settings, *(name for name in self.params if name in USUAL))
        if self.scaled:
            stated["max_relevance"] = ranked.highest
        return tuple(
            Column(
                metric=name,
                parameters=tuple(
                    parameters(**given) if given else None
                    for level in levels
                    for given in ({**stated, **more, **_named(level)},)
                ),
                k=ks,
                values=values[:, :, [i]] if self.parts else values,
                reason=self.reason,
            )
            for i, (name, more) in enumerate(self.parts or [(self.name, {})])
        )


def _named(level: float | None) -> dict[str, float]:
    return {} if level is None else {"relevance_level": level}


TREC = "trec_eval 10"
CUT = ("k", "relevance_levels")
"""Parameters of a metric of relevant documents at a cut-off."""
LEVELS = ("relevance_levels",)
"""Parameters of a metric of relevant documents."""


def metric(
    name: str,
    of: Callable[..., Array] | None,
    definition: str,
    formula: str,
    *,
    need: str | None = None,
    source: str = TREC,
    params: tuple[str, ...] = (),
    **rest: Any,
) -> Metric:
    """Define a metric, by default the mean over queries of its need.

    Args:
        of: see :class:`Measure`, as for its other fields; None if another metric has the measure.
        definition: one sentence.
        formula: in TeX.
        need: name of its measure, by default its own in small letters.
        **rest: other fields of :class:`Measure` and of :class:`~evalengine.metrics.Metric`.
    """
    need = need or snake_case(name)
    fields = {field: rest.pop(field) for field in Measure.__struct_fields__ if field in rest}
    if of is not None:
        fields = {"name": name, "of": of, "params": params, "cut": "k" in params, **fields}
        rest["measures"] = {need: Measure(**fields), **rest.get("measures", {})}
    return averages.mean_metric(
        "retrieval",
        name,
        need,
        over="q",
        formula=formula,
        definition=definition,
        source=source,
        params=params,
        **rest,
    )
