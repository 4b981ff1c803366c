"""Win rates, Bradley-Terry strengths and ranks of models."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any

import numpy as np

from ...metrics.averages import LABEL, ratio
from ...metrics.registry import Metric, define
from ...schemas.arrays import Array
from ...tallies.counts import PreferenceView
from ...tallies.datums import Cells
from .dialects import Settings

_SIGNIFICANT = 0.05
_STEPS, _LONGEST, _EXACT = 200, 2.0, 1e-13
_MM_STEPS = 10
_NAMED = 4
_AT_ONCE = 1_000_000  # scores of prompts and models in memory


def _cells(view: PreferenceView, value: Array, reason: Array | str | None = None) -> list[Cells]:
    """Numbers of the models that were compared."""
    points = view.points
    bouts = (points + points.swapaxes(1, 2)).sum(axis=2) // 2
    columns: dict[str, Any] = {"value": value, "support": bouts}
    keep = bouts > 0 if view.draws is None else None
    return [Cells(axes=LABEL, columns=columns, shape=value.shape, keep=keep, reason=reason)]


def win_rate(view: PreferenceView, settings: Settings) -> list[Cells]:
    """Mean over the other models of the share of points won against each."""
    points = view.points.astype(np.float64)
    share = ratio(points, points + points.swapaxes(1, 2))
    defined = ~np.isnan(share)
    value = ratio(np.where(defined, share, 0.0).sum(axis=2), defined.sum(axis=2))
    return _cells(view, value, "not compared with any model")


# Bradley-Terry strengths: the maximum likelihood exists only if every model has beaten every other
# one, directly or through others.


def reachable(points: Array) -> Array:
    """Return which models beat or tied which, directly or through others, bool [group, n, n]."""
    n = points.shape[1]
    reached = (points > 0) | np.eye(n, dtype=bool)
    for _ in range(max(n - 1, 1).bit_length()):
        reached = np.matmul(reached.astype(np.float32), reached.astype(np.float32)) > 0
    return reached


def strengths(points: Array) -> Array:
    """Return log strengths of models, sum 0 over those compared; NaN if undefined.

    Some steps of the MM algorithm, then Newton's to the same maximum.

    Source: D. R. Hunter, "MM algorithms for generalized Bradley-Terry models" (2004).

    Args:
        points: [group, n, n], wins of the model of axis 1 against that of axis 2, ties half.

    Returns:
        float64 [group, n].
    """
    wins = points.astype(np.float64)
    comparisons = wins + wins.swapaxes(1, 2)
    here = comparisons.sum(axis=2) > 0
    pairs = here[:, :, None] & here[:, None, :]
    defined = (reachable(points) | ~pairs).all(axis=(1, 2)) & (here.sum(axis=1) > 1)
    out: Array = np.full(here.shape, np.nan)
    wins, comparisons, here, pairs = (one[defined] for one in (wins, comparisons, here, pairs))
    if not len(wins):
        return out
    many = here.sum(axis=1, keepdims=True)
    total = wins.sum(axis=2)

    def centred(theta: Array) -> Array:
        mean = np.where(here, theta, 0.0).sum(axis=1, keepdims=True) / many
        return np.where(here, theta - mean, 0.0)

    theta = np.zeros(here.shape)
    for _ in range(_MM_STEPS):
        p = np.exp(theta)
        below = (comparisons / (p[:, :, None] + p[:, None, :])).sum(axis=2)
        theta = centred(np.log(ratio(total, below, 1.0)))
    unused = ~here[:, :, None] * np.eye(here.shape[1])
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(theta[:, None, :] - theta[:, :, None]))
        slope = total - (comparisons * chance).sum(axis=2)
        curve = comparisons * chance * (1 - chance)
        hessian = np.eye(here.shape[1]) * curve.sum(axis=2)[:, :, None] - curve
        step = np.linalg.solve(hessian + pairs / many[:, :, None] + unused, slope[:, :, None])[
            :, :, 0
        ]
        size = np.abs(step).max(axis=1, keepdims=True)
        theta = centred(theta + step * np.minimum(1.0, _LONGEST / np.maximum(size, _LONGEST)))
        if size.max() < _EXACT:
            break
    out[defined] = np.where(here, theta, np.nan)
    return out


def _separate(view: PreferenceView) -> Array:
    """Why strengths of a group are undefined, naming its models, str [group, 1]."""
    names = [str(name) for name in view.labels.frame["label_value"]]
    points = view.points
    reached = reachable(points)
    here = (points + points.swapaxes(1, 2)).sum(axis=2) > 0
    reasons = []
    for reach, some in zip(reached & reached.swapaxes(1, 2), here, strict=True):
        sets = {tuple(np.flatnonzero(reach[i] & some).tolist()) for i in np.flatnonzero(some)}
        groups = [
            ", ".join(names[i] for i in one[:_NAMED]) + ", ..." * (len(one) > _NAMED)
            for one in sorted(sets, key=len)
        ]
        joined = "; ".join(groups[:4]) + (" ..." if len(groups) > 4 else "")
        why = "undefined: the models form groups, and some group never won against another"
        reasons.append(f"{why}: {joined}" if len(sets) > 1 else "")
    return np.array(reasons, dtype=np.str_)[:, None]


def bradley_terry(view: PreferenceView, settings: Settings) -> list[Cells]:
    """Log strengths, sum 0."""
    value = strengths(view.points)
    lost = view.draws is None and bool(np.isnan(value).any())
    return _cells(view, value, _separate(view) if lost else None)


def rank(view: PreferenceView, settings: Settings) -> list[Cells]:
    """1 plus the number of significantly stronger models."""
    theta = strengths(view.points)
    if view.draws is not None:
        return _cells(view, np.full(theta.shape, np.nan))
    lost = bool(np.isnan(theta).any())
    value = np.where(np.isnan(theta), np.nan, 1.0 + _stronger(view, theta).sum(axis=2))
    return _cells(view, value, _separate(view) if lost else None)


def _stronger(view: PreferenceView, theta: Array) -> Array:
    """Return which models (axis 2) are significantly stronger than which (axis 1).

    Normal tests of all pairs, at 5 % after S. Holm's adjustment (1979); the variance allows for
    comparisons of one prompt that depend on each other.
    """
    n, groups = len(view.labels), view.n_groups
    meat, prompts = np.zeros((groups, n, n)), np.zeros(groups)
    for rows, group in view.blocks():
        own = rows.bouts
        order = np.argsort(own.datum, kind="stable")
        datums, begins = np.unique(own.datum[order], return_index=True)
        begins, step = np.append(begins, order.size), max(1, _AT_ONCE // max(1, n))
        for start in range(0, datums.size, step):
            block, offsets = datums[start : start + step], begins[start : start + step + 1]
            at = order[offsets[0] : offsets[-1]]
            datum = np.repeat(np.arange(block.size), np.diff(offsets))
            won, lost = own.actual[at], own.predicted[at]
            of = np.zeros(block.size, np.int64) if group is None else group[block].astype(np.int64)
            gap = theta[of[datum], won] - theta[of[datum], lost]
            surprise = own.count[at] / (1 + np.exp(gap))
            score = np.zeros((block.size, n))
            np.add.at(score, (datum, won), surprise)
            np.add.at(score, (datum, lost), -surprise)
            weight = np.ones(block.size) if view.weights is None else view.weights[block]
            for g in np.unique(of[of >= 0]):
                inside = of == g
                meat[g] += (score[inside] * weight[inside, None]).T @ score[inside]
                prompts[g] += weight[inside].sum()
    points = view.points.astype(np.float64)
    comparisons = points + points.swapaxes(1, 2)
    result = np.zeros((groups, n, n), bool)
    for g in range(groups):
        own = np.flatnonzero(~np.isnan(theta[g]))
        if own.size < 2 or prompts[g] < 2:
            continue
        level = theta[g, own]
        chance = 1 / (1 + np.exp(level[None, :] - level[:, None]))
        curve = comparisons[g][np.ix_(own, own)] * chance * (1 - chance)
        inverse = np.linalg.pinv(np.diag(curve.sum(axis=1)) - curve)
        covariance = inverse @ meat[g][np.ix_(own, own)] @ inverse * prompts[g] / (prompts[g] - 1)
        above = level[None, :] - level[:, None]
        error = np.sqrt(
            np.maximum(
                np.diag(covariance)[:, None] + np.diag(covariance)[None, :] - 2 * covariance, 0
            )
        )
        i, j = np.nonzero(above > 0)
        z = np.divide(above, error, out=np.full(error.shape, np.inf), where=error > 0)[i, j]
        p = np.array([2 * NormalDist().cdf(-one) for one in z])
        order = np.argsort(p, kind="stable")
        failed = p[order] > _SIGNIFICANT / (p.size - np.arange(p.size))
        sure = order[: int(np.argmax(failed)) if failed.any() else p.size]
        result[g, own[i[sure]], own[j[sure]]] = True
    return result


METRICS: tuple[Metric, ...] = (
    define(
        "preferences",
        "WinRate",
        "mean over the other models of the share of comparisons won against each, ties as half",
        "",
        win_rate,
        needs=("bouts",),
        formula=r"\frac{1}{m - 1} \sum_{j \ne i} \frac{w_{ij} + t_{ij} / 2}{n_{ij}}",
        aliases=("win_rate",),
    ),
    define(
        "preferences",
        "BradleyTerry",
        "log strengths that make the comparisons most likely, sum 0; ties are half a win each way",
        "Hunter 2004",
        bradley_terry,
        needs=("bouts",),
        range=(-np.inf, np.inf),
        formula=r"\text{argmax}_{\theta} \sum_{i \ne j} (w_{ij} + t_{ij} / 2) \log"
        r" \frac{e^{\theta_i}}{e^{\theta_i} + e^{\theta_j}}",
        aliases=("bradley_terry", "BT"),
    ),
    define(
        "preferences",
        "Rank",
        "1 plus the number of models whose Bradley-Terry strength is significantly higher (Holm,"
        " 5 %)",
        "",
        rank,
        needs=("bouts",),
        range=(1.0, np.inf),
        better="lower",
        counts=True,
        interval="none",
        formula=r"1 + |\{j : \theta_j \text{ significantly above } \theta_i\}|",
        aliases=("rank",),
    ),
)

SYMBOLS = {
    r"m": "models",
    r"w_{ij}": "wins of model i against model j",
    r"t_{ij}": "ties between them",
    r"n_{ij}": "comparisons of them",
    r"\theta_i": "log strength of model i",
    r"\theta_j": "log strength of model j",
}
"""Meaning of the symbols in formulas, in TeX."""
