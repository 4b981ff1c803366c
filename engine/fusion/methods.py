"""Fusion methods: how the runs' values for a document become one score, as data."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from ..schemas.arrays import Array
from .pool import Pool


class Settings(msgspec.Struct, frozen=True):
    """Settings of methods.

    Attributes:
        weights: float64 [runs].
        k: of rrf, above 0.
        persistence: of rbc, in (0, 1).
    """

    weights: Array
    k: float = 60.0
    persistence: float = 0.8
    gamma: float = 1.0


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """One fusion method.

    Attributes:
        definition: one sentence with the formula; sums are over the n runs that have the document.
        compute: from the pool, the rows' values (normalised scores; ranks if ``scores`` is False)
            and settings to the candidates' scores, float64 [m].
        scores: whether it takes scores; otherwise ranks.
        weighted: whether it uses weights of runs.
        needs_weights: whether these are required.
    """

    name: str
    definition: str
    source: str
    compute: Callable[[Pool, Array, Settings], Array]
    scores: bool = True
    weighted: bool = False
    needs_weights: bool = False
    aliases: tuple[str, ...] = ()


def _weighed(pool: Pool, values: Array, settings: Settings) -> Array:
    """Sums of values times the weights of their runs."""
    return pool.total(values * settings.weights[pool.run])


def _mean(pool: Pool, values: Array, settings: Settings) -> Array:
    mean: Array = pool.total(values) / pool.found
    return mean


def _many(pool: Pool, values: Array, settings: Settings) -> Array:
    return _weighed(pool, values, settings) * pool.found


def _powered(pool: Pool, values: Array, settings: Settings) -> Array:
    powered: Array = _weighed(pool, values, settings) * pool.found**settings.gamma
    return powered


def _mixed(pool: Pool, values: Array, settings: Settings) -> Array:
    return _weighed(pool, values, settings) * np.sqrt(pool.found)


def _highest(pool: Pool, values: Array, settings: Settings) -> Array:
    return pool.reduced(np.maximum, values)


def _lowest(pool: Pool, values: Array, settings: Settings) -> Array:
    return pool.reduced(np.minimum, values)


def _median(pool: Pool, values: Array, settings: Settings) -> Array:
    if not values.size:
        return values
    candidate = np.repeat(np.arange(pool.start.size), pool.found)
    ascending = values[pool.by_candidate]
    ascending = ascending[np.lexsort((ascending, candidate))]
    low = ascending[pool.start + (pool.found - 1) // 2]
    median: Array = (low + ascending[pool.start + pool.found // 2]) / 2.0
    return median


def _reciprocal(pool: Pool, ranks: Array, settings: Settings) -> Array:
    return _weighed(pool, 1.0 / (settings.k + ranks), settings)


def _inverse_square(pool: Pool, ranks: Array, settings: Settings) -> Array:
    return _weighed(pool, 1.0 / (ranks * ranks), settings) * pool.found


def _log_inverse_square(pool: Pool, ranks: Array, settings: Settings) -> Array:
    return _weighed(pool, 1.0 / (ranks * ranks), settings) * np.log(pool.found)


def _biased(pool: Pool, ranks: Array, settings: Settings) -> Array:
    left = settings.persistence
    return _weighed(pool, (1.0 - left) * left ** (ranks - 1.0), settings)


def _borda(pool: Pool, ranks: Array, settings: Settings) -> Array:
    points = pool.candidates[pool.query] - ranks + 1.0
    # Points of missing documents, summed over all lists minus the lists that have them.
    lacking = pool.total(pool.unranked()[pool.list_of])
    given: Array = pool.unranked_total()[pool.candidate_query] - lacking
    return pool.total(points) + given


def _condorcet(pool: Pool, ranks: Array, settings: Settings) -> Array:
    from evalengine.kernels.labels import majority_order

    start = np.concatenate(([0], np.cumsum(pool.candidates)))
    place = majority_order(pool.ranks_of_candidates(), start)
    return (pool.candidates[pool.candidate_query] - place).astype(np.float64)


_FOX = "Fox and Shaw, Combination of multiple searches, TREC-2, 1993"
_MOURAO = "Mourao, Martins and Magalhaes, Inverse square rank fusion, CBMI 2014"

METHODS: dict[str, Method] = {
    one.name: one
    for one in (
        Method(
            name="rrf",
            definition="sum of w / (k + rank).",
            source="Cormack, Clarke and Buettcher, Reciprocal rank fusion, SIGIR 2009",
            compute=_reciprocal,
            scores=False,
            weighted=True,
            aliases=("reciprocal_rank",),
        ),
        Method(
            name="combsum",
            definition="sum of scores.",
            source=_FOX,
            compute=_weighed,
            weighted=True,
            aliases=("comb_sum", "sum"),
        ),
        Method(
            name="combmnz",
            definition="sum of scores, times n.",
            source=_FOX,
            compute=_many,
            weighted=True,
            aliases=("comb_mnz", "mnz"),
        ),
        Method(
            name="combanz",
            definition="mean of scores.",
            source=_FOX,
            compute=_mean,
            aliases=("comb_anz", "anz"),
        ),
        Method(
            name="combmax",
            definition="highest score.",
            source=_FOX,
            compute=_highest,
            aliases=("comb_max", "max"),
        ),
        Method(
            name="combmin",
            definition="lowest score.",
            source=_FOX,
            compute=_lowest,
            aliases=("comb_min", "min"),
        ),
        Method(
            name="combmed",
            definition="median score; the mean of the middle two where n is even.",
            source=_FOX,
            compute=_median,
            aliases=("comb_med", "med"),
        ),
        Method(
            name="gmnz",
            definition="sum of scores, times n to the power of gamma.",
            source="Lee, Analyses of multiple evidence combination, SIGIR 1997",
            compute=_powered,
            weighted=True,
            aliases=("combgmnz", "comb_gmnz"),
        ),
        Method(
            name="wsum",
            definition="sum of w * score.",
            source="Vogt and Cottrell, Fusion via a linear combination of scores, 1999",
            compute=_weighed,
            weighted=True,
            needs_weights=True,
            aliases=("weighted_sum",),
        ),
        Method(
            name="mixed",
            definition="sum of w * score, times the square root of n.",
            source="Wu and Crestani, Data fusion with estimated weights, CIKM 2002",
            compute=_mixed,
            weighted=True,
            needs_weights=True,
        ),
        Method(
            name="borda",
            definition="sum over all runs of c - rank + 1, with c documents that all runs have for"
            " the query; a run that lacks the document gives it (c - its documents + 1) / 2.",
            source="Aslam and Montague, Models for metasearch, SIGIR 2001",
            compute=_borda,
            scores=False,
            aliases=("bordafuse",),
        ),
        Method(
            name="isr",
            definition="sum of w / rank^2, times n.",
            source=_MOURAO,
            compute=_inverse_square,
            scores=False,
            weighted=True,
        ),
        Method(
            name="log_isr",
            definition="sum of w / rank^2, times log(n): 0 for what one run alone has.",
            source=_MOURAO,
            compute=_log_inverse_square,
            scores=False,
            weighted=True,
            aliases=("logisr", "log-isr"),
        ),
        Method(
            name="rbc",
            definition="sum of w * (1 - p) * p^(rank - 1), with the persistence p.",
            source="Bailey, Moffat, Scholer and Thomas, Retrieval consistency in the presence of"
            " query variations, SIGIR 2017",
            compute=_biased,
            scores=False,
            weighted=True,
        ),
        Method(
            name="condorcet",
            definition="documents ordered by which of two more runs rank higher, a document that a"
            " run lacks being last in it; the score counts the documents from the last one up.",
            source="Montague and Aslam, Condorcet fusion for improved retrieval, CIKM 2002",
            compute=_condorcet,
            scores=False,
            aliases=("condorcet_fuse",),
        ),
    )
}
"""Name -> method."""
