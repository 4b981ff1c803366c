"""Loss of single datums for tallies with one row per datum: one of its columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from ..dialects import Dialect
from ..metrics import Metric
from ..schemas.arrays import Array
from ..tally.stats import Column
from .stats_views import StatsTallies
from .task import Cuts, Losses

AT = 10
"""The cut-off that datums are judged at, of metrics that have one."""
_SHOWN = 3


class Judging(msgspec.Struct, frozen=True):
    """Per-datum number: a variant and cut-off of a column.

    Attributes:
        column: the column.
        k: index of the cut-off.
        higher: higher values are better.
        best: best possible value.
        value: float64 [n_datums], NaN if undefined or the datum does not count.
    """

    column: Column
    k: int
    higher: bool
    best: float
    value: Array

    @property
    def title(self) -> str:
        """Metric, statistic and cut-off."""
        cut = self.column.k[self.k]
        name = self.column.metric if cut is None else f"{self.column.metric}@{cut}"
        return name if self.column.statistic is None else f"{name} {self.column.statistic}"

    def loss(self, codes: Array) -> Array:
        """Return the values of datums, negated if needed so that higher is worse."""
        value: Array = self.value[codes]
        return -value if self.higher else value


def _numbers(
    tallies: StatsTallies, metrics: Sequence[Metric], dialect: Dialect, cuts: Cuts
) -> Iterator[Judging]:
    """Every number of single datums, metrics in their order."""
    stats = tallies.stats
    for metric in metrics:
        better = dialect.better.get(metric.name, metric.better)
        if better == "neither":
            continue
        higher = better == "higher"
        for need in metric.needs:
            for column in stats.columns.get(need, ()):
                for k, cut in enumerate(column.k):
                    if cut in cuts.get(need, ()):
                        value = np.where(stats.counted, column.values[:, 0, k], np.nan)
                        yield Judging(column, k, higher, metric.range[int(higher)], value)


def _nearness(one: Judging) -> tuple[bool, float]:
    """Sort key of numbers of a metric: the metric first, cut-offs near the default first."""
    cut = one.column.k[one.k]
    return one.column.statistic is not None, float("inf") if cut is None else abs(cut - AT)


def chosen(
    tallies: StatsTallies,
    metrics: Sequence[Metric],
    dialect: Dialect,
    cuts: Cuts,
    first: tuple[str, ...] = (),
) -> list[Judging]:
    """Return all per-datum numbers, the loss first.

    Args:
        tallies: of the run, in memory.
        dialect: decides the better direction.
        cuts: need -> requested cut-offs.
        first: names with priority over the run's order.
    """
    every = list(_numbers(tallies, metrics, dialect, cuts))
    known = [one for one in every if not np.isnan(one.value).all()]
    if not known:
        return []
    names = [one.column.metric for one in known]
    name = next((one for one in first if one in names), names[0])
    leading = min((one for one in known if one.column.metric == name), key=_nearness)
    return [leading, *(one for one in known if one is not leading)]


def losses(
    tallies: StatsTallies,
    settings: Any,
    metrics: Sequence[Metric],
    dialect: Dialect,
    *,
    cuts: Cuts,
    first: tuple[str, ...] = (),
    spared: str | None = None,
    told: Callable[[StatsTallies, Sequence[Judging], Array], list[str]] | None = None,
) -> Losses | str:
    """See :class:`.task.JudgeDatums`: the run's first metric with per-datum values.

    Args:
        tallies: of the run, in memory.
        settings: unused.
        dialect: decides the better direction.
        cuts: need -> requested cut-offs.
        first: names with priority over the run's order.
        spared: status of datums that are skipped whatever their value, since no answer could be
            better.
        told: describes datums; None to list their values.
    """
    every = chosen(tallies, metrics, dialect, cuts, first)
    if not every:
        return "no metric of the run has a value for single datums"
    leading = every[0]
    words, standing = tallies.stats.status
    value = leading.value
    if spared in words:
        value = np.where(standing == words.index(spared), np.nan, value)
    parameters = leading.column.parameters[0]
    return Losses(
        metric=leading.title,
        made_with={} if parameters is None else msgspec.json.decode(parameters),
        value=value,
        higher=leading.higher,
        best=leading.best,
        ties=lambda codes: [one.loss(codes) for one in every[1:]],
        why=lambda codes: (told or values)(tallies, every, codes),
    )


def values(tallies: StatsTallies, every: Sequence[Judging], codes: Array) -> list[str]:
    """Describe datums by their first values, and their status unless it is "scored"."""
    names = dict.fromkeys(one.column.metric for one in every)
    shown = [next(one for one in every if one.column.metric == name) for name in names][:_SHOWN]
    words, standing = shown[0].column.status or tallies.stats.status
    sentences = []
    for code in codes.tolist():
        said = ", ".join(f"{one.title} {one.value[code]:.3g}" for one in shown
                         if not np.isnan(one.value[code]))  # fmt: skip
        word = words[standing[code]]
        sentences.append(said if word == "scored" else f"{word.replace('_', ' ')}: {said}")
    return sentences
