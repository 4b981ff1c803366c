"""Metrics of ir-measures beyond trec_eval's: models of users, pairs in order, compatibility."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ....kernels.retrieval import BPM, INST, NERR8, NERR9, NERR10, NERR11, expected_gains
from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ..ranked import CUT, Ranked, Weights, even_weights, log_weights, metric, ratio

DEPTH = 1000
"""Ranks that a user without a cut-off looks at, as in cwl_eval."""
_PIECE = 1 << 16  # ranks whose discounts are added up together
WISH = 1.0
"""Gain that users are after."""
LOOKING_ON = 0.9
"""The chance to look on, in NERR10."""
AGREEING = 0.95
"""Persistence of the overlap of two lists, in Compat."""


def _scaled(ranked: Ranked) -> Array:
    """Return relevance scaled to [0, 1] by the highest of all judgments."""
    return np.maximum(ranked.lists.relevance, 0.0) / (ranked.highest or 1.0)


def _user(user: int, wish: float, cut: bool, ranked: Ranked) -> Array:
    """Expected gain of a kind of user, at cut-offs or at one depth for all."""
    cuts = ranked.cuts if cut else np.array([DEPTH])
    rows = ranked.lists.start, ranked.lists.rank, _scaled(ranked)
    values = ranked.each(expected_gains, cuts.shape, *rows, user, wish, cuts)
    return values if cut else values[:, 0]


def _discounts_upto(depth: Array) -> Array:
    """Sums of 1 / log2(rank + 1) up to depths, float64 of their shape, in bounded memory."""
    depths, place = np.unique(depth, return_inverse=True)
    discounts = np.zeros(depths.size)
    done, total = 0, 0.0
    for i, deep in enumerate(depths.tolist()):
        while done < deep:
            end = min(done + _PIECE, deep)
            pieces = 1.0 / np.log2(np.arange(done + 2, end + 2, dtype=np.float64))
            pieces[0] += total  # added up rank by rank, as if in one go
            total = float(np.cumsum(pieces)[-1])
            done = end
        discounts[i] = total
    return discounts[place].reshape(depth.shape)


def _scaled_dcg(ranked: Ranked) -> Array:
    dcg = ranked.sums(_scaled(ranked), log_weights(ranked.longest, "log2(rank+1)"))
    return ratio(dcg, _discounts_upto(ranked.depth))


def _insq(ranked: Ranked) -> Array:
    """Compute INST for a user who ignores the results found so far: weights of ranks are fixed."""
    ranks = np.arange(max(DEPTH, ranked.longest) + 1, dtype=np.float64)
    weight = (2 * WISH / (np.maximum(ranks, 1.0) + 2 * WISH - 1)) ** 2
    weights = Weights(weight, np.r_[0.0, np.cumsum(weight[1:])])
    return ranked.sums(_scaled(ranked), weights, np.array([DEPTH]))[:, 0] / weights.upto[DEPTH]


def _accuracy(ranked: Ranked, level: float) -> Array:
    relevant = ranked.lists.relevance >= level
    hits = ranked.counts(relevant)
    ranks = ranked.sums(relevant * ranked.lists.rank, even_weights(ranked.longest))
    ahead = ranks - hits * (hits + 1) / 2  # others before each, added up
    value = 1.0 - ratio(ahead, (ranked.retrieved_counts - hits) * hits)
    return np.where(hits > 0, value, np.nan)


def _compatibility(ranked: Ranked) -> Array:
    """Compute rank-biased overlap with the most similar ideal list, relative to the maximum.

    A relevant document is in both lists from the larger of its two ranks on, so that it adds
    the weights of all depths from there.
    """
    lists = ranked.lists
    n_queries = len(lists)
    good = lists.gold > 0
    query = np.repeat(np.arange(n_queries), np.diff(lists.gold_start))[good]
    golds = np.bincount(query, minlength=n_queries)
    gold_rank = np.where(lists.gold_rank[good] > 0, lists.gold_rank[good].astype(np.int64), 2**62)
    order = np.lexsort((gold_rank, -lists.gold[good], query))  # of equal relevance, as retrieved
    start = np.cumsum(golds) - golds
    ideal = np.arange(query.size) - start[query] + 1
    deeper_rank = np.maximum(gold_rank[order], ideal)
    depth = np.maximum(lists.retrieved, golds)
    deepest = np.arange(1, int(depth.max(initial=0)) + 1)
    powers = np.cumprod(np.r_[1.0, np.full(max(deepest.size - 1, 0), AGREEING)])
    upto = np.r_[0.0, np.cumsum(powers[: deepest.size] / deepest)]
    end = upto[depth][query]
    within = deeper_rank <= depth[query]
    shared = np.where(within, end - upto[np.where(within, deeper_rank, 1) - 1], 0.0)
    total = np.bincount(query, shared, minlength=n_queries)
    return ratio(total, np.bincount(query, end - upto[ideal - 1], minlength=n_queries))


_CWL = "ir-measures 0.4.3 (cwl_eval); "
_GAIN = "; gain is relevance / highest relevance of all judgments"
_EXPECTED = r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \prod_{j < i} C_j, \quad C_j ="


def _of_user(
    name: str, user: int, definition: str, looks_on: str, source: str, **more: Any
) -> Metric:
    """A metric of a kind of user; ``looks_on`` is the chance to look on behind rank j, in TeX."""
    cut = "k" in more.get("params", ())
    of = partial(_user, user, LOOKING_ON if user == NERR10 else WISH, cut)
    fields: dict[str, Any] = {"averaged": False, "scaled": True, "whole": not cut}
    fields |= {"need": f"user_{name.lower()}", "source": _CWL + source, **more}
    return metric(name, of, definition + _GAIN, f"{_EXPECTED} {looks_on}", **fields)


_SEEN = "expected gain at a rank that a user sees who looks on "
_NERR = "Azzopardi, Mackenzie & Moffat 2021"

METRICS = (
    _of_user(
        "INST",
        INST,
        f"{_SEEN}behind rank i with chance ((i + 1 - G) / (i + 2 - G))^2, G the gain so far, to"
        " rank 1000",
        r"\left(\frac{j + 1 - U_j}{j + 2 - U_j}\right)^2",
        "Moffat et al. 2015",
    ),
    metric(
        "INSQ",
        _insq,
        "mean gain if rank i weighs 1 / (i + 1)^2, to rank 1000" + _GAIN,
        r"\frac{\sum_i v_i u_i}{\sum_i v_i}, \quad v_i = \frac{1}{(i + 1)^2}",
        need="user_insq",
        source=_CWL + "Moffat, Scholer & Thomas 2012",
        scaled=True,
    ),
    _of_user(
        "BPM",
        BPM,
        "mean gain up to the rank at which gains add up to 1, or to k",
        "[U_j < 1]",
        "Zhang et al. 2017",
        params=("k",),
    ),
    metric(
        "SDCG",
        _scaled_dcg,
        "sum of gain / log2(rank + 1) over that of k documents of gain 1" + _GAIN,
        r"\frac{\sum_{i \le k} u_i / \log_2(i + 1)}{\sum_{i \le k} 1 / \log_2(i + 1)}",
        need="scaled_dcg",
        source=_CWL + "Järvelin & Kekäläinen 2002",
        params=("k",),
        scaled=True,
    ),
    _of_user(
        "NERR8", NERR8, f"{_SEEN}with chance 1 - gain, up to k", "1 - u_j", _NERR, params=("k",)
    ),
    _of_user(
        "NERR9",
        NERR9,
        f"{_SEEN}behind rank i with chance (1 - gain) i / (i + 1), up to k",
        r"(1 - u_j)\, \frac{j}{j + 1}",
        _NERR,
        params=("k",),
    ),
    _of_user(
        "NERR10",
        NERR10,
        f"{_SEEN}with chance 0.9 (1 - gain), to rank 1000",
        r"0.9\, (1 - u_j)",
        _NERR,
    ),
    _of_user(
        "NERR11",
        NERR11,
        f"{_SEEN}behind rank i with chance (1 - gain) ((i + 1) / (i + 2))^2, to rank 1000",
        r"(1 - u_j) \left(\frac{j + 1}{j + 2}\right)^2",
        _NERR,
    ),
    metric(
        "Accuracy",
        _accuracy,
        "share of pairs of a relevant and another document retrieved, up to k, in which the"
        " relevant one comes first; undefined without a relevant one",
        r"\frac{\sum_{i < j \le k} \text{rel}_i\, (1 - \text{rel}_j)}{R_k\, (k - R_k)}",
        source="ir-measures 0.4.3",
        params=CUT,
        averaged=False,
        reason="no relevant document retrieved",
        bare="whole",
    ),
    metric(
        "Compat",
        _compatibility,
        "rank-biased overlap (persistence 0.95) with the ideal order, over the most that is"
        " possible",
        r"\frac{\sum_i 0.95^{i - 1}\, |D_i \cap I_i| / i}{\sum_i 0.95^{i - 1} \min(i, R) / i}",
        need="compatibility",
        source="ir-measures 0.4.3; Clarke, Vtyurina & Smucker 2021",
        averaged=False,
        aliases=("Compatibility",),
    ),
)
