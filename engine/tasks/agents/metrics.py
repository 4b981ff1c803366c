"""Metrics of trajectories of tool calls: one value per datum, and means over datums."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...metrics.averages import mean_metric, ratio
from ...schemas.arrays import Array
from ...tallies.stats import Column
from .calls import Trajectories
from .dialects import Settings

# Values of single datums, float64 [n], NaN if undefined.

Value = Callable[[Trajectories, Settings], Array]


def _sizes(runs: Trajectories) -> tuple[Array, Array]:
    return runs.predicted.many, runs.reference.many


def _any_order(runs: Trajectories, settings: Settings) -> Array:
    return runs.matches[:, 2] == _sizes(runs)[1]


def _only_expected(runs: Trajectories, settings: Settings) -> Array:
    return runs.matches[:, 2] == _sizes(runs)[0]


def _count_right(place: int, runs: Trajectories, settings: Settings) -> Array:
    """Calls that count as right, of the prediction (0) or of the reference (1)."""
    right: Array = runs.matches[:, 3 + place if settings.rules.members else 2]
    return right


def _share(place: int, runs: Trajectories, settings: Settings) -> Array:
    return ratio(_count_right(place, runs, settings), _sizes(runs)[place])


def _f1(runs: Trajectories, settings: Settings) -> Array:
    if settings.rules.members:
        precision, recall = (_share(place, runs, settings) for place in (0, 1))
        return ratio(2 * precision * recall, precision + recall)
    many, expected = _sizes(runs)
    return ratio(2 * _count_right(0, runs, settings), many + expected)


def _tools(runs: Trajectories, settings: Settings) -> Array:
    """Expected calls whose tool was called as often / expected calls; 1 for none and none."""
    called, times = runs.times(runs.predicted, distinct=settings.rules.distinct_tools)
    expected, needed = runs.times(runs.reference)
    at = np.minimum(np.searchsorted(called, expected), max(called.size - 1, 0))
    counts = np.zeros(expected.size, np.int64)
    if called.size:
        counts = np.where(called[at] == expected, times[at], 0)
    datum = expected // max(len(runs.tools[0]), 1)
    n_p, n_r = _sizes(runs)
    right = np.bincount(datum, np.minimum(counts, needed), minlength=n_r.size)
    return np.where(n_r > 0, ratio(right, n_r), n_p == 0)


def _columns(
    name: str, of: Value, reason: str, runs: Trajectories, settings: Settings, workers: Any
) -> tuple[Column, ...]:
    value = of(runs, settings).astype(np.float64)
    return (Column(metric=name, values=value[:, None, None], reason=reason or None),)


SINGLE_USE = "TrajectorySingleToolUse"


def _uses(runs: Trajectories, settings: Settings, workers: Any) -> tuple[Column, ...]:
    """One variant per tool: 1 if the agent called it."""
    names, tool = runs.tools
    side = runs.predicted
    values = np.zeros((side.start.size - 1, len(settings.tools), 1))
    for i, name in enumerate(settings.tools):
        if name in names:
            values[side.datum[tool[side.code] == names.index(name)], i] = 1
    parameters = tuple(json.dumps({"tool": name}, ensure_ascii=False) for name in settings.tools)
    return (Column(metric=SINGLE_USE, parameters=parameters, values=values),)


# Declarations.

_VERTEX = "Vertex AI Gen AI evaluation service, trajectory metrics"
_ADK = f"{_VERTEX}; google-adk 2.13 TrajectoryEvaluator"
_ARGUMENTS = ("tool_arguments", "argument_rules")


def _metric(
    name: str,
    of: Value,
    definition: str,
    formula: str,
    source: str,
    *,
    reason: str = "",
    params: tuple[str, ...] = _ARGUMENTS,
    **more: Any,
) -> Any:
    return mean_metric(
        "agents",
        name,
        name,
        formula=formula,
        definition=f"{definition}; mean over datums",
        source=source,
        params=params,
        measures={name: partial(_columns, name, of, reason)},
        **more,
    )


_rate = partial(_metric, trials="scored")

METRICS = (
    _rate(
        "TrajectoryExactMatch",
        lambda runs, settings: runs.matches[:, 0] > 0,
        "1 if the agent made the expected calls, in this order and no others",
        r"[p = r]",
        f"{_ADK} (EXACT); agentevals 0.0.9 strict, one call per message",
    ),
    _rate(
        "TrajectoryInOrderMatch",
        lambda runs, settings: runs.matches[:, 1] > 0,
        "1 if the calls of the agent contain the expected ones in this order, with others or"
        " without",
        r"[r \text{ is a subsequence of } p]",
        f"{_ADK} (IN_ORDER)",
    ),
    _rate(
        "TrajectoryAnyOrderMatch",
        _any_order,
        "1 if each expected call matches a different call of the agent, in any order; others may"
        " be there",
        r"[M = |r|]",
        f"{_ADK} (ANY_ORDER); agentevals 0.0.9 superset",
    ),
    _rate(
        "TrajectoryUnorderedMatch",
        lambda runs, settings: _any_order(runs, settings) & _only_expected(runs, settings),
        "1 if the agent made the expected calls and no others, in any order",
        r"[M = |r| = |p|]",
        "agentevals 0.0.9 unordered",
    ),
    _rate(
        "TrajectorySubsetMatch",
        _only_expected,
        "1 if each call of the agent matches a different expected call",
        r"[M = |p|]",
        "agentevals 0.0.9 subset",
    ),
    _metric(
        "TrajectoryPrecision",
        partial(_share, 0),
        "calls of the agent that match an expected call / calls of the agent, each expected call"
        " matching one; in the dialect vertex any",
        r"\frac{M}{|p|}",
        _VERTEX,
        reason="the agent made no call",
    ),
    _metric(
        "TrajectoryRecall",
        partial(_share, 1),
        "expected calls that match a call of the agent / expected calls, each call of the agent"
        " matching one; in the dialect vertex any",
        r"\frac{M}{|r|}",
        _VERTEX,
        reason="no call was expected",
    ),
    _metric(
        "TrajectoryF1",
        _f1,
        "2 * matching calls / calls of both trajectories; undefined without any",
        r"\frac{2 M}{|p| + |r|}",
        "harmonic mean of TrajectoryPrecision and TrajectoryRecall",
        reason="neither trajectory has a call",
    ),
    _metric(
        "ToolCorrectness",
        _tools,
        "expected calls whose tool the agent called, as often as expected / expected calls,"
        " whatever the arguments and the order; without expected calls 1 if there was no call",
        r"\frac{\sum_t \min(p_t, r_t)}{|r|}",
        "deepeval 4.3 ToolCorrectnessMetric",
        params=(),
    ),
    mean_metric(
        "agents",
        SINGLE_USE,
        SINGLE_USE,
        formula=r"[p_t > 0]",
        definition="1 if the agent called the tool; mean over datums, a row per name of tools",
        source=_VERTEX,
        params=("tools",),
        trials="scored",
        spares=("reference_trajectory",),
        measures={SINGLE_USE: _uses},
    ),
)
"""Metrics of the frame ``metrics``."""

SYMBOLS = {
    r"n": "datums with a value",
    r"p": "calls of the agent",
    r"r": "expected calls",
    r"|p|": "their number",
    r"|r|": "number of expected calls",
    r"M": "pairs of the largest one-to-one matching of equal calls",
    r"p_t": "calls of the agent of tool t",
    r"r_t": "expected calls of tool t",
    r"t": "a tool",
}
"""Meaning of the symbols in formulas, in TeX."""

SAME = (
    "TrajectoryExactMatch=trajectorystrictmatch"
    " TrajectoryUnorderedMatch=trajectoryunorderedmatch"
    " TrajectorySubsetMatch=trajectorysubset TrajectoryAnyOrderMatch=trajectorysuperset,"
    "trajectorysupersetmatch ToolCorrectness=toolcorrectnessmetric"
)
"""Metrics, each with its names in other tools, squeezed."""
CLOSE: dict[str, str] = {"tooltrajectoryavgscore": "By default it is 'TrajectoryExactMatch'."}
"""Names in other tools, squeezed -> how our number differs."""
