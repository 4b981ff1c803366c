"""Statistics of values per metric of the table, and the view that computes them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ...metrics.averages import TRIALS
from ...metrics.registry import Metric
from ...schemas.arrays import Array
from ...schemas.tables import PASSES
from ...tallies.datums import TOO_LARGE, Cells, Labels
from ...tallies.draws import Draws
from ...tallies.paired_values import Paired, PairedView
from ...tallies.stats import Stats, StatsView
from ...tallies.tables import Blocks
from .dialects import Settings, level_of

OPEN = True
"""Names of metrics come from tables: any name is one."""

SCORED, MISSING, ABSENT = STATUS = "scored", "missing", "not_measured"
"""Status of a datum in a metric: with a value, with a row but no value, without a row."""

# Rows of one metric, as pairs of equal numbers.


def weight_of(name: str) -> str:
    """Name of the column of weights of a metric, among the needs of a tally."""
    return f"{name}\tweight"


def _rows_of(stats: Stats, name: str) -> Paired:
    """Return the values of one metric that are not missing."""
    value = stats.columns[name][0].values[:, 0, 0]
    present = stats.counted & ~np.isnan(value)
    weights = stats.columns.get(weight_of(name))
    weight = None if weights is None else weights[0].values[:, 0, 0]
    if present.all():
        datum = np.arange(value.size, dtype=np.int32)
    else:
        datum = np.flatnonzero(present).astype(np.int32)
        value, weight = value[datum], None if weight is None else weight[datum]
    key = np.zeros(datum.size, np.int32)
    extra = {} if weight is None else {_OWN: weight}
    return Paired(datum, key, value, value, weight, extra)


_OWN = "own"
"""Column of the weights of single datums, which resamples do not multiply."""


def _weighing(rows: PairedView) -> Array:
    """Count the rows of a weight above 0, with the multiplicity of resamples, [group, 1]."""
    if rows.whole.weight is None:
        return rows.rows

    def one(some: Paired) -> Array:
        out = np.zeros(some.target.size)
        np.divide(1.0, some.beside[_OWN], out=out, where=some.beside[_OWN] > 0)
        return out

    return np.rint(rows.total("rows", one)).astype(np.int64)


class _Rows(msgspec.Struct, frozen=True):
    """Rows of one metric in the files of a tally."""

    stats: Any
    name: str

    @property
    def whole(self) -> Paired:
        """The rows of no file."""
        return _rows_of(self.stats.whole, self.name)

    def blocks(self, group: Any) -> Blocks:
        """Yield the rows of each file."""
        for stats, own, keys in self.stats.blocks(group):
            yield _rows_of(stats, self.name), own, keys


@cache
def _one_key() -> Labels:
    schema = {"label_key": pl.String, "label_value": pl.String, "label_name": pl.String}
    return Labels.of(pl.DataFrame([("", "", None)], schema=schema, orient="row"))


class ValuesView(StatsView):
    """Values by groups of datums.

    Args:
        of: the view that this one resamples.
    """

    def __init__(
        self, tally: Any, labels: Labels, *, of: ValuesView | None = None, **grouping: Any
    ) -> None:
        super().__init__(tally, labels, **grouping)
        self._of = of
        self._rows_of: dict[str, PairedView] = {}

    def drawn(self, draws: Draws) -> ValuesView:
        return ValuesView(
            self.tally, self.labels, of=self, draws=draws, group=self.group, n_groups=self.slices
        )

    def rows(self, name: str) -> PairedView:
        """Return the values of one metric, with the axes [group, 1]."""
        if name not in self._rows_of:
            if self._of is not None and self.draws is not None:
                self._rows_of[name] = self._of.rows(name).drawn(self.draws)
            else:
                tally = self.tally
                rows = _rows_of(tally, name) if isinstance(tally, Stats) else _Rows(tally, name)
                grouping = {"group": self.group, "n_groups": self.n_groups}
                self._rows_of[name] = PairedView(
                    rows, _one_key(), None, weights=self.weights, **grouping
                )
        return self._rows_of[name]

    def measured(self, name: str) -> Array:
        """Count the datums that have a row of a metric, with or without a value, [group]."""
        (column,) = self.columns[name]

        def here(stats: Stats) -> Array:
            status = self.same_column(stats, column).status
            assert status is not None
            return np.asarray(status[1] != STATUS.index(ABSENT))

        assert column.status is not None
        if isinstance(self.tally, Stats) and not column.status[1].any():  # all have a value
            return self.rows(name).rows[:, 0]
        return self.integer_sums("", here, "")[:, 0]


def is_share(tally: Any, name: str) -> bool:
    """Return whether the mean of a metric is a proportion: of booleans, one per datum, weight 1."""
    return bool(tally.columns[name][0].share)


# Statistics of the rows of a metric, float64 [group].


def _std(rows: PairedView) -> Array:
    """Sample standard deviation; n counts rows, so that it does not depend on the weights' unit."""
    squares, powers = rows.comoment("target", "target")
    n = _weighing(rows)
    share = np.full(n.shape, np.nan)
    np.divide(n, n - 1, out=share, where=n > 1)
    with np.errstate(over="ignore"):
        return np.asarray(np.ldexp(np.sqrt(rows.per_weight(squares) * share), powers // 2))


def quantiles(rows: Paired, weight: Array | None, levels: Sequence[float]) -> list[float]:
    """Return quantiles, linearly interpolated as NumPy does by default.

    With sample weights, a value has the level A / (A + B), where A is the weight of all values
    before it and B that of all after it, by value, then by weight; equal weights give the
    unweighted quantile. In resamples a datum counts as often as it was drawn.

    Args:
        rows: at least one.
        weight: float64 [n], above 0, times the multiplicity in a resample; None for 1.
        levels: in [0, 1].
    """
    values = rows.target
    if weight is None and rows.weight is None:
        places = [level * (values.size - 1) for level in levels]
        neighbours = [(int(place), min(int(place) + 1, values.size - 1)) for place in places]
        values = np.partition(values, sorted({end for pair in neighbours for end in pair}))
        return [
            _between(float(values[low]), float(values[high]), place - low)
            for (low, high), place in zip(neighbours, places, strict=True)
        ]
    ties = np.zeros(values.size) if rows.weight is None else rows.weight
    order = np.lexsort((ties, values))
    values = values[order]
    if rows.weight is None:
        assert weight is not None
        drawn = np.cumsum(weight[order])
        result = []
        for level in levels:
            place = level * (drawn[-1] - 1)
            low = int(place)
            at = np.searchsorted(drawn, [low, min(low + 1, drawn[-1] - 1)], side="right")
            result.append(_between(float(values[at[0]]), float(values[at[1]]), place - low))
        return result
    weights = rows.weight[order]
    ratio = np.ones(weights.size) if weight is None else weight[order] / weights
    times = np.rint(ratio).astype(np.int64)
    values, weights = values.repeat(times), weights.repeat(times)
    some = weights > 0
    values, weights = values[some], weights[some]
    if values.size < 2:
        return [float(values[0]) if values.size else float("nan")] * len(levels)
    below = np.cumsum(weights) - weights
    above = np.cumsum(weights[::-1])[::-1] - weights
    return [float(one) for one in np.interp(levels, below / (below + above), values)]


def _between(low: float, high: float, share: float) -> float:
    """Interpolate, without overflow and exactly at both ends."""
    return low if low == high or not share else low * (1 - share) + high * share


def _quantiles(rows: PairedView, levels: Sequence[float]) -> list[Array]:
    """Return quantiles of every cell; all levels from one partition of its values."""
    cells: list[list[float]] = []

    def first(some: Paired, weight: Array | None) -> float:
        cells.append(quantiles(some, weight, levels))
        return cells[-1][0]

    out = [rows.by_cell(first)]
    for i in range(1, len(levels)):
        rest = iter(cells)  # cells come in the same order
        out.append(rows.by_cell(lambda some, weight: next(rest)[i]))  # noqa: B023
    return out


def _statistic(name: str, rows: PairedView) -> Array:
    simple = {
        "mean": lambda rows: rows.mean("value", lambda some: some.target),
        "sum": lambda rows: np.where(
            rows.rows > 0, rows.total("value", lambda some: some.target), np.nan
        ),
        "std": _std,
    }
    return (
        simple[name](rows)
        if name in simple
        else rows.by_cell(lambda some, weight: float(getattr(np, name)(some.target)))
    )


ONE_VALUE = "a single value"
NO_WEIGHT = "weights are all zero"
NO_VALUE = "no datum has a value"
TOO_FEW = "some datums have fewer samples than k"


def _compute(name: str, view: ValuesView, settings: Settings) -> list[Cells]:
    """Return the cells of one metric, one per statistic.

    ``support`` counts the datums that have a row of the metric, ``scored`` those with a value.
    """
    rows = view.rows(name)
    scored = rows.rows[:, 0]
    support = scored if view.draws is not None else view.measured(name)
    trials = scored if is_share(view, name) else np.full(scored.shape, np.nan)
    levels = {one: level for one in settings.statistics if (level := level_of(one)) is not None}
    of_levels = _quantiles(rows, [*levels.values()]) if levels else []
    by_level = dict(zip(levels, of_levels, strict=True))
    out = []
    for statistic in settings.statistics:
        value = by_level[statistic] if statistic in by_level else _statistic(statistic, rows)
        value = value[:, 0]
        large = np.isinf(value)
        short = np.zeros(value.shape, bool)
        if settings.rules.all_samples and PASSES.fullmatch(name):
            short = scored < support
            value = np.where(short, np.nan, value)
        why = np.where(scored > 0, NO_WEIGHT, NO_VALUE)
        if statistic == "std":
            why = np.where(_weighing(rows)[:, 0] == 1, ONE_VALUE, why)
        columns: dict[str, Array | str | float | None] = {
            "metric": name,
            "statistic": statistic,
            "value": np.where(large, np.nan, value),
            "support": support,
            "scored": scored,
        }
        if statistic == "mean":
            columns[TRIALS] = trials
        extreme = {0.0: "is below the smallest value", 1.0: "exceeds the largest value"}
        end = extreme.get({"min": 0.0, "max": 1.0}.get(statistic, levels.get(statistic, 0.5)))
        out.append(
            Cells(
                axes=("group",),
                columns=columns,
                shape=value.shape,
                keep=support > 0 if view.group is not None else None,
                reason=np.where(short, TOO_FEW, np.where(large, TOO_LARGE, why)),
                unfit=f"no resample {end}" if end else "",
            )
        )
    return out


def family(name: str) -> Metric:
    """Return the metric of a name in the table, or one of samples."""
    of_samples = PASSES.fullmatch(name) is not None
    return Metric(
        name=name,
        task="values",
        needs=(name,),
        params=("statistics", "better", "value_columns"),
        range=(0.0, 1.0) if of_samples else (-np.inf, np.inf),
        better="higher" if of_samples else "neither",
        trials=TRIALS,
        definition=f"statistics of the values of {name!r} over datums",
        source="the table",
        compute=partial(_compute, name),
        own=True,
    )


def _listed(name: str, definition: str, formula: str) -> Metric:
    """Return the entry of a statistic in the list of metrics."""
    return msgspec.structs.replace(
        family(name), definition=definition, formula=formula, source="NumPy", own=False
    )


METRICS = (
    _listed("Mean", "weighted mean of the values: mean", r"\frac{\sum_i w_i v_i}{\sum_i w_i}"),
    _listed("Sum", "weighted sum of the values: sum", r"\sum_i w_i v_i"),
    _listed("Median", "middle value: median", r"v_{(q)}, \; q = 0.5"),
    _listed("Quantile", "quantile, linearly interpolated, as a percentile: p95", r"v_{(q)}"),
    _listed(
        "Std",
        "standard deviation of the values, with n - 1: std",
        r"\sqrt{\frac{n}{n - 1} \frac{\sum_i w_i (v_i - \bar v)^2}{\sum_i w_i}}",
    ),
    _listed("Min", "smallest value: min", r"\min_i v_i"),
    _listed("Max", "largest value: max", r"\max_i v_i"),
)
"""Statistics of every metric of a table; the option ``statistics`` chooses them."""

SYMBOLS = {
    r"v_i": "value of datum i",
    r"w_i": "its weight, 1 without a column of weights",
    r"\bar v": "their weighted mean",
    r"n": "datums with a value",
    r"v_{(q)}": "value that a share q of the values is below, interpolated linearly",
}
"""Meaning of the symbols in formulas, in TeX."""
