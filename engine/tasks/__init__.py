"""Tasks: encode, match and tally of each, by name."""

from __future__ import annotations

import importlib
from types import ModuleType

from ..schemas.errors import OptionError, unknown

NAMES = ("classification", "detection", "retrieval", "segmentation", "text", "judged")


def get(name: str) -> ModuleType:
    """The module of a task, with the names that its ``__init__`` lists.

    Raises:
        OptionError: no such task; names the nearest.
    """
    if name not in NAMES:
        raise OptionError(unknown("task", name, NAMES))
    return importlib.import_module(f"{__name__}.{name}")
