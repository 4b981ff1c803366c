"""Formulas of HOTA, CLEAR and identity, for sums over sequences and labels.

Each takes sums by the column names of :class:`~evalengine.tally.segments.TrackRows`. For a zero
denominator the value is 0 (LocA: 1), as in TrackEval.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ....schemas.arrays import Array

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
