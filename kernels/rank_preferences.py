"""Measures of incomplete judgments: binary preference and inferred average precision.

Both walk the judged documents alone. Negative relevance marks a document of the pool that nobody
judged (trec_eval: RELVALUE_UNJUDGED).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, kernel

Array = np.ndarray[Any, Any]

_EPSILON = 0.00001  # trec_eval's INFAP_EPSILON


@kernel
def _preferences(
    start: Array,
    rank: Array,
    relevance: Array,
    gain: Array,
    level: float,
    relevant: Array,
    nonrelevant: Array,
    begin: int,
    end: int,
    bpref: Array,
    inferred: Array,
) -> None:
    for q in range(begin, end):
        bad, good, pooled = 0, 0, 0
        preferred, precision = 0.0, 0.0
        for h in range(start[q], start[q + 1]):
            if relevance[h] < 0:
                pooled += 1
            elif gain[h] >= level:
                good += 1
                if bad > 0 and nonrelevant[q] > 0:
                    worst = min(nonrelevant[q], relevant[q])
                    preferred += 1.0 - min(bad, worst) / worst
                else:
                    preferred += 1.0
                before = float(rank[h] - 1)
                if before == 0:
                    precision += 1.0
                else:
                    precision += 1.0 / (before + 1.0) + (before / (before + 1.0)) * (
                        (good - 1 + bad + pooled) / before
                    ) * ((good - 1 + _EPSILON) / (good - 1 + bad + 2 * _EPSILON))
            elif relevance[h] < level:
                bad += 1
        bpref[q] = preferred / relevant[q] if relevant[q] > 0 else 0.0
        inferred[q] = precision / relevant[q] if relevant[q] > 0 else 0.0


def preferences(
    start: Array,
    rank: Array,
    relevance: Array,
    gain: Array,
    level: float,
    relevant: Array,
    nonrelevant: Array,
    begin: int,
    end: int,
    bpref: Array,
    inferred: Array,
) -> None:
    """bpref (Buckley & Voorhees 2004) and infAP (Yilmaz & Aslam 2006) as trec_eval has them.

    Args:
        start: int64 [q + 1], CSR offsets of the judged documents of each query.
        rank: int32 [h], from 1, ascending within a query.
        relevance: float64 [h], negative for a document of the pool that was not judged.
        gain: float64 [h], relevance that is credited; ``relevance`` itself where every document is
            one judgment.
        level: lowest relevance that is relevant.
        relevant: int64 [q], judgments that are relevant.
        nonrelevant: int64 [q], judgments that are not, negative ones left out.
        begin: first query of the range.
        end: one past its last.
        bpref: float64 [q]; entries ``begin`` to ``end`` are written.
        inferred: float64 [q], likewise.
    """
    _preferences(
        frozen(start, np.int64),
        frozen(rank, np.int32),
        frozen(relevance, np.float64),
        frozen(gain, np.float64),
        level,
        frozen(relevant, np.int64),
        frozen(nonrelevant, np.int64),
        begin,
        end,
        bpref,
        inferred,
    )
