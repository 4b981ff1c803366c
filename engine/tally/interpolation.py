"""How average precision is made of what a view of ranked rows tells."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .ranked import Ranked

Array = np.ndarray[Any, Any]


class Interpolation(NamedTuple):
    """How average precision is made of interpolated precision.

    Attributes:
        levels: float64 [r], ascending recall levels of the curve, next to 0, 1 / (r - 1), ..., 1.
        every_point: whether average precision is the area under the curve, whose recall rises at
            each true positive; otherwise the mean at the levels.
        integer_grid: see :func:`evalengine.kernels.average_precision.sample_precision`.
        epsilon: see there.
        linear: of precision on lines, see :mod:`.linear_precision`; None where it is interpolated.
        positions: levels, by place, that average precision is the mean at, of rows that were
            matched anew at every score, see :mod:`.recall_positions`; None of others.
    """

    levels: Array
    every_point: bool = False
    integer_grid: bool = False
    epsilon: float = 0.0
    linear: float | None = None
    positions: tuple[int, ...] | None = None

    @property
    def averaged(self) -> Array:
        """Levels that average precision is the mean at, [0] where it is the area."""
        return self.levels[:0] if self.every_point else self.levels


class Beside(NamedTuple):
    """Another ranked tally of the same datums and labels, and how its view is made.

    Attributes:
        ranked: the tally.
        interpolation: see :class:`.ranked_view.RankedView`.
    """

    ranked: Ranked
    interpolation: Interpolation
