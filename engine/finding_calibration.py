"""Implementation of ``find_calibration``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import polars as pl

from . import scoring, tasks
from .analysis.calibration_table import FoundCalibration
from .held_runs import hits_at, intervals_of, ious_of, tallied_through
from .ingest.values import sides_by_name
from .metrics.thresholds import LARGEST_F
from .plan.summary import Tallied
from .progress import heard, silent
from .schemas.arrays import Array
from .schemas.errors import OptionError
from .schemas.intervals import Wanted
from .schemas.option_values import make_options
from .schemas.options import Options
from .schemas.wording import option
from .statistics.calibration_search import FITS, Calibrated, calibrate
from .statistics.curve_draws import notes_on
from .tally.datums import Labels, keys_as_labels, named_rows

if TYPE_CHECKING:
    from .schemas.named import Named


_SETTABLE = ("n_bins", "pr_curve_iou_threshold")


@heard
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
    progress: scoring.Progress | bool | None = None,
    **named: Unpack[Named],
) -> FoundCalibration:
    """Measure the calibration of scores per label, and fit two recalibrations.

    Scores are compared with the share of correct rows: boxes that hit at
    ``pr_curve_iou_threshold``, or datums that have the class. A temperature (Guo et al. 2017) and
    an isotonic fit (Zadrozny and Elkan 2002) are reported with the calibration error before and
    after, also on held-out data. They are never applied.

    Args:
        run: a :class:`Scorecard`, the folder of a saved one, or predictions, as :func:`score` takes
            them.
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
        :class:`evalengine.analysis.calibration_table.FoundCalibration`.

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
            f"{option('metrics', list(chosen.metrics))}: leave it out here.",
            code="option_unread",
            option="metrics",
        )
    asked = intervals_of(chosen)
    made, notes = tallied_through(
        run,
        ground_truths,
        chosen,
        asked,
        metrics=_needed,
        settable=_SETTABLE,
        unread=("n_bins",),
        then=lambda tallied, options: _found(tallied, options, asked),
        step="fitting",
        tables={"datums": datums, "labels": labels, "storage_options": storage_options},
        tell=progress if callable(progress) else silent,
    )
    made.said = (*notes, *made.said)
    return made


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


def _found(tallied: Tallied, options: Options, asked: Wanted) -> FoundCalibration:
    plan, tallies = tallied.plan, tallied.tallies
    _needed(plan.task)
    n_bins = 15 if options.n_bins is None else options.n_bins
    if n_bins < 1:
        raise OptionError(f"{option('n_bins', n_bins)}: write 1 or more.")
    levels = calibrate(plan, tallies, tallied.threads, n_bins, asked)
    dtype = tallies.labels.dtype
    named = [(tallies.labels, None), (keys_as_labels(tallies.labels), "micro")]
    pairs = list(zip(levels, named, strict=True))
    return FoundCalibration(
        pl.concat([_rows(one, *of, dtype) for one, of in pairs]),
        pl.concat([_bins(one, *of, dtype) for one, of in pairs]),
        pl.concat([_blocks(one, *of, dtype) for one, of in pairs]),
        level=asked.level,
        **hits_at(plan.settings),
        n_bins=n_bins,
        n=len(tallies.datums),
        notes=[*_notes(tallies, asked, cut=levels[0].cut), *ious_of(tallied)],
    )


def _notes(tallies: Any, asked: Wanted, *, cut: bool) -> list[str]:
    said = [
        "held-out errors are of fits made on one half of the datums and looked at on the other,"
        f" both ways, halves by a hash of datum ids and {option('seed', asked.seed)}. No fit is"
        " applied to the run."
    ]
    return said + notes_on(tallies, cut=cut)


def _named(
    labels: Labels, average: str | None, dtype: pl.DataType, at: Array
) -> dict[str, pl.Series]:
    """Return the label columns of segments, by their number."""
    return named_rows(labels, average, dtype)[at].to_dict()


def _rows(one: Calibrated, labels: Labels, average: str | None, dtype: pl.DataType) -> pl.DataFrame:
    at = np.flatnonzero(one.shown)
    bins = one.bins
    n = bins.n.sum(axis=1)
    share, score = (
        np.divide(
            np.where(bins.n > 0, bins.n * part, 0.0).sum(axis=1), n,
            out=np.full(n.size, np.nan), where=n > 0,
        )
        for part in (bins.right, bins.score)
    )  # fmt: skip
    columns = {
        "n": n, "right": share, "score": score, "ece": bins.expected, "lower": one.ends[0],
        "upper": one.ends[1], "mce": bins.largest, "temperature": one.temperature,
    }  # fmt: skip
    columns |= {f"ece_{fit}": one.fitted[fit] for fit in FITS}
    columns |= {f"held_out_ece_{fit}": one.held_out[fit] for fit in FITS}
    numbers = {name: pl.Series(values[at], dtype=pl.Float64) for name, values in columns.items()}
    frame = pl.DataFrame({**_named(labels, average, dtype, at), **numbers})
    return frame.with_columns(pl.col(*numbers).fill_nan(None))


def _bins(one: Calibrated, labels: Labels, average: str | None, dtype: pl.DataType) -> pl.DataFrame:
    at, which = np.nonzero((one.bins.n > 0) & one.shown[:, None])
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
    fits = [(s, fit) for s, fit in enumerate(one.isotonic) if fit is not None and one.shown[s]]
    at = np.repeat([s for s, _ in fits], [fit.value.size for _, fit in fits]).astype(np.int64)
    columns = {
        name: np.concatenate([np.zeros(0), *(getattr(fit, name) for _, fit in fits)])
        for name in ("low", "high", "value")
    }
    return pl.DataFrame({**_named(labels, average, dtype, at), **columns})
