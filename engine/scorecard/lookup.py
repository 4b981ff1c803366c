"""Finding one number in the metrics frame, and saying why there is none or more than one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from ..metrics import registry
from ..schemas.errors import ResultError, did_you_mean, unknown
from ..schemas.option_values import ParsedMetric, parse_metric
from ..schemas.results import METRICS
from ..schemas.wording import option

_TOLERANCE = 1e-9
_STATISTIC = re.compile(r"mean|sum|median|std|min|max|p[\d.]+")
"""Statistics of the task values."""
SHORT = {"label": "label_value", "iou": "iou_threshold", "score": "score_threshold"}
"""Short names of columns, also used by gates."""
_MOST_VALUES = 12
_NUMBERS = ("value", "lower", "upper", "support", "scored", "reason")
KEYS = tuple(name for name in METRICS if name not in ("metric", *_NUMBERS))
"""Columns that distinguish the rows of one metric."""

Preference = Callable[[pl.DataFrame], pl.Expr]


def _null(column: str) -> Preference:
    return lambda rows: pl.col(column).is_null()


def _largest_cap(rows: pl.DataFrame) -> pl.Expr:
    """No cap at all if there is such a row, else the largest one."""
    caps = rows["max_detections"]
    if caps.null_count():
        return pl.col("max_detections").is_null()
    return pl.col("max_detections") == caps.max()


def _null_or(column: str, other: str) -> Preference:
    """Select rows without a value if there are any, otherwise those with another."""
    value = pl.col(column)
    return lambda rows: value.is_null() if rows[column].null_count() else value == other


_PREFERENCES: dict[str, Preference] = {
    "slice": _null("slice"),
    "slice_value": _null("slice_value"),
    "label_value": _null("label_value"),
    "area": lambda rows: pl.col("area").is_null() | (pl.col("area") == "all"),
    "max_detections": _largest_cap,
    "statistic": _null_or("statistic", "mean"),
    "average": _null_or("average", "macro"),
    "iou_threshold": _null("iou_threshold"),
    "parameters": _null("parameters"),
    "k": _null("k"),
}
"""Preferred rows for each column that the query does not name, in order of application."""


def whole(rows: pl.DataFrame, columns: tuple[str, ...] = tuple(_PREFERENCES)) -> pl.DataFrame:
    """Select the rows that represent the whole, one column after another.

    Columns with a single value, and preferences without a matching row, are skipped.
    """
    for column in _PREFERENCES:
        if column in columns and rows[column].n_unique() > 1:
            preferred = rows.filter(_PREFERENCES[column](rows))
            rows = preferred if preferred.height else rows
    return rows


def one_value(
    metrics: pl.DataFrame, labels: pl.DataFrame, metric: str, filters: Mapping[str, Any]
) -> float | None:
    """Return the value of the single row that metric and filters select.

    Args:
        metrics: the metrics frame.
        labels: label_key, label_value, label_name; allows the filter ``label_name``.
        metric: metric name; ``nDCG@10`` is nDCG with k 10.
        filters: column -> value; None means null.

    Raises:
        ResultError: no row, several rows, or two cut-offs.
        OptionError: the text after ``@`` is not a cut-off.
    """
    rows = chosen_rows(metrics, labels, metric, filters)
    if rows.height > 1:
        raise ambiguous(rows, rows["metric"][0])
    return rows["value"][0]


def chosen_rows(
    metrics: pl.DataFrame,
    labels: pl.DataFrame,
    metric: str,
    filters: Mapping[str, Any],
    each: tuple[str, ...] = (),
) -> pl.DataFrame:
    """Return the rows that metric and filters select; other columns prefer the whole.

    Args:
        metrics: the metrics frame.
        labels: label_key, label_value, label_name; allows the filter ``label_name``.
        metric: metric name; ``nDCG@10`` is nDCG with k 10, ``latency.p95`` its statistic p95.
        filters: column -> value; None means null.
        each: columns of which all values are kept.

    Returns:
        one row or more; several if columns without a preference, or those in ``each``, differ.

    Raises:
        ResultError: no row, or two cut-offs.
        OptionError: the text after ``@`` is not a cut-off.
    """
    names = metrics["metric"].unique(maintain_order=True).to_list()
    if not names:
        raise ResultError(
            f"this scorecard has no numbers, so no {metric!r}.", code="no_such_row", metric=metric
        )
    parsed = _spelled(metric, names)
    if parsed.k is not None:
        if filters.get("k", parsed.k) != parsed.k:
            raise ResultError(
                f"{metric!r} with k={filters['k']!r}: two cut-offs; write one.",
                code="given_twice",
                option="k",
            )
        filters = {**filters, "k": parsed.k}
    metric = parsed.metric
    if metric not in names:
        base, _, statistic = metric.rpartition(".")
        statistics = (
            metrics.filter(metric=base)["statistic"].drop_nulls().unique(maintain_order=True)
        )
        if len(statistics) and statistic not in statistics:
            way = ""
            if _STATISTIC.fullmatch(statistic):
                way = f" To add it, write {option('statistics', [*statistics, statistic])}."
            raise ResultError(
                f"{metric}: the run has only {', '.join(statistics)} of {base!r}.{way}",
                code="unknown_name",
                value=metric,
            )
        if len(statistics):
            metric, filters = base, {"statistic": statistic, **filters}
    rows = metrics.filter(pl.col("metric") == metric)
    if not rows.height:
        raise unknown("metric of this scorecard", metric, names, error=ResultError)
    for name, value in _by_value(filters, labels).items():
        if name not in KEYS:
            message = no_such_column(name)
            if name in metrics["slice"]:
                message = (
                    f"{name!r} is a slice column: write slice={name!r}, slice_value={value!r}."
                )
            raise ResultError(message, code="unknown_name", value=name)
        matches = rows.filter(_matches(rows, name, value))
        if not matches.height:
            raise ResultError(
                _nothing_left(rows, labels, metric, name, value),
                code="no_such_row",
                metric=metric,
                column=name,
            )
        rows = matches
    for name in each:
        matches = rows.filter(pl.col(name).is_not_null())
        if not matches.height:
            raise ResultError(
                f"{metric} has no row with a {name}.",
                code="no_such_row",
                metric=metric,
                column=name,
            )
        rows = matches
    settled = {SHORT.get(name, name) for name in (*filters, *each)}
    return whole(rows, tuple(name for name in _PREFERENCES if name not in settled))


def _spelled(metric: str, choices: Sequence[str]) -> ParsedMetric:
    """Resolve a metric name or alias among the metrics of a scorecard.

    Raises:
        OptionError: the text after ``@`` is not a cut-off.
    """
    if metric in choices:
        return ParsedMetric(metric)
    parsed = parse_metric(metric)
    if parsed.metric in choices:
        return parsed
    candidates = {(one.name, k) for one, k in registry.everywhere(metric) if one.name in choices}
    return ParsedMetric(*candidates.pop()) if len(candidates) == 1 else parsed


def _by_value(filters: Mapping[str, Any], labels: pl.DataFrame) -> dict[str, Any]:
    """The filters with ``label_name`` turned into the label's value."""
    chosen = {SHORT.get(name, name): value for name, value in filters.items()}
    if "label_name" not in chosen:
        return chosen
    name = chosen.pop("label_name")
    names = labels["label_name"]
    values = labels.filter(names == name)["label_value"].unique(maintain_order=True).to_list()
    if not values:
        raise unknown(
            "label name",
            str(name),
            [str(n) for n in names.unique().drop_nulls()],
            error=ResultError,
        )
    if len(values) > 1:
        raise ResultError(
            f"label_name={name!r} is the name of several labels; choose one by label_value:"
            f" {_listed(values)}.",
            code="ambiguous",
            columns=["label_value"],
        )
    return {**chosen, "label_value": values[0]}


def no_such_column(name: str) -> str:
    """Return the message for an unknown filter column, with suggestions."""
    columns = (*KEYS, "label_name")
    message = unknown("column to choose a number by", name, columns).message
    parts = [column for column in columns if name.casefold() in column.split("_")]
    if parts and "Did you mean" not in message:
        return f"{message} Did you mean {' or '.join(map(repr, parts))}?"
    return message


def _matches(rows: pl.DataFrame, name: str, value: Any) -> pl.Expr:
    column = pl.col(name)
    if value is None:
        return column.is_null()
    dtype = rows.schema[name]
    if dtype == pl.Boolean:
        return column.eq(value) if isinstance(value, bool) else pl.lit(False)
    number = isinstance(value, (int, float)) or hasattr(value, "__float__")
    if dtype.is_numeric() != (number and not isinstance(value, str)):
        return pl.lit(False)
    if dtype.is_float():
        return (column - float(value)).abs() <= _TOLERANCE
    return column.eq(value)


def _nothing_left(
    rows: pl.DataFrame, labels: pl.DataFrame, metric: str, name: str, requested: Any
) -> str:
    values = _values(rows, name)
    message = f"{metric} has no row with {name}={requested!r}; {name} is {_listed(values)} here."
    same = [value for value in values if value is not None and str(value) == str(requested)]
    if same:
        return f"{message} Write {name}={same[0]!r}, of type {type(same[0]).__name__}."
    if isinstance(requested, str):
        suggestion = did_you_mean(requested, [str(value) for value in values if value is not None])
        if name == "label_value" and requested in labels["label_name"].to_list():
            suggestion = f" Write label_name={requested!r}: label values are numbers here."
        message += suggestion
    return message


def ambiguous(rows: pl.DataFrame, metric: str, after: str = "") -> ResultError:
    """Return the error for several rows instead of one, with the columns that differ."""
    columns = [name for name in KEYS if rows[name].n_unique() > 1]
    parts = [f"{name} ({_listed(_values(rows, name))})" for name in columns]
    message = f"{metric} is in {rows.height} rows with equal columns."
    if parts:
        message = f"{metric} has {rows.height} such rows; choose one by {' and '.join(parts)}."
    return ResultError(message + after, code="ambiguous", columns=columns, count=rows.height)


def _values(rows: pl.DataFrame, name: str) -> list[Any]:
    return rows[name].unique().sort(nulls_last=True).to_list()


def _listed(values: list[Any]) -> str:
    texts = [repr(value) for value in values[:_MOST_VALUES]]
    rest = len(values) - len(texts)
    return ", ".join(texts) + (f" and {rest} more" if rest > 0 else "")
