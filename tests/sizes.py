"""Other sizes for the rest of a test."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from evalengine.schemas.tuning import take, tuning


def tune(**changes: Any) -> None:
    """Change sizes until the test ends, which is when ``conftest`` takes the usual ones again."""
    take(structs.replace(tuning(), **changes))
