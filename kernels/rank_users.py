"""Measures of users who look on with a chance: expected gain of a document that is looked at.

A user at rank i looks on with chance C(i); what is seen at rank i weighs in proportion to the
product of the chances before it (the C/W/L frame, Moffat, Bailey, Scholer & Thomas 2017). Lists are
walked up to a depth, as if documents without gain followed their end.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen, inner, kernel

Array = np.ndarray[Any, Any]

INST, NERR8, NERR9, NERR10, NERR11, BPM = range(6)


@inner
def _looks_on(user: int, rank: int, gain: float, so_far: float, wish: float) -> float:
    """The chance to look on behind a rank, given its gain and the gain up to there."""
    if user == INST:
        place = rank + 2.0 * wish - so_far
        return ((place - 1.0) / place) ** 2.0
    if user == NERR8:
        return 1.0 - gain
    if user == NERR9:
        return rank / (rank + 1.0) * (1.0 - gain)
    if user == NERR10:
        return wish * (1.0 - gain)
    if user == NERR11:
        place = rank + 2.0 * wish
        return ((place - 1.0) / place) ** 2.0 * (1.0 - gain)
    return 1.0 if so_far < wish else 0.0


@kernel
def _expected_gains(
    start: Array,
    rank: Array,
    gain: Array,
    user: int,
    wish: float,
    cuts: Array,
    begin: int,
    end: int,
    out: Array,
) -> None:
    for q in range(begin, end):
        looking, looked, total, so_far = 1.0, 0.0, 0.0, 0.0
        h = start[q]
        c = 0
        for place in range(1, cuts[cuts.size - 1] + 1):
            while c < cuts.size and cuts[c] < place:
                out[q, c] = total / looked if looked > 0 else 0.0
                c += 1
            if h == start[q + 1] and user in (BPM, NERR8):
                # without gain these look on for certain, however far a cut-off is
                while c < cuts.size:
                    seen = looked + looking * (cuts[c] - place + 1)
                    out[q, c] = total / seen if seen > 0 else 0.0
                    c += 1
                break
            here = 0.0
            if h < start[q + 1] and rank[h] == place:
                here = gain[h]
                h += 1
            looked += looking
            total += looking * here
            so_far += here
            looking *= _looks_on(user, place, here, so_far, wish)
            if looking == 0:
                break
        while c < cuts.size:
            out[q, c] = total / looked if looked > 0 else 0.0
            c += 1


def expected_gains(
    start: Array,
    rank: Array,
    gain: Array,
    user: int,
    wish: float,
    cuts: Array,
    begin: int,
    end: int,
    out: Array,
) -> None:
    """Expected gain of a document that the user looks at, who stops at a cut-off at the latest.

    Args:
        start: int64 [q + 1], CSR offsets of the judged documents of each query.
        rank: int32 [h], from 1, ascending within a query.
        gain: float64 [h], 0 to 1.
        user: one of this module's constants.
        wish: gain that the user is after; of ``NERR10`` the chance to look on.
        cuts: int64 [k], ascending; lists are walked to the last of them.
        begin: first query of the range.
        end: one past its last.
        out: float64 [q, k]; rows ``begin`` to ``end`` are written.
    """
    _expected_gains(
        frozen(start, np.int64),
        frozen(rank, np.int32),
        frozen(gain, np.float64),
        user,
        wish,
        frozen(cuts, np.int64),
        begin,
        end,
        out,
    )
