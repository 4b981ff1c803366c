"""Gates held against a scorecard: every row a gate is about passes, fails or is skipped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import polars as pl

from .. import metrics as registry
from ..report.layouts import by_title
from ..schemas.errors import OptionError, ResultError, unknown
from ..scorecard.card import Scorecard
from ..scorecard.lookup import KEYS, SHORT, ambiguous, chosen_rows
from .gates import COVERAGE, Gate

PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"

_HALF = 0.5  # a mean over fewer of its rows passes no gate, unless some gate speaks of coverage

_SHORT = {name: column for name, column in SHORT.items() if name != "label"} | {
    "metric": "statistic"
}
"""Names of columns that gates may use for short."""


class Verdict(msgspec.Struct, frozen=True):
    """What became of one gate on one row.

    Attributes:
        gate: the gate as written.
        row: which row of a gate for each of several, such as ``weather=rain``; else empty.
        status: ``passed``, ``failed`` or ``skipped``.
        value: the metric; None where it is undefined.
        bound: what it was held against; None where the baseline has no number.
        baseline: the earlier run's number; None without one.
        reason: why there was nothing to compare, where that is so.
        coverage: the share of the number's rows that could be scored.
    """

    gate: str
    row: str
    status: str
    value: float | None
    bound: float | None
    baseline: float | None = None
    reason: str = ""
    coverage: float = 1.0


class Numbers(msgspec.Struct, frozen=True):
    """What gates look at: the metrics frame of a run, the names of its labels, and its dialect."""

    task: str
    metrics: pl.DataFrame
    labels: pl.DataFrame
    dialect: str = "standard"


def numbers_of(card: Scorecard) -> Numbers:
    """The numbers of a scorecard, and the coverage of those whose rows could not all be scored."""
    part = pl.col("scored") / pl.col("support")
    whole = pl.col("slice").is_null() & pl.col("label_value").is_null()
    each = (
        card.metrics.filter(whole, pl.col("scored").is_not_null(), pl.col("support") > 0)
        .with_columns(value=part.cast(pl.Float64), statistic="metric", metric=pl.lit(COVERAGE))
        .unique("statistic", keep="first", maintain_order=True)
        .with_columns(k=None, parameters=None, reason=None)
    )
    least = each.bottom_k(1, by="value").with_columns(statistic=pl.lit(None, pl.String))
    rows = [frame.cast(dict(card.metrics.schema)) for frame in (least, each)]  # type: ignore[arg-type]
    return Numbers(card.task, pl.concat([card.metrics, *rows]), card.labels, card.dialect)


def judge_gates(
    gates: Sequence[Gate], numbers: Numbers, baseline: Numbers | None = None, *, first: bool = False
) -> list[Verdict]:
    """Hold gates against a run.

    Args:
        gates: what is asked.
        numbers: the run's.
        baseline: an earlier run's, for gates that are about one.
        first: whether a missing baseline means that there was no run before this one: then gates
            that are about it are skipped.

    Returns:
        one verdict a gate; several for a gate with ``*``, one a row.

    Raises:
        OptionError: a gate about a baseline, and none was given.
        ResultError: a gate that no row matches, or that leaves open which of several.
    """
    found = [one for gate in gates for one in _judged(gate, numbers, baseline, first)]
    if any(gate.metric.casefold() == COVERAGE for gate in gates):
        return found
    return [_covered(one) for one in found]


def _covered(one: Verdict) -> Verdict:
    """A verdict that does not pass on a number which rests on less than half of its rows."""
    if one.status != PASSED or one.coverage >= _HALF:
        return one
    why = (
        f"only {one.coverage:.0%} of the rows could be scored; a gate such as"
        f" '{COVERAGE} >= {math.floor(100 * one.coverage) / 100:g}' accepts that"
    )
    return msgspec.structs.replace(one, status=FAILED, reason=why)


def failed(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Those that did not pass."""
    return [one for one in verdicts if one.status == FAILED]


def _judged(
    gate: Gate, numbers: Numbers, baseline: Numbers | None, first: bool
) -> Iterable[Verdict]:
    if gate.needs_baseline and baseline is None and not first:
        raise OptionError(
            f"gate {gate.text!r} speaks of a baseline, and there is none: say which earlier run,"
            ' with --baseline DIR in the shell or baseline = "last" in a job.'
        )
    try:
        metric, filters, each = _question(gate, numbers)
        rows = chosen_rows(numbers.metrics, numbers.labels, metric, filters, each)
        for group in rows.partition_by(each, maintain_order=True) if each else [rows]:
            if group.height > 1:
                raise ResultError(ambiguous(group, metric) + _for_example(gate, group, each))
    except (ResultError, OptionError) as error:
        raise type(error)(f"gate {gate.text!r}: {error.said}") from None
    for row in rows.iter_rows(named=True):
        starred = {name: row[name] for name in each}
        shown = _shown(gate, row) if each else ""
        if gate.needs_baseline and baseline is None:
            yield Verdict(gate.text, shown, SKIPPED, row["value"], None, None, "no earlier run")
            continue
        earlier, why = None, ""
        if gate.needs_baseline and baseline is not None:
            try:
                earlier, why = _earlier(gate, baseline, metric, filters, starred)
            except ResultError as error:
                raise ResultError(f"gate {gate.text!r}, of the baseline: {error.said}") from None
            if why:
                status = SKIPPED if why == _NEW else FAILED
                yield Verdict(gate.text, shown, status, row["value"], None, None, why)
                continue
        bound = gate.bound(earlier)
        if row["value"] is None:
            why = f"undefined: {row['reason'] or 'no reason is told'}"
            yield Verdict(gate.text, shown, FAILED, None, bound, earlier, why)
        else:
            status = PASSED if gate.holds(row["value"], bound) else FAILED
            part = 1.0 if row["scored"] is None else row["scored"] / max(1, row["support"])
            yield Verdict(gate.text, shown, status, row["value"], bound, earlier, coverage=part)
    if gate.needs_baseline and baseline is not None and each:
        yield from _gone(gate, rows, baseline, metric, filters, each)


def _gone(
    gate: Gate,
    rows: pl.DataFrame,
    baseline: Numbers,
    metric: str,
    filters: dict[str, Any],
    each: tuple[str, ...],
) -> Iterable[Verdict]:
    """What a gate with ``*`` says of rows that the baseline alone has: nobody is to miss them."""
    try:
        before = chosen_rows(baseline.metrics, baseline.labels, metric, filters, each)
    except ResultError:
        return  # none of them
    keys = pl.col(list(each)).cast(pl.String)
    there = set(rows.select(keys).iter_rows())
    for row, key in zip(before.iter_rows(named=True), before.select(keys).iter_rows(), strict=True):
        if key not in there:
            yield Verdict(gate.text, _shown(gate, row), SKIPPED, None, None, row["value"], _MISSING)


def _for_example(gate: Gate, rows: pl.DataFrame, each: tuple[str, ...]) -> str:
    """The gate again, with what tells its first row from the others."""
    telling = [
        name for name in KEYS if name not in each and rows[name].n_unique() > 1 and rows[name][0]
    ]
    if not telling:
        return ""
    written = [f"{name}={value}" for name, value in gate.conditions]
    written += [f"{name}={rows[name][0]}" for name in telling]
    return f" For example: '{gate.metric}[{', '.join(written)}] {gate.written_bound}'."


_NEW = "not in the baseline"
_MISSING = "in the baseline alone"


def _earlier(
    gate: Gate, baseline: Numbers, metric: str, filters: dict[str, Any], starred: dict[str, Any]
) -> tuple[float | None, str]:
    """The baseline's number, or why there is none.

    Raises:
        ResultError: the baseline has no such row, for a gate that names its row, or several.
    """
    try:
        rows = chosen_rows(baseline.metrics, baseline.labels, metric, {**filters, **starred})
    except ResultError:
        if starred:
            return None, _NEW
        raise
    if rows.height > 1:
        raise ResultError(ambiguous(rows, metric))
    value: float | None = rows["value"][0]
    if value is None:
        return None, f"undefined in the baseline: {rows['reason'][0] or 'no reason is told'}"
    return value, ""


def _question(gate: Gate, numbers: Numbers) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    """A gate as metric, filters and starred columns of the metrics frame.

    Raises:
        ResultError: a condition on something that is no column, slice or label.
    """
    filters: dict[str, Any] = {}
    each: list[str] = []
    slices = numbers.metrics["slice"].drop_nulls().unique(maintain_order=True).to_list()
    for name, value in gate.conditions:
        column = _column(name, value, numbers, slices)
        if column == "slice_value" and name != "slice_value":
            filters["slice"] = name
        starred = gate.stars(name)
        if column == "slice" and not starred:
            # All slices of a column are meant unless one of them is named.
            filters["slice"] = value
            if "slice_value" not in dict(gate.conditions):
                each.append("slice_value")
        elif starred:
            column = "label_value" if column == "label_name" else column
            each += [column, "slice_value"] if column == "slice" else [column]
        else:
            dtype = numbers.metrics.schema.get(column, pl.String())
            literal = name in gate.quoted and dtype == pl.String
            filters[column] = value if literal else _typed(value, dtype)
    there = numbers.metrics["metric"].unique()
    named = by_title(numbers.task, numbers.dialect, gate.metric, {*filters, *each}, there)
    if named is not None:
        metric, told = named
        return metric, {**told, **filters}, tuple(dict.fromkeys(each))
    return _metric(gate, numbers), filters, tuple(dict.fromkeys(each))


def _metric(gate: Gate, numbers: Numbers) -> str:
    """The name that the frame has for a metric, in whatever capitals or alias it was written."""
    name, at, cut = gate.metric.partition("@")
    there = numbers.metrics["metric"].unique(maintain_order=True).to_list()
    if name not in there:
        known = registry.all_metrics(numbers.task).values()
        alike = [one for one in there if one.casefold() == name.casefold()] or [
            one.name
            for one in known
            if one.name in there and name.casefold() in map(str.casefold, one.aliases)
        ]
        if len(alike) == 1:
            name = alike[0]
    return f"{name}{at}{cut}"


def _column(name: str, value: str, numbers: Numbers, slices: list[str]) -> str:
    """The column of the metrics frame that a condition's name stands for.

    Raises:
        ResultError: none does.
    """
    if name in KEYS or name == "label_name":
        return name
    if name in slices:
        return "slice_value"
    if name == "label":
        labels = numbers.labels
        named = value in labels["label_name"].to_list()
        valued = value in labels["label_value"].cast(pl.String).to_list()
        return "label_name" if named and not valued else "label_value"
    if name in _SHORT:
        return _SHORT[name]
    raise ResultError(
        unknown("condition of a gate", name, (*slices, "label", *_SHORT, *KEYS, "label_name"))
    )


def _typed(value: str, dtype: pl.DataType) -> Any:
    """A condition's value as its column has it; text that is no such value stays text."""
    if value == "null":
        return None
    if dtype == pl.Boolean:
        return {"true": True, "false": False}.get(value.casefold(), value)
    try:
        if dtype.is_integer():
            return int(value)
        if dtype.is_float():
            return float(value)
    except ValueError:
        return value
    return value


def _shown(gate: Gate, row: dict[str, Any]) -> str:
    """The values that stand for the stars of a gate."""
    parts = []
    for name, _ in gate.conditions:
        if name == "slice":
            parts.append(f"{row['slice']}={row['slice_value']}")
        elif gate.stars(name):
            column = {"label": "label_value", "label_name": "label_value", **_SHORT}.get(name, name)
            parts.append(f"{name}={row[column if column in KEYS else 'slice_value']}")
    return ", ".join(parts)
