"""Candidates and their references, the tokens that several measures share, and measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
import numpy as np
import polars as pl

from ...kernels.text import ngram_matches
from ...kernels.words import local_codes
from ...metrics.averages import mean_metric, pooled
from ...metrics.registry import Metric
from ...schemas.arrays import Array
from ...schemas.options import DECLARED
from ...tallies.datums import parameters
from ...tallies.stats import Column
from ...tallies.tables import Coded
from ..encoding import Workers
from .dialects import TER_OPTIONS, Settings

R = TypeVar("R")
Hashed = tuple[Array, Array, Array]
"""First and second hash of each token, uint64; offsets of the tokens of each text, int64."""


class Pairs(msgspec.Struct, frozen=True):
    """Scored texts, each with one reference or more.

    Attributes:
        candidates: String [n], without nulls.
        references: String [m], without nulls, those of a candidate adjacent.
        start: int64 [n + 1], offsets of the references of each candidate; each has at least one.
        made: cache shared by measures, by name; see :meth:`once`. ``vectors`` are those of the
            tables or of an embedder, ``contexts`` the contexts of each candidate as one text
            (String [n], null for none), if any.
    """

    candidates: pl.Series
    references: pl.Series
    start: Array
    made: dict[Any, Any]

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def candidate(self) -> Array:
        """The candidate of each reference, int64 [m]."""
        start = self.start
        return self.once(
            "candidate", lambda: np.repeat(np.arange(start.size - 1), start[1:] - start[:-1])
        )

    def once(self, name: Any, make: Callable[[], R]) -> R:
        """Return a cached value, or compute it on first use."""
        if name not in self.made:
            self.made[name] = make()
        return self.made[name]


class Tokens(msgspec.Struct, frozen=True):
    """Tokens of all texts, with codes valid within one candidate and its references.

    Attributes:
        candidates: offsets of the tokens of each candidate, int64 [n + 1]; codes, int32.
        references: same for the references.
        n_codes: one more than the highest code.
    """

    candidates: tuple[Array, Array]
    references: tuple[Array, Array]
    n_codes: int

    @property
    def lengths(self) -> tuple[Array, Array]:
        """Number of tokens of each candidate, and of each reference."""
        ours, theirs = self.candidates[0], self.references[0]
        return ours[1:] - ours[:-1], theirs[1:] - theirs[:-1]


def of_code_points(ours: tuple[Array, Array], theirs: tuple[Array, Array]) -> Tokens:
    """Return characters as tokens; kernels allocate a table up to the highest code point."""
    highest = max(int(codes.max(initial=0)) for _, codes in (ours, theirs))
    return Tokens(ours, theirs, highest + 1)


def best_reference(value: Array, start: Array) -> Array:
    """Return the first reference of each candidate with its highest value, int64 [n].

    Args:
        value: float64 [m], without NaN.
        start: int64 [n + 1], offsets of the references of each candidate, at least one each.
    """
    many = np.diff(start)
    if value.size == many.size:
        return np.arange(many.size)
    highest = np.maximum.reduceat(value, start[:-1])
    place = np.where(value == np.repeat(highest, many), np.arange(value.size), value.size)
    return np.minimum.reduceat(place, start[:-1])


def _ngrams(first: int, last: int, candidate: Array, *rest: Any) -> None:
    ngram_matches(first, last, (candidate, np.arange(candidate.size + 1)), *rest)


class Texts:
    """Scored texts with the settings of a run, as measures read them."""

    def __init__(self, pairs: Pairs, settings: Settings, workers: Workers) -> None:
        self.pairs, self.settings, self.workers = pairs, settings, workers

    def sides(self, cut: Callable[[pl.Series], R]) -> tuple[R, R]:
        """Call a function on the candidates and on the references."""
        return cut(self.pairs.candidates), cut(self.pairs.references)

    def cased(self, texts: pl.Series) -> pl.Series:
        """Return texts, in lower case if case is ignored."""
        return texts.str.to_lowercase() if self.settings.lowercase else texts

    def tokens(self, cut: Callable[[pl.Series], Hashed]) -> Tokens:
        """Tokens of all texts, from a function that hashes those of some."""
        return self.coded(*self.sides(cut))

    def coded(self, candidates: Hashed, references: Hashed) -> Tokens:
        """Codes of hashed tokens, candidate by candidate."""
        codes = np.empty(candidates[0].size, np.int32), np.empty(references[0].size, np.int32)
        sides = tuple((side[2], side[0], side[1]) for side in (candidates, references))
        most = self.workers.over(
            candidates[2],
            lambda first, last: local_codes(
                first, last, self.pairs.start, sides[0], sides[1], codes
            ),
        )
        return Tokens((candidates[2], codes[0]), (references[2], codes[1]), max(most, default=0))

    def each(
        self,
        kernel: Callable[..., None],
        tokens: Tokens,
        *sides: Any,
        shape: tuple[int, ...] = (),
        out: Array | None = None,
    ) -> Array:
        """Run a counting kernel on each pair of reference and candidate, int64 [m, ...].

        Args:
            kernel: takes a range, the candidate of each reference, both sides, the number of codes,
                and the result.
            sides: candidates and references for the kernel; those of the tokens by default.
            shape: of the result of one pair.
            out: filled and returned; None to allocate it.
        """
        counts = np.empty((len(self.pairs.references), *shape), np.int64) if out is None else out
        read = self.pairs.candidate, *(sides or (tokens.candidates, tokens.references))
        self.workers.over(
            tokens.references[0],
            lambda first, last: kernel(first, last, *read, tokens.n_codes, counts),
        )
        return counts

    def ngrams(self, tokens: Tokens, orders: int) -> Array:
        """Clipped n-grams that each reference shares with its candidate, int64 [m, orders]."""
        return self.each(_ngrams, tokens, shape=(orders,))

    def best(self, values: Mapping[str | None, Array]) -> list[Values]:
        """The values of each candidate's best reference by the first of them.

        Args:
            values: statistic, None for the metric value, -> float64 [m], without NaN.
        """
        at = best_reference(next(iter(values.values())), self.pairs.start)
        return [Values(value[at], statistic=name) for name, value in values.items()]


# Measures: from candidates and references to one row of numbers per candidate.

_USUAL: dict[str, Any] = {
    "use_stemmer": False,
    "rouge_tokenizer": "ascii",
    "tokenizer": "words",
    "smoothing": "none",
    "bleu_weights": (0.25,) * 4,
    "lowercase": False,
    **dict.fromkeys(TER_OPTIONS, False),
    "similarity_threshold": None,
    "faithfulness_threshold": DECLARED["faithfulness_threshold"].default,
    "stop_words": None,
}
"""Option -> value that is not reported in ``parameters``."""


class Values(msgspec.Struct, frozen=True):
    """Numbers of candidates.

    Attributes:
        values: float64 [n], or [n, parts] of numbers that are summed over datums.
        statistic: None for the value of the metric.
        reason: why a value is undefined.
        status: see :class:`~evalengine.tallies.stats.Column`.
    """

    values: Array
    statistic: str | None = None
    reason: str | None = None
    status: Coded | None = None


class Measure(msgspec.Struct, frozen=True):
    """A measure of texts, which computes the columns of a need.

    Attributes:
        name: metric of its rows.
        of: maps texts to values. The first select the best of several candidates of a datum; the
            others are of the same candidate.
        params: options of the metric, reported if they are not as usual.
        summed: the last values are summed over datums before a formula.
        vectors: computed from vectors instead of texts.
    """

    name: str
    of: Callable[[Texts], list[Values]]
    params: tuple[str, ...] = ()
    summed: bool = False
    vectors: bool = False

    def __call__(self, pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
        """Return columns of float64 [n, 1, n_k]."""
        options = {name: getattr(settings, name) for name in _USUAL if name in self.params}
        other = tuple((name, one) for name, one in options.items() if one != _USUAL[name])
        return tuple(
            Column(
                metric=self.name,
                statistic=one.statistic,
                parameters=(_stop_word_count(other),),
                k=(None,) if one.values.ndim == 1 else tuple(range(one.values.shape[1])),
                values=one.values[:, None, None] if one.values.ndim == 1 else one.values[:, None],
                reason=one.reason,
                status=one.status,
            )
            for one in self.of(Texts(pairs, settings, workers))
        )


@lru_cache
def _stop_word_count(options: tuple[tuple[str, Any], ...]) -> str | None:
    values = {name: len(one) if name == "stop_words" else one for name, one in options}
    return parameters(**values) if values else None


def metric(
    name: str,
    need: str,
    of: Callable[[Texts], list[Values]],
    definition: str,
    formula: str,
    *,
    source: str,
    params: tuple[str, ...] = (),
    of_sums: Callable[[Array, Any], Array] | None = None,
    vectors: bool = False,
    **rest: Any,
) -> Metric:
    """Define a metric: the mean over datums of its need, or a formula of sums over datums.

    Args:
        need: name of its measure.
        of: see :class:`Measure`, as for ``vectors``.
        definition: one sentence.
        formula: in TeX.
        of_sums: from sums [r, parts] and settings to values [r]; None for a mean.
        **rest: other fields of :class:`~evalengine.metrics.Metric`.
    """
    if of_sums is not None:
        rest["compute"] = pooled(need, name, of_sums)
    measures = {need: Measure(name, of, params, of_sums is not None, vectors)}
    fields = {"formula": formula, "definition": definition, "source": source, **rest}
    return mean_metric("text", name, need, params=params, measures=measures, **fields)
