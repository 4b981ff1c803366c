"""What a match rule is told."""

from __future__ import annotations

import msgspec
import numpy as np

from ....dialects.retrieval import RetrievalRules


class Wanted(msgspec.Struct, frozen=True):
    """Threshold and rules of a match.

    Attributes:
        threshold: in [0, 1]; NaN for a rule that compares nothing with it.
        rules: the dialect's.
    """

    threshold: float
    rules: RetrievalRules

    def passes(self, similarity: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        """Whether similarities, in [0, 1], are matches: above the threshold, or also at it."""
        if self.rules.match_at_threshold:
            return similarity >= self.threshold
        return similarity > self.threshold
