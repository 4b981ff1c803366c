"""HOTA, CLEAR and identity metrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np

from ....metrics.registry import Metric
from ....schemas.arrays import Array
from ....tally.cells import Cells
from ....tally.counts import CountsView
from ..dialects import Settings

# Formulas of HOTA, CLEAR and identity. For a zero denominator the value is 0 (LocA: 1), as
# TrackEval.

Summed = Callable[[str], Array]
"""Column -> its sums, [...], or [..., alphas]."""
Formula = Callable[[Summed], Array]

NOTHING = "no boxes on either side"
_LITTLE = 1e-10


def defined(of: Summed) -> Array:
    """Return True for groups with any boxes, bool [...]."""
    some: Array = of("truth") + of("found") > 0
    return some


def share(top: Array, bottom: Array) -> Array:
    """Divide counts, giving 0 for a zero denominator; the denominator is the larger count."""
    out: Array = top / np.maximum(1.0, bottom)
    return out


def at_alphas(of: Summed, name: str) -> Array:
    """Return sums without an alpha axis, broadcastable to those with one, [..., 1]."""
    return of(name)[..., None]


def det_a(of: Summed) -> Array:
    """Matches / (matches and rows of either side without one)."""
    tp = of("alpha_tp")
    return share(tp, at_alphas(of, "truth") + at_alphas(of, "found") - tp)


def det_re(of: Summed) -> Array:
    """Matches / ground truths."""
    return share(of("alpha_tp"), at_alphas(of, "truth"))


def det_pr(of: Summed) -> Array:
    """Matches / predictions."""
    return share(of("alpha_tp"), at_alphas(of, "found"))


def ass_a(of: Summed) -> Array:
    """Compute the mean over matches of the shared part of object and track."""
    return share(of("alpha_either"), of("alpha_tp"))


def ass_re(of: Summed) -> Array:
    """The same of the object."""
    return share(of("alpha_truth"), of("alpha_tp"))


def ass_pr(of: Summed) -> Array:
    """The same of the track."""
    return share(of("alpha_found"), of("alpha_tp"))


def loc_a(of: Summed) -> Array:
    """The mean IoU of matches, 1 without any."""
    out: Array = np.maximum(_LITTLE, of("alpha_overlap")) / np.maximum(_LITTLE, of("alpha_tp"))
    return out


def hota(of: Summed) -> Array:
    """The geometric mean of DetA and AssA."""
    out: Array = np.sqrt(det_a(of) * ass_a(of))
    return out


def owta(of: Summed) -> Array:
    """The geometric mean of DetRe and AssA."""
    out: Array = np.sqrt(det_re(of) * ass_a(of))
    return out


def alpha_fp(of: Summed) -> Array:
    """Predictions without a match in HOTA."""
    return at_alphas(of, "found") - of("alpha_tp")


def alpha_fn(of: Summed) -> Array:
    """Ground truths without a match in HOTA."""
    return at_alphas(of, "truth") - of("alpha_tp")


def fp(of: Summed) -> Array:
    """Predictions without a match in CLEAR."""
    return of("found") - of("tp")


def fn(of: Summed) -> Array:
    """Ground truths without a match in CLEAR."""
    return of("truth") - of("tp")


def mota(of: Summed) -> Array:
    """(Matches - false positives - switches) / ground truths."""
    return share(of("tp") - fp(of) - of("switches"), of("truth"))


def moda(of: Summed) -> Array:
    """(Matches - false positives) / ground truths."""
    return share(of("tp") - fp(of), of("truth"))


def smota(of: Summed) -> Array:
    """(Sum of IoU of matches - false positives - switches) / ground truths."""
    return share(of("overlap") - fp(of) - of("switches"), of("truth"))


def motal(of: Summed) -> Array:
    """MOTA with the common logarithm of switches in their place."""
    switches = of("switches")
    few = np.log10(np.maximum(1, switches))
    return share(of("tp") - fp(of) - few, of("truth"))


def motp(of: Summed) -> Array:
    """The mean IoU of matches."""
    return share(of("overlap"), of("tp"))


def recall(of: Summed) -> Array:
    """Matches / ground truths."""
    return share(of("tp"), of("truth"))


def precision(of: Summed) -> Array:
    """Matches / predictions."""
    return share(of("tp"), of("found"))


def f1(of: Summed) -> Array:
    """The harmonic mean of both."""
    return share(of("tp"), of("tp") + 0.5 * fn(of) + 0.5 * fp(of))


def per_frame(of: Summed) -> Array:
    """False positives / frames."""
    return share(fp(of), of("frames"))


def of_objects(name: str) -> Formula:
    """The share of objects that are tracked to some degree."""

    def formula(of: Summed) -> Array:
        return share(of(name), of("mostly") + of("partly") + of("lost"))

    return formula


def idfp(of: Summed) -> Array:
    """Count predictions that objects and their tracks do not share."""
    return of("found") - of("common")


def idfn(of: Summed) -> Array:
    """Ground truths beyond that."""
    return of("truth") - of("common")


def idf1(of: Summed) -> Array:
    """Compute shared boxes / mean of both sides."""
    return share(of("common"), of("common") + 0.5 * idfp(of) + 0.5 * idfn(of))


def idp(of: Summed) -> Array:
    """Compute shared boxes / predictions."""
    return share(of("common"), of("found"))


def idr(of: Summed) -> Array:
    """Compute shared boxes / ground truths."""
    return share(of("common"), of("truth"))


def first(formula: Formula) -> Formula:
    """Return a formula restricted to the first alpha."""
    return lambda of: formula(of)[..., 0]


def plain(name: str) -> Formula:
    """A sum as it is."""
    return lambda of: of(name)


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
REASONS = {"": NOTHING, "truth": "no ground truth", "frames": "no sequence has boxes on both sides"}
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
        some: Array = of(self.rests_on) > 0 if self.rests_on else defined(of)
        return some


def _cells(number: Number, view: CountsView, settings: Settings) -> list[Cells]:
    """Rows a label, of all labels together, and the mean over labels; some at single alphas."""
    of_label = partial(view.sums, "rows")

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
                    keep=defined(of_label) | tracks.declared,
                    columns={"value": value, "support": of_label("truth"), "iou_threshold": alpha},
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
        name=name,
        need="hota",
        formula=formula,
        about=f"{about}: {MEAN}.",
        source=HOTA,
        alphas=True,
        **more,
    )


def _at_first(name: str, formula: Formula, of: str) -> Number:
    return Number(
        name=name,
        need="hota",
        formula=formula,
        source=HOTA,
        about=f"{of} at the first IoU threshold (0.05).",
        aliases=(f"{name[:-1]}(0)",),
    )


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
    _of_hota("HOTA", hota, "Higher order tracking accuracy, sqrt(DetA x AssA)"),
    _of_hota("DetA", det_a, "Detection accuracy, tp / (tp + fn + fp)", **_BOTH),
    _of_hota(
        "AssA",
        ass_a,
        "Association accuracy, over matches the mean of n / (boxes of the object + boxes of the"
        " track - n), n being the matches of that object and track",
    ),
    _of_hota("DetRe", det_re, "Detection recall, tp / (tp + fn)", **_MISSED),
    _of_hota("DetPr", det_pr, "Detection precision, tp / (tp + fp)", **_FALSE),
    _of_hota("AssRe", ass_re, "Association recall, over matches n / boxes of the object"),
    _of_hota("AssPr", ass_pr, "Association precision, over matches n / boxes of the track"),
    _of_hota("LocA", loc_a, "Localisation accuracy, IoU of matches, 1 without any"),
    _of_hota("OWTA", owta, "Open world tracking accuracy, sqrt(DetRe x AssA)"),
    _at_first("HOTA0", first(hota), "HOTA"),
    _at_first("LocA0", first(loc_a), "LocA"),
    _at_first("HOTALocA0", first(lambda of: hota(of) * loc_a(of)), "HOTA x LocA"),
    _of_hota("HOTATP", plain("alpha_tp"), "Matches of HOTA", aliases=("HOTA_TP",), **_COUNT),
    _of_hota("HOTAFP", alpha_fp, "Predictions without one", aliases=("HOTA_FP",), **_FEW, **_FALSE),
    _of_hota(
        "HOTAFN", alpha_fn, "Ground truths without one", aliases=("HOTA_FN",), **_FEW, **_MISSED
    ),
    _of_clear(
        "MOTA",
        mota,
        "Multiple object tracking accuracy: (tp - fp - switches) / ground truths.",
        **_BELOW,
    ),
    _of_clear("MOTP", motp, "Multiple object tracking precision: mean IoU of matches."),
    _of_clear(
        "MODA", moda, "Detection accuracy of CLEAR: (tp - fp) / ground truths.", **_BELOW, **_BOTH
    ),
    _of_clear(
        "sMOTA",
        smota,
        "MOTA with the sum of IoU in the place of tp: (sum - fp - switches) / ground truths.",
        **_BELOW,
    ),
    _of_clear("MOTAL", motal, "MOTA with log10(switches) in the place of switches.", **_BELOW),
    _of_clear("Recall", recall, "tp / ground truths.", aliases=("CLR_Re",), **_MISSED),
    _of_clear("Precision", precision, "tp / predictions.", aliases=("CLR_Pr",), **_FALSE),
    _of_clear("F1", f1, "tp / (tp + fp / 2 + fn / 2).", aliases=("CLR_F1",), **_BOTH),
    _of_clear(
        "FPPerFrame",
        per_frame,
        "False positives / frames of sequences that have boxes on both sides.",
        aliases=("FP_per_frame", "FAF"),
        better="lower",
        range=(0.0, INF),
        rests_on="frames",
        **_FALSE,
    ),
    _of_clear(
        "TP",
        plain("tp"),
        "Pairs of an IoU of 0.5 or more in one frame that match, those of the frame before first.",
        aliases=("CLR_TP",),
        **_COUNT,
        **_MISSED,
    ),
    _of_clear("FP", fp, "Predictions without a match.", aliases=("CLR_FP",), **_FEW, **_FALSE),
    _of_clear("FN", fn, "Ground truths without a match.", aliases=("CLR_FN",), **_FEW, **_MISSED),
    _of_clear(
        "IDSW",
        plain("switches"),
        "Identity switches: matches of an object whose last track was another one.",
        aliases=("IDSwitches", "IDs"),
        wrong=("switch",),
        **_FEW,
    ),
    _of_clear(
        "Frag",
        plain("fragments"),
        "Fragmentations: how often objects are matched again after frames without a match.",
        aliases=("Fragmentations", "FM"),
        wrong=("resumed",),
        **_FEW,
    ),
    _of_clear("MT", plain("mostly"), "Objects matched in more than 0.8 of their frames.", **_COUNT),
    _of_clear(
        "PT",
        plain("partly"),
        "Objects matched in 0.2 to 0.8 of their frames.",
        **{**_COUNT, "better": "neither"},
    ),
    _of_clear("ML", plain("lost"), "Objects matched in less than 0.2 of their frames.", **_FEW),
    _of_clear("MTR", of_objects("mostly"), "MT / objects."),
    _of_clear("PTR", of_objects("partly"), "PT / objects.", better="neither"),
    _of_clear("MLR", of_objects("lost"), "ML / objects.", better="lower"),
    _of_identity("IDF1", idf1, "IDTP / (IDTP + IDFP / 2 + IDFN / 2)."),
    _of_identity("IDP", idp, "IDTP / predictions.", aliases=("IDPrecision",)),
    _of_identity("IDR", idr, "IDTP / ground truths.", aliases=("IDRecall",)),
    _of_identity(
        "IDTP",
        plain("common"),
        "Pairs of an IoU of 0.5 or more of objects and the one track that each is assigned in its"
        " sequence, at the most such pairs.",
        **_COUNT,
    ),
    _of_identity("IDFP", idfp, "Predictions that are no IDTP.", **_FEW),
    _of_identity("IDFN", idfn, "Ground truths that are no IDTP.", **_FEW),
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


_NUMBERS_METRICS = tuple(_metric(number) for number in NUMBERS)


# Tracking outputs with separate frames.

_SOURCE = "evalengine; events as TrackEval's CLEAR counts them"

_FRAMES_METRICS = (
    Metric(
        name="Outcomes",
        task="tracking",
        frame="outcomes",
        needs=("events",),
        params=("match_threshold",),
        range=(0.0, float("inf")),
        better="neither",
        definition="One row per ground truth (match, switch, fragment or miss in CLEAR) and per"
        " prediction without a match (false), with frame, ids and the track before a switch.",
        formula="",
        source=_SOURCE,
    ),
    Metric(
        name="Errors",
        task="tracking",
        frame="errors",
        needs=("events",),
        params=("match_threshold",),
        range=(0.0, float("inf")),
        better="neither",
        definition="One row per switch, fragment, prediction without a match (false) and missed"
        " ground truth of CLEAR, with frame, ids, the track before a switch, and boxes.",
        formula="",
        source=_SOURCE,
    ),
)


METRICS = (*_NUMBERS_METRICS, *_FRAMES_METRICS)
