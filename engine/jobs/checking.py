"""Checks of gates against the requested run, before any table is read."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .. import dialects, metrics, tasks
from ..plan import planner
from ..report.layouts import by_title
from ..schemas.errors import OptionError, unknown
from ..schemas.options import Options
from ..schemas.wording import option
from ..scorecard.lookup import KEYS, SHORT
from .gates import COVERAGE, Gate

CONDITIONS = ("label_name", *SHORT, *KEYS)
"""Names for conditions of gates, in addition to slices and the metric of coverage."""


def check_gates(gates: Sequence[Gate], options: Options) -> None:
    """Refuse gates about a slice or a metric that the run does not compute.

    The metrics are known only if they or the task are given; the rest is decided with the verdicts.

    Raises:
        OptionError: suggests the nearest name.
    """
    for gate in gates:
        for name, _ in gate.conditions:
            own = gate.metric.casefold() == COVERAGE and name == "metric"
            if name not in (*CONDITIONS, *options.by) and not own:
                raise unknown(
                    "condition",
                    name,
                    (*options.by, *CONDITIONS),
                    before=f"gate {gate.text!r}: ",
                    after=f" A slice is asked for with {option('by', [*options.by, name])}.",
                )
    if options.metrics is None and options.task is None:
        return
    plans = [plan for task in _tasks(options) if (plan := _plan(options, task)) is not None]
    for gate in gates:
        if plans and not any(_makes(plan, gate) for plan in plans):
            made = dict.fromkeys(metric.name for plan in plans for metric in plan.metrics)
            raise unknown(
                "metric of this run",
                gate.metric,
                made,
                before=f"gate {gate.text!r}: ",
                after=f" Others are asked for with {option('metrics')}.",
            )


def _tasks(options: Options) -> list[str]:
    """The task, or those that all metrics asked for are of."""
    if options.task is not None:
        return [options.task]
    return [
        task
        for task in tasks.NAMES
        if options.dialect in dialects.names(task)
        and all(metrics.has(task, name) for name in options.metrics or ())
    ]


def _plan(options: Options, task: str) -> planner.Plan | None:
    """Return the plan of a task; None if other options do not fit and the task was not given."""
    try:
        return planner.make_plan(options, task)
    except OptionError:
        if options.task is None:
            return None
        raise


_WORD = re.compile(r"[A-Z][a-z0-9]+")


def _makes(plan: planner.Plan, gate: Gate) -> bool:
    """Return whether a plan has the metric of a gate, under any name or title."""
    if gate.metric.casefold() == COVERAGE:
        return True
    made = [metric.name for metric in plan.metrics if metric.frame == "metrics"]
    settled = {SHORT.get(name, name) for name, _ in gate.conditions}
    if by_title(plan.task, plan.dialect.name, gate.metric, settled, made) is not None:
        return True
    name = gate.metric.partition("@")[0].casefold()
    # Metrics of several numbers (PrecisionRecallF1) have rows by the words of their name.
    words = [word for one in made for word in (one, *_WORD.findall(one))]
    if name in map(str.casefold, words):
        return True
    meant = plan.dialect.meant(gate.metric)
    return metrics.has(plan.task, meant) and any(
        metrics.meant(plan.task, one).name in made
        for one in metrics.members(plan.task, meant, plan.options)
    )
