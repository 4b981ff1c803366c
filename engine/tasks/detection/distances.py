"""Centre distances as similarities: from 1 for the nearest down to 0.

Positive doubles are ordered like their bits, so that metres map to similarities and back without
loss: between 2^-20 m (a micrometre), below which all is 1, and 2^12 m, from which on it is 0. A
distance of d is a similarity of about 1 / (2^20 d).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...schemas.arrays import Array

NEAREST, FARTHEST = 2.0**-20, 2.0**12
"""Metres."""
_TURN = int(np.float64(1.0).view(np.int64)) + int(np.float64(NEAREST).view(np.int64))


def similarity(metres: Any) -> Array:
    """Return the similarity of boxes at these distances, float64."""
    away = np.maximum(np.asarray(metres, np.float64), NEAREST)
    alike: Array = np.where(away < FARTHEST, (_TURN - away.view(np.int64)).view(np.float64), 0.0)
    return alike


def metres(alike: Any) -> Array:
    """The distance of a similarity above 0, as :func:`similarity` makes it; NaN of none."""
    given = np.asarray(alike, np.float64)
    away = (_TURN - given.view(np.int64)).view(np.float64)
    return np.where(np.isnan(given), np.nan, np.where(away <= NEAREST, 0.0, away))
