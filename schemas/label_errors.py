"""Names of label errors."""

from __future__ import annotations

OTHER_LABEL, MISSING, LOCATION, DUPLICATE, UNFOUND, TINY = (
    "other label",
    "missing",
    "location",
    "duplicate",
    "unfound",
    "tiny",
)
REASONS = (OTHER_LABEL, MISSING, LOCATION, DUPLICATE, UNFOUND, TINY)
"""Reasons why a label is likely wrong; all but the first are only for detection."""

WAYS = ("prune_by_class", "prune_by_noise_rate", "both", "confident_learning", "argmax")
"""Ways of confident learning to pick datums, the last one the widest."""

QUALITIES = ("normalized_margin", "self_confidence", "confidence_weighted_entropy")
"""Quality scores by which labels of classification are ranked."""
