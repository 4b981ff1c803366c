"""Summary of tallies as frames: every metric of every view, with intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
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
from ..tally.cells import Cells
from ..tasks.per_datum import FRAME as PER_DATUM
from ..tasks.per_datum import judged_frame
from ..tasks.task import Losses
from .frames import frame_of
from .plan import Plan

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
        self._room = tuning().group_cells

    def __iter__(self) -> Iterator[tuple[str | None, list[str], Any]]:
        yield None, [], self.whole
        plan, tallies = self._plan, self._tallies
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
    if last - first == n:  # all of them, in one view: nothing is masked and nothing copied
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
        wanted = [metric for metric in plan.metrics if metric.frame == name]
        labels = tallies.labels
        schema = frame_schema(
            name,
            label=tallies.labels.dtype,
            datum=tallies.datums.id_dtype,
            weighted=tallies.weighted,
            intervals=estimate is not None,
        )

        def of_view(
            column: str | None, names: list[str], view: Any
        ) -> list[tuple[tuple[str | None, int, int], pl.DataFrame]]:
            shared: dict[Any, Any] = {}
            computed = [
                (metric, plan.settings_of(metric), metric.compute(view, plan.settings_of(metric)))
                for metric in wanted
                if metric.compute is not None
            ]
            found = [cells for _, _, cells in computed]
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
        frame: pl.DataFrame = plan.does.own_frames(
            name, tallies, plan.settings, views.each, cuts=plan.cuts_of_needs
        )
        return frame

    filled = {metric.frame for metric in plan.metrics} | set(tallies.beside)
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
