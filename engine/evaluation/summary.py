"""Frames computed from tallies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, islice
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np
import polars as pl

from ..executors import Threads
from ..ingest.problems import Note
from ..metrics import Metric
from ..schemas.errors import ResultError
from ..schemas.results import FRAMES, frame_schema
from ..schemas.tuning import tuning
from ..scorecard.storage import Paged
from ..tallies.datums import Cells, Labels
from ..tasks.per_datum import FRAME as PER_DATUM
from ..tasks.per_datum import judged_frame
from ..tasks.task import Losses
from .planner import Plan

# Cells to frames: codes become labels, groups become slice values, NaN becomes null.


Rows = tuple[int, dict[str, Any]]
"""Number of rows; column -> array, constant, or pair of values and the place of each row's."""


def label_axes(labels: Labels) -> dict[str, dict[str, Any]]:
    """Return axis of label codes -> column -> its values by code, for :func:`rows_of`."""
    frame = labels.frame
    return {
        "label": {"label_key": frame["label_key"], "label_value": frame["label_value"]},
        "key": {"label_key": labels.key_names},
    }


def rows_of(
    metric: Metric,
    cells: Cells,
    axes: Mapping[str, Mapping[str, Any]],
    schema: Collection[str],
    slice_name: str | None,
    shared: dict[Any, Rows],
) -> Rows:
    """Return rows of the ``metrics`` or ``curves`` frame from one array of cells.

    Args:
        axes: axis of codes -> column -> its values by code.
        schema: columns of the frame; the first is that of the metric.
        slice_name: the slice column, None for the whole set.
        shared: cache of the columns of axes, by :attr:`Cells.place`: most metrics share a grid.
    """
    place = cells.place
    if place not in shared:
        index = cells.index()
        by_axis = {
            column: (values, codes)
            for axis, codes in index.items()
            for column, values in (axes.get(axis) or {axis: cells.values.get(axis)}).items()
            if values is not None
        }
        shared[place] = next(iter(index.values())).size, by_axis
    height, by_axis = shared[place]
    arrays = cells.rows()
    name = next(iter(schema))
    columns = {name: metric.name, "slice": slice_name, **cells.columns, **by_axis, **arrays}
    if cells.reason is not None and "reason" in schema:
        blank = np.isnan(arrays["value"])
        if "reason" not in arrays:
            columns["reason"] = [None, cells.reason], blank.astype(np.uint32)
        else:  # most are null, and strings are slow
            reason = arrays["reason"]
            blank = reason != "" if cells.always else blank
            columns["reason"] = [None, *reason[blank].tolist()], np.cumsum(blank) * blank
    return height, columns


def frame_of(parts: Sequence[Rows], schema: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Concatenate rows, column by column: frames of all parts would take longer than the numbers.

    NaN, and columns that a part does not have, become null.
    """
    filled: defaultdict[str, list[_Filled]] = defaultdict(list)
    part_of_row = np.repeat(np.arange(len(parts)), [*map(itemgetter(0), parts)])
    height = part_of_row.size
    last = 0
    for i, (rows, columns) in enumerate(parts):
        first, last = last, last + rows
        if rows:
            for name, value in columns.items():
                if value is not None:
                    filled[name].append((value, i, first, last))
    of_part = pl.Series(part_of_row.astype(np.uint32))
    frame = []
    for name, dtype in schema.items():
        some = filled[name]
        kinds = {*map(type, map(itemgetter(0), some))}
        if not some:
            series = _null(dtype).new_from_index(0, height)
        elif isinstance(dtype, pl.Float64):
            numbers = np.full(height, np.nan)
            for value, _, first, last in some:
                if isinstance(value, tuple):
                    value = np.asarray(value[0], np.float64)[value[1]]
                numbers[first:last] = value
            series = pl.Series(numbers, nan_to_null=True)
        elif kinds.isdisjoint((tuple, np.ndarray)):
            constants: list[Any] = [None] * len(parts)
            for value, i, _, _ in some:
                constants[i] = value
            series = pl.Series(constants, dtype=dtype)[of_part]
        else:
            series = _gather(some, height, dtype)
        frame.append(series.alias(name))
    return pl.DataFrame(frame)


_Filled = tuple[Any, int, int, int]
"""Column of a part, number of the part, its first row and the row after it."""


@cache
def _null(dtype: pl.DataType) -> pl.Series:
    """One null."""
    return pl.Series([None], dtype=dtype)


def _gather(filled: Sequence[_Filled], height: int, dtype: pl.DataType) -> pl.Series:
    """Return a column whose rows are taken from the values of all parts, by ``[]``.

    Polars turns ``gather`` into a query, which takes twenty times as long for few rows.
    """
    pool: list[list[Any] | pl.Series] = [[None]]  # plain values of several parts in one list
    size = 1
    pooled: dict[int, tuple[int, Any]] = {}  # identity of values -> place of the first, values
    arrays: defaultdict[Any, list[tuple[Any, int, int]]] = defaultdict(list)  # by dtype
    places = np.zeros(height, np.uint32)
    for value, _, first, last in filled:
        if isinstance(value, np.ndarray):
            arrays[value.dtype].append((value, first, last))
            continue
        values, codes = value if isinstance(value, tuple) else ((value,), 0)
        if id(values) not in pooled:
            pooled[id(values)] = size, values
            size += len(values)
            if isinstance(values, (pl.Series, np.ndarray)):
                column = values if isinstance(values, pl.Series) else pl.Series(values, dtype=dtype)
                pool.append(column if column.dtype == dtype else column.cast(dtype))
            elif isinstance(pool[-1], list):
                pool[-1].extend(values)
            else:
                pool.append([*values])
        places[first:last] = codes + pooled[id(values)][0]
    for kind, some in arrays.items():
        every = np.concatenate([*map(itemgetter(0), some)])
        column = pl.Series(every, nan_to_null=kind.kind == "f").cast(dtype)
        if every.size == height:
            return column
        pool.append(column)
        for _, first, last in some:
            places[first:last] = np.arange(size, size + last - first)
            size += last - first
    series = [pl.Series(one, dtype=dtype) if isinstance(one, list) else one for one in pool]
    return pl.concat(series, rechunk=True)[pl.Series(places)]


# Summary of tallies as frames: every metric of every view, with intervals.

R = TypeVar("R")

_CELL_FRAMES = ("metrics", "curves")

Computed = tuple[Metric, Any, list[Cells]]
"""A metric, the settings it was computed with, and its numbers."""


class Estimate(Protocol):
    """Adds intervals to the numbers of views."""

    def __call__(
        self, view: Any, computed: Sequence[Computed], place: tuple[str | None, ...] = ...
    ) -> list[list[Cells]]:
        """Return the cells of every metric, computed from the view, with intervals.

        Args:
            place: slice column and first slice of the view, which identify it.
        """

    def notes(self) -> list[Note]:
        """Return notes on the intervals."""


class Tallied(msgspec.Struct, frozen=True):
    """Tallied run before summarising.

    Attributes:
        own: values of own metrics, as a run of the task values.
    """

    plan: Plan
    tallies: Any
    threads: Threads
    own: Tallied | None = None


class Result(msgspec.Struct, kw_only=True):
    """Frames and facts of a run, from which its scorecard is made.

    Attributes:
        frames: name -> maker of the output frame.
        n_datums: number of datums.
        rows: table -> number of rows.
        recognised: table -> column name in the input -> canonical name.
        sources: table -> origin.
        seconds: step -> seconds, of all workers.
        facts: further content of ``run.json``, or functions that return it.
        page: frames of the report of a run in bounded memory; otherwise None.
        view: view of the whole set, if rows are in memory.
        tallied: the tally, if it is in memory.
        values: of own metrics, with the slices of their datums, or a file of them.
        datums: ids and slice columns, as text, if human labels need them and the tally is on disk.
        content: returns the digest of each table; empty if unknown.
    """

    plan: Plan
    frames: dict[str, Callable[[], pl.DataFrame]]
    labels: pl.DataFrame
    notes: list[Note]
    n_datums: int
    rows: dict[str, int] = {}
    recognised: dict[str, dict[str, str]] = {}
    sources: dict[str, str] = {}
    seconds: dict[str, float] = {}
    facts: dict[str, Any] = {}
    page: Paged | None = None
    view: Any = None
    tallied: Tallied | None = None
    values: pl.DataFrame | Path | None = None
    datums: pl.DataFrame | None = None
    content: Callable[[], Mapping[str, str]] = dict


class _Views:
    """Views of a tally: the whole set, then every slice column in chunks of groups.

    The view of the whole set is cached, since several frames use it, and so are slices while they
    are few; many are processed chunk by chunk to free their intermediate results.
    """

    def __init__(
        self, plan: Plan, tallies: Any, weights: Any, threads: Threads, within: Any = None
    ) -> None:
        self._plan = plan
        self._tallies = tallies
        self._threads = threads
        self._within = within
        self._make = partial(
            plan.does.view, tallies, plan.settings, weights=weights, threads=threads
        )
        some = None if within is None else np.where(within, 0, -1).astype(np.int32)
        self.whole = self._make(some)
        self._cached: dict[tuple[str, int], Any] = {}
        self._room: int | None = None

    def __iter__(self) -> Iterator[tuple[str | None, list[str], Any]]:
        yield None, [], self.whole
        plan, tallies = self._plan, self._tallies
        if not plan.options.by:
            return
        if self._room is None:
            self._room = tuning().group_cells
        n_labels = len(tallies.labels)
        cells = max(1, plan.does.cells_per_group(n_labels, plan.settings, plan.needs))
        each = max(1, tuning().group_cells // cells)
        for column in dict.fromkeys(plan.options.by):
            group, names = tallies.datums.groups(column)
            if self._within is not None:
                group = np.where(self._within, group, -1).astype(np.int32)
            for first in range(0, len(names), each):
                last = min(first + each, len(names))
                if (column, first) in self._cached:
                    yield column, names[first:last], self._cached[column, first]
                    continue
                view = self._make(_codes_within(group, first, last, len(names)), last - first)
                if (last - first) * cells <= self._room:
                    self._room -= (last - first) * cells
                    self._cached[column, first] = view
                yield column, names[first:last], view

    def each(self, function: Callable[[str | None, list[str], Any], R]) -> list[R]:
        """Call it with column, groups and view of each; as many at once as there are threads."""
        rest = iter(self)
        results: list[R] = []
        while some := list(islice(rest, self._threads.workers)):
            results += self._threads.each([partial(function, *one) for one in some])
        return results


def _codes_within(group: Any, first: int, last: int, n: int) -> Any:
    """Return codes of the groups from ``first`` to below ``last``, counted from 0, -1 for others.

    Args:
        group: int32 [n_datums], codes of all ``n`` groups, -1 for none; or files of them.
    """
    if last - first == n:  # all of them: one view without masks or copies
        return group
    if not isinstance(group, np.ndarray):  # in files
        return group.within(first, last)
    inside = (group >= first) & (group < last)
    return np.where(inside, group - first, -1).astype(np.int32)


def summarise(
    plan: Plan,
    tallies: Any,
    weights: Any = None,
    threads: Threads | None = None,
    estimate: Estimate | None = None,
    within: Any = None,
) -> tuple[Mapping[str, Callable[[], pl.DataFrame]], Any]:
    """Return lazy makers of frames from tallies.

    Args:
        weights: int64 [n_datums], multiplicity of each datum (one bootstrap resample), or None.
        threads: for the makers, too; one thread if None.
        estimate: adds intervals to the numbers of ``metrics``.
        within: bool [n_datums], the datums that count; None for all.

    Returns:
        a maker for every frame the metrics fill; the view of the whole set.
    """
    threads = threads or Threads(1)
    views = _Views(plan, tallies, weights, threads, within)

    def cells_frame(name: str) -> pl.DataFrame:
        labels = tallies.labels
        schema = frame_schema(
            name,
            label=labels.dtype,
            datum=tallies.datums.id_dtype,
            weighted=tallies.weighted,
            intervals=estimate is not None,
        )

        coded = label_axes(labels)

        def of_view(
            column: str | None, names: list[str], view: Any
        ) -> list[tuple[tuple[str | None, int, int], Rows]]:
            shared: dict[Any, Rows] = {}
            computed: list[Computed] = []
            for metric in plan.metrics:
                if metric.frame == name and metric.compute is not None:
                    settings = plan.settings_of(metric)
                    computed.append((metric, settings, metric.compute(view, settings)))
            estimated = [*map(itemgetter(2), computed)]
            if estimate is not None and name == "metrics":
                estimated = estimate(view, computed, (column, *names[:1]))
            axes = coded if column is None else {**coded, "group": {"slice_value": names}}
            return [
                ((column, m, c), rows_of(one[0], cells, axes, schema, column, shared))
                for m, (one, every) in enumerate(zip(computed, estimated, strict=True))
                for c, cells in enumerate(every)
            ]

        # Keyed by slice column, metric and cells, so that the result does not depend on chunks.
        parts: dict[tuple[str | None, int, int], list[Rows]] = {}
        for part in views.each(of_view):
            for place, rows in part:
                parts.setdefault(place, []).append(rows)
        return frame_of([*chain.from_iterable(parts.values())], schema)

    def own_frame(name: str) -> pl.DataFrame:
        if name == PER_DATUM and name not in tallies.beside:
            return _judged(plan, tallies)
        return plan.does.own_frames(
            name, tallies, plan.settings, views.each, cuts=plan.cuts_of_needs
        )

    filled = {*map(attrgetter("frame"), plan.metrics), *tallies.beside}
    makers = {
        name: partial(cells_frame if name in _CELL_FRAMES else own_frame, name)
        for name in FRAMES
        if name in filled or name in _CELL_FRAMES
    }
    return makers, views.whole


def judged_of(plan: Plan, tallies: Any) -> Any:
    """Return tallies from which losses per datum can be computed: those in files get their ids."""
    in_parts = plan.does.in_parts
    if in_parts is None or in_parts.judged is None:
        return tallies
    return in_parts.judged(tallies, plan.settings)


def losses_of(plan: Plan, tallies: Any) -> Losses | str:
    """Return the losses per datum of tallies from :func:`judged_of`, or the reason for their
    absence.
    """
    return plan.does.losses(
        tallies, plan.settings, plan.metrics, plan.dialect, cuts=plan.cuts_of_needs
    )


def _judged(plan: Plan, tallies: Any) -> pl.DataFrame:
    """Return the frame of losses per datum, for tasks that have no row per datum."""
    tallies = judged_of(plan, tallies)
    losses = losses_of(plan, tallies)
    if isinstance(losses, str):
        raise ResultError(f"single datums cannot be judged: {losses}.")
    return judged_frame(losses, tallies.datums)
