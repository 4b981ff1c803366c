"""Settings and metrics of spans: equal spans, and detection's metrics of segments."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from ...dialects import Dialect
from ...metrics.averages import NO_LABEL, NO_TRUTH, ratio
from ...metrics.registry import Metric
from ...schemas.arrays import Array
from ...schemas.contract import words
from ...schemas.errors import OptionError
from ...schemas.options import Options
from ...schemas.wording import option
from ...tallies.datums import Cells
from ...tallies.ranked_view import RankedView
from ..detection.dialects import SINGLE_KEYPOINTS
from ..detection.metrics import SYMBOLS as _SYMBOLS
from ..detection.metrics import averages, calibration, counts
from ..detection.metrics.averages import present, present_keys, sum_by_key
from ..detection.preparing import EVENTS
from ..detection.settings import Settings as DetectionSettings
from .dialects import EQUAL, OUTCOMES, SCHEMA_NAMES, SCHEMAS, SCOPES, SpanRules

_IMAGE_OPTIONS: dict[str, Any] = {
    "area_ranges": {},
    "boundary_ratio": None,
    "keypoint_sigmas": None,
    "box_bins": 1,
    "least_in_bin": 1,
    "region_overlap": None,
}
"""Options of detection that spans do not have, and their values."""


class Settings(DetectionSettings, frozen=True, kw_only=True):
    """Settings of a run of spans: the dialect's rules, and options with defaults filled in.

    Attributes:
        equal_ious: IoU thresholds of precision, recall and F1; 1 for equal spans.
        at_ious: they were given, or are the dialect's, so that rows show them.
        at_scores: score thresholds were given, so that rows show them.
    """

    rules: SpanRules
    scheme: str | None = None
    span_ends: str = "exclusive"
    min_overlap_percentage: float = 1.0
    zero_division: float | None = None
    equal_ious: tuple[float, ...] = (1.0,)
    at_ious: bool = False
    at_scores: bool = False

    @property
    def ious_of_needs(self) -> dict[str, tuple[float, ...]]:
        """See :attr:`..detection.settings.Settings.ious_of_needs`."""
        return {**super().ious_of_needs, EQUAL: self.equal_ious}

    @staticmethod
    def derive(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
        rules = dialect.rules
        for name, applies in (
            ("scheme", "scheme" in dialect.defaults or dialect.name == "standard"),
            ("min_overlap_percentage", rules.schemas),
            ("collar", rules.events),
            ("percentage_of_length", rules.events),
        ):
            if getattr(options, name) is not None and not applies:
                raise OptionError(
                    f"{option(name)}: dialect {dialect.name} does not read it: remove it, or"
                    " choose a dialect that does.",
                    code="option_unfit",
                    option=name,
                )
        collar = values["collar"], values["percentage_of_length"]
        values |= _IMAGE_OPTIONS
        DetectionSettings.derive(values, options, dialect)
        at_ious = (options.iou_thresholds is not None or not rules.equal) and not rules.events
        values.update(
            geometry=EVENTS if rules.events else "box",
            collar=collar,
            at_ious=at_ious,
            at_scores=options.score_thresholds is not None,
            equal_ious=values["iou_thresholds"] if at_ious else (1.0,),
        )


_WHY = {
    "Precision": "no prediction",
    "Recall": "no ground truth",
    "F1": "neither ground truth nor prediction, or precision or recall is undefined",
}
_AXES = ("group", "label", "iou_threshold", "score_threshold")
_KEY_AXES = ("group", "key", "iou_threshold", "score_threshold")


def _rate(name: str, tp: Array, predicted: Array, true: Array, settings: Settings) -> Array:
    """Return precision, recall or F1 of counts, which may be halves."""
    empty = np.nan if settings.zero_division is None else settings.zero_division
    if name == "Precision":
        return ratio(tp, predicted, empty)
    if name == "Recall":
        return ratio(tp, true, empty)
    if not settings.rules.harmonic:
        return ratio(2 * tp, predicted + true, empty)
    precision, recall = ratio(tp, predicted, empty), ratio(tp, true, empty)
    return ratio(2 * precision * recall, precision + recall, 0.0)


def _counted(view: RankedView, settings: Settings) -> tuple[Array, Array, Array]:
    """True positives, predictions and ground truths, [group, label, iou, score] each."""
    at = [view.tally.variants.threshold_index(iou) for iou in settings.equal_ious]
    scores = settings.score_thresholds if settings.at_scores else (-np.inf,)
    tp, fp = (numbers[:, :, 0, at] for numbers in view.counts(scores))
    true = np.broadcast_to(view.positives[:, :, 0, None, None], tp.shape)
    return tp, tp + fp, true


def _axis_values(settings: Settings) -> dict[str, Sequence[Any]]:
    return {
        "iou_threshold": settings.equal_ious if settings.at_ious else (None,),
        "score_threshold": settings.score_thresholds if settings.at_scores else (None,),
    }


def _rates(name: str, view: RankedView, settings: Settings) -> list[Cells]:
    if settings.rules.schemas:
        return _schema_rates(name, view, settings)
    each = _counted(view, settings)
    here = present(view)[:, :, None, None]
    value = _rate(name, *each, settings)
    tp, predicted, true = (sum_by_key(view, one) for one in each)
    inside = here & ~np.isnan(value)
    plain = np.where(inside, value, 0.0)
    weight = np.where(inside, each[2], 0)
    averaged = {
        "macro": ratio(sum_by_key(view, plain), sum_by_key(view, inside)),
        "micro": _rate(name, tp, predicted, true, settings),
        "weighted": ratio(sum_by_key(view, plain * weight), sum_by_key(view, weight)),
    }
    if settings.zero_division is not None:  # as seqeval: of no true span at all
        missing = np.where((predicted == 0) | (name == "Recall"), settings.zero_division, 0.0)
        averaged["weighted"] = np.where(true > 0, averaged["weighted"], missing)
    values = _axis_values(settings)

    def cells(
        axes: tuple[str, ...],
        number: Array,
        support: Array,
        keep: Array,
        reason: Array | str = _WHY[name],
        **more: Any,
    ) -> Cells:
        return Cells(
            axes=axes,
            values=values,
            shape=number.shape,
            keep=np.broadcast_to(keep, number.shape),
            # a resample without the label has no number of it, whatever 0 / 0 is
            columns={"value": np.where(keep, number, np.nan), "support": support, **more},
            reason=reason,
        )

    keep = present_keys(view)[:, :, None, None]
    some = np.where(predicted > 0, NO_LABEL, _WHY[name])
    why = {"weighted": np.where(true > 0, some, NO_TRUTH)}
    return [
        cells(_AXES, value, each[2], here),
        *(
            cells(_KEY_AXES, one, true, keep, why.get(key, _WHY[name]), average=key)
            for key, one in averaged.items()
        ),
    ]


def _count_cells(view: RankedView, settings: Settings) -> list[Cells]:
    if settings.rules.schemas:
        return _schema_counts(view)
    tp, predicted, true = _counted(view, settings)
    return [
        Cells(
            axes=_AXES,
            values=_axis_values(settings),
            shape=tp.shape,
            keep=np.broadcast_to(present(view)[:, :, None, None], tp.shape),
            columns={"value": number.astype(np.float64), "support": true, "statistic": statistic},
        )
        for statistic, number in (("tp", tp), ("fp", predicted - tp), ("fn", true - tp))
    ]


# nervaluate's schemas.


def _schemas(view: RankedView) -> tuple[Array, Array]:
    """Return outcomes within labels, and over the labels of each key: [group, code, schema, 5]."""
    flags = view.companion(SINGLE_KEYPOINTS)
    assert flags is not None
    many = flags.positives
    many = many.reshape(*many.shape[:2], len(SCOPES), len(SCHEMA_NAMES), len(OUTCOMES))
    return many[:, :, 1], sum_by_key(view, many[:, :, 0])


def _schema_rates(name: str, view: RankedView, settings: Settings) -> list[Cells]:
    cells = []
    for axis, each, here in zip(
        ("label", "key"), _schemas(view), (present(view), present_keys(view)), strict=True
    ):
        correct, incorrect, half, missed, spurious = np.moveaxis(each, -1, 0)
        paired = correct + incorrect + half
        true = paired + missed
        value = _rate(name, correct + 0.5 * half, paired + spurious, true, settings)
        cells.append(
            Cells(
                axes=("group", axis, "statistic"),
                values={"statistic": SCHEMA_NAMES},
                shape=value.shape,
                keep=np.broadcast_to(here[..., None], value.shape),
                columns={
                    "value": np.where(here[..., None], value, np.nan),
                    "support": true,
                    "average": None if axis == "label" else "micro",
                },
                reason=_WHY[name],
            )
        )
    return cells


def _schema_counts(view: RankedView) -> list[Cells]:
    names = tuple(f"{schema} {outcome}" for schema in SCHEMA_NAMES for outcome in OUTCOMES)
    return [
        Cells(
            axes=("group", axis, "statistic"),
            values={"statistic": names},
            shape=(*each.shape[:2], len(names)),
            keep=np.broadcast_to(here[..., None], (*here.shape, len(names))),
            columns={
                "value": each.reshape(*each.shape[:2], -1).astype(np.float64),
                "support": each.sum(axis=-1).repeat(len(OUTCOMES), axis=-1),
                "average": None if axis == "label" else "micro",
            },
        )
        for axis, each, here in zip(
            ("label", "key"), _schemas(view), (present(view), present_keys(view)), strict=True
        )
    ]


_metric = partial(
    Metric,
    task="spans",
    frame="metrics",
    needs=(EQUAL, SCHEMAS),
    params=(
        *("iou_thresholds", "score_thresholds", "scheme", "span_ends", "zero_division", "collar"),
        *("min_overlap_percentage", "percentage_of_length"),
    ),
)
_ratio = partial(_metric, averages=("macro", "micro", "weighted"))
_SOURCE = "seqeval 1.2.2; nervaluate 1.2.1; sed_eval 0.2.1"
_OF = (
    " of spans with equal ends and label (at given IoU thresholds, of those that match; sed: within"
    " the collar), per label; macro, micro and weighted averages. nervaluate: a row per schema"
    " (statistic)."
)

_RIGHT = (
    _ratio(
        name="Precision",
        definition="Share of predicted spans that are right," + _OF,
        formula=r"\frac{\text{tp}}{\text{tp} + \text{fp}}",
        source=_SOURCE,
        compute=partial(_rates, "Precision"),
    ),
    _ratio(
        name="Recall",
        definition="Share of true spans that are found," + _OF,
        formula=r"\frac{\text{tp}}{\text{tp} + \text{fn}}",
        source=_SOURCE,
        compute=partial(_rates, "Recall"),
    ),
    _ratio(
        name="F1",
        definition="Harmonic mean of precision and recall," + _OF,
        formula=r"\frac{2\,\text{tp}}{2\,\text{tp} + \text{fp} + \text{fn}}",
        source=_SOURCE,
        compute=partial(_rates, "F1"),
    ),
    _metric(
        name="Counts",
        range=(0.0, float("inf")),
        better="neither",
        counts=True,
        definition="True positives, false positives and false negatives per label (statistic tp,"
        " fp, fn); nervaluate: correct, incorrect, partial, missed and spurious spans by schema.",
        formula=r"\text{tp} = |\{\text{right}\}|, \quad \text{fp} = |\{\text{others}\}|, \quad"
        r" \text{fn} = G - \text{tp}",
        source=_SOURCE,
        compute=_count_cells,
    ),
)

_KINDS = frozenset(
    {
        *("iou_thresholds", "pr_curve_iou_threshold", "spot_ious", "confusion", "outcomes"),
        *("errors", "shown errors", "single datums"),
    }
)
"""Needs of detection that spans have."""
_OF_IMAGES = {"Precision", "Recall", "F1", "Counts", "Accuracy", "APr", "APc", "APf"}

METRICS = (
    *_RIGHT,
    *(
        msgspec.structs.replace(
            metric, task="spans", params=tuple(one for one in metric.params if one != "area_ranges")
        )
        for module in (averages, counts, calibration)
        for metric in module.METRICS
        if metric.name not in _OF_IMAGES and {*metric.needs} <= _KINDS
    ),
)
RANKED = frozenset(
    metric.name
    for metric in METRICS
    if {"iou_thresholds", "pr_curve_iou_threshold"} & {*metric.needs} or "TIDE" in metric.name
) - {"PerDatum", "TIDECounts"}
"""Metrics that rest on scores."""

_OF_IMAGES_ONLY = words(
    r"E_j Q \alpha \phi_i \text{fp}_j \text{tp}_j \theta a c d_{iq} h_i m_q m_r v"
)
SYMBOLS = {tex: text for tex, text in _SYMBOLS.items() if tex not in _OF_IMAGES_ONLY}
SAME = "AP=averageprecision AR=averagerecall F1=f1score mAP=map"
CLOSE = {
    "accuracy tokenaccuracy": "Accuracy of tokens is a metric of classification: the tags are its"
    " labels.",
    "errorrate": "It is (fp + fn) / truths, of the rows of 'Counts', without substitutions.",
}
