"""Readers of other packages' known answers, for tests of classification and text."""

from __future__ import annotations

import math
from typing import Any

from reference_data import known_answers


def by_name(*parts: str) -> dict[str, dict[str, Any]]:
    """Return the cases of a file by name."""
    return {case["name"]: case for case in known_answers(*parts)["cases"]}


def plain(value: Any) -> Any:
    """Convert "NaN" and infinities in JSON to floats, also within lists and dictionaries."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    return value


def close(ours: float | None, theirs: Any, tolerance: float = 1e-12) -> bool:
    """Compare two numbers; undefined is None here and NaN in other packages."""
    if ours is None:
        return theirs is None or math.isnan(theirs)
    return theirs is not None and abs(ours - theirs) <= tolerance * max(1.0, abs(theirs))
