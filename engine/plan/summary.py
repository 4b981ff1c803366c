"""Frames computed from tallies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from operator import attrgetter, itemgetter
from typing import Any, Protocol, TypeVar

import msgspec
import numpy as np
import polars as pl

from ..executors import Threads
from ..ingest.problems import Note
from ..metrics import Metric
from ..schemas.arrays import Array
from ..schemas.errors import ResultError
from ..schemas.results import FRAMES, frame_schema
from ..schemas.tuning import tuning
from ..scorecard.storage import Paged
from ..tally.cells import Cells
from ..tally.datums import Labels
from ..tasks.per_datum import FRAME as PER_DATUM
from ..tasks.per_datum import judged_frame
from ..tasks.task import Losses
from .planner import Plan

# Cells to frames: codes become labels, groups become slice values, NaN becomes null.


def _looked_up(
    cells: Cells,
    labels: Labels,
    schema: dict[str, pl.DataType],
    slice_name: str | None,
    groups: list[str],
) -> dict[str, pl.Series]:
    """Return the label and group columns of rows, from their positions on the axes.

    Rows are taken by ``[]``: Polars turns ``gather`` into a query, which takes twenty times as long
    for few rows.
    """
    made: dict[str, pl.Series] = {}
    for axis, at in cells.index().items():
        index = pl.Series(at)
        if axis == "group":
            if slice_name is not None:
                made["slice_value"] = pl.Series(groups, dtype=pl.String)[index]
        elif axis == "label":
            for column in ("label_key", "label_value"):
                made[column] = labels.frame[column][index]
        elif axis == "key":
            made["label_key"] = pl.Series(labels.key_names, dtype=pl.String)[index]
        elif axis in cells.values:
            made[axis] = pl.Series(list(cells.values[axis]), dtype=schema[axis])[index]
    return {key: _fitted(made[key], key, dtype) for key, dtype in schema.items() if key in made}


def _fitted(column: pl.Series, name: str, dtype: pl.DataType) -> pl.Series:
    """A column under its name, with its dtype."""
    return (column if column.dtype == dtype else column.cast(dtype)).alias(name)


def _words(reason: Array, shown: Array) -> pl.Series:
    """Return reasons for the rows in ``shown``, null for others; most are null, and strings are
    slow.

    Args:
        reason: str [n].
        shown: bool [n].
    """
    words = pl.Series([None, *reason[shown].tolist()], dtype=pl.String)
    place = np.zeros(reason.size, np.uint32)
    place[shown] = np.arange(1, len(words), dtype=np.uint32)
    return words[pl.Series(place)]


def frame_of(
    metric: Metric,
    cells: Cells,
    labels: Labels,
    schema: dict[str, pl.DataType],
    slice_name: str | None,
    groups: list[str],
    shared: dict[tuple[Any, ...], dict[str, pl.Series]],
) -> pl.DataFrame:
    """Build rows of the ``metrics`` or ``curves`` frame from one array of cells.

    Args:
        slice_name: the slice column, None for the whole set.
        shared: cache of axis columns for the same frame, slice column and groups, by
            :attr:`Cells.place`: most metrics share a grid, and these columns are the bulk of the
            work.
    """
    place = cells.place
    if place not in shared:
        shared[place] = _looked_up(cells, labels, schema, slice_name, groups)
    made = dict(shared[place])
    found = cells.rows()
    for key, value in found.items():
        if key in schema:
            column = (
                _words(value, (value != "") if cells.always else np.isnan(found["value"]))
                if key == "reason"
                else pl.Series(value, nan_to_null=value.dtype.kind == "f")
            )
            made[key] = _fitted(column, key, schema[key])
    height = len(made["value"]) if "value" in made else len(next(iter(made.values())))
    constants = {next(iter(schema)): metric.name, "slice": slice_name, **cells.columns}
    same = shared.setdefault(("constants", height), {})

    # Series by series: for small frames, one expression per column costs more than the data.
    columns: list[pl.Series] = []
    for key, dtype in schema.items():
        constant = constants.get(key)
        if key in made:
            series = made[key]
        elif key == "reason" and cells.reason is not None and made["value"].null_count():
            words = pl.Series(key, [None, cells.reason], dtype=dtype)
            series = words[pl.Series(np.isnan(found["value"]).astype(np.uint32))]
        elif constant is None and key in same:  # most columns of most frames
            series = same[key]
        else:
            series = pl.Series(key, [constant], dtype=dtype).new_from_index(0, height)
            if constant is None:
                same[key] = series
        columns.append(series)
    return pl.DataFrame(columns)


# Summary of tallies as frames: every metric of every view, with intervals.

R = TypeVar("R")

_CELL_FRAMES = ("metrics", "curves")

Computed = tuple[Metric, Any, list[Cells]]
"""A metric, the settings it was computed with, and its numbers."""


class Estimate(Protocol):
    """Adds intervals to the numbers of views."""

    def __call__(self, view: Any, computed: Sequence[Computed]) -> list[list[Cells]]:
        """Return the cells of every metric, computed from the view, with intervals."""

    def notes(self) -> list[Note]:
        """Return notes on the intervals."""


class Tallied(msgspec.Struct, frozen=True):
    """Tallied run before summarising."""

    plan: Plan
    tallies: Any
    threads: Threads


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
        self._kept: dict[tuple[str, int], Any] = {}
        self._room: int | None = None

    def __iter__(self) -> Iterator[tuple[str | None, list[str], Any]]:
        yield None, [], self.whole
        plan, tallies = self._plan, self._tallies
        if not plan.options.by:
            return
        if self._room is None:
            self._room = tuning().group_cells
        cells = max(1, plan.does.cells_per_group(tallies, plan.settings))
        each = max(1, tuning().group_cells // cells)
        for column in dict.fromkeys(plan.options.by):
            group, names = tallies.datums.groups(column)
            if self._within is not None:
                group = np.where(self._within, group, -1).astype(np.int32)
            for first in range(0, len(names), each):
                last = min(first + each, len(names))
                if (column, first) in self._kept:
                    yield column, names[first:last], self._kept[column, first]
                    continue
                view = self._make(_codes_within(group, first, last, len(names)), last - first)
                if (last - first) * cells <= self._room:
                    self._room -= (last - first) * cells
                    self._kept[column, first] = view
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

        def of_view(
            column: str | None, names: list[str], view: Any
        ) -> list[tuple[tuple[str | None, int, int], pl.DataFrame]]:
            shared: dict[Any, Any] = {}
            computed: list[Computed] = []
            for metric in plan.metrics:
                if metric.frame == name and metric.compute is not None:
                    settings = plan.settings_of(metric)
                    computed.append((metric, settings, metric.compute(view, settings)))
            found = [*map(itemgetter(2), computed)]
            if estimate is not None and name == "metrics":
                found = estimate(view, computed)
            return [
                ((column, m, c), frame_of(one[0], cells, labels, schema, column, names, shared))
                for m, (one, every) in enumerate(zip(computed, found, strict=True))
                for c, cells in enumerate(every)
            ]

        # Keyed by slice column, metric and cells, so that the result does not depend on chunks.
        frames: dict[tuple[str | None, int, int], list[pl.DataFrame]] = {}
        for made in views.each(of_view):
            for place, frame in made:
                frames.setdefault(place, []).append(frame)
        filled = [part for parts in frames.values() for part in parts if part.height]
        if not filled:
            return pl.DataFrame(schema=schema)
        return pl.concat(filled)

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
