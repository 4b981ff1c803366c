"""Normalisations: the scores of a list made comparable with those of another run's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from evalengine.schemas.errors import InputError

from .pool import Pool

Array = np.ndarray[Any, Any]


class Normalisation(msgspec.Struct, frozen=True, kw_only=True):
    """One normalisation.

    Attributes:
        name: what users write.
        definition: one sentence with the formula, of a list's scores s.
        source: whose definition it is.
        scores: whether it needs scores; the others need ranks alone.
        compute: from rows to their values, float64 [n].
        completes: whether documents that a list lacks have a value too.
        aliases: other names that users know it by.
    """

    name: str
    definition: str
    source: str
    compute: Callable[[Pool], Array]
    scores: bool = True
    completes: bool = False
    aliases: tuple[str, ...] = ()


def checked(name: str, values: Array, pool: Pool) -> Array:
    """Values of rows, all of them finite.

    Raises:
        InputError: naming the first run with scores that are too far apart for a float64.
    """
    bad = np.flatnonzero(~np.isfinite(values))
    if not bad.size:
        return values
    run = int(pool.run[bad[0]])
    own = pool.score[pool.run == run]
    raise InputError(
        f"normalisation {name!r}: {bad.size:,} documents get no finite value, the first one of run"
        f" {run + 1}, whose scores go from {own.min():g} to {own.max():g}. Divide the scores of"
        " that run, or fuse by ranks."
    )


def _spread(pool: Pool, values: Array) -> Array:
    """Values of lists, in each of their rows."""
    return values[pool.list_of]


def _over(numerator: Array, denominator: Array, otherwise: float | Array) -> Array:
    """Quotients, something else where the denominator is 0, NaN where that has no end."""
    out = np.broadcast_to(np.asarray(otherwise, np.float64), numerator.shape).copy()
    np.divide(numerator, denominator, out=out, where=denominator != 0)
    out[~np.isfinite(denominator)] = np.nan
    return out


def _min_max(pool: Pool) -> Array:
    score = pool.score
    low = _spread(pool, pool.of_lists(np.minimum, score))
    high = _spread(pool, pool.of_lists(np.maximum, score))
    return _over(score - low, high - low, 1.0)


def _max(pool: Pool) -> Array:
    score = pool.score
    high = pool.of_lists(np.maximum, score)
    bad = np.flatnonzero(high <= 0)
    if bad.size:
        run = int(pool.run[pool.list_start[bad[0]]]) + 1
        raise InputError(
            f"normalisation 'max' divides by each list's highest score, which is {high[bad[0]]:g},"
            f" not above 0, in {bad.size:,} lists, the first one in run {run}. Use 'min-max'."
        )
    return score / _spread(pool, high)


def _sum(pool: Pool) -> Array:
    score = pool.score
    above = score - _spread(pool, pool.of_lists(np.minimum, score))
    total = _spread(pool, pool.of_lists(np.add, above))
    return _over(above, total, 1.0 / _spread(pool, pool.list_size.astype(np.float64)))


def _zmuv(pool: Pool) -> Array:
    score = pool.score
    size = pool.list_size.astype(np.float64)
    # Equal scores have no variance; the rounding of their mean must not make one.
    level = pool.of_lists(np.minimum, score) == pool.of_lists(np.maximum, score)
    away = score - _spread(pool, pool.of_lists(np.add, score) / size)
    deviation = np.sqrt(pool.of_lists(np.add, away * away) / size)
    return _over(away, _spread(pool, np.where(level, 0.0, deviation)), 0.0)


def _rank(pool: Pool) -> Array:
    return 1.0 - (pool.rank - 1.0) / _spread(pool, pool.list_size.astype(np.float64))


def _borda(pool: Pool) -> Array:
    return 1.0 - (pool.rank - 1.0) / pool.candidates[pool.query]


_LEE = "Lee, Analyses of multiple evidence combination, SIGIR 1997"
_MONTAGUE = "Montague and Aslam, Relevance score normalization for metasearch, CIKM 2001"

NORMALISATIONS: dict[str, Normalisation] = {
    one.name: one
    for one in (
        Normalisation(
            name="min-max",
            definition="(s - min) / (max - min); 1 where all scores of a list are equal.",
            source=_LEE,
            compute=_min_max,
            aliases=("min_max", "minmax"),
        ),
        Normalisation(
            name="max",
            definition="s / max; the highest score of a list must be above 0.",
            source="Lee, Combining multiple evidence from different properties, SIGIR 1995",
            compute=_max,
        ),
        Normalisation(
            name="sum",
            definition="(s - min) / sum(s - min); 1 / n where all n scores of a list are equal.",
            source=_MONTAGUE,
            compute=_sum,
        ),
        Normalisation(
            name="zmuv",
            definition="(s - mean) / standard deviation, over n; 0 where all scores are equal.",
            source=_MONTAGUE,
            compute=_zmuv,
            aliases=("z", "z-score", "zscore"),
        ),
        Normalisation(
            name="rank",
            definition="1 - (rank - 1) / n of the n documents of a list.",
            source=_LEE,
            compute=_rank,
            scores=False,
        ),
        Normalisation(
            name="borda",
            definition="1 - (rank - 1) / c of the c documents that all runs have for the query; a"
            " document that a list of n lacks has (c - n + 1) / (2 c) in it.",
            source="Renda and Straccia, Web metasearch: rank vs. score based rank aggregation"
            " methods, SAC 2003",
            compute=_borda,
            scores=False,
            completes=True,
        ),
    )
}
"""Name -> normalisation."""
