"""Reference of fusion of retrieval runs, in plain Python from the published formulas."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

Run = dict[str, dict[str, float]]
List = dict[str, float]


def ranking(documents: List) -> list[str]:
    """Sort documents by descending score, then descending id."""
    return sorted(sorted(documents, reverse=True), key=lambda one: -documents[one])


def _min_max(one: List, pool: list[str]) -> List:
    low, high = min(one.values()), max(one.values())
    return {d: (s - low) / (high - low) if high > low else 1.0 for d, s in one.items()}


def _sum(one: List, pool: list[str]) -> List:
    low = min(one.values())
    total = math.fsum(s - low for s in one.values())
    return {d: (s - low) / total if total else 1 / len(one) for d, s in one.items()}


def _zmuv(one: List, pool: list[str]) -> List:
    mean, deviation = statistics.fmean(one.values()), statistics.pstdev(one.values())
    return {d: (s - mean) / deviation if deviation else 0.0 for d, s in one.items()}


def _rank(one: List, pool: list[str]) -> List:
    return {d: 1 - i / len(one) for i, d in enumerate(ranking(one))}


def _borda_norm(one: List, pool: list[str]) -> List:
    points = {d: 1 - i / len(pool) for i, d in enumerate(ranking(one))}
    return {d: points.get(d, (len(pool) - len(one) + 1) / (2 * len(pool))) for d in pool}


NORMALISATIONS: dict[str | None, Callable[[List, list[str]], List]] = {
    None: lambda one, pool: one,
    "min-max": _min_max,
    "max": lambda one, pool: {d: s / max(one.values()) for d, s in one.items()},
    "sum": _sum,
    "zmuv": _zmuv,
    "rank": _rank,
    "borda": _borda_norm,
}

BY_SCORE: dict[str, Callable[[list[float], list[float]], float]] = {
    "combsum": lambda s, w: math.fsum(a * b for a, b in zip(s, w, strict=True)),
    "combmnz": lambda s, w: math.fsum(a * b for a, b in zip(s, w, strict=True)) * len(s),
    "combanz": lambda s, w: math.fsum(s) / len(s),
    "combmax": lambda s, w: max(s),
    "combmin": lambda s, w: min(s),
    "combmed": lambda s, w: statistics.median(s),
    "gmnz": lambda s, w: math.fsum(a * b for a, b in zip(s, w, strict=True)) * len(s) ** 0.3,
    "wsum": lambda s, w: math.fsum(a * b for a, b in zip(s, w, strict=True)),
    "mixed": lambda s, w: math.fsum(a * b for a, b in zip(s, w, strict=True)) * len(s) ** 0.5,
}
BY_RANK: dict[str, Callable[[list[int], list[float]], float]] = {
    "rrf": lambda r, w: math.fsum(b / (60 + a) for a, b in zip(r, w, strict=True)),
    "isr": lambda r, w: math.fsum(b / a**2 for a, b in zip(r, w, strict=True)) * len(r),
    "log_isr": lambda r, w: (
        math.fsum(b / a**2 for a, b in zip(r, w, strict=True)) * math.log(len(r))
    ),
    "rbc": lambda r, w: math.fsum(b * 0.2 * 0.8 ** (a - 1) for a, b in zip(r, w, strict=True)),
}


def fuse_runs(runs: list[Run], method: str, normalisation: str | None, weights: list[float]) -> Run:
    """Fuse runs; return query -> document -> score."""
    out: Run = {}
    for query in sorted({query for run in runs for query, documents in run.items() if documents}):
        lists = [run.get(query, {}) for run in runs]
        pool = sorted({document for one in lists for document in one})
        if method == "borda":
            out[query] = _borda(lists, pool)
            continue
        if method in BY_SCORE:
            whole = normalisation == "borda"
            worth = [
                NORMALISATIONS[normalisation](one, pool) if one or whole else {} for one in lists
            ]
        else:
            worth = [{d: i for i, d in enumerate(ranking(one), 1)} for one in lists]
        formula = BY_SCORE.get(method) or BY_RANK[method]
        out[query] = {
            document: formula(
                [one[document] for one in worth if document in one],
                [w for one, w in zip(worth, weights, strict=True) if document in one],
            )
            for document in pool
        }
    return out


def _borda(lists: list[List], pool: list[str]) -> List:
    total = dict.fromkeys(pool, 0.0)
    for one in lists:
        points = {d: len(pool) - i for i, d in enumerate(ranking(one))}
        for document in pool:
            total[document] += points.get(document, (len(pool) - len(one) + 1) / 2)
    return total


def loses(lists: list[List], one: str, other: str) -> bool:
    """Return True if more lists rank the other document higher; missing documents are last."""
    votes = 0
    for documents in lists:
        place = {d: i for i, d in enumerate(ranking(documents))}
        mine, theirs = place.get(one, len(place)), place.get(other, len(place))
        votes += (theirs < mine) - (mine < theirs)
    return votes > 0
