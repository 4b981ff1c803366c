"""Charts of a run as data, decided once and drawn by ``svg`` and ``plots``.

Which frame and curve each chart is made of is data; none knows a task. Undefined values make gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from .chart_bars import confusion, differences, distribution, labels, slices
from .chart_lines import by_k, calibration, curve_chart, thresholds
from .chart_shapes import Axis, Bar, Bars, Chart, Drawn, Line, Matrix, Numbers, Want

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

__all__ = [
    "KINDS",
    "Axis",
    "Bar",
    "Bars",
    "Chart",
    "Drawn",
    "Kind",
    "Line",
    "Matrix",
    "Numbers",
    "Want",
    "charts",
    "differences",
    "drawn",
    "frames_of",
]

Maker = Callable[[Numbers, Numbers | None, Want], list[Drawn]]


class Kind(msgspec.Struct, frozen=True):
    """A kind of chart.

    Attributes:
        make: makes it of a run, and a baseline; no chart where the run has nothing for it.
        fills: metrics that fill the frames it needs, of whichever task.
        otherwise: what to do where no metric does.
        takes: choices it takes.
    """

    make: Maker
    fills: tuple[str, ...] = ()
    otherwise: str = ""
    takes: tuple[str, ...] = ()


def _curve(kind: str) -> Maker:
    return lambda run, base, want: curve_chart(kind, run, base, want)


_OF_LABEL = ("label_value", "iou_threshold")
KINDS: dict[str, Kind] = {
    "labels": Kind(
        labels,
        otherwise="score a metric that has values of labels",
        takes=("metric", "label_value", "iou_threshold"),
    ),
    "slices": Kind(slices, otherwise="score with by=", takes=("metric", "iou_threshold")),
    "precision_recall": Kind(
        _curve("precision_recall"),
        ("InterpolatedPrecisionRecallCurve", "ScorePrecisionRecallCurve", "PrecisionRecallCurve"),
        takes=_OF_LABEL,
    ),
    "roc": Kind(_curve("roc"), ("ROCCurve",), takes=("label_value",)),
    "calibration": Kind(calibration, ("Reliability",)),
    "thresholds": Kind(thresholds, ("PrecisionRecallCurve",), takes=_OF_LABEL),
    "ks": Kind(by_k, otherwise="score with several cut-offs, k=", takes=("metric",)),
    "distribution": Kind(
        distribution, otherwise="score a metric that has values of single datums", takes=("metric",)
    ),
    "confusion": Kind(confusion, ("ConfusionMatrix",), takes=_OF_LABEL),
}
"""Kinds of charts, in the order a page shows them."""


def charts(
    metrics: pl.DataFrame,
    frames: Mapping[str, pl.DataFrame],
    directions: Mapping[str, str],
    baseline: tuple[pl.DataFrame, Mapping[str, pl.DataFrame]] | None = None,
    names: Mapping[tuple[str | None, Any], str] | None = None,
) -> list[Drawn]:
    """All charts of a run, in the order of :data:`KINDS`, for each label key.

    Args:
        metrics: the metrics frame.
        frames: page frames: ``curves``, ``thresholds``, ``confusion``, ``reliability``,
            ``distribution``, as many as there are.
        directions: metric -> ``higher``, ``lower`` or ``neither``, whichever is better.
        baseline: metrics and page frames of the run to compare with.
        names: (label key, label value) -> name, where labels have names.
    """
    run = Numbers(metrics, frames)
    base = None if baseline is None else Numbers(*baseline)
    want = Want(directions, names or {})
    found = [one for kind in KINDS for one in drawn(kind, run, base, want)]
    return list({(one.kind, one.title): one for one in found}.values())


def drawn(kind: str, run: Numbers, base: Numbers | None, want: Want) -> list[Drawn]:
    """Charts of a kind, those of every label key unless one is wanted; none without numbers.

    Raises:
        ResultError: nothing is at the threshold that is wanted.
    """
    keys = _label_keys(run)
    chosen = keys if want.label_key is None else [want.label_key]
    return [
        one
        for key in chosen
        for one in KINDS[kind].make(
            run, base, msgspec.structs.replace(want, label_key=key, keys=len(keys))
        )
    ]


def _label_keys(run: Numbers) -> list[str | None]:
    frames = (
        run.metrics,
        *(frame for frame in run.frames.values() if "label_key" in frame.columns),
    )
    keys = pl.concat([frame["label_key"].cast(pl.String) for frame in frames])
    found: list[str | None] = keys.unique(maintain_order=True).to_list()
    return found or [None]


_FRAMES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "curves": (
        "curves",
        "curve",
        ("ROCCurve", "ScorePrecisionRecallCurve", "InterpolatedPrecisionRecallCurve"),
    ),
    "thresholds": ("curves", "curve", ("PrecisionRecallCurve",)),
    "reliability": ("metrics", "metric", ("Reliability",)),
}
"""Page frame -> the frame of the contract that has its rows, the column they are told by."""
_BINS = 20


def frames_of(card: Scorecard) -> dict[str, pl.DataFrame]:
    """The page frames that a run has."""
    found = {}
    for name, (frame, column, values) in _FRAMES.items():
        if frame in card.frames:
            rows = card.frame(frame).filter(pl.col(column).is_in(values))
            if rows.height:
                found[name] = rows
    if "confusion" in card.frames:
        found["confusion"] = card.frame("confusion")
    if "per_datum" in card.frames:
        found["distribution"] = _binned(card.frame("per_datum"))
    return found


def _binned(per_datum: pl.DataFrame) -> pl.DataFrame:
    """How many datums have a value in each of 20 bins, from 0 to 1 or as far as values reach."""
    number = ("metric", "statistic", "k")
    rows = per_datum.filter(pl.col("value").is_not_null()).select(*number, "value")
    low = pl.min_horizontal(pl.col("value").min(), 0.0).over(number)
    high = pl.max_horizontal(pl.col("value").max(), 1.0).over(number)
    at = ((pl.col("value") - low) / (high - low) * _BINS).floor().clip(0, _BINS - 1).cast(pl.Int64)
    counts = (
        rows.with_columns(bin=at, from_=low, width=(high - low) / _BINS)
        .group_by(*number, "bin", "from_", "width", maintain_order=True)
        .len()
    )
    kinds = counts.select(*number, "from_", "width").unique(maintain_order=True)
    every = kinds.join(pl.DataFrame({"bin": range(_BINS)}, {"bin": pl.Int64}), how="cross")
    filled = every.join(
        counts.select(*number, "bin", "len"),
        on=[*number, "bin"],
        how="left",
        nulls_equal=True,
        maintain_order="left",
    )
    return filled.select(
        *number,
        low=pl.col("from_") + pl.col("bin") * pl.col("width"),
        high=pl.col("from_") + (pl.col("bin") + 1) * pl.col("width"),
        count=pl.col("len").fill_null(0).cast(pl.Int64),
    )
