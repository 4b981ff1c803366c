"""Distances of centres as how alike two boxes are: the nearer, the more, from 1 down to 0.

The order of doubles is that of their bits, so that a distance in metres becomes a similarity, and
back, without a bit being lost: between 2^-20 m (a micrometre), below which all is 1, and 2^12 m,
from which on it is 0. A distance of d is a similarity of about 1 / (2^20 d).
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

NEAREST, FARTHEST = 2.0**-20, 2.0**12
"""Metres."""
_TURN = int(np.float64(1.0).view(np.int64)) + int(np.float64(NEAREST).view(np.int64))


def similarity(metres: Any) -> Array:
    """How alike boxes at these distances are, float64: the nearer, the more."""
    away = np.maximum(np.asarray(metres, np.float64), NEAREST)
    alike: Array = np.where(away < FARTHEST, (_TURN - away.view(np.int64)).view(np.float64), 0.0)
    return alike


def metres(alike: Any) -> Array:
    """The distance of a similarity above 0, as :func:`similarity` makes it; NaN of none."""
    given = np.asarray(alike, np.float64)
    away = (_TURN - given.view(np.int64)).view(np.float64)
    return np.where(np.isnan(given), np.nan, np.where(away <= NEAREST, 0.0, away))
