"""Dialects: named sets of rule choices, per task."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any, Self

import msgspec

from ..schemas.contract import NAMES
from ..schemas.errors import OptionError, unknown
from ..schemas.options import DECLARED, Options, checked
from ..schemas.wording import option

# The dialects of every task, by name.


class Dialect(msgspec.Struct, frozen=True, kw_only=True):
    """One named choice of rules.

    Attributes:
        metrics: computed by default; None for all of the task.
        text_metrics: in place of these if tables have texts instead of ids.
        defaults: option -> default, if it is not the declared one.
        undefined: value for undefined numbers in exports of the reference's shape.
        export: name of the export with the reference's shape, if there is one.
        better: metric -> ``higher`` or ``lower``, if the dialect reverses it.
        own_names: lower-case names of the reference -> metric that they mean in this dialect, if
            different from the usual one.
        means: metric of labels -> its means over all IoU thresholds and at one, which the
            reference calls by the same name. They are computed with the metric.
        by_iou_type: iou_type -> dialect for it, if there is a separate one.
        iou_type: default for dialects with only one.
        heeds: kinds of file warnings that its rules settle, so that they are not reported.
        unpredicted: labels that its rules reserve for ground truths; their absence is not reported.
    """

    name: str
    task: str = ""
    about: str
    rules: Any
    metrics: tuple[str, ...] | None = None
    text_metrics: tuple[str, ...] | None = None
    defaults: dict[str, Any] = {}
    undefined: float | None = None
    export: str | None = None
    better: dict[str, str] = {}
    own_names: dict[str, str] = {}
    means: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {}
    by_iou_type: dict[str, str] = {}
    iou_type: str | None = None
    heeds: frozenset[str] = frozenset()
    unpredicted: frozenset[str] = frozenset()

    def default(self, name: str) -> Any:
        """Return the default of an option by this dialect; None for the declared default."""
        if name == "metrics":
            return self.metrics
        return self.defaults.get(name, getattr(self.rules, name, None))


def of_task(task: str, *dialects: Dialect) -> dict[str, Dialect]:
    """Return the dialects of a task by name; ``standard`` is first."""
    return {one.name: msgspec.structs.replace(one, task=task) for one in dialects}


class TaskSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Base of the settings of a task.

    Subclasses have the dialect's ``rules``, fields that are options, with defaults filled in, and
    values derived from them.
    """

    @classmethod
    def resolve(cls, options: Options, dialect: Dialect) -> Self:
        """Check options, and fill in defaults.

        Raises:
            OptionError: a value out of range, or options that contradict each other.
        """
        values = dict(defaults(dialect.task, dialect.name))
        for name in values:
            value = getattr(options, name)
            if value is not None:
                values[name] = checked(name, value, dialect.task)
        cls.derive(values, options, dialect)
        fields = {"rules": dialect.rules}
        for name in cls.__struct_fields__:
            if name in values:
                fields[name] = values[name]
        return cls(**fields)

    @staticmethod
    def derive(values: dict[str, Any], options: Options, dialect: Dialect) -> None:
        """Check options together, and add derived values to those of options."""


class Aims(TaskSettings, frozen=True, kw_only=True):
    """Settings that are targets of chosen score thresholds; options of these names."""

    beta: float = 1.0
    target_precision: float = 0.9
    target_recall: float = 0.9
    target_fpr: float = 0.1
    false_positive_cost: float = 1.0
    miss_cost: float = 1.0


@cache
def defaults(task: str, name: str) -> dict[str, Any]:
    """Return the default of every option that a task reads, in a dialect."""
    dialect = get(task, name)
    result = {}
    for option_name, declared in DECLARED.items():
        if task in declared.tasks:
            dialect_default = dialect.default(option_name)
            result[option_name] = declared.default if dialect_default is None else dialect_default
    return result


def check_costs(values: Mapping[str, Any]) -> None:
    """Refuse costs of 0 for all errors.

    Args:
        values: of the options.
    """
    if not (values["false_positive_cost"] or values["miss_cost"]):
        raise OptionError(
            f"{option('false_positive_cost', 0)} and {option('miss_cost', 0)}: without costs all"
            " thresholds are equally good. Write one above 0.",
            code="option_value",
            options=["false_positive_cost", "miss_cost"],
        )


def _of(task: str) -> dict[str, Dialect]:
    if task not in NAMES:
        raise unknown("task", task, NAMES)
    return importlib.import_module(f"..tasks.{task}.dialects", __package__).DIALECTS


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
        others = [one for one in NAMES if name in _of(one)]
        if others:
            raise OptionError(
                f"{name!r} is a dialect of {' and '.join(others)}, and the task is {task}. Its"
                f" dialects: evalengine score --help {task}.",
                code="unknown_name",
                value=name,
            )
        raise unknown(f"dialect of {task}", name, dialects)
    return dialects[name]
