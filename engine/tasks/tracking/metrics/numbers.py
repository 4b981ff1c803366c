"""Numbers of tracking: HOTA, CLEAR and identity with all their parts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.segments import TrackView
from . import formulas as f
from .formulas import Formula, Summed

if TYPE_CHECKING:
    from ..settings import Settings

# Formulas of tracking's numbers in TeX, by name.

_MEAN = r"\frac{1}{|A|} \sum_{\alpha \in A} "
"""Prefix of formulas that have a value at each IoU threshold."""

TEX = {
    "HOTA": _MEAN + r"\sqrt{\text{DetA}_\alpha \cdot \text{AssA}_\alpha}",
    "DetA": _MEAN
    + r"\frac{\text{TP}_\alpha}{\text{TP}_\alpha + \text{FN}_\alpha + \text{FP}_\alpha}",
    "AssA": _MEAN + r"\frac{1}{\text{TP}_\alpha} \sum_c \frac{n_c}{g_c + t_c - n_c}",
    "DetRe": _MEAN + r"\frac{\text{TP}_\alpha}{\text{TP}_\alpha + \text{FN}_\alpha}",
    "DetPr": _MEAN + r"\frac{\text{TP}_\alpha}{\text{TP}_\alpha + \text{FP}_\alpha}",
    "AssRe": _MEAN + r"\frac{1}{\text{TP}_\alpha} \sum_c \frac{n_c}{g_c}",
    "AssPr": _MEAN + r"\frac{1}{\text{TP}_\alpha} \sum_c \frac{n_c}{t_c}",
    "LocA": _MEAN + r"\frac{1}{\text{TP}_\alpha} \sum_c \text{IoU}(c)",
    "OWTA": _MEAN + r"\sqrt{\text{DetRe}_\alpha \cdot \text{AssA}_\alpha}",
    "HOTA0": r"\sqrt{\text{DetA}_\alpha \cdot \text{AssA}_\alpha}, \quad \alpha = 0.05",
    "LocA0": r"\frac{1}{\text{TP}_\alpha} \sum_c \text{IoU}(c), \quad \alpha = 0.05",
    "HOTALocA0": r"\text{HOTA}_\alpha \cdot \text{LocA}_\alpha, \quad \alpha = 0.05",
    "HOTATP": _MEAN + r"\text{TP}_\alpha",
    "HOTAFP": _MEAN + r"\text{FP}_\alpha",
    "HOTAFN": _MEAN + r"\text{FN}_\alpha",
    "MOTA": r"\frac{\text{tp} - \text{fp} - \text{switches}}{G}",
    "MOTP": r"\frac{1}{\text{tp}} \sum_c \text{IoU}(c)",
    "MODA": r"\frac{\text{tp} - \text{fp}}{G}",
    "sMOTA": r"\frac{\sum_c \text{IoU}(c) - \text{fp} - \text{switches}}{G}",
    "MOTAL": r"\frac{\text{tp} - \text{fp} - \log_{10} \max(1, \text{switches})}{G}",
    "Recall": r"\frac{\text{tp}}{G}",
    "Precision": r"\frac{\text{tp}}{\text{tp} + \text{fp}}",
    "F1": r"\frac{\text{tp}}{\text{tp} + \tfrac{1}{2} \text{fp} + \tfrac{1}{2} \text{fn}}",
    "FPPerFrame": r"\frac{\text{fp}}{\text{frames}}",
    "TP": r"\text{tp} = |\{c\}|",
    "FP": r"\text{fp} = P - \text{tp}",
    "FN": r"\text{fn} = G - \text{tp}",
    "IDSW": r"\sum_c [\text{the object's last track was another}]",
    "Frag": r"\sum_o \max(0, r_o - 1)",
    "MT": r"\sum_o [f_o > 0.8]",
    "PT": r"\sum_o [0.2 \le f_o \le 0.8]",
    "ML": r"\sum_o [f_o < 0.2]",
    "MTR": r"\frac{\text{MT}}{\text{MT} + \text{PT} + \text{ML}}",
    "PTR": r"\frac{\text{PT}}{\text{MT} + \text{PT} + \text{ML}}",
    "MLR": r"\frac{\text{ML}}{\text{MT} + \text{PT} + \text{ML}}",
    "IDF1": r"\frac{2\,\text{IDTP}}{2\,\text{IDTP} + \text{IDFP} + \text{IDFN}}",
    "IDP": r"\frac{\text{IDTP}}{\text{IDTP} + \text{IDFP}}",
    "IDR": r"\frac{\text{IDTP}}{\text{IDTP} + \text{IDFN}}",
    "IDTP": r"\max_a \sum_o m(o, a(o))",
    "IDFP": r"P - \text{IDTP}",
    "IDFN": r"G - \text{IDTP}",
}


HOTA = "Luiten et al. 2021, HOTA; TrackEval hota.py"
CLEAR = "Bernardin and Stiefelhagen 2008, CLEAR MOT; TrackEval clear.py"
IDENTITY = "Ristani et al. 2016, Performance measures; TrackEval identity.py"
MEAN = "mean over IoU thresholds (0.05 to 0.95 by 0.05)"
INF = float("inf")
REASONS = {
    "": f.NOTHING,
    "truth": "no ground truth",
    "frames": "no sequence has boxes on both sides",
}
"""Reasons for undefined numbers, by the column they require."""


class Number(msgspec.Struct, frozen=True, kw_only=True):
    """A number of tracking.

    Attributes:
        name: public name.
        need: ``hota``, ``clear`` or ``identity``.
        formula: maps sums to values.
        about: its definition.
        source: origin of the definition.
        alphas: has a value at each IoU threshold, and is their mean.
        better: see :class:`~evalengine.metrics.registry.Metric`, as for the others.
        range: smallest and largest value.
        aliases: other names.
        counts: is a count, which has no mean over labels.
        wrong: outcomes that count against it, as of the metric.
        rests_on: column that must have rows for a value; empty for any box on either side.
    """

    name: str
    need: str
    formula: Formula
    about: str
    source: str
    alphas: bool = False
    better: str = "higher"
    range: tuple[float, float] = (0.0, 1.0)
    aliases: tuple[str, ...] = ()
    counts: bool = False
    wrong: tuple[str, ...] = ()
    rests_on: str = ""

    @property
    def reason(self) -> str:
        """Why it has no value."""
        return REASONS[self.rests_on]

    def some(self, of: Summed) -> Array:
        """Return True for groups in which the number is defined, bool [...]."""
        some: Array = of(self.rests_on) > 0 if self.rests_on else f.defined(of)
        return some


def _cells(number: Number, view: TrackView, settings: Settings) -> list[Cells]:
    """Rows a label, of all labels together, and the mean over labels; some at single alphas."""
    of_label = view.summed_column

    def together(name: str) -> Array:
        total: Array = of_label(name).sum(axis=1, keepdims=True)
        return total

    tracks = view.whole
    values: dict[str | None, Array] = {None: _values(number, together)}
    support: dict[str | None, Array] = {None: together("truth")}
    if tracks.labelled and not number.counts:
        own = _values(number, of_label)
        counted = number.some(of_label)
        values["macro"] = _mean_of_labels(own, counted)
        support["macro"] = counted.sum(axis=1, keepdims=True)
    places: list[tuple[float | None, Any]] = [(None, slice(None))]
    if number.alphas:
        places += [(one, settings.alphas.index(one)) for one in settings.alphas_to_return]
    cells: list[Cells] = []
    for alpha, at in places:

        def chosen(value: Array, at: Any = at) -> Array:
            if not number.alphas:
                return value
            taken: Array = value[..., at]
            return taken.mean(axis=-1) if taken.ndim == value.ndim else taken

        if tracks.labelled:
            value = chosen(_values(number, of_label))
            cells.append(
                Cells(
                    axes=("group", "label"),
                    shape=value.shape,
                    keep=f.defined(of_label) | tracks.declared,
                    columns={
                        "value": value,
                        "support": of_label("truth"),
                        "iou_threshold": alpha,
                    },
                    reason=number.reason,
                )
            )
        cells += [
            Cells(
                axes=("group", "key" if view.labels.key_names else "level"),
                shape=(view.n_groups, 1),
                columns={
                    "value": chosen(value),
                    "average": average,
                    "support": support[average],
                    "iou_threshold": alpha,
                },
                reason=number.reason,
            )
            for average, value in values.items()
        ]
    return cells


def _values(number: Number, of: Summed) -> Array:
    """Return values, [group, label] or [group, label, alpha], NaN if undefined."""
    value = number.formula(of).astype(np.float64)
    some = number.some(of)
    return np.where(some[..., None] if number.alphas else some, value, np.nan)


def _mean_of_labels(value: Array, counted: Array) -> Array:
    """Means over the labels that have boxes, [group, 1] or [group, 1, alpha]."""
    many = counted.sum(axis=1)
    total = np.where(np.isnan(value), 0.0, value).sum(axis=1)
    if value.ndim > counted.ndim:
        many = many[:, None]
    out = np.full(total.shape, np.nan)
    np.divide(total, many, out=out, where=many > 0)
    return out[:, None]


def _of_hota(name: str, formula: Formula, about: str, **more: Any) -> Number:
    return Number(
        name=name, need="hota", formula=formula, about=f"{about}: {MEAN}.", source=HOTA,
        alphas=True, **more,
    )  # fmt: skip


def _at_first(name: str, formula: Formula, of: str) -> Number:
    return Number(
        name=name, need="hota", formula=formula, source=HOTA,
        about=f"{of} at the first IoU threshold (0.05).", aliases=(f"{name[:-1]}(0)",),
    )  # fmt: skip


def _of_clear(name: str, formula: Formula, about: str, **more: Any) -> Number:
    return Number(name=name, need="clear", formula=formula, about=about, source=CLEAR, **more)


def _of_identity(name: str, formula: Formula, about: str, **more: Any) -> Number:
    return Number(name=name, need="identity", formula=formula, about=about, source=IDENTITY, **more)


_COUNT: dict[str, Any] = {"range": (0.0, INF), "counts": True}
_FEW = {**_COUNT, "better": "lower"}
_MISSED: dict[str, Any] = {"wrong": ("miss",)}
_FALSE: dict[str, Any] = {"wrong": ("false",)}
_BOTH: dict[str, Any] = {"wrong": ("miss", "false")}
_BELOW: dict[str, Any] = {"range": (-INF, 1.0), "rests_on": "truth"}

NUMBERS = (
    _of_hota("HOTA", f.hota, "Higher order tracking accuracy, sqrt(DetA x AssA)"),
    _of_hota("DetA", f.det_a, "Detection accuracy, tp / (tp + fn + fp)", **_BOTH),
    _of_hota(
        "AssA",
        f.ass_a,
        "Association accuracy, over matches the mean of n / (boxes of the object + boxes of the"
        " track - n), n being the matches of that object and track",
    ),
    _of_hota("DetRe", f.det_re, "Detection recall, tp / (tp + fn)", **_MISSED),
    _of_hota("DetPr", f.det_pr, "Detection precision, tp / (tp + fp)", **_FALSE),
    _of_hota("AssRe", f.ass_re, "Association recall, over matches n / boxes of the object"),
    _of_hota("AssPr", f.ass_pr, "Association precision, over matches n / boxes of the track"),
    _of_hota("LocA", f.loc_a, "Localisation accuracy, IoU of matches, 1 without any"),
    _of_hota("OWTA", f.owta, "Open world tracking accuracy, sqrt(DetRe x AssA)"),
    _at_first("HOTA0", f.first(f.hota), "HOTA"),
    _at_first("LocA0", f.first(f.loc_a), "LocA"),
    _at_first("HOTALocA0", f.first(lambda of: f.hota(of) * f.loc_a(of)), "HOTA x LocA"),
    _of_hota("HOTATP", f.plain("alpha_tp"), "Matches of HOTA", aliases=("HOTA_TP",), **_COUNT),
    _of_hota(
        "HOTAFP", f.alpha_fp, "Predictions without one", aliases=("HOTA_FP",), **_FEW, **_FALSE
    ),
    _of_hota(
        "HOTAFN", f.alpha_fn, "Ground truths without one", aliases=("HOTA_FN",), **_FEW, **_MISSED
    ),
    _of_clear(
        "MOTA",
        f.mota,
        "Multiple object tracking accuracy: (tp - fp - switches) / ground truths.",
        **_BELOW,
    ),
    _of_clear("MOTP", f.motp, "Multiple object tracking precision: mean IoU of matches."),
    _of_clear(
        "MODA", f.moda, "Detection accuracy of CLEAR: (tp - fp) / ground truths.", **_BELOW, **_BOTH
    ),
    _of_clear(
        "sMOTA",
        f.smota,
        "MOTA with the sum of IoU in the place of tp: (sum - fp - switches) / ground truths.",
        **_BELOW,
    ),
    _of_clear("MOTAL", f.motal, "MOTA with log10(switches) in the place of switches.", **_BELOW),
    _of_clear("Recall", f.recall, "tp / ground truths.", aliases=("CLR_Re",), **_MISSED),
    _of_clear("Precision", f.precision, "tp / predictions.", aliases=("CLR_Pr",), **_FALSE),
    _of_clear("F1", f.f1, "tp / (tp + fp / 2 + fn / 2).", aliases=("CLR_F1",), **_BOTH),
    _of_clear(
        "FPPerFrame",
        f.per_frame,
        "False positives / frames of sequences that have boxes on both sides.",
        aliases=("FP_per_frame", "FAF"),
        better="lower",
        range=(0.0, INF),
        rests_on="frames",
        **_FALSE,
    ),
    _of_clear(
        "TP",
        f.plain("tp"),
        "Pairs of an IoU of 0.5 or more in one frame that match, those of the frame before first.",
        aliases=("CLR_TP",),
        **_COUNT,
        **_MISSED,
    ),
    _of_clear("FP", f.fp, "Predictions without a match.", aliases=("CLR_FP",), **_FEW, **_FALSE),
    _of_clear("FN", f.fn, "Ground truths without a match.", aliases=("CLR_FN",), **_FEW, **_MISSED),
    _of_clear(
        "IDSW",
        f.plain("switches"),
        "Identity switches: matches of an object whose last track was another one.",
        aliases=("IDSwitches", "IDs"),
        wrong=("switch",),
        **_FEW,
    ),
    _of_clear(
        "Frag",
        f.plain("fragments"),
        "Fragmentations: how often objects are matched again after frames without a match.",
        aliases=("Fragmentations", "FM"),
        wrong=("resumed",),
        **_FEW,
    ),
    _of_clear(
        "MT", f.plain("mostly"), "Objects matched in more than 0.8 of their frames.", **_COUNT
    ),
    _of_clear(
        "PT",
        f.plain("partly"),
        "Objects matched in 0.2 to 0.8 of their frames.",
        **{**_COUNT, "better": "neither"},
    ),
    _of_clear("ML", f.plain("lost"), "Objects matched in less than 0.2 of their frames.", **_FEW),
    _of_clear("MTR", f.of_objects("mostly"), "MT / objects."),
    _of_clear("PTR", f.of_objects("partly"), "PT / objects.", better="neither"),
    _of_clear("MLR", f.of_objects("lost"), "ML / objects.", better="lower"),
    _of_identity("IDF1", f.idf1, "IDTP / (IDTP + IDFP / 2 + IDFN / 2)."),
    _of_identity("IDP", f.idp, "IDTP / predictions.", aliases=("IDPrecision",)),
    _of_identity("IDR", f.idr, "IDTP / ground truths.", aliases=("IDRecall",)),
    _of_identity(
        "IDTP",
        f.plain("common"),
        "Pairs of an IoU of 0.5 or more of objects and the one track that each is assigned in its"
        " sequence, at the most such pairs.",
        **_COUNT,
    ),
    _of_identity("IDFP", f.idfp, "Predictions that are no IDTP.", **_FEW),
    _of_identity("IDFN", f.idfn, "Ground truths that are no IDTP.", **_FEW),
)
"""All numbers, in display order."""


def _metric(number: Number) -> Metric:
    return Metric(
        name=number.name,
        task="tracking",
        frame="metrics",
        needs=(number.need,),
        params=("iou_thresholds", "iou_thresholds_to_return")
        if number.need == "hota"
        else ("match_threshold",),
        aliases=number.aliases,
        averages=() if number.counts else ("macro",),
        range=number.range,
        better=number.better,
        counts=number.counts and not number.alphas,
        wrong=number.wrong,
        definition=number.about,
        formula=TEX[number.name],
        source=number.source,
        compute=partial(_cells, number),
    )


METRICS = tuple(_metric(number) for number in NUMBERS)
