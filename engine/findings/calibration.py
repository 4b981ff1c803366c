"""Calibration of a run, and fits that would improve it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Unpack

import msgspec
import numpy as np
import polars as pl

from .. import tasks
from ..evaluation.planner import Plan
from ..evaluation.summary import Tallied
from ..executors import Threads
from ..ingest.opening import Tables
from ..ingest.problems import count_of
from ..ingest.values import sides_by_name
from ..metrics.thresholds import (
    LARGEST_F,
    Bins,
    Curve,
    Isotonic,
    ScoredSegments,
    bins_by,
    bins_of,
    ece_of,
    fitted_isotonic,
    fitted_temperature,
    heated,
    segments_of,
)
from ..progress import Progress, reports_progress
from ..run import hits_at, intervals_of, ious_of, tallied_through
from ..schemas.arrays import Array
from ..schemas.display import NAME, Column
from ..schemas.errors import OptionError, invalid
from ..schemas.named import Named
from ..schemas.option_values import Intervals, make_options
from ..schemas.options import Options
from ..schemas.wording import option
from ..scratch import local
from ..statistics.resamples import Drawing, curves_of, in_every_draw, interval, notes_on
from ..tallies.datums import Labels, keys_as_labels, named_rows
from . import FindingResult, hit_at

# Result class of ``find_calibration``.


class FoundCalibration(FindingResult, eq=False):
    """Calibration of a run per label, and of all labels of a key (``average`` micro).

    Attributes:
        frame: one row per label: ``label_key, label_value, label_name, average``, ``n`` (scored
            rows), ``right`` (share of correct rows), ``score`` (mean), ``ece`` with ``lower,
            upper``, ``mce``, ``temperature`` (null if no finite one is best), ``ece_temperature,
            ece_isotonic`` (on the datums used for the fit) and ``held_out_ece_temperature,
            held_out_ece_isotonic`` (on held-out datums).
        reliability: one row per label and non-empty bin: ``low`` (included), ``high`` (excluded),
            ``n``, ``score`` (mean), ``right`` (share).
        isotonic: one row per label and block of the isotonic fit: scores from ``low`` to ``high``
            become ``value``; scores between blocks are interpolated linearly.
        level: confidence of the intervals, in (0, 1).
        iou_threshold: IoU from which a box is correct, metres with ``by_distance``; None without
            boxes.
        by_distance: whether boxes are compared by the distance of their centres.
        n_bins: number of equal bins from 0 to 1.
        n: number of datums.
        weighted: whether counts of rows are sums of weights.
    """

    frame: pl.DataFrame
    reliability: pl.DataFrame
    isotonic: pl.DataFrame
    level: float
    iou_threshold: float | None
    n_bins: int
    n: int
    by_distance: bool = False
    weighted: bool = False
    _name = "calibration"

    def _heading(self) -> str:
        at = hit_at(self.iou_threshold, by_distance=self.by_distance)
        bins = count_of(self.n_bins, "bin")
        return f"calibration of {count_of(self.n, 'datum')}{at}, in {bins}"

    def _columns(self) -> list[Column]:
        return [
            Column("label", NAME, "label", ("label_value", "label_name", "average")),
            Column("weight" if self.weighted else "rows", form="count", of=("n",)),
            Column("score"),
            Column("right"),
            Column("ECE", of=("ece",)),
            Column(f"{100 * self.level:g} % interval", form="interval", of=("lower", "upper")),
            Column("temperature"),
            Column("ECE then", of=("ece_temperature",)),
            Column("held out", of=("held_out_ece_temperature",)),
            Column("isotonic: ECE then", of=("ece_isotonic",)),
            Column("held out", of=("held_out_ece_isotonic",)),
        ]


# Calibration of a run, before and after temperature scaling or isotonic regression.
#
# Fits are optimistic on the rows they were fitted to. Each is therefore also fitted on one half
# of the datums (split by a hash of ids) and tested on the other, then the reverse.

Change = Callable[[Array], Array]
FITS = ("temperature", "isotonic")


class Calibrated(msgspec.Struct, frozen=True):
    """Calibration at one level; arrays [s].

    Attributes:
        selected: bool, segments that become rows.
        cut: see :class:`..metrics.thresholds.Curve`.
        bins: bins of the raw scores.
        bounds: lower and upper bound of ECE, [2, s]; NaN without resamples.
        temperature: fitted to all datums.
        isotonic: per segment, fitted to all datums; None without rows.
        fitted: ECE per fit of :data:`FITS`, on the datums of the fit.
        held_out: ECE per fit, fitted on one half and tested on the other.
    """

    selected: Array
    cut: bool
    bins: Bins
    bounds: Array
    temperature: Array
    isotonic: list[Isotonic | None]
    fitted: dict[str, Array]
    held_out: dict[str, Array]


def calibrate(
    plan: Plan, tallies: Any, threads: Threads, n_bins: int, interval_options: Intervals
) -> tuple[Calibrated, Calibrated]:
    """Compute the calibration of every label, and of all labels of a key together.

    Args:
        plan: its settings contain the IoU threshold.
        tallies: the task's, datums with keys.
        threads: used for resamples.
        n_bins: equal-width bins of scores in [0, 1].
        interval_options: settings of the intervals.
    """
    does, settings = plan.does, plan.settings
    view = does.view(tallies, settings, threads=threads)
    group = tallies.datums.halves(interval_options.seed)
    halves = does.view(tallies, settings, group=group, n_groups=2, threads=threads)
    curves = curves_of(plan, view)
    sizes = [curve.positives.size for curve in curves]
    drawn = _drawn(plan, tallies, view, threads, n_bins, interval_options, sizes)
    units = Drawing(plan, tallies, threads).units(view)[0]
    result = []
    for level, (curve, half) in enumerate(zip(curves, curves_of(plan, halves), strict=True)):
        scratch = local(plan.options.scratch)
        pooled, of_halves, n = segments_of(curve, scratch), segments_of(half, scratch), sizes[level]
        bins = bins_of(pooled, n_bins)
        bounds = interval(
            drawn[level], bins.expected, interval_options, units, "recentred", (0.0, 1.0)
        )
        fits = [_fit(pooled, of_halves, s, n_bins) for s in range(n)]
        fitted, held_out = (
            np.array([one[part] for one in fits]).reshape(n, len(FITS)).T for part in (2, 3)
        )
        result.append(
            Calibrated(
                curve.reported(),
                curve.cut,
                bins,
                bounds,
                np.array([one[0] for one in fits], np.float64),
                [one[1] for one in fits],
                dict(zip(FITS, fitted, strict=True)),
                dict(zip(FITS, held_out, strict=True)),
            )
        )
    return result[0], result[1]


def _by_temperature(of: ScoredSegments) -> Change:
    temperature = fitted_temperature(of)
    return lambda score: heated(score, temperature)


def _fit(
    pooled: ScoredSegments, halves: ScoredSegments, segment: int, n_bins: int
) -> tuple[float, Isotonic | None, list[float], list[float]]:
    """Both fits of one segment: themselves, their ECE on all datums, and held out."""
    none = [float("nan")] * len(FITS)
    points = pooled.of(segment)
    if not points.score.size or points.score[0] > 1 or points.score[-1] < 0:
        return float("nan"), None, none, none
    temperature, isotonic = fitted_temperature(points), fitted_isotonic(points)
    here = [
        ece_of([points], n_bins, [lambda score: heated(score, temperature)]),
        ece_of([points], n_bins, [isotonic.of]),
    ]
    both = [halves.of(segment + half * (pooled.start.size - 1)) for half in range(2)]
    if not all(half.score.size for half in both):
        return temperature, isotonic, here, none
    held_out = [
        ece_of(both, n_bins, [fit(both[1 - h]) for h in range(2)])
        for fit in (_by_temperature, lambda of: fitted_isotonic(of).of)
    ]
    return temperature, isotonic, here, held_out


def _drawn(
    plan: Plan,
    tallies: Any,
    overall: Any,
    threads: Threads,
    n_bins: int,
    interval_options: Intervals,
    n: list[int],
) -> list[Array]:
    """Return ECE per resample, float64 [resamples, s] for each level of ``n`` segments."""
    out = [np.full((interval_options.draws, one), np.nan) for one in n]

    def see(d: int, curves: tuple[Curve, Curve]) -> None:
        for expected, curve in zip(out, curves, strict=True):
            expected[d] = bins_by(curve, n_bins).expected

    in_every_draw(plan, tallies, overall, threads, interval_options, see)
    return out


# Implementation of ``find_calibration``.

_SETTABLE = ("n_bins", "pr_curve_iou_threshold")


@reports_progress
def find_calibration(
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
) -> FoundCalibration:
    """Measure the calibration of scores per label, and fit two recalibrations.

    Scores are compared with the share of correct rows: boxes that hit at
    ``pr_curve_iou_threshold``, or datums that have the class. A temperature (Guo et al. 2017) and
    an isotonic fit (Zadrozny and Elkan 2002) are reported with the calibration error before and
    after, also on held-out data. They are never applied.

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
        **named: any field of :class:`evalengine.Options` except ``metrics``; by default ``n_bins``
            is 15, ``draws`` 200 and ``intervals`` 0.95.

    Returns:
        :class:`evalengine.findings.calibration.FoundCalibration`.

    Raises:
        OptionError: metrics, or a task without scores; options that do not apply to a scored run.
        ResultError: a saved run without the required data.

    Example:
        >>> import evalengine as ee
        >>> ee.find_calibration("runs/monday").frame  # doctest: +SKIP
    """
    run, ground_truths = sides_by_name(run, ground_truths, y_true, None, y_score)
    chosen = make_options(options, **named)
    if chosen.metrics is not None:
        raise OptionError(
            f"{option('metrics', list(chosen.metrics))}: omit it here.",
            code="option_unread",
            option="metrics",
        )
    intervals = intervals_of(chosen)
    calibration, notes = tallied_through(
        Tables(run, ground_truths, datums, labels, storage_options),
        chosen,
        intervals,
        metrics=_needed,
        settable=_SETTABLE,
        unread=("n_bins",),
        then=lambda tallied, options: _calibration_of(tallied, options, intervals),
        name="fitting",
    )
    calibration.messages = (*notes, *calibration.messages)
    return calibration


def _needed(task: str) -> tuple[str, ...]:
    """Return metrics with the same requirements as calibration.

    Raises:
        OptionError: a task without scores.
    """
    if tasks.get(task).curve is None:
        raise OptionError(
            f"{option('task', task)}: {task} has no scores to calibrate.",
            code="task_unfit",
            task=task,
        )
    return (LARGEST_F.metric,)


def _calibration_of(
    tallied: Tallied, options: Options, interval_options: Intervals
) -> FoundCalibration:
    plan, tallies = tallied.plan, tallied.tallies
    _needed(plan.task)
    n_bins = 15 if options.n_bins is None else options.n_bins
    if n_bins < 1:
        raise invalid("n_bins", n_bins, "write 1 or more.")
    levels = calibrate(plan, tallies, tallied.threads, n_bins, interval_options)
    halves = (
        "held-out errors: fits were made on one half of the datums and tested on the other, then"
        f" the reverse. Halves follow from datum ids and {option('seed', interval_options.seed)}."
        " No fit is applied to the run."
    )
    dtype = tallies.labels.dtype
    named = [(tallies.labels, None), (keys_as_labels(tallies.labels), "micro")]
    pairs = list(zip(levels, named, strict=True))
    return FoundCalibration(
        pl.concat([_rows(one, *of, dtype) for one, of in pairs]),
        pl.concat([_bins(one, *of, dtype) for one, of in pairs]),
        pl.concat([_blocks(one, *of, dtype) for one, of in pairs]),
        level=interval_options.level,
        **hits_at(plan.settings),
        n_bins=n_bins,
        n=len(tallies.datums),
        weighted=tallies.weighted,
        messages=(halves, *notes_on(tallies, cut=levels[0].cut), *ious_of(tallied)),
    )


def _named(
    labels: Labels, average: str | None, dtype: pl.DataType, at: Array
) -> dict[str, pl.Series]:
    """Return the label columns of segments, by their number."""
    return named_rows(labels, average, dtype)[at].to_dict()


def _rows(one: Calibrated, labels: Labels, average: str | None, dtype: pl.DataType) -> pl.DataFrame:
    at = np.flatnonzero(one.selected)
    bins = one.bins
    n = bins.n.sum(axis=1)
    share, score = (
        np.divide(
            np.where(bins.n > 0, bins.n * part, 0.0).sum(axis=1),
            n,
            out=np.full(n.size, np.nan),
            where=n > 0,
        )
        for part in (bins.right, bins.score)
    )
    columns = {
        "n": n,
        "right": share,
        "score": score,
        "ece": bins.expected,
        "lower": one.bounds[0],
        "upper": one.bounds[1],
        "mce": bins.largest,
        "temperature": one.temperature,
    }
    columns |= {f"ece_{fit}": one.fitted[fit] for fit in FITS}
    columns |= {f"held_out_ece_{fit}": one.held_out[fit] for fit in FITS}
    numbers = {name: pl.Series(values[at], dtype=pl.Float64) for name, values in columns.items()}
    frame = pl.DataFrame({**_named(labels, average, dtype, at), **numbers})
    return frame.with_columns(pl.col(*numbers).fill_nan(None))


def _bins(one: Calibrated, labels: Labels, average: str | None, dtype: pl.DataType) -> pl.DataFrame:
    at, which = np.nonzero((one.bins.n > 0) & one.selected[:, None])
    bins, count = one.bins, one.bins.n.shape[1]
    return pl.DataFrame(
        {
            **_named(labels, average, dtype, at),
            "low": which / count,
            "high": (which + 1) / count,
            "n": bins.n[at, which],
            "score": bins.score[at, which],
            "right": bins.right[at, which],
        }
    ).with_columns(pl.col("score").fill_nan(None))


def _blocks(
    one: Calibrated, labels: Labels, average: str | None, dtype: pl.DataType
) -> pl.DataFrame:
    fits = [(s, fit) for s, fit in enumerate(one.isotonic) if fit is not None and one.selected[s]]
    at = np.repeat([s for s, _ in fits], [fit.value.size for _, fit in fits]).astype(np.int64)
    columns = {
        name: np.concatenate([np.zeros(0), *(getattr(fit, name) for _, fit in fits)])
        for name in ("low", "high", "value")
    }
    return pl.DataFrame({**_named(labels, average, dtype, at), **columns})
