"""Parameters of matching rules."""

from __future__ import annotations

import msgspec

from ....schemas.arrays import Array
from ..dialects import RetrievalRules


class Wanted(msgspec.Struct, frozen=True):
    """Threshold and rules of a match.

    Attributes:
        threshold: in [0, 1]; NaN for a rule without threshold.
        rules: the dialect's.
    """

    threshold: float
    rules: RetrievalRules

    def passes(self, similarity: Array) -> Array:
        """Return a mask of similarities above the threshold, or at it if the rules allow."""
        passed: Array = similarity > self.threshold
        if self.rules.match_at_threshold:
            passed = similarity >= self.threshold
        return passed
