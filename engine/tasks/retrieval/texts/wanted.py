"""What a match rule is told."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from ..dialects import RetrievalRules

Array = np.ndarray[Any, Any]


class Wanted(msgspec.Struct, frozen=True):
    """Threshold and rules of a match.

    Attributes:
        threshold: in [0, 1]; NaN for a rule that compares nothing with it.
        rules: the dialect's.
    """

    threshold: float
    rules: RetrievalRules

    def passes(self, similarity: Array) -> Array:
        """Whether similarities, in [0, 1], are matches: above the threshold, or also at it."""
        passed: Array = similarity > self.threshold
        if self.rules.match_at_threshold:
            passed = similarity >= self.threshold
        return passed
