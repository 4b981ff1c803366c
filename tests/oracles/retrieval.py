"""Reference of retrieval measures of one ranked list, from their definitions.

A list has the relevance of each document in rank order: None if unjudged, negative if in the pool
but not judged. ``golds`` are the relevances of all judgments.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable

from evalengine.tasks.retrieval.dialects import Settings

List = list[float | None]


def over(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def gain(relevance: float | None, gains) -> float:
    if relevance is None or relevance < 0:
        return 0.0
    if gains == "linear":
        return relevance
    if gains == "exponential":
        return 2**relevance - 1
    return gains.get(relevance, relevance)


def dcg(values: list[float], discount: str) -> float:
    shift = 1 if discount == "log2(rank+1)" else 0
    return sum(v / max(1.0, math.log2(r + shift)) for r, v in enumerate(values, 1))


def average_precision(docs: list[bool]) -> float:
    return sum(sum(docs[: r + 1]) / (r + 1) for r in range(len(docs)) if docs[r])


def bpref(docs: List, golds: list[float], relevant) -> float:
    many = sum(map(relevant, golds))
    others = sum(1 for g in golds if g >= 0 and not relevant(g))
    total, bad = 0.0, 0
    for rel in docs:
        if rel is None or rel < 0:
            continue
        if relevant(rel):
            total += 1 - over(min(bad, many), min(others, many))
        else:
            bad += 1
    return over(total, many)


def inferred(docs: List, golds: list[float], relevant) -> float:
    eps, total = 0.00001, 0.0
    for r, rel in enumerate(docs):
        if rel is None or not relevant(rel):
            continue
        ahead = docs[:r]
        pooled = sum(1 for d in ahead if d is not None)
        good = sum(1 for d in ahead if d is not None and relevant(d))
        bad = sum(1 for d in ahead if d is not None and d >= 0 and not relevant(d))
        if r == 0:
            total += 1
        else:
            share = (good + eps) / (good + bad + 2 * eps)
            total += 1 / (r + 1) + r / (r + 1) * pooled / r * share
    return over(total, sum(map(relevant, golds)))


def interpolated(docs: list[bool], many: int, recall: float) -> float:
    needed = math.floor(recall * many + 0.5)
    return max(
        (sum(docs[:r]) / r for r in range(1, len(docs) + 1) if sum(docs[:r]) >= needed), default=0.0
    )


def gain_costs(values: list[float], ideal: list[float]) -> float:
    total = 0.0
    for r in range(1, len(values) + 1):
        if values[r - 1]:
            cost = sum(max(1.0, g) for g in ideal[:r]) + max(0, r - len(ideal))
            total += values[r - 1] / math.log2(2 + cost - sum(values[:r]))
    return over(total, sum(ideal))


def ndcg(values: list[float], ideal: list[float], k: int, discount: str) -> float:
    return over(dcg(values[:k], discount), dcg(ideal[:k], discount))


def ndcg_at_relevant(values: list[float], ideal: list[float], discount: str) -> float:
    if not ideal:
        return 0.0
    at = [r for r, v in enumerate(values, 1) if v > 0]
    total = sum(ndcg(values, ideal, r, discount) for r in at)
    end = ndcg(values, ideal, max(len(values), len(ideal)), discount)
    return max(0.0, total + (len(ideal) - len(at)) * end) / len(ideal)


def ndcg_at_levels(values: list[float], ideal: list[float], discount: str) -> float:
    if not ideal:
        return 0.0
    falls = [r for r in range(1, len(ideal) + 1) if ideal[r - 1] != [*ideal, 0.0][r]]
    points = [ndcg(values, ideal, r, discount) for r in falls]
    if len(values) >= len(ideal) + 2:
        points.append(ndcg(values, ideal, len(values), discount))
    return sum(points) / len(points)


def reading(satisfies: list[float]) -> float:
    total, on = 0.0, 1.0
    for r, chance in enumerate(satisfies, 1):
        total += on * chance / r
        on *= 1 - chance
    return total


def seen(gains: list[float], depth: int, on: Callable[[int, float, float], float]) -> float:
    """Compute the expected gain of a user who continues after rank i with probability ``on``.

    The arguments of ``on`` are the rank, its gain and the total gain.
    """
    gains = (gains + [0.0] * depth)[:depth]
    weights, looking, so_far = [], 1.0, 0.0
    for r, value in enumerate(gains, 1):
        weights.append(looking)
        so_far += value
        looking *= on(r, value, so_far)
    return over(sum(w * v for w, v in zip(weights, gains, strict=True)), sum(weights))


def accuracy(hits: list[bool]) -> float:
    """Compute the share of ordered pairs; NaN without a relevant document."""
    pairs = [
        (a, b) for a, hit in enumerate(hits) if hit for b, other in enumerate(hits) if not other
    ]
    if True not in hits:
        return math.nan
    return 1 - over(sum(b < a for a, b in pairs), len(pairs))


def compatibility(docs: List, golds: list[float]) -> float:
    """Compute the overlap with the ideal, in which missing documents are last among equals."""
    ranked = [(-d, r) for r, d in enumerate(docs) if d is not None and d > 0]
    rest = [d for d in golds if d > 0]
    for minus, _ in ranked:
        rest.remove(-minus)
    ideal = [r for _, r in sorted(ranked + [(-d, 10**6 + i) for i, d in enumerate(rest)])]
    ranking = list(range(len(docs)))

    def overlap(a: list[int], b: list[int]) -> float:
        depth = max(len(docs), len(ideal))
        return sum(0.95**d * len(set(a[: d + 1]) & set(b[: d + 1])) / (d + 1) for d in range(depth))

    return over(overlap(ranking, ideal), overlap(ideal, ideal))


def users(docs: List, k: int | None, highest: float) -> dict[str, float]:
    gains = [max(d or 0.0, 0.0) / (highest or 1.0) for d in docs]
    if k is None:
        depth = 1000
        return {
            "INST": seen(gains, depth, lambda r, g, t: ((r + 1 - t) / (r + 2 - t)) ** 2),
            "INSQ": seen(gains, depth, lambda r, g, t: ((r + 1) / (r + 2)) ** 2),
            "NERR10": seen(gains, depth, lambda r, g, t: 0.9 * (1 - g)),
            "NERR11": seen(gains, depth, lambda r, g, t: ((r + 1) / (r + 2)) ** 2 * (1 - g)),
            "SDCG": over(dcg(gains, "log2(rank+1)"), dcg([1.0] * len(gains), "log2(rank+1)")),
        }
    return {
        "BPM": seen(gains, k, lambda r, g, t: float(t < 1)),
        "NERR8": seen(gains, k, lambda r, g, t: 1 - g),
        "NERR9": seen(gains, k, lambda r, g, t: r / (r + 1) * (1 - g)),
        "SDCG": over(dcg(gains[:k], "log2(rank+1)"), dcg([1.0] * k, "log2(rank+1)")),
    }


def binary(docs: List, golds: list[float], level: float | None, chosen: Settings) -> dict:
    """Compute measures of binary relevance: (metric, parameters, k) -> value."""

    def relevant(rel: float | None) -> bool:
        return rel is not None and (rel > 0 if level is None else rel >= level)

    hits = [relevant(d) for d in docs]
    n, good, many, p = len(docs), sum(hits), sum(map(relevant, golds)), chosen.persistence
    out = {}
    for k in (*chosen.k, None):
        depth, top = (n, hits) if k is None else (k, hits[:k])
        hit_count = sum(top)
        if chosen.rules.averaged_over_retrieved:
            out["MAP", (), k] = over(average_precision(top), hit_count)
        else:
            out["MAP", (), k] = over(average_precision(top), many)
        out["MRR", (), k] = 1 / (top.index(True) + 1) if hit_count else 0.0
        out["P", (), k] = over(hit_count, depth)
        out["Recall", (), k] = over(hit_count, many)
        out["F1", (), k] = over(2 * hit_count, depth + many)
        out["Success", (), k] = float(hit_count > 0)
        out["Accuracy", (), k] = accuracy(top)
        out["RelativePrecision", (), k] = over(hit_count, min(depth, many))
        if not chosen.rules.graded_persistence:
            out["RBP", (), k] = (1 - p) * sum(p**r for r, hit in enumerate(top) if hit)
    out["RPrecision", (), None] = over(sum(hits[:many]), many)
    for m in (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0):
        cut = int(m * many + 0.9)
        out["RPrecisionMult", (("multiple", m),), None] = over(sum(hits[:cut]), cut)
    points = [interpolated(hits, many, r / 10) for r in range(11)]
    for r, point in enumerate(points):
        out["InterpolatedPrecision", (("recall", r / 10),), None] = point
    out["ElevenPointPrecision", (), None] = sum(points) / 11
    out["bpref", (), None] = bpref(docs, golds, relevant)
    out["infAP", (), None] = inferred(docs, golds, relevant)
    out["binG", (), None] = over(
        sum(1 / math.log2(2 + r - sum(hits[:r])) for r in range(n) if hits[r]), many
    )
    precision, recall = over(good, n), over(good, many)
    out["SetPrecision", (), None] = precision
    out["SetRecall", (), None] = recall
    out["SetF", (), None] = over(2 * precision * recall, precision + recall)
    out["SetMAP", (), None] = precision * recall
    out["SetRelativePrecision", (), None] = over(good, min(n, many))
    out["Utility", (), None] = good - (n - good)
    out["NumRelevant", (), None] = many
    out["NumRelevantRetrieved", (), None] = good
    out["NumNonrelevantJudgedRetrieved", (), None] = sum(
        1 for d in docs if d is not None and d >= 0 and not relevant(d)
    )
    return out


def graded(docs: List, golds: list[float], chosen: Settings, highest: float, repeats: int) -> dict:
    """Compute measures without a relevance level: (metric, parameters, k) -> value."""
    values = [gain(d, chosen.gains) for d in docs]
    pool = golds + [1.0] * (repeats if chosen.rules.ideal_repeats else 0)
    pool = docs if chosen.ideal == "retrieved" else pool
    ideal = sorted((g for g in (gain(d, chosen.gains) for d in pool) if g > 0), reverse=True)
    n, p = len(docs), chosen.persistence
    ones = [1.0 if d is not None and d > 0 else 0.0 for d in docs]
    wanted = sum(1 for g in golds if g > 0)
    chance = [(2 ** max(d or 0.0, 0.0) - 1) / 2**highest for d in docs]
    out = {}
    for k in (*chosen.k, None):
        depth = n if k is None else k
        out["nDCG", (), k] = ndcg(values, ideal, 10**9 if k is None else k, chosen.discount)
        out["DCG", (), k] = dcg(values[:depth], chosen.discount)
        out["RetrievalNDCGAny", (), k] = ndcg(ones, sorted(ones, reverse=True), depth, "log2(rank)")
        out["RetrievalRecall", (), k] = over(sum(ones[:depth]), wanted)
        every = wanted > 0 and sum(ones[:depth]) == wanted
        missed = chosen.rules.repeats_missed and repeats > 0
        out["RetrievalRecallAll", (), k] = float(every and not missed)
        out["ERR", (("max_relevance", highest),), k] = reading(chance[:depth])
        there = docs[:depth]
        for metric, value in users(docs, k, highest).items():
            out[metric, (("max_relevance", highest),), k] = value
        out["Judged", (), k] = over(sum(d is not None for d in there), len(there))
        out["Unjudged", (), k] = over(sum(d is None or d < 0 for d in there), depth)
        if chosen.rules.graded_persistence:
            top = max([1.0, *golds])
            out["RBP", (), k] = (1 - p) * sum(
                p**r * max(d or 0.0, 0.0) / top for r, d in enumerate(there)
            )
    out["NumRetrieved", (), None] = n
    out["Compat", (), None] = compatibility(docs, golds)
    gaps = [r for r, d in enumerate(docs) if d is None or d < 0]
    out["RBPResidual", (), None] = p**n + (1 - p) * sum(p**r for r in gaps)
    if chosen.rules.graded_persistence and not gaps:
        out["RBPResidual", (), None] = 0.0
    out["G", (), None] = gain_costs(values, ideal)
    out["nDCGRel", (), None] = ndcg_at_relevant(values, ideal, chosen.discount)
    at_levels = ndcg_at_levels(values, ideal, chosen.discount)
    for level in chosen.relevance_levels:
        extra = () if level is None else (("relevance_level", level),)
        reached = level is None or any(g >= level for g in golds)
        out["RnDCG", extra, None] = at_levels if reached else 0.0
    return out


def every_value(
    docs: List, golds: list[float], chosen: Settings, highest: float, repeats: int = 0
) -> dict:
    """Compute (metric, parameters, k) -> value, with parameters in the engine's JSON."""
    out = {}
    for level in chosen.relevance_levels:
        for (metric, extra, k), value in binary(docs, golds, level, chosen).items():
            parameters = dict(extra) | ({} if level is None else {"relevance_level": level})
            out[metric, json.dumps(parameters) if parameters else None, k] = value
    for (metric, extra, k), value in graded(docs, golds, chosen, highest, repeats).items():
        out[metric, json.dumps(dict(extra)) if extra else None, k] = value
    return out
