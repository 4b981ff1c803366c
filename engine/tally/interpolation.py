"""Settings of average precision over a view of ranked rows."""

from __future__ import annotations

from typing import NamedTuple

from ..schemas.arrays import Array
from .ranked import Ranked


class Interpolation(NamedTuple):
    """Definition of average precision from interpolated precision.

    Attributes:
        levels: float64 [r], ascending recall levels of the curve, near 0, 1 / (r - 1), ..., 1.
        every_point: average precision is the area under the curve, whose recall rises at each true
            positive; otherwise the mean at the levels.
        integer_grid: see :func:`evalengine.kernels.average_precision.sample_precision`.
        epsilon: see there.
        linear: settings for linear precision, see :mod:`.linear_precision`; None if interpolated.
        positions: indices of the levels to average, for rows matched again at every score, see
            :mod:`.recall_positions`; otherwise None.
    """

    levels: Array
    every_point: bool = False
    integer_grid: bool = False
    epsilon: float = 0.0
    linear: float | None = None
    positions: tuple[int, ...] | None = None

    @property
    def averaged(self) -> Array:
        """Levels over which average precision is the mean, [0] if it is the area."""
        return self.levels[:0] if self.every_point else self.levels


class Beside(NamedTuple):
    """Another ranked tally of the same datums and labels, and its view settings.

    Attributes:
        interpolation: see :class:`.ranked_view.RankedView`.
    """

    ranked: Ranked
    interpolation: Interpolation
