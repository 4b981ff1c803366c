"""The dialects of every task, by name."""

from __future__ import annotations

import importlib
from typing import Any

import msgspec

from ..schemas.errors import unknown
from ..schemas.options import Options
from ..schemas.task_names import NAMES


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One named choice of rules.

    Attributes:
        name: what users write.
        task: the task it belongs to.
        about: one sentence: whose numbers these are.
        rules: the task's rules struct.
        defaults: the task's defaults struct.
        undefined: what exports in the reference's shape put for an undefined value.
        export: name of the export that has the reference's shape, if there is one.
        better: metric -> ``higher`` or ``lower``, where the dialect turns it round.
        own_names: names of the reference, in small letters -> the metric they mean under this
            dialect, where by themselves they mean another.
        by_iou_type: what is compared, where that has a dialect of its own -> that dialect.
        iou_type: what is compared where nothing says so, of those that compare one thing alone.
        heeds: kinds of warnings of files that its rules settle, which are not told then.
        unpredicted: labels that its rules leave to ground truths alone, which is not told.
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
        """What an option is where it was not given; None where the dialect does not say."""
        return getattr(self.defaults, option, getattr(self.rules, option, None))

    def meant(self, metric: str) -> str:
        """A metric's name as the registry knows it; ``ContextRecall`` itself is no other's."""
        return self.own_names.get(metric, metric)


def _of(task: str) -> dict[str, Dialect]:
    if task not in NAMES:
        raise unknown("task", task, NAMES)
    module = importlib.import_module(f"..tasks.{task}.dialects", __package__)
    dialects: dict[str, Dialect] = module.DIALECTS
    return dialects


def names(task: str) -> list[str]:
    """The dialects of a task, ``standard`` first."""
    return list(_of(task))


def get(task: str, name: str) -> Dialect:
    """The dialect of that name.

    Raises:
        OptionError: no such dialect; names the nearest.
    """
    dialects = _of(task)
    if name not in dialects:
        raise unknown(f"dialect of {task}", name, dialects)
    return dialects[name]


def chosen(task: str, options: Options) -> Dialect:
    """The dialect that options name, or the one that it has for what is compared.

    Raises:
        OptionError: no such dialect; names the nearest.
    """
    named = get(task, options.dialect)
    own = named.by_iou_type.get(options.iou_type or "")
    return named if own is None else get(task, own)
