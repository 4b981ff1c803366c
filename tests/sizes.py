"""Temporary changes of internal sizes in a test."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from evalengine.schemas.tuning import take, tuning


def tune(**changes: Any) -> None:
    """Change sizes until the end of the test, when ``conftest`` restores them."""
    take(structs.replace(tuning(), **changes))
