"""Tasks: encode, match and tally of each, by name."""

from __future__ import annotations

import importlib
from functools import cache
from typing import TYPE_CHECKING

from ..kernels import uncollected
from ..schemas.contract import NAMES
from ..schemas.errors import unknown

if TYPE_CHECKING:
    from .task import Task

__all__ = ["NAMES", "get"]


@cache
def get(name: str) -> Task:
    """Return a task, importing its code on first use.

    Raises:
        OptionError: no such task; the message suggests the nearest.
    """
    if name not in NAMES:
        raise unknown("task", name, NAMES)
    with uncollected(lasting=True):
        return importlib.import_module(f"{__name__}.{name}.spec").TASK
