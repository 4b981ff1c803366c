"""Score thresholds chosen by rules, with held-out results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

import msgspec
import numpy as np
import polars as pl

from ..atomic import guarding, refuse, whole_file, written
from ..dialects import Aims
from ..evaluation.planner import Plan
from ..evaluation.summary import Tallied
from ..executors import Threads
from ..ingest.opening import Tables
from ..ingest.problems import count_of, listing
from ..ingest.values import sides_by_name
from ..metrics.thresholds import RULES, Chosen, Curve, Reached, Rule, reached, walk
from ..progress import Progress, reports_progress
from ..report.text import UNDEFINED, fixed
from ..run import hits_at, intervals_of, ious_of, tallied_through
from ..schemas.arrays import Array
from ..schemas.display import NAME, NOTE, Column
from ..schemas.errors import OptionError, unknown
from ..schemas.named import Named
from ..schemas.option_values import Intervals, in_name, make_options
from ..schemas.options import Options
from ..schemas.wording import option
from ..statistics.resamples import Drawing, curves_of, in_every_draw, interval, notes_on
from ..tallies.datums import Labels, keys_as_labels, named_rows
from . import FindingResult, hit_at

# Result class of ``find_thresholds``.

FILE_COLUMNS = ("label_key", "label_value", "label_name", "threshold")

DIGITS = (4, 6, 8, 10, 12, 17)
"""Decimals of thresholds in text."""


class FoundThresholds(FindingResult, eq=False):
    """Score thresholds per rule and label.

    Attributes:
        frame: one row per rule and label, and one for all labels of a key (``average`` micro):
            ``metric`` (the rule), ``parameters`` (its target, JSON), ``label_key, label_value,
            label_name, average``, ``threshold`` with ``lower, upper`` (of thresholds chosen again
            in each resample), ``tp, fp, fn, tn`` (at or above the threshold; tn null without
            negatives), ``precision, recall, fpr, f`` with ``_lower`` and ``_upper`` (at this
            threshold), ``cost``, the same as ``held_out_...`` (chosen on one half of the datums,
            counted on the other, then the reverse), ``flattery`` (by how much the rule's objective
            looks better here than held out), ``kept`` (whether held-out data reach the target),
            ``reason`` (why there is no threshold).
        metrics: the rules, in order.
        beta: weight of recall in ``f``.
        level: confidence of the intervals, in (0, 1).
        iou_threshold: IoU from which a box is a hit, metres with ``by_distance``; None without
            boxes.
        by_distance: whether boxes are compared by the distance of their centres.
        n: number of datums.
        digits: decimals of thresholds in text, where they are rounded down; enough for the counts.
    """

    frame: pl.DataFrame
    metrics: tuple[str, ...]
    beta: float
    level: float
    iou_threshold: float | None
    n: int
    by_distance: bool = False
    digits: int = DIGITS[0]
    _name = "thresholds"

    def table(self, metric: str | None = None) -> pl.DataFrame:
        """Return the thresholds of one rule, as :func:`evalengine.score` takes them for
        ``thresholds``.

        Args:
            metric: the rule; optional if there is only one.

        Returns:
            label_key, label_value, label_name (if labels have names), threshold. A row without
            label_value applies to the labels of its key that have no row.

        Raises:
            OptionError: several rules and none named, or a rule that was not requested.
        """
        if metric is None and len(self.metrics) > 1:
            raise OptionError(
                f"several rules chose thresholds ({', '.join(self.metrics)}): name one,"
                f" {option('metrics', self.metrics[0])}.",
                code="ambiguous",
                metrics=list(self.metrics),
            )
        named = metric or self.metrics[0]
        if named not in self.metrics:
            raise unknown("metric", named, self.metrics)
        table = self.frame.filter(
            (pl.col("metric") == named) & pl.col("threshold").is_not_null()
        ).select(FILE_COLUMNS)
        unnamed = table["label_name"].null_count() == table.height
        return table.drop("label_name") if unnamed else table

    def save(self, path: str | Path, metric: str | None = None) -> int:
        """Write the thresholds of one rule to a JSON, CSV or Parquet file, by its suffix.

        Args:
            path: the file; an existing one is replaced.
            metric: see :meth:`table`.

        Returns:
            number of rows.

        Raises:
            OptionError: another suffix, or as in :meth:`table`.
        """
        table, path = self.table(metric), Path(path)
        writers: dict[str, Callable[..., Any]] = {
            ".json": table.write_json,
            ".csv": table.write_csv,
            ".parquet": table.write_parquet,
        }
        if path.suffix not in writers:
            raise OptionError(
                f"{path.name}: write a file that ends in {', '.join(writers)}.",
                code="format_unknown",
                file=str(path),
            )
        refuse(path, self.inputs)
        with written(path), whole_file(path, sweeps=True) as file:
            writers[path.suffix](file)
        return table.height

    def _heading(self) -> str:
        at = hit_at(self.iou_threshold, by_distance=self.by_distance)
        by = f" by {self.metrics[0]}" if len(self.metrics) == 1 else ""
        return f"{count_of(len(self), 'threshold')}{by} of {count_of(self.n, 'datum')}{at}"

    def _table_rows(self) -> pl.DataFrame:
        down = _rounded_down(self.frame["threshold"].to_numpy(), self.digits).tolist()
        texts = [UNDEFINED if math.isnan(one) else fixed(one, self.digits) for one in down]
        return self.frame.with_columns(threshold=pl.Series(texts, dtype=pl.String))

    def _columns(self) -> list[Column]:
        f = f"F{in_name(self.beta)}"
        columns = [
            Column("label", NAME, "label", ("label_value", "label_name", "average")),
            Column("threshold", form="text"),
            Column(f"{100 * self.level:g} % interval", form="interval", of=("lower", "upper")),
            *(Column(name, form="count") for name in ("tp", "fp", "fn")),
            Column("precision"),
            Column("recall"),
            Column(f, of=("f",)),
            Column("held out: precision", of=("held_out_precision",)),
            Column("recall", of=("held_out_recall",)),
            Column(f, of=("held_out_f",)),
        ]
        if len(self.metrics) > 1:
            columns.insert(0, Column("rule", NAME, "text", ("metric",)))
        if self.frame["kept"].count():
            columns.append(Column("kept", NOTE, "flag"))
        return columns


# Search for score thresholds of a run, with intervals and held-out numbers.
#
# A threshold looks better on the rows it was chosen on. Each rule therefore also chooses on one
# half of the datums (split by a hash of ids) and is tested on the other, then the reverse; both
# halves together give the held-out numbers.

RATES = ("precision", "recall", "fpr", "f")
"""Numbers of a threshold that have an interval, in addition to the threshold."""


class RuleResult(msgspec.Struct, frozen=True):
    """Result of a rule, per label or per key with labels pooled; arrays [s].

    Attributes:
        threshold: NaN for none.
        unscored: bool, there was no candidate.
        here: rates of the threshold on the datums it was chosen on.
        held_out: rates of thresholds chosen on one half and tested on the other.
        intervals: bounds [2, s] for ``threshold`` (chosen again per resample) and for :data:`RATES`
            (at the chosen threshold); None without resamples.
    """

    threshold: Array
    unscored: Array
    here: Reached
    held_out: Reached
    intervals: dict[str, Array] | None


class Searched(msgspec.Struct, frozen=True):
    """Results at one level.

    Attributes:
        selected: bool [s], segments that become rows.
        positives: float64 [s].
        exclusive: see :class:`..metrics.thresholds.Curve`.
        cut: same.
        digits: decimals with which thresholds, rounded down, have these counts.
        results: results of every rule.
    """

    selected: Array
    positives: Array
    exclusive: bool
    cut: bool
    digits: int
    results: list[RuleResult]


def search(
    plan: Plan,
    tallies: Any,
    threads: Threads,
    rules: Sequence[Rule],
    aims: Aims,
    interval_options: Intervals,
) -> tuple[Searched, Searched]:
    """Choose thresholds by every rule.

    Args:
        plan: its settings contain the IoU threshold.
        tallies: the task's, datums with keys.
        threads: used for resamples.
        aims: targets of the rules.
        interval_options: settings of the intervals.

    Returns:
        results per label, and per key with labels pooled.
    """
    does, settings = plan.does, plan.settings
    view = does.view(tallies, settings, threads=threads)
    group = tallies.datums.halves(interval_options.seed)
    halves = does.view(tallies, settings, group=group, n_groups=2, threads=threads)
    curves = curves_of(plan, view)
    chosen = [walk(curve, rules, aims)[0] for curve in curves]
    held_out = [
        _held_out_rates(half, rules, aims, curve)
        for half, curve in zip(curves_of(plan, halves), curves, strict=True)
    ]
    drawn = _drawn(plan, tallies, view, threads, rules, aims, interval_options, chosen)
    units = Drawing(plan, tallies, threads).units(view)[0]
    searched = []
    for level, curve in enumerate(curves):
        results = []
        for r, one in enumerate(chosen[level]):
            here = reached(one.tp, one.fp, curve.positives, curve.negatives, aims)
            points = {"threshold": one.threshold} | {n: getattr(here, n) for n in RATES}
            bounds = {
                name: interval(drawn[level][:, r, i], point, interval_options, units)
                for i, (name, point) in enumerate(points.items())
            }
            results.append(
                RuleResult(one.threshold, one.unscored, here, held_out[level][r], bounds)
            )
        digits = _digits(curve, chosen[level], aims)
        searched.append(
            Searched(curve.reported(), curve.positives, curve.exclusive, curve.cut, digits, results)
        )
    return searched[0], searched[1]


def _rounded_down(thresholds: Array, digits: int) -> Array:
    rounded = np.round(thresholds, digits)
    return np.where(rounded > thresholds, np.round(rounded - 10.0**-digits, digits), rounded)


def _digits(curve: Curve, chosen: Sequence[Chosen], aims: Aims) -> int:
    """Return the decimals with which thresholds, rounded down, have the same counts."""
    for digits in DIGITS[:-1]:
        down = [_rounded_down(one.threshold, digits) for one in chosen]
        pairs = zip(chosen, walk(curve, [], aims, down)[1], strict=True)
        if all(
            np.all(np.isnan(one.threshold) | ((one.tp == tp) & (one.fp == fp)))
            for one, (tp, fp) in pairs
        ):
            return digits
    return DIGITS[-1]


def _held_out_rates(
    curve: Curve, rules: Sequence[Rule], aims: Aims, full_curve: Curve
) -> list[Reached]:
    """Return the rates of thresholds chosen on each half and tested on the other; NaN without one.

    Args:
        curve: curves of the halves, all of the first before all of the second.
        full_curve: curve of all datums.
    """
    chosen, _ = walk(curve, rules, aims)
    others = [np.roll(one.threshold, one.threshold.size // 2) for one in chosen]
    _, counted = walk(curve, [], aims, others)
    rates = []
    for tp, fp in counted:
        true, false = (one.reshape(2, -1).sum(axis=0) for one in (tp, fp))
        rates.append(reached(true, false, full_curve.positives, full_curve.negatives, aims))
    return rates


def _drawn(
    plan: Plan,
    tallies: Any,
    overall: Any,
    threads: Threads,
    rules: Sequence[Rule],
    aims: Aims,
    interval_options: Intervals,
    chosen: list[list[Chosen]],
) -> list[Array]:
    """Return threshold and rates per level, float64 [resamples, rules, 1 + rates, s]."""
    fixed = [[one.threshold for one in level] for level in chosen]
    shape = interval_options.draws, len(rules), 1 + len(RATES)
    out = [np.full((*shape, level[0].size), np.nan) for level in fixed]

    def see(d: int, curves: tuple[Curve, Curve]) -> None:
        for level, (at, curve) in enumerate(zip(fixed, curves, strict=True)):
            chosen_again, counted = walk(curve, rules, aims, at)
            for r, (one, (tp, fp)) in enumerate(zip(chosen_again, counted, strict=True)):
                rates = reached(tp, fp, curve.positives, curve.negatives, aims)
                out[level][d, r] = [one.threshold, *(getattr(rates, n) for n in RATES)]

    in_every_draw(plan, tallies, overall, threads, interval_options, see)
    return out


# From a run to the score thresholds that serve best.

_COUNTS = ("tp", "fp", "fn", "tn")
_AIMS = ("target_precision", "target_recall", "target_fpr", "false_positive_cost", "miss_cost")
_SETTABLE = ("beta", "pr_curve_iou_threshold", *_AIMS)
"""Options that may be other than those of the run."""


@reports_progress
@guarding
def find_thresholds(
    run: Any = None,
    ground_truths: Any = None,
    *,
    y_true: Any = None,
    y_score: Any = None,
    datums: Any = None,
    labels: Any = None,
    options: Options | Mapping[str, Any] | None = None,
    storage_options: dict[str, str] | None = None,
    progress: Progress | bool | None = None,
    **named: Unpack[Named],
) -> FoundThresholds:
    """Find the best score thresholds, per label and for all labels together.

    Each threshold is reported with its counts and rates, their intervals, and its held-out result:
    the rule chooses on one half of the datums, split by a hash of their ids, and is counted on the
    other, then the reverse.

    Args:
        run: a :class:`evalengine.Scorecard`, the folder of a saved one, or predictions, as
            :func:`evalengine.score` takes them.
        ground_truths: if the run is predictions.
        y_true: scikit-learn's name for ``ground_truths``.
        y_score: scikit-learn's name for predictions, in place of ``run``.
        datums: table of all datums, if the run is predictions.
        labels: table or list of declared classes, if the run is predictions.
        options: options to start from; named ones take precedence.
        storage_options: for remote paths, as Polars takes them.
        progress: True shows the progress; or a callable that receives the name of each step.
        **named: any field of :class:`evalengine.Options`; ``metrics`` names the rules (by default
            all of the task), ``draws`` is 200 and ``intervals`` 0.95 by default, ``seed`` applies
            to the resamples and the halves.

    Returns:
        :class:`evalengine.findings.thresholds.FoundThresholds`, whose ``frame`` has one row
        per rule and label, and whose ``save`` writes a file for ``thresholds`` of
        :func:`evalengine.score`.

    Raises:
        OptionError: metrics that choose no threshold, a task without scores; options that do not
            apply to a scored run.
        ResultError: a saved run without the required data.

    Example:
        >>> import evalengine as ee
        >>> ee.find_thresholds("runs/monday", metrics="ThresholdAtMaxF")  # doctest: +SKIP
    """
    run, ground_truths = sides_by_name(run, ground_truths, y_true, None, y_score)
    chosen = make_options(options, **named)
    intervals = intervals_of(chosen)
    result, notes = tallied_through(
        Tables(run, ground_truths, datums, labels, storage_options),
        chosen,
        intervals,
        metrics=lambda task: chosen.metrics or (_rules(task, chosen)[0].metric,),
        settable=_SETTABLE,
        unread=_AIMS,
        then=lambda tallied, options: _thresholds_of(tallied, options, intervals),
        name="choosing thresholds",
    )
    result.messages = (*notes, *result.messages)
    return result


def _rules(task: str, options: Options) -> list[Rule]:
    """Return the rules named by metrics; by default all of the task.

    Raises:
        OptionError: metrics that choose no threshold, or a task without scores.
    """
    from ..metrics import all_metrics, parse_metric_name

    registered = all_metrics(task)
    rules = {rule.metric: rule for rule in RULES if rule.metric in registered}
    if not rules:
        raise OptionError(
            f"{option('task', task)}: {task} has no thresholds.", code="task_unfit", task=task
        )
    named = [parse_metric_name(task, name)[0].name for name in options.metrics or rules]
    if wrong := [name for name in named if name not in rules]:
        raise OptionError(
            f"{option('metrics', wrong)} chooses no threshold; write one of {', '.join(rules)}.",
            code="option_value",
            option="metrics",
            value=wrong,
        )
    return [rules[name] for name in named]


def _thresholds_of(
    tallied: Tallied, options: Options, interval_options: Intervals
) -> FoundThresholds:
    """Compute the thresholds of a run whose datums have keys; options name rules and targets."""
    plan, tallies = tallied.plan, tallied.tallies
    rules = _rules(plan.task, options)
    targets = {name: getattr(options, name) for name in ("beta", *_AIMS)}
    aims = plan.does.settings.resolve(plan.options.replace(**targets), plan.dialect)
    assert isinstance(aims, Aims)
    assert plan.does.curve is not None
    levels = search(plan, tallies, tallied.threads, rules, aims, interval_options)
    names = tallies.labels, keys_as_labels(tallies.labels)
    frames = [
        _rows(
            rule,
            i,
            level,
            labels,
            None if labels is names[0] else "micro",
            tallies.labels.dtype,
            aims,
        )
        for i, rule in enumerate(rules)
        for level, labels in zip(levels, names, strict=True)
    ]
    frame = pl.concat(frames)
    return FoundThresholds(
        frame,
        metrics=tuple(rule.metric for rule in rules),
        beta=aims.beta,
        level=interval_options.level,
        **hits_at(plan.settings),
        n=len(tallies.datums),
        digits=max(level.digits for level in levels),
        messages=(
            *_notes(tallies, interval_options, frame, levels[0], several=len(rules) > 1),
            *ious_of(tallied),
        ),
    )


def _notes(
    tallies: Any,
    interval_options: Intervals,
    frame: pl.DataFrame,
    level: Searched,
    *,
    several: bool,
) -> list[str]:
    notes = [
        "held-out numbers: thresholds were chosen on one half of the datums and tested on the"
        " other, then the reverse. They are slightly pessimistic, because half of the data chooses"
        f" less well. Halves follow from datum ids and {option('seed', interval_options.seed)}."
    ]
    notes += notes_on(tallies, cut=level.cut)
    if level.exclusive and frame["average"].count():
        notes.append(
            "labels exclude each other here, and each label is counted against the rest. A run"
            f" with {option('thresholds')} predicts only the best label that reaches its"
            " threshold, so its counts differ."
        )
    without = frame.filter(pl.col("threshold").is_null())
    for reason, rows in without.group_by("reason", maintain_order=True):
        named = []
        for row in rows.iter_rows(named=True):
            label = str(row["label_name"] or row["label_value"])
            label = label if row["average"] is None else "all labels"
            named.append(f"{row['metric']} of {label}" if several else label)
        notes.append(f"no threshold for {listing(named)}: {reason[0]}.")
    broken = frame.filter(~pl.col("kept"))
    if broken.height:
        notes.append(
            f"{broken.height} of {frame['kept'].count()} thresholds miss their target on held-out"
            " data: see column 'kept'."
        )
    return notes


def _rows(
    rule: Rule,
    place: int,
    level: Searched,
    labels: Labels,
    average: str | None,
    dtype: pl.DataType,
    aims: Aims,
) -> pl.DataFrame:
    """Rows of one rule at one level; labels are of that type."""
    from ..tallies.datums import parameters

    one: RuleResult = level.results[place]
    here, held_out = one.here, one.held_out
    none = np.full(level.selected.size, np.nan)
    columns: dict[str, Array] = {"threshold": one.threshold}
    columns["lower"], columns["upper"] = _interval_bounds(one, "threshold", none)
    columns |= {name: getattr(here, name) for name in _COUNTS}
    for name in RATES:
        columns[name] = getattr(here, name)
        columns[f"{name}_lower"], columns[f"{name}_upper"] = _interval_bounds(one, name, none)
    columns["cost"] = here.cost
    names = (*_COUNTS, *RATES, "cost")
    columns |= {f"held_out_{name}": getattr(held_out, name) for name in names}
    gap: Array = getattr(here, rule.serves) - getattr(held_out, rule.serves)
    columns["flattery"] = -gap if rule.serves == "cost" else gap
    met_target: list[bool | None] = [None] * none.size
    if rule.holds is not None:
        name, aim, least = rule.holds
        value, limit = getattr(held_out, name), getattr(aims, aim)
        keeps = value >= limit if least else value <= limit
        defined = ~np.isnan(value)
        met_target = [
            bool(k) if is_defined else None for k, is_defined in zip(keeps, defined, strict=True)
        ]
    reasons = {"positives": "no ground truth", "negatives": "no negative datum"}
    missing = {
        "positives": level.positives <= 0,
        "negatives": np.nan_to_num(here.tn + here.fp, nan=1.0) <= 0,
    }
    why = np.full(none.size, "no threshold reaches it", object)
    if rule.required:
        why[missing[rule.required]] = reasons[rule.required]
    why[one.unscored] = "no scored row"
    why[~np.isnan(one.threshold)] = None
    aimed = parameters(**{n: getattr(aims, n) for n in rule.params or ("beta",)})
    frame = pl.DataFrame(
        {
            "metric": pl.Series([rule.metric] * none.size, dtype=pl.String),
            "parameters": pl.Series([aimed] * none.size, dtype=pl.String),
            **named_rows(labels, average, dtype).to_dict(),
            **{name: pl.Series(values, dtype=pl.Float64) for name, values in columns.items()},
            "kept": pl.Series(met_target, dtype=pl.Boolean),
            "reason": pl.Series(why.tolist(), dtype=pl.String),
        }
    ).with_columns(pl.col(*columns).fill_nan(None))
    return frame.filter(pl.Series(level.selected))


def _interval_bounds(one: RuleResult, name: str, none: Array) -> tuple[Array, Array]:
    if one.intervals is None:
        return none, none
    low, high = one.intervals[name]
    return low, high
