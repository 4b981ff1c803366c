"""Scores of ROUGE, and their means with intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...schemas.errors import invalid

_AT_ONCE = 4_000_000
"""Rows resampled per step."""


class Score(NamedTuple):
    """Precision, recall and F of one text, each in [0, 1]."""

    precision: float
    recall: float
    fmeasure: float


class AggregateScore(NamedTuple):
    """The lower end of an interval, its median and its upper end, each a :class:`Score`."""

    low: Any
    mid: Any
    high: Any


class BootstrapAggregator:
    """Means of scores over texts, with bootstrap intervals.

    Resamples come from NumPy's global generator, as in rouge-score: with the same
    ``numpy.random.seed`` both give the same numbers.

    Args:
        confidence_interval: confidence level, from 0 to 1.
        n_samples: number of resamples.

    Raises:
        OptionError: one of them is out of range.
    """

    def __init__(self, confidence_interval: float = 0.95, n_samples: int = 1000) -> None:
        if not 0 <= confidence_interval <= 1:
            raise invalid("confidence_interval", confidence_interval, "from 0 to 1.")
        if n_samples <= 0:
            raise invalid("n_samples", n_samples, "one or more.")
        self._share, self._draws = confidence_interval, n_samples
        self._scores: defaultdict[str, list[Any]] = defaultdict(list)

    def add_scores(self, scores: Mapping[str, Any]) -> None:
        """Add the scores of one text, by type; each a tuple of numbers."""
        for name, score in scores.items():
            self._scores[name].append(score)

    def aggregate(self) -> dict[str, AggregateScore]:
        """Interval and median of each type's mean."""
        beyond = (1 - self._share) / 2
        percents = 100 * np.array([beyond, 0.5, 1 - beyond])
        result = {}
        for name, scores in self._scores.items():
            percentiles = np.percentile(self._means(np.vstack(scores)), percents, axis=0)
            result[name] = AggregateScore(
                *(type(scores[0])(*map(float, end)) for end in percentiles)
            )
        return result

    def _means(self, rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """Return the mean of every resample, [n_samples, measures]."""
        n = len(rows)
        means = np.empty((self._draws, rows.shape[1]))
        step = max(1, _AT_ONCE // n)
        for first in range(0, self._draws, step):
            size = (min(step, self._draws - first), n)
            places = np.random.randint(0, n, size=size)  # noqa: NPY002  # seeded by the caller
            means[first : first + step] = rows[places].mean(axis=1)
        return means
