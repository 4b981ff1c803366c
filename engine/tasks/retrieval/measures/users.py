"""Measures of ir-measures beyond trec_eval's: models of users, compatibility, pairs in order."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....kernels.retrieval import BPM, INST, NERR8, NERR9, NERR10, NERR11, expected_gains
from ....schemas.arrays import Array
from ....tally.cells import parameters
from ....tally.stats import Column
from ...encoding import Workers
from ..by_id import Lists
from ..settings import Settings
from .common import (
    Weights,
    by_level,
    counts_within,
    cuts_of,
    even_weights,
    highest_of,
    log_weights,
    places_of,
    ratio,
    sums,
    variants,
)
from .counts import looked_at

DEPTH = 1000
"""Ranks that a user without a cut-off looks at, as in cwl_eval."""
_PIECE = 1 << 16  # ranks whose discounts are added up together
WISH = 1.0
"""Gain that users are after."""
LOOKING_ON = 0.9
"""The chance to look on, in NERR10."""
AGREEING = 0.95
"""Persistence of the overlap of two lists, in Compat."""


def _scaled(lists: Lists, settings: Settings) -> tuple[Array, tuple[str, ...]]:
    """Return relevance scaled to [0, 1] by the highest of all judgments, and parameters with it."""
    highest = highest_of(lists, settings)
    scaled = np.maximum(lists.relevance, 0.0) / (highest or 1.0)
    return scaled, (parameters(max_relevance=highest),)


def _user(
    name: str,
    user: int,
    wish: float,
    cut: bool,
    lists: Lists,
    settings: Settings,
    workers: Workers,
) -> tuple[Column, ...]:
    """Expected gain of a kind of user, at cut-offs or at one depth for all."""
    ks, cuts = cuts_of(settings)
    ks, cuts = (ks[:-1], cuts[:-1]) if cut else ((None,), np.array([DEPTH]))
    gain, told = _scaled(lists, settings)
    out = np.empty((len(lists), cuts.size))

    def run(begin: int, end: int) -> None:
        expected_gains(lists.start, lists.rank, gain, user, wish, cuts, begin, end, out)

    workers.over(lists.start, run)
    return (Column(metric=name, parameters=told, k=ks, values=out[:, None]),)


def _discounts_upto(depth: Array) -> Array:
    """Sums of 1 / log2(rank + 1) up to depths, float64 of their shape, in bounded memory."""
    wanted, place = np.unique(depth, return_inverse=True)
    found = np.zeros(wanted.size)
    done, total = 0, 0.0
    for i, deep in enumerate(wanted.tolist()):
        while done < deep:
            end = min(done + _PIECE, deep)
            pieces = 1.0 / np.log2(np.arange(done + 2, end + 2, dtype=np.float64))
            pieces[0] += total  # added up rank by rank, as if in one go
            total = float(np.cumsum(pieces)[-1])
            done = end
        found[i] = total
    return found[place].reshape(depth.shape)


def _scaled_dcg(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    gain, told = _scaled(lists, settings)
    depth = looked_at(lists, cuts)
    places = places_of(lists)
    weights = log_weights(places.longest, "log2(rank+1)")
    values = ratio(sums(lists, places, gain, weights, cuts, workers), _discounts_upto(depth))
    return (Column(metric="SDCG", parameters=told, k=ks, values=values[:, None]),)


def _insq(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Compute INST for a user who ignores the results found so far: weights of ranks are fixed."""
    gain, told = _scaled(lists, settings)
    places = places_of(lists)
    ranks = np.arange(max(DEPTH, places.longest) + 1, dtype=np.float64)
    weight = (2 * WISH / (np.maximum(ranks, 1.0) + 2 * WISH - 1)) ** 2
    weights = Weights(weight, np.r_[0.0, np.cumsum(weight[1:])])
    total = sums(lists, places, gain, weights, np.array([DEPTH]), workers)
    values = total / weights.upto[DEPTH]
    return (Column(metric="INSQ", parameters=told, values=values[:, None]),)


def _accuracy(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    ks, cuts = cuts_of(settings)
    there = np.minimum(looked_at(lists, cuts), lists.retrieved[:, None])
    places = places_of(lists)
    weights = even_weights(places.longest)

    def of_level(level: float) -> Array:
        relevant = lists.relevance >= level
        hits = counts_within(lists, relevant, cuts, workers)
        ranks = sums(lists, places, relevant * lists.rank, weights, cuts, workers)
        ahead = ranks - hits * (hits + 1) / 2  # others before each, added up
        value = 1.0 - ratio(ahead, (there - hits) * hits)
        return np.where(hits > 0, value, np.nan)

    return (
        Column(
            metric="Accuracy",
            parameters=variants(settings),
            k=ks,
            values=by_level(settings, of_level),
            reason="no relevant document retrieved",
        ),
    )


def _compatibility(lists: Lists, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Compute rank-biased overlap with the most similar ideal list, relative to the maximum.

    A relevant document is in both lists from the larger of its two ranks on, so that it adds
    the weights of all depths from there.
    """
    n_queries = len(lists)
    good = lists.gold > 0
    query = np.repeat(np.arange(n_queries), np.diff(lists.gold_start))[good]
    golds = np.bincount(query, minlength=n_queries)
    found = np.where(lists.found[good] > 0, lists.found[good].astype(np.int64), 2**62)
    order = np.lexsort((found, -lists.gold[good], query))  # of equal relevance, as retrieved
    start = np.cumsum(golds) - golds
    ideal = np.arange(query.size) - start[query] + 1
    both = np.maximum(found[order], ideal)
    depth = np.maximum(lists.retrieved, golds)
    deepest = np.arange(1, int(depth.max(initial=0)) + 1)
    powers = np.cumprod(np.r_[1.0, np.full(max(deepest.size - 1, 0), AGREEING)])
    upto = np.r_[0.0, np.cumsum(powers[: deepest.size] / deepest)]
    end = upto[depth][query]
    known = both <= depth[query]
    shared = np.where(known, end - upto[np.where(known, both, 1) - 1], 0.0)
    total = np.bincount(query, shared, minlength=n_queries)
    most = np.bincount(query, end - upto[ideal - 1], minlength=n_queries)
    return (Column(metric="Compat", values=ratio(total, most)[:, None, None]),)


MEASURES = {
    "user_inst": partial(_user, "INST", INST, WISH, False),
    "user_insq": _insq,
    "user_bpm": partial(_user, "BPM", BPM, WISH, True),
    "scaled_dcg": _scaled_dcg,
    "user_nerr8": partial(_user, "NERR8", NERR8, WISH, True),
    "user_nerr9": partial(_user, "NERR9", NERR9, WISH, True),
    "user_nerr10": partial(_user, "NERR10", NERR10, LOOKING_ON, False),
    "user_nerr11": partial(_user, "NERR11", NERR11, WISH, False),
    "accuracy": _accuracy,
    "compatibility": _compatibility,
}
UNAVERAGED = frozenset(MEASURES) - {"scaled_dcg", "user_insq"}
"""Needs whose mean over orders of equal scores has no closed form here."""
SCALED = frozenset(MEASURES) - {"accuracy", "compatibility"}
"""Needs that scale relevance by the highest of all judgments."""
