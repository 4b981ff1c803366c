"""Dialects: named sets of rule choices, per task."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import msgspec

from ..schemas.contract import NAMES
from ..schemas.errors import unknown

# The dialects of every task, by name.


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One named choice of rules.

    Attributes:
        defaults: the task's defaults struct.
        undefined: value for undefined numbers in exports of the reference's shape.
        export: name of the export with the reference's shape, if there is one.
        better: metric -> ``higher`` or ``lower``, if the dialect reverses it.
        own_names: lower-case names of the reference -> metric that they mean in this dialect, if
            different from the usual one.
        by_iou_type: iou_type -> dialect for it, if there is a separate one.
        iou_type: default for dialects with only one.
        heeds: kinds of file warnings that its rules settle, so that they are not reported.
        unpredicted: labels that its rules reserve for ground truths; their absence is not reported.
    """

    name: str
    task: str
    about: str
    rules: Any
    defaults: Any
    undefined: float | None = None
    export: str | None = None
    better: dict[str, str] = {}
    own_names: dict[str, str] = {}
    by_iou_type: dict[str, str] = {}
    iou_type: str | None = None
    heeds: frozenset[str] = frozenset()
    unpredicted: frozenset[str] = frozenset()

    def default(self, option: str) -> Any:
        """Return the default of an option; None if the dialect has none."""
        return getattr(self.defaults, option, getattr(self.rules, option, None))


def _of(task: str) -> dict[str, Dialect]:
    if task not in NAMES:
        raise unknown("task", task, NAMES)
    module = importlib.import_module(f"..tasks.{task}.dialects", __package__)
    dialects: dict[str, Dialect] = module.DIALECTS
    return dialects


def names(task: str) -> list[str]:
    """The dialects of a task, ``standard`` first."""
    return list(_of(task))


@cache
def get(task: str, name: str) -> Dialect:
    """Return the dialect of that name.

    Raises:
        OptionError: no such dialect; suggests the nearest.
    """
    dialects = _of(task)
    if name not in dialects:
        raise unknown(f"dialect of {task}", name, dialects)
    return dialects[name]
