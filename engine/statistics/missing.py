"""Datums without a value: means of runs are compared over the datums that have one in all runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from ..ingest.problems import MANY
from ..plan.summary import Tallied
from ..schemas.arrays import Array
from ..schemas.errors import OptionError, unknown
from ..schemas.wording import option
from ..tally.stats_parts import Fill, skip

SKIP, ZERO, WORST = "skip", "zero", "worst"
COLUMNS = ("missing_a", "missing_b", "coverage")
"""Columns of differences: datums of which either run has no value though the other has one, and the
share of datums with a value in either run that are compared."""


def too_few(coverage: float | None) -> bool:
    """Return True if too many values are missing in one run for a verdict."""
    return coverage is not None and 1 - coverage > MANY + 1e-9


def fill_of(missing: str, run: Tallied) -> Fill:
    """Choose the replacement for missing values of each metric.

    Args:
        missing: ``skip``, ``zero`` or ``worst``.
        run: one of the runs.

    Raises:
        OptionError: another value, or metrics that cannot be filled in this way.
    """
    if missing not in (SKIP, ZERO, WORST):
        raise unknown("missing", missing, (SKIP, ZERO, WORST))
    plan = run.plan
    if missing == SKIP:
        return skip
    given, rule = option("missing", missing), plan.does.common
    if rule is None or not rule.fills:
        raise OptionError(
            f"{given}: numbers of {plan.task} are no means of one value per datum that may be"
            " missing: leave it out.",
            code="option_unread",
            option="missing",
        )
    ends: dict[str, float] = {}
    endless, best = [], []
    for metric in plan.metrics:
        way = plan.dialect.better.get(metric.name, metric.better)
        if way == "lower":
            best.append(metric.name)
        end = {"higher": metric.range[0], "lower": metric.range[1]}.get(way, math.inf)
        if math.isinf(end):
            endless.append(metric.name)
        for need in metric.needs:
            ends.setdefault(need, end)
    if missing == ZERO:
        if best:
            raise OptionError(
                f"{given}: 0 is the best value of {', '.join(best)}, so that a run gains by values"
                f" that are missing. Write {option('missing', WORST)}, or name metrics of which"
                f" higher is better with {option('metrics')}.",
                code="option_value",
                option="missing",
                metrics=list(best),
            )
        return lambda need: 0.0
    if endless:
        raise OptionError(
            f"{given}: {', '.join(endless)} {'have' if len(endless) > 1 else 'has'} no worst value."
            f" Name metrics that have one with {option('metrics')}, or leave {option('missing')}"
            " out.",
            code="option_value",
            option="missing",
            metrics=list(endless),
        )
    return lambda need: ends.get(need, math.nan)


def over_common_values(
    runs: Sequence[Tallied], codes: Sequence[Array], fill: Fill
) -> list[Tallied] | None:
    """Return runs whose means are over the same datums; None if that is already so.

    Args:
        runs: of one task and one set of options.
        codes: int32 [n_datums] per run, index of each datum among those compared, -1 for others.
        fill: replacement for missing values.
    """
    rule = runs[0].plan.does.common
    made = None if rule is None else rule.values([run.tallies for run in runs], codes, fill)
    if made is None:
        return None
    return [
        msgspec.structs.replace(run, tallies=tallies)
        for run, tallies in zip(runs, made, strict=True)
    ]


class Slices:
    """Datums of slices, among the compared datums.

    Args:
        run: one of the runs.
        codes: int32 [n_datums], index of each datum among those compared, -1 for others.
        n: number of compared datums.
        identity: columns that identify a number.
    """

    def __init__(self, run: Tallied, codes: Array, n: int, identity: Sequence[str]) -> None:
        self._datums = run.tallies.datums
        self._codes, self._n = codes, n
        self._at = identity.index("slice"), identity.index("slice_value")
        self._known: dict[str, tuple[Array, list[str]]] = {}

    def of(self, key: tuple[Any, ...], *every: Mapping[tuple[Any, ...], Array]) -> list[Array]:
        """Values of the datums that a number is about.

        Args:
            key: identity of the number.
            every: numbers of the whole set, to values of datums; those that lack it give nothing.
        """
        whole = tuple(None if i in self._at else value for i, value in enumerate(key))
        inside = self._inside(*(key[i] for i in self._at))
        return [one[whole][inside] for one in every if whole in one]

    def _inside(self, column: str | None, value: Any) -> Array:
        if column is None:
            return np.ones(self._n, bool)
        if column not in self._known:
            group, names = self._datums.groups(column)
            of = np.full(self._n, -1, np.int32)
            of[self._codes[self._codes >= 0]] = group[self._codes >= 0]
            self._known[column] = of, names
        of, names = self._known[column]
        return np.asarray(of == names.index(value)) if value in names else np.zeros(self._n, bool)
