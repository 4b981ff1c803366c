"""Scores replaced by mid-ranks, so that runs with different score scales can be mixed.

Source: E. S. Venkatraman, C. B. Begg, "A distribution-free procedure for comparing receiver
operating characteristic curves from a paired experiment" (1996); A. Bandos, H. Rockette, D. Gur,
"A permutation test sensitive to differences in areas for comparing ROC curves from a paired
design" (2005).
"""

from __future__ import annotations

import msgspec
import numpy as np

from ..schemas.arrays import Array
from .ranked import Ranked
from .units import Scored, Units


def scores_of_ranks(score: Array, segment: Array | None, inside: Array | None) -> Array:
    """Map scores to (0, 1] by descending mid-rank within each segment.

    Rank r, the number of counted rows that score higher plus half of the equal ones, becomes
    1 / (1 + 2 r). Equal scores stay equal.

    Args:
        score: float64 [n].
        segment: int [n], rows that are ranked together; None for all.
        inside: bool [n], rows that are counted; None for all.
    """
    n = score.size
    if not n:
        return score
    order = np.argsort(-score, kind="stable")
    if segment is not None:
        order = order[np.argsort(segment[order], kind="stable")]
    falling = score[order]
    begins = np.ones(n, bool)  # of equal scores
    begins[1:] = falling[1:] != falling[:-1]
    first = np.zeros(n, bool)  # of segments
    first[0] = True
    if segment is not None:
        first[1:] = segment[order][1:] != segment[order][:-1]
    begins |= first
    group = np.cumsum(begins) - 1
    many = np.bincount(group, None if inside is None else inside[order])
    above = np.cumsum(many) - many
    of_segment = np.cumsum(first)[begins] - 1
    above -= above[group[first]][of_segment]
    twice = 2 * above + many + 1
    out = np.empty(n)
    out[order] = 1 / (1 + twice[group])
    return out


def ranked_by_rank(ranked: Ranked, within: Array | None) -> Ranked:
    """Replace scores of detections by their rank within the label.

    Args:
        within: bool [n_datums], datums that are compared; None for all.
    """
    label = np.repeat(np.arange(ranked.n_labels), np.diff(ranked.start))
    inside = None if within is None else within[ranked.datum]
    return msgspec.structs.replace(
        ranked, score=scores_of_ranks(ranked.score, label, inside), single=False
    )


def scored_by_rank(scored: Scored, units: Units, within: Array | None, *, pooled: bool) -> Scored:
    """Replace scores of labels by their rank.

    Args:
        within: bool [n_datums], datums that are compared; None for all.
        pooled: rank all labels together instead of separately.
    """
    if not scored.ranked:
        return scored
    inside = None if within is None else within[units.datum_of(scored.unit_codes)]
    segment = None if pooled else scored.label_codes
    made = scores_of_ranks(scored.score, segment, inside)
    return msgspec.structs.replace(scored, parts=(made,), single=False)
