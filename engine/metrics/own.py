"""Own metrics: functions of the user that return one value per datum.

Options and workers know such a metric by its reference, ``module:function``. A function that a
script or notebook defines has a reference too, but only this process has it.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import itertools
import math
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any

import polars as pl

from ..schemas.errors import InputError, OptionError
from ..schemas.options import DIRECTIONS
from ..schemas.wording import option

NO_PLUGINS = "EVALENGINE_NO_PLUGINS"
"""Environment variable that refuses the code of others; workers inherit it."""
_REFERENCE = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_<][\w.<>]*")
_OWN_METRICS: dict[str, OwnMetric] = {}
_COUNT = itertools.count()
_JOB_FOLDERS: set[str] = set()
"""Folders of job files from which modules may be imported."""


class OwnMetric:
    """A metric made by :func:`metric`; call it like the function.

    Attributes:
        name: name of the number, that of the function.
        better: ``higher``, ``lower`` or ``neither``.
        range: smallest and largest possible value.
        reference: ``module:function``.
    """

    def __init__(self, function: Callable[[pl.DataFrame], Any], better: str, limits: Any) -> None:
        self._function = function
        self.name = function.__name__
        self.better = better
        self.range: tuple[float, float] = limits
        self.reference = f"{function.__module__}:{function.__qualname__}"
        self.__doc__ = function.__doc__
        _OWN_METRICS[self.reference] = self

    def __call__(self, rows: pl.DataFrame) -> Any:
        return self._function(rows)

    def __repr__(self) -> str:
        return f"<own metric {self.reference}>"

    def register(self) -> str:
        """Return the reference, by which this process finds the metric from now on."""
        _OWN_METRICS[self.reference] = self
        return self.reference

    @property
    def digest(self) -> str:
        """SHA-256 of the files that define it and its decorators.

        If other processes cannot import it, code and bound values are covered too, since functions
        may share its reference. "" if an importable one has no file.
        """
        functions: list[Any] = [self._function]
        while hasattr(functions[-1], "__wrapped__"):
            functions.append(functions[-1].__wrapped__)
        try:
            files = sorted({inspect.getfile(one) for one in functions})
            contents = [Path(file).read_bytes() for file in files]
        except (OSError, TypeError):
            contents = []
        contents += [] if self.importable else [self._content]
        return hashlib.sha256(b"".join(contents)).hexdigest() if contents else ""

    @cached_property
    def _content(self) -> bytes:
        """Code and bound values of the function; a number of this process if they are unknown."""
        one: Any = self._function
        try:
            values = inspect.getclosurevars(one).nonlocals, one.__defaults__, one.__kwdefaults__
            return pickle.dumps((_content_of(one.__code__), values))
        except Exception:  # of any kind: classes decide how they are pickled
            return b"%d" % next(_COUNT)

    @property
    def importable(self) -> bool:
        """True if another process can import it."""
        return is_importable(self.reference)


def _content_of(code: Any) -> Any:
    """Return what a code object does, without its place: the same in all processes."""
    if isinstance(code, CodeType):
        return code.co_code, code.co_names, [_content_of(one) for one in code.co_consts]
    return repr(sorted(map(repr, code)) if isinstance(code, frozenset) else code)


def is_importable(reference: str) -> bool:
    """Return whether another process can import a metric by its reference."""
    return "<" not in reference and reference.partition(":")[0] != "__main__"


def metric(
    function: Callable[[pl.DataFrame], Any] | None = None,
    *,
    better: str = "higher",
    range: Sequence[float] | None = None,
) -> Any:
    """Make a metric of a function of the checked rows.

    The function receives one Polars frame with canonical columns (``datum_id``, ``actual``,
    ``predicted``, ...). Two tables are joined by datum; columns of the ground truths with a name
    that both have end in ``_truth``. It returns a frame with ``datum_id`` and ``value``, one row
    per datum; or with ``datum_id``, ``numerator`` and ``denominator`` for a ratio of sums.

    Args:
        better: the better direction: higher, lower or neither.
        range: smallest and largest possible value; None for any number.

    Example:
        >>> import polars as pl
        >>> import evalengine as ee
        >>> @ee.metric(better="higher", range=(0, 1))
        ... def agreement(rows):
        ...     same = pl.col("actual") == pl.col("predicted")
        ...     return rows.select("datum_id", value=same)
    """
    if better not in DIRECTIONS:
        raise OptionError(
            f"better={better!r}: write one of {', '.join(DIRECTIONS)}.",
            code="option_value",
            option="better",
            value=better,
        )
    low, high = (-math.inf, math.inf) if range is None else map(float, range)
    if not low < high:
        raise OptionError(
            f"range={range!r}: write the smallest and the largest value, such as (0, 1).",
            code="option_value",
            option="range",
        )

    def make(function: Callable[[pl.DataFrame], Any]) -> OwnMetric:
        return OwnMetric(function, better, (low, high))

    return make if function is None else make(function)


# Names in options: references, and entry points of installed packages.


@cache
def plugins(group: str) -> dict[str, Any]:
    """Return the entry points of a group of installed packages, without importing any."""
    from importlib.metadata import entry_points

    return {one.name: one for one in entry_points(group=f"evalengine.{group}")}


def loaded(group: str, name: str) -> Any:
    """Import an entry point and return its object.

    Raises:
        OptionError: plugins are refused.
    """
    refuse_plugins(name)
    return plugins(group)[name].load()


def refuse_plugins(name: str) -> None:
    """Raise OptionError if code of other packages is not to be run."""
    if os.environ.get(NO_PLUGINS, "") not in ("", "0"):
        raise OptionError(
            f"{name!r} is code of another package, which --no-plugins (or {NO_PLUGINS}=1) refuses.",
            code="plugins_refused",
            value=name,
        )


def split(
    names: Iterable[str] | None, is_builtin: Callable[[str], bool]
) -> tuple[tuple[str, ...] | None, tuple[OwnMetric, ...]]:
    """Separate own metrics from the names of built-in ones.

    Args:
        names: of the option ``metrics``.
        is_builtin: returns True for names of built-in metrics.
    """
    if names is None:
        return None, ()
    own = {name: checked for name in names if (checked := _find(name, is_builtin)) is not None}
    return tuple(name for name in names if name not in own), tuple(own.values())


def is_reference(name: str) -> bool:
    """Return whether a name has the form of a reference, or is one of this process."""
    return name in _OWN_METRICS or _REFERENCE.fullmatch(name) is not None


def is_plugin(name: str) -> bool:
    """Return whether a name is one of a metric of an installed package."""
    return name in plugins("metrics")


def names(metrics: Iterable[str]) -> list[str]:
    """Return the names of the numbers of references among names of metrics."""
    return [one.rpartition(":")[2].rpartition(".")[2] for one in metrics if is_reference(one)]


def look_in(folder: str, metrics: Iterable[str]) -> None:
    """Let modules of own metrics be imported from the folder of a job file.

    Raises:
        OptionError: the folder of another job of this process has such a module, too.
    """
    for name in metrics:
        top = name.partition(":")[0].partition(".")[0]
        if not _REFERENCE.fullmatch(name) or top == "__main__":
            continue
        spec = find_spec(top)
        if spec is None:
            _JOB_FOLDERS.add(folder)
            sys.path += [folder] * (folder not in sys.path)
            continue
        origin = Path(spec.origin or "")
        module = origin.parent if spec.submodule_search_locations else origin
        own_module = Path(folder) / module.name
        if str(module.parent) in _JOB_FOLDERS - {folder} and own_module.exists():
            raise OptionError(
                f"{option('metrics', [name])}: this process has already used {module}, so"
                f" {own_module} cannot be imported. Rename it, or run the job in a new process.",
                code="option_value",
                option="metrics",
                value=name,
            )


def _find(name: str, is_builtin: Callable[[str], bool]) -> OwnMetric | None:
    if name in _OWN_METRICS:
        return _OWN_METRICS[name]
    if is_builtin(name):
        return None
    if name in plugins("metrics"):
        return _checked(loaded("metrics", name), name)
    if not _REFERENCE.fullmatch(name):
        return None
    module, _, function = name.partition(":")
    here = os.getcwd()
    if here not in sys.path and find_spec(module.partition(".")[0]) is None:
        sys.path.append(here)  # as python -m does: a file next to the tables
    if find_spec(module.partition(".")[0]) is None:
        return None
    refuse_plugins(name)
    try:
        target: Any = importlib.import_module(module)
        for part in function.split("."):
            target = getattr(target, part)
    except (ImportError, AttributeError) as error:
        raise OptionError(
            f"{option('metrics', [name])}: {error}. An own metric is named by its module and"
            " function, and this process must be able to import it.",
            code="unknown_name",
            value=name,
        ) from error
    return _checked(target, name)


def _checked(value: Any, name: str) -> OwnMetric:
    if not isinstance(value, OwnMetric):
        raise OptionError(
            f"{option('metrics', [name])}: {type(value).__name__} is no metric. Decorate the"
            " function with @evalengine.metric.",
            code="option_value",
            option="metrics",
            value=name,
        )
    value.register()  # others made by the same function have its reference
    return value


def references() -> set[str]:
    """Return the references of this process."""
    return {*_OWN_METRICS}


def list_own_metrics() -> list[OwnMetric]:
    """Return the own metrics that this process has defined or imported."""
    return [*_OWN_METRICS.values()]


def refuse_workers(own: Iterable[OwnMetric], pool: str | None) -> None:
    """Refuse metrics that other processes cannot import."""
    for one in own:
        if pool not in (None, "threads") and not one.importable:
            raise OptionError(
                f"metric {one.name}: {option('executor', pool)} runs other processes, which cannot"
                f" import {one.reference}. Define the function at the top of a module.",
                code="option_unfit",
                option="executor",
                value=one.name,
            )


# Values of own metrics, of the checked rows of a run or of a bucket.

_MAX_ROWS = 2


def values_of(own: Sequence[OwnMetric], rows: pl.DataFrame) -> pl.DataFrame:
    """Return datum_id, metric, value (booleans if all are) and, with ratios, weight.

    Args:
        rows: of both sides, with ``datum_id``.

    Raises:
        InputError: a function raises, or returns something else.
    """
    ids = rows["datum_id"].unique()
    return pl.concat([_values(one, rows, ids) for one in own], how="diagonal_relaxed")


def _values(metric: OwnMetric, rows: pl.DataFrame, ids: pl.Series) -> pl.DataFrame:
    def refuse(why: str, error: BaseException | None = None) -> InputError:
        first = rows.head(_MAX_ROWS).to_dicts()
        problem = InputError(
            f"metric {metric.name} ({metric.reference}) {why}. First rows it was given: {first}.",
            code="own_metric_failed",
            metric=metric.name,
        )
        problem.__cause__ = error
        return problem

    try:
        result = metric(rows)
        if isinstance(result, pl.Expr):
            result = rows.group_by("datum_id", maintain_order=True).agg(value=result)
        if isinstance(result, pl.LazyFrame):
            result = result.collect()
    except (Exception, SystemExit) as error:
        raise refuse(f"raised {type(error).__name__}: {error}", error) from error
    if not isinstance(result, pl.DataFrame):
        raise refuse(f"returned {type(result).__name__} instead of a Polars frame")
    ratio = {"numerator", "denominator"} <= {*result.columns}
    columns = ["numerator", "denominator"] if ratio else ["value"]
    if not {"datum_id", *columns} <= {*result.columns}:
        raise refuse(
            f"returned the columns {', '.join(result.columns)} instead of datum_id and value, or"
            " datum_id, numerator and denominator"
        )
    for name in columns:
        dtype = result.schema[name]
        if not (dtype.is_numeric() or dtype in (pl.Boolean, pl.Null)):
            raise refuse(f"returned {dtype} in {name!r} instead of numbers")
    if result["datum_id"].dtype != ids.dtype:
        raise refuse(
            f"returned datum ids of dtype {result['datum_id'].dtype} instead of {ids.dtype}"
        )
    unknown = result["datum_id"].filter(~result["datum_id"].is_in(ids.implode()))
    if len(unknown) or result["datum_id"].null_count():
        raise refuse(
            f"returned datums that are not in the tables, such as {unknown.head(3).to_list()}"
        )
    if result["datum_id"].is_duplicated().any():
        raise refuse("returned several rows for one datum; return one value per datum")
    number = [pl.col(name).cast(pl.Float64).fill_nan(None) for name in columns]
    values = result.select("datum_id", *number)
    if values.select(pl.any_horizontal(pl.col(columns).is_infinite().any())).item():
        raise refuse("returned an infinite number")
    if ratio:
        if values.select((pl.col("denominator") < 0).any()).item():
            raise refuse("returned a negative denominator")
        lost = (pl.col("denominator") == 0) & (pl.col("numerator") != 0)
        if values.select(lost.any()).item():
            raise refuse("returned a numerator with a denominator of 0")
        value = pl.col("numerator") / pl.col("denominator")
        weight = pl.col("denominator").fill_null(0.0)
        none = pl.col("denominator") == 0
        values = values.select(
            "datum_id", value=pl.when(none).then(0.0).otherwise(value), weight=weight
        )
    else:
        low, high = metric.range
        beyond = values.filter((pl.col("value") < low) | (pl.col("value") > high))
        if beyond.height:
            raise refuse(f"returned {beyond['value'][0]!r}, outside of its range {metric.range}")
    if not ratio and result.schema["value"] == pl.Boolean:
        values = values.with_columns(pl.col("value").cast(pl.Boolean))
    return values.with_columns(metric=pl.lit(metric.name))
