"""Text form of exports, for the shell."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..scorecard.card import Scorecard

_ARRAYS = ("precision", "recall", "scores")
"""COCO's arrays of millions of numbers, not printed; use ``to_coco()`` in Python."""


def as_text(card: Scorecard, name: str) -> str:
    """Format an export as lines of text or JSON.

    Rows per datum include their ids: ``{"ids": [...], "rows": [...]}``. COCO's arrays are omitted.

    Args:
        name: of the export, ``to_<name>``.

    Raises:
        ResultError: the task or dialect has no such shape.
    """
    made: Any = getattr(card, f"to_{name.replace('-', '_')}")()
    if isinstance(made, str):
        return made if made.endswith("\n") else made + "\n"
    if isinstance(made, Mapping):
        made = {key: made[key] for key in made if key not in _ARRAYS}
    elif hasattr(made, "ids"):
        made = {"ids": list(made.ids), "rows": list(made)}
    return json.dumps(made, ensure_ascii=False, indent=1, default=str) + "\n"
