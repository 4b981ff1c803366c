"""Charts of a run as data, decided once and drawn by ``svg`` and ``plots``.

Which frame and curve each chart is made of is data; none knows a task. Undefined values make gaps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import polars as pl

from .chart_bars import confusion, costs, differences, distribution, labels, slices
from .chart_lines import ACTUAL, CALIBRATION, binned, by_k, curve_chart, thresholds
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


_COSTS = "TIDE"
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
    "calibration": Kind(partial(binned, CALIBRATION), ("Reliability",)),
    "actual": Kind(partial(binned, ACTUAL), ("ActualByPrediction",)),
    "thresholds": Kind(thresholds, ("PrecisionRecallCurve",), takes=_OF_LABEL),
    "ks": Kind(by_k, otherwise="score with several cut-offs, k=", takes=("metric",)),
    "distribution": Kind(
        distribution, otherwise="score a metric that has values of single datums", takes=("metric",)
    ),
    "confusion": Kind(confusion, ("ConfusionMatrix",), takes=_OF_LABEL),
    "costs": Kind(partial(costs, _COSTS), (_COSTS,), takes=_OF_LABEL),
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


_ASKED = {"curves": "curves", "confusion": "confusion"}
"""Frame of the report -> the frame that a run has of it where its metrics were asked for."""


def frames_of(card: Scorecard) -> dict[str, pl.DataFrame]:
    """The frames that charts of a run are made of, as many as there are."""
    found = {name: card.page_frame(name) for name in card.paged}
    found |= {
        name: card.frame(frame)
        for name, frame in _ASKED.items()
        if found.get(name) is None and frame in card.frames and card.height(frame)
    }
    return {name: frame for name, frame in found.items() if frame is not None}


def names_of(card: Scorecard) -> dict[tuple[str | None, Any], str]:
    """(label key, label value) -> name, of labels that have names."""
    rows = card.labels.select("label_key", "label_value", "label_name").iter_rows()
    return {(key, value): name for key, value, name in rows if name is not None}
