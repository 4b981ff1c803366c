"""HOTA, CLEAR and identity metrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np

from ...metrics.registry import define
from ...schemas.arrays import Array
from ...tallies.counts import CountsView
from ...tallies.datums import Cells
from .dialects import Settings

# Formulas of HOTA, CLEAR and identity. For a zero denominator the value is 0 (LocA: 1), as
# TrackEval.

Summed = Callable[[str], Array]
"""Column -> its sums, [...], or [..., alphas]."""
Formula = Callable[[Summed], Array]

NOTHING = "no boxes on either side"
_LITTLE = 1e-10


def defined(of: Summed) -> Array:
    """Return True for groups with any boxes, bool [...]."""
    return of("truth") + of("found") > 0


def share(top: Array, bottom: Array) -> Array:
    """Divide counts, giving 0 for a zero denominator; the denominator is the larger count."""
    return top / np.maximum(1.0, bottom)


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


def ass_a(of: Summed) -> Array:
    """Compute the mean over matches of the shared part of object and track."""
    return share(of("alpha_either"), of("alpha_tp"))


def loc_a(of: Summed) -> Array:
    """The mean IoU of matches, 1 without any."""
    return np.maximum(_LITTLE, of("alpha_overlap")) / np.maximum(_LITTLE, of("alpha_tp"))


def hota(of: Summed) -> Array:
    """The geometric mean of DetA and AssA."""
    return np.sqrt(det_a(of) * ass_a(of))


def fp(of: Summed) -> Array:
    """Predictions without a match in CLEAR."""
    return of("found") - of("tp")


def fn(of: Summed) -> Array:
    """Ground truths without a match in CLEAR."""
    return of("truth") - of("tp")


def idfp(of: Summed) -> Array:
    """Count predictions that objects and their tracks do not share."""
    return of("found") - of("common")


def idfn(of: Summed) -> Array:
    """Ground truths beyond that."""
    return of("truth") - of("common")


def f1(tp: Array, fp: Array, fn: Array) -> Array:
    """The harmonic mean of precision and recall."""
    return share(tp, tp + 0.5 * fn + 0.5 * fp)


def clear(top: Formula) -> Formula:
    """A numerator over the ground truths."""
    return lambda of: share(top(of), of("truth"))


def of_objects(name: str) -> Formula:
    """The share of objects that are tracked to some degree."""
    return lambda of: share(of(name), of("mostly") + of("partly") + of("lost"))


def plain(name: str) -> Formula:
    """A sum as it is."""
    return lambda of: of(name)


class Number(msgspec.Struct, frozen=True):
    """A number of tracking.

    Attributes:
        name: public name.
        need: ``hota``, ``clear`` or ``identity``.
        formula: maps sums to values.
        fields: of its :class:`~evalengine.metrics.registry.Metric`.
        alphas: has a value at each IoU threshold, and is their mean.
        counts: is a count, which has no mean over labels.
        rests_on: column that must have rows for a value; empty for any box on either side.
    """

    name: str
    need: str
    formula: Formula
    fields: dict[str, Any]
    alphas: bool = False
    counts: bool = False
    rests_on: str = ""

    @property
    def reason(self) -> str:
        """Why it has no value."""
        return _REASONS[self.rests_on]

    def some(self, of: Summed) -> Array:
        """Return True for groups in which the number is defined, bool [...]."""
        return of(self.rests_on) > 0 if self.rests_on else defined(of)


_REASONS = {
    "": NOTHING,
    "truth": "no ground truth",
    "frames": "no sequence has boxes on both sides",
}
"""Reasons for undefined numbers, by the column they require."""


def _cells(number: Number, view: CountsView, settings: Settings) -> list[Cells]:
    """Rows a label, of all labels together, and the mean over labels; some at single alphas."""
    of_label = partial(view.sums, "rows")

    def pooled(name: str) -> Array:
        return of_label(name).sum(axis=1, keepdims=True)

    tracks = view.whole
    values: dict[str | None, Array] = {None: _values(number, pooled)}
    support: dict[str | None, Array] = {None: pooled("truth")}
    if tracks.labelled and not number.counts:
        per_label = _values(number, of_label)
        counted = number.some(of_label)
        values["macro"] = _mean_of_labels(per_label, counted)
        support["macro"] = counted.sum(axis=1, keepdims=True)
    places: list[tuple[float | None, Any]] = [(None, slice(None))]
    if number.alphas:
        places += [(one, settings.alphas.index(one)) for one in settings.alphas_to_return]
    cells: list[Cells] = []
    for alpha, at in places:

        def chosen(value: Array, at: Any = at) -> Array:
            if not number.alphas:
                return value
            part: Array = value[..., at]
            return part.mean(axis=-1) if part.ndim == value.ndim else part

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


_MEAN = r"\frac{1}{|A|} \sum_{\alpha \in A} "
"""Prefix of formulas that have a value at each IoU threshold, in TeX."""
_HOTA = "Luiten et al. 2021, HOTA; TrackEval hota.py"
_CLEAR = "Bernardin and Stiefelhagen 2008, CLEAR MOT; TrackEval clear.py"
_IDENTITY = "Ristani et al. 2016, Performance measures; TrackEval identity.py"
_INF = float("inf")
_AT_ALPHAS = ("iou_thresholds", "iou_thresholds_to_return")
_AT_ONE = ("match_threshold",)


def _number(
    need: str,
    source: str,
    params: tuple[str, ...],
    name: str,
    formula: Formula,
    definition: str,
    tex: str,
    *,
    alphas: bool = False,
    counts: bool = False,
    rests_on: str = "",
    **more: Any,
) -> Number:
    fields: dict[str, Any] = {
        "definition": definition,
        "formula": tex,
        "source": source,
        "needs": (need,),
        "params": params,
        "averages": () if counts else ("macro",),
        "counts": counts and not alphas,
        **more,
    }
    return Number(name, need, formula, fields, alphas, counts, rests_on)


def _of_hota(name: str, formula: Formula, about: str, tex: str, **more: Any) -> Number:
    about = f"{about}: mean over IoU thresholds (0.05 to 0.95 by 0.05)."
    fields = {"alphas": True, **more}
    return _number("hota", _HOTA, _AT_ALPHAS, name, formula, about, _MEAN + tex, **fields)


def _at_first(name: str, formula: Formula, of: str, tex: str) -> Number:
    about, alias = f"{of} at the first IoU threshold (0.05).", f"{name[:-1]}(0)"
    return _number(
        *("hota", _HOTA, _AT_ALPHAS, name, lambda sums: formula(sums)[..., 0], about),
        rf"{tex}, \quad \alpha = 0.05",
        aliases=(alias,),
    )


_of_clear = partial(_number, "clear", _CLEAR, _AT_ONE)
_of_identity = partial(_number, "identity", _IDENTITY, _AT_ONE)

_COUNT: dict[str, Any] = {"range": (0.0, _INF), "counts": True}
_FEW = {**_COUNT, "better": "lower"}
_MISSED: dict[str, Any] = {"wrong": ("miss",)}
_FALSE: dict[str, Any] = {"wrong": ("false",)}
_BOTH: dict[str, Any] = {"wrong": ("miss", "false")}
_BELOW: dict[str, Any] = {"range": (-_INF, 1.0), "rests_on": "truth"}

NUMBERS = (
    _of_hota(
        "HOTA",
        hota,
        "Higher order tracking accuracy, sqrt(DetA x AssA)",
        r"\sqrt{\text{DetA}_\alpha \cdot \text{AssA}_\alpha}",
    ),
    _of_hota(
        "DetA",
        det_a,
        "Detection accuracy, tp / (tp + fn + fp)",
        r"\frac{\text{TP}_\alpha}{\text{TP}_\alpha + \text{FN}_\alpha + \text{FP}_\alpha}",
        **_BOTH,
    ),
    _of_hota(
        "AssA",
        ass_a,
        "Association accuracy, over matches the mean of n / (boxes of the object + boxes of the"
        " track - n), n being the matches of that object and track",
        r"\frac{1}{\text{TP}_\alpha} \sum_c \frac{n_c}{g_c + t_c - n_c}",
    ),
    _of_hota(
        "DetRe",
        det_re,
        "Detection recall, tp / (tp + fn)",
        r"\frac{\text{TP}_\alpha}{\text{TP}_\alpha + \text{FN}_\alpha}",
        **_MISSED,
    ),
    _of_hota(
        "DetPr",
        lambda of: share(of("alpha_tp"), at_alphas(of, "found")),
        "Detection precision, tp / (tp + fp)",
        r"\frac{\text{TP}_\alpha}{\text{TP}_\alpha + \text{FP}_\alpha}",
        **_FALSE,
    ),
    _of_hota(
        "AssRe",
        lambda of: share(of("alpha_truth"), of("alpha_tp")),
        "Association recall, over matches n / boxes of the object",
        r"\frac{1}{\text{TP}_\alpha} \sum_c \frac{n_c}{g_c}",
    ),
    _of_hota(
        "AssPr",
        lambda of: share(of("alpha_found"), of("alpha_tp")),
        "Association precision, over matches n / boxes of the track",
        r"\frac{1}{\text{TP}_\alpha} \sum_c \frac{n_c}{t_c}",
    ),
    _of_hota(
        "LocA",
        loc_a,
        "Localisation accuracy, IoU of matches, 1 without any",
        r"\frac{1}{\text{TP}_\alpha} \sum_c \text{IoU}(c)",
    ),
    _of_hota(
        "OWTA",
        lambda of: np.sqrt(det_re(of) * ass_a(of)),
        "Open world tracking accuracy, sqrt(DetRe x AssA)",
        r"\sqrt{\text{DetRe}_\alpha \cdot \text{AssA}_\alpha}",
    ),
    _at_first("HOTA0", hota, "HOTA", r"\sqrt{\text{DetA}_\alpha \cdot \text{AssA}_\alpha}"),
    _at_first("LocA0", loc_a, "LocA", r"\frac{1}{\text{TP}_\alpha} \sum_c \text{IoU}(c)"),
    _at_first(
        "HOTALocA0",
        lambda of: hota(of) * loc_a(of),
        "HOTA x LocA",
        r"\text{HOTA}_\alpha \cdot \text{LocA}_\alpha",
    ),
    _of_hota(
        "HOTATP",
        plain("alpha_tp"),
        "Matches of HOTA",
        r"\text{TP}_\alpha",
        aliases=("HOTA_TP",),
        **_COUNT,
    ),
    _of_hota(
        "HOTAFP",
        lambda of: at_alphas(of, "found") - of("alpha_tp"),
        "Predictions without one",
        r"\text{FP}_\alpha",
        aliases=("HOTA_FP",),
        **_FEW,
        **_FALSE,
    ),
    _of_hota(
        "HOTAFN",
        lambda of: at_alphas(of, "truth") - of("alpha_tp"),
        "Ground truths without one",
        r"\text{FN}_\alpha",
        aliases=("HOTA_FN",),
        **_FEW,
        **_MISSED,
    ),
    _of_clear(
        "MOTA",
        clear(lambda of: of("tp") - fp(of) - of("switches")),
        "Multiple object tracking accuracy: (tp - fp - switches) / ground truths.",
        r"\frac{\text{tp} - \text{fp} - \text{switches}}{G}",
        **_BELOW,
    ),
    _of_clear(
        "MOTP",
        lambda of: share(of("overlap"), of("tp")),
        "Multiple object tracking precision: mean IoU of matches.",
        r"\frac{1}{\text{tp}} \sum_c \text{IoU}(c)",
    ),
    _of_clear(
        "MODA",
        clear(lambda of: of("tp") - fp(of)),
        "Detection accuracy of CLEAR: (tp - fp) / ground truths.",
        r"\frac{\text{tp} - \text{fp}}{G}",
        **_BELOW,
        **_BOTH,
    ),
    _of_clear(
        "sMOTA",
        clear(lambda of: of("overlap") - fp(of) - of("switches")),
        "MOTA with the sum of IoU in the place of tp: (sum - fp - switches) / ground truths.",
        r"\frac{\sum_c \text{IoU}(c) - \text{fp} - \text{switches}}{G}",
        **_BELOW,
    ),
    _of_clear(
        "MOTAL",
        clear(lambda of: of("tp") - fp(of) - np.log10(np.maximum(1, of("switches")))),
        "MOTA with log10(switches) in the place of switches.",
        r"\frac{\text{tp} - \text{fp} - \log_{10} \max(1, \text{switches})}{G}",
        **_BELOW,
    ),
    _of_clear(
        "Recall",
        clear(plain("tp")),
        "tp / ground truths.",
        r"\frac{\text{tp}}{G}",
        aliases=("CLR_Re",),
        **_MISSED,
    ),
    _of_clear(
        "Precision",
        lambda of: share(of("tp"), of("found")),
        "tp / predictions.",
        r"\frac{\text{tp}}{\text{tp} + \text{fp}}",
        aliases=("CLR_Pr",),
        **_FALSE,
    ),
    _of_clear(
        "F1",
        lambda of: f1(of("tp"), fp(of), fn(of)),
        "tp / (tp + fp / 2 + fn / 2).",
        r"\frac{\text{tp}}{\text{tp} + \tfrac{1}{2} \text{fp} + \tfrac{1}{2} \text{fn}}",
        aliases=("CLR_F1",),
        **_BOTH,
    ),
    _of_clear(
        "FPPerFrame",
        lambda of: share(fp(of), of("frames")),
        "False positives / frames of sequences that have boxes on both sides.",
        r"\frac{\text{fp}}{\text{frames}}",
        aliases=("FP_per_frame", "FAF"),
        better="lower",
        range=(0.0, _INF),
        rests_on="frames",
        **_FALSE,
    ),
    _of_clear(
        "TP",
        plain("tp"),
        "Pairs of an IoU of 0.5 or more in one frame that match, those of the frame before first.",
        r"\text{tp} = |\{c\}|",
        aliases=("CLR_TP",),
        **_COUNT,
        **_MISSED,
    ),
    _of_clear(
        "FP",
        fp,
        "Predictions without a match.",
        r"\text{fp} = P - \text{tp}",
        aliases=("CLR_FP",),
        **_FEW,
        **_FALSE,
    ),
    _of_clear(
        "FN",
        fn,
        "Ground truths without a match.",
        r"\text{fn} = G - \text{tp}",
        aliases=("CLR_FN",),
        **_FEW,
        **_MISSED,
    ),
    _of_clear(
        "IDSW",
        plain("switches"),
        "Identity switches: matches of an object whose last track was another one.",
        r"\sum_c [\text{the object's last track was another}]",
        aliases=("IDSwitches", "IDs"),
        wrong=("switch",),
        **_FEW,
    ),
    _of_clear(
        "Frag",
        plain("fragments"),
        "Fragmentations: how often objects are matched again after frames without a match.",
        r"\sum_o \max(0, r_o - 1)",
        aliases=("Fragmentations", "FM"),
        wrong=("resumed",),
        **_FEW,
    ),
    _of_clear(
        "MT",
        plain("mostly"),
        "Objects matched in more than 0.8 of their frames.",
        r"\sum_o [f_o > 0.8]",
        **_COUNT,
    ),
    _of_clear(
        "PT",
        plain("partly"),
        "Objects matched in 0.2 to 0.8 of their frames.",
        r"\sum_o [0.2 \le f_o \le 0.8]",
        **{**_COUNT, "better": "neither"},
    ),
    _of_clear(
        "ML",
        plain("lost"),
        "Objects matched in less than 0.2 of their frames.",
        r"\sum_o [f_o < 0.2]",
        **_FEW,
    ),
    _of_clear(
        "MTR",
        of_objects("mostly"),
        "MT / objects.",
        r"\frac{\text{MT}}{\text{MT} + \text{PT} + \text{ML}}",
    ),
    _of_clear(
        "PTR",
        of_objects("partly"),
        "PT / objects.",
        r"\frac{\text{PT}}{\text{MT} + \text{PT} + \text{ML}}",
        better="neither",
    ),
    _of_clear(
        "MLR",
        of_objects("lost"),
        "ML / objects.",
        r"\frac{\text{ML}}{\text{MT} + \text{PT} + \text{ML}}",
        better="lower",
    ),
    _of_identity(
        "IDF1",
        lambda of: f1(of("common"), idfp(of), idfn(of)),
        "IDTP / (IDTP + IDFP / 2 + IDFN / 2).",
        r"\frac{2\,\text{IDTP}}{2\,\text{IDTP} + \text{IDFP} + \text{IDFN}}",
    ),
    _of_identity(
        "IDP",
        lambda of: share(of("common"), of("found")),
        "IDTP / predictions.",
        r"\frac{\text{IDTP}}{\text{IDTP} + \text{IDFP}}",
        aliases=("IDPrecision",),
    ),
    _of_identity(
        "IDR",
        clear(plain("common")),
        "IDTP / ground truths.",
        r"\frac{\text{IDTP}}{\text{IDTP} + \text{IDFN}}",
        aliases=("IDRecall",),
    ),
    _of_identity(
        "IDTP",
        plain("common"),
        "Pairs of an IoU of 0.5 or more of objects and the one track that each is assigned in its"
        " sequence, at the most such pairs.",
        r"\max_a \sum_o m(o, a(o))",
        **_COUNT,
    ),
    _of_identity("IDFP", idfp, "Predictions that are no IDTP.", r"P - \text{IDTP}", **_FEW),
    _of_identity("IDFN", idfn, "Ground truths that are no IDTP.", r"G - \text{IDTP}", **_FEW),
)
"""All numbers, in display order."""

# Tracking outputs with separate frames.

_frame_metric = partial(
    define,
    "tracking",
    source="evalengine; events as TrackEval's CLEAR counts them",
    compute=None,
    needs=("events",),
    params=_AT_ONE,
    range=(0.0, _INF),
    better="neither",
)


SYMBOLS = {
    r"A": "IoU thresholds, 0.05 to 0.95 by 0.05",
    r"\text{TP}_\alpha": "pairs that HOTA matches at a threshold",
    r"\text{FP}_\alpha": "predictions without such a match",
    r"\text{FN}_\alpha": "ground truths without one",
    r"c": "a matched pair of a ground truth and a prediction in one frame",
    r"n_c": "matches of that object and track in all frames",
    r"g_c": "boxes of the object",
    r"t_c": "boxes of the track",
    r"\text{tp}": "pairs that CLEAR matches at IoU 0.5",
    r"\text{fp}": "predictions without such a match",
    r"\text{fn}": "ground truths without one",
    r"\text{switches}": "matches of an object whose last track was another",
    r"G": "ground truths",
    r"P": "predictions",
    r"o": "an object",
    r"r_o": "runs of frames in which it is matched",
    r"f_o": "share of its frames in which it is matched",
    r"m(o, a(o))": (
        "frames in which object and the track assigned to it overlap by IoU 0.5 or more; a"
        " assigns every track once at most"
    ),
}
"""Meaning of the symbols in formulas, in TeX."""

SAME = (
    "IDSW=numswitches Frag=numfragmentations MT=mostlytracked PT=partiallytracked ML=mostlylost"
    " FP=numfalsepositives FN=nummisses MOTA=motsa sMOTA=smotsa"
)
"""Metrics, each with its names in other tools, squeezed."""


METRICS = (
    *(
        define("tracking", name=one.name, compute=partial(_cells, one), **one.fields)
        for one in NUMBERS
    ),
    _frame_metric(
        "Outcomes",
        "One row per ground truth (match, switch, fragment or miss in CLEAR) and per prediction"
        " without a match (false), with frame, ids and the track before a switch.",
        frame="outcomes",
    ),
    _frame_metric(
        "Errors",
        "One row per switch, fragment, prediction without a match (false) and missed ground truth"
        " of CLEAR, with frame, ids, the track before a switch, and boxes.",
        frame="errors",
    ),
)
