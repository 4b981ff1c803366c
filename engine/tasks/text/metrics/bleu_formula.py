"""BLEU from counts: NLTK's formula and sacrebleu's, with their smoothings.

Papineni et al., "BLEU: a Method for Automatic Evaluation of Machine Translation", 2002; smoothings:
Chen and Cherry, "A Systematic Comparison of Smoothing Techniques for Sentence-Level BLEU", 2014.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from ....schemas.arrays import Array

_EPSILON, _ALPHA, _K = 0.1, 5.0, 5.0
"""NLTK's constants of method1, method6 and method4."""
_FIFTH = 5
"""Additional order used by method5 and method7, whatever the weights."""
_NEVER = -9999999999.0
"""sacrebleu's value for the logarithm of 0."""
_OF_NLTK = {"exp": "method3", "floor": "method1", "add-k": "method2"}
_OF_SACREBLEU = {other: own for own, other in _OF_NLTK.items()}


def orders_of(weights: tuple[float, ...], smoothing: str) -> int:
    """Return the number of n-gram orders to count."""
    return max(len(weights), _FIFTH if smoothing in ("method5", "method7") else 1)


def bleu(counts: Array, settings: Any, *, sentence: bool) -> Array:
    """Compute BLEU for rows of counts.

    Args:
        counts: [r, 2 + 2 orders]: length of the candidate, closest length of a reference, clipped
            matches of each order, n-grams of each order.
        settings: ``bleu_weights``, ``smoothing``, and rules with ``bleu``, ``floor`` and
            ``percent``.
        sentence: a row is one sentence; otherwise a sum of many.

    Returns:
        float64 [r], from 0 to 1, or to 100 by the rule ``percent``; NaN if the smoothing is
        undefined.
    """
    counts = np.asarray(counts, np.float64)
    half = 2 + (counts.shape[1] - 2) // 2
    length, closest, match, total = (
        counts[:, 0],
        counts[:, 1],
        counts[:, 2:half],
        counts[:, half:],
    )
    value = _FORMULAS[settings.rules.bleu](
        match, total, settings.bleu_weights, settings.smoothing, sentence
    )
    short = np.exp(1 - closest / np.maximum(length, 1))
    value = value * np.where(length >= closest, 1.0, np.where(length == 0, 0.0, short))
    value = np.where(value < settings.rules.floor, 0.0, value)
    return value * 100 if settings.rules.percent else value


def _nltk(
    match: Array, total: Array, weights: tuple[float, ...], smoothing: str, sentence: bool
) -> Array:
    """Compute the geometric mean of precisions with NLTK's smoothing; 0 without matching tokens."""
    n = len(weights)
    grams, total = total, np.maximum(total, 1)
    p = match / total
    name = _OF_NLTK.get(smoothing, smoothing)
    p = _SMOOTHED[name](p[:, :n], match, total, grams)
    logs = np.log(p, out=np.zeros_like(p), where=p > 0)
    value = np.exp((logs * np.asarray(weights)).sum(axis=1))
    value[np.isnan(p).any(axis=1)] = np.nan
    return np.where(match[:, 0] > 0, value, 0.0)


def _none(p: Array, match: Array, total: Array, grams: Array) -> Array:
    return np.where(match[:, : p.shape[1]] > 0, p, sys.float_info.min)


def _method1(p: Array, match: Array, total: Array, grams: Array) -> Array:
    return np.where(p > 0, p, _EPSILON / total[:, : p.shape[1]])


def _method2(p: Array, match: Array, total: Array, grams: Array) -> Array:
    n = p.shape[1]
    p = (match[:, :n] + 1) / (total[:, :n] + 1)
    p[:, 0] = match[:, 0] / total[:, 0]
    return p


def _method3(p: Array, match: Array, total: Array, grams: Array) -> Array:
    zero = match[:, : p.shape[1]] == 0
    return np.where(zero, 1 / (2.0 ** np.cumsum(zero, axis=1) * total[:, : p.shape[1]]), p)


def _method4(p: Array, match: Array, total: Array, grams: Array) -> Array:
    length = grams[:, :1]
    zero = (match[:, : p.shape[1]] == 0) & (length > 1)
    logs = np.log(np.maximum(length, 2))
    smoothed = 1 / (2.0 ** np.cumsum(zero, axis=1) * _K / logs) / total[:, : p.shape[1]]
    return np.where(zero, smoothed, p)


def _method5(p: Array, match: Array, total: Array, grams: Array) -> Array:
    fifth = match[:, _FIFTH - 1 : _FIFTH] / total[:, _FIFTH - 1 : _FIFTH]
    ahead = np.concatenate((p[:, 1:], fifth), axis=1)
    out = np.empty_like(p)
    before = p[:, 0] + 1
    for i in range(p.shape[1]):
        before = out[:, i] = (before + p[:, i] + ahead[:, i]) / 3
    return out


def _method6(p: Array, match: Array, total: Array, grams: Array) -> Array:
    p = p.copy()
    defined = p[:, 2] > 0
    for i in range(2, p.shape[1]):
        guess = np.zeros(len(p))
        np.divide(p[:, i - 1] ** 2, p[:, i - 2], out=guess, where=p[:, i - 2] > 0)
        p[:, i] = (match[:, i] + _ALPHA * guess) / (grams[:, i] + _ALPHA)
    return np.where(defined[:, None], p, np.nan)


def _method7(p: Array, match: Array, total: Array, grams: Array) -> Array:
    return _method5(_method4(p, match, total, grams), match, total, grams)


_SMOOTHED: dict[str, Callable[[Array, Array, Array, Array], Array]] = {
    "none": _none,
    "method1": _method1,
    "method2": _method2,
    "method3": _method3,
    "method4": _method4,
    "method5": _method5,
    "method6": _method6,
    "method7": _method7,
}
"""Name of a smoothing -> precisions of the weights' orders from precisions, matches, denominators
and numbers of n-grams."""


def _sacrebleu(
    match: Array, total: Array, weights: tuple[float, ...], smoothing: str, sentence: bool
) -> Array:
    """sacrebleu's: orders without any n-gram count as 0, or not at all in a sentence."""
    name = _OF_SACREBLEU.get(smoothing, smoothing)
    n = len(weights)
    match, total = match[:, :n].copy(), total[:, :n].copy()
    known = match.any(axis=1)
    if name == "add-k":
        match[:, 1:] += 1
        total[:, 1:] += 1
    within = np.cumprod(total > 0, axis=1, dtype=bool)
    zero = within & (match == 0)
    p = np.divide(match, total, out=np.zeros_like(match), where=within)
    if name == "exp":
        np.divide(1, 2.0 ** np.cumsum(zero, axis=1) * total, out=p, where=zero)
    elif name == "floor":
        np.divide(_EPSILON, total, out=p, where=zero)
    logs = np.log(p, out=np.full_like(p, _NEVER), where=p > 0)
    weight = np.broadcast_to(np.asarray(weights), p.shape)
    if sentence:
        weight = np.where(within, weight, 0.0)
    whole = weight.sum(axis=1)
    mean = np.divide((logs * weight).sum(axis=1), whole, out=np.zeros(len(p)), where=whole > 0)
    return np.where(known & (whole > 0), np.exp(mean), 0.0)


_NLTK_ONLY = ("method4", "method5", "method6", "method7")
_SHORTEST = {"method6": 3}
"""Smoothing -> how many orders it needs."""


def misfit(weights: tuple[float, ...], smoothing: str, formula: str) -> str | None:
    """Return why a smoothing is incompatible with a formula or its orders; otherwise None."""
    if formula == "sacrebleu" and smoothing in _NLTK_ONLY:
        return "is NLTK's alone; sacrebleu has none, exp, floor and add-k"
    needed = _SHORTEST.get(smoothing, 1)
    if len(weights) < needed:
        return f"needs {needed} n-gram orders, and there are weights for {len(weights)}"
    return None


_FORMULAS: dict[str, Callable[..., Array]] = {"nltk": _nltk, "sacrebleu": _sacrebleu}
