"""Semantic similarity: the cosine of two vectors."""

from __future__ import annotations

import json

import numpy as np

from ....schemas.arrays import Array
from ....tally.stats import Column
from ...encoding import Workers
from ..dialects import Settings
from ..encode import Vectors
from ..pairs import Pairs, best_reference

_ROWS = 4096
_LARGE = 1e70
_SCORED, _ZERO, _NONE = range(3)
_ALL_ZEROS = "a vector is all zeros"


def cosines(ours: Array, theirs: Array) -> Array:
    """Return the cosine of each pair of rows, float64 [n]; NaN for a zero row or a NaN.

    Args:
        ours: float [n, d], finite or NaN.
        theirs: float [n, d], finite or NaN.
    """
    pair = [np.asarray(rows, np.float64) for rows in (ours, theirs)]
    # Scale by powers of two, which avoids overflow and underflow of squares without rounding.
    for i, rows in enumerate(pair):
        top = np.abs(rows).max(axis=1, initial=0.0)
        far = (top > _LARGE) | ((top > 0) & (top < 1 / _LARGE))
        if far.any():
            _, exponent = np.frexp(np.where(far, top, 1.0))
            pair[i] = np.ldexp(rows, -exponent[:, None])
    a, b = pair
    # One root of the product: of equal rows it is their square to the bit, and the cosine 1.
    norms = np.sqrt(np.einsum("ij,ij->i", a, a) * np.einsum("ij,ij->i", b, b))
    out = np.full(norms.size, np.nan)
    np.divide(np.einsum("ij,ij->i", a, b), norms, out=out, where=norms > 0)
    return out


def _of_pairs(vectors: Vectors, workers: Workers) -> tuple[Array, Array]:
    """Return the cosine of each reference, NaN if undefined; and a mask of missing vectors."""
    candidate = vectors.candidate[
        np.repeat(np.arange(vectors.candidate.size), np.diff(vectors.start))
    ]
    value = np.empty(candidate.size)
    absent = np.empty(candidate.size, bool)

    def run(first: int, last: int) -> None:
        for begin in range(first, last, _ROWS):
            some = slice(begin, min(begin + _ROWS, last))
            ours = vectors.candidates[candidate[some]]
            theirs = vectors.references[vectors.reference[some]]
            value[some] = cosines(ours, theirs)
            absent[some] = np.isnan(ours[:, :1]).any(axis=1) | np.isnan(theirs[:, :1]).any(axis=1)

    workers.over(np.arange(candidate.size + 1) * (vectors.candidates.shape[1] or 1), run)
    return value, absent


def _similarity(pairs: Pairs, settings: Settings, workers: Workers) -> tuple[Column, ...]:
    """Compute the cosine of the most similar reference, or 0 or 1 by the threshold."""
    vectors: Vectors = pairs.made["vectors"]
    each, absent = _of_pairs(vectors, workers)
    many = np.diff(vectors.start)
    value = np.full(many.size, np.nan)
    status = np.full(many.size, _NONE, np.int8)
    some = np.flatnonzero(many)
    if some.size:
        start = np.append(vectors.start[some], vectors.start[-1])
        best = best_reference(np.where(np.isnan(each), -np.inf, each), start)
        value[some] = each[best]
        status[some] = np.where(absent[best], _NONE, _ZERO)
    status[~np.isnan(value)] = _SCORED
    reasons = [
        reason
        for code, reason in ((_ZERO, _ALL_ZEROS), (_NONE, vectors.why[1]))
        if (status == code).any()
    ]
    threshold = settings.similarity_threshold
    parameters = None
    if threshold is not None:
        value = np.where(np.isnan(value), np.nan, value >= threshold)
        parameters = json.dumps({"similarity_threshold": threshold})
    return (
        Column(
            metric="SemanticSimilarity",
            parameters=(parameters,),
            values=value[:, None, None],
            reason=", or ".join(reasons) or None,
            status=(("scored", "zero_vector", vectors.why[0]), status),
        ),
    )


MEASURES = {"semantic_similarity": _similarity}
VECTORS = frozenset(MEASURES)
"""Needs that use vectors instead of texts."""
