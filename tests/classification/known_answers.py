"""Known answers of other packages, read from the shared folder beside the repository."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest


def shared_dir(*parts: str) -> Path:
    """A path in the shared folder; skips the test where it is not there."""
    path = Path(__file__).resolve().parents[2].parent.joinpath("shared", *parts)
    if not path.exists():
        pytest.skip(f"{path.name} is not beside the repository")
    return path


def load(*parts: str) -> Any:
    """One file of vectors."""
    return json.loads(shared_dir("vectors", *parts).read_text())


def by_name(*parts: str) -> dict[str, dict[str, Any]]:
    """Its cases by name."""
    return {case["name"]: case for case in load(*parts)["cases"]}


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
