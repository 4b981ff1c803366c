"""Known answers of other packages, as tests of classification and text read them."""

from __future__ import annotations

import math
from typing import Any

from known import known_answers


def by_name(*parts: str) -> dict[str, dict[str, Any]]:
    """Its cases by name."""
    return {case["name"]: case for case in known_answers(*parts)["cases"]}


def plain(value: Any) -> Any:
    """JSON with "NaN" and infinities as floats, lists and dictionaries throughout."""
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if value in ("NaN", "Infinity", "-Infinity"):
        return float(value)
    return value


def close(ours: float | None, theirs: Any, tolerance: float = 1e-12) -> bool:
    """Whether a number agrees; undefined is null with us, NaN with others."""
    if ours is None:
        return theirs is None or math.isnan(theirs)
    return theirs is not None and abs(ours - theirs) <= tolerance * max(1.0, abs(theirs))
