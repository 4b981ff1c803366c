"""Intervals beside the numbers of a run: every number computed again in each draw of its datums."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from typing import Any

import msgspec
import numpy as np

from ..executors import Threads
from ..ingest.problems import Note, count_of
from ..metrics.registry import Metric
from ..plan.planner import Computed, Plan
from ..schemas.tuning import tuning
from ..schemas.wording import option
from ..tally.cells import Cells
from ..tally.draws import Draws, LeavingOut, OneByOne
from .asked import BY_THEORY, FEW_CLUSTERS, LEAST_DRAWS, Wanted
from .intervals import METHODS, Interval, Method, Sample, means

Array = np.ndarray[Any, Any]

_LEFT_OUT = 200  # clusters up to which each is left out alone; of more, as many groups of them


class Estimates:
    """Adds intervals to cells, and remembers what there is to tell of them.

    Args:
        plan: what was tallied.
        tallies: the task's.
        asked: what intervals.
        threads: blocks of draws are computed side by side.
    """

    def __init__(self, plan: Plan, tallies: Any, asked: Wanted, threads: Threads) -> None:
        self._plan = plan
        self._tallies = tallies
        self._asked = asked
        self._threads = threads
        self._lacking: list[float] = []  # of numbers, share of draws without a value
        self._without: list[str] = []  # why numbers have no interval
        self._still = 0  # numbers at the end of their range that no draw moves

    def notes(self) -> list[Note]:
        """What there is to tell of the intervals, once they are made."""
        notes = []
        n = None if self.clusters is None else self.clusters.size
        if n is not None and n < FEW_CLUSTERS and self._asked.method not in BY_THEORY:
            of = "" if self._asked.cluster is None else f" of {self._asked.cluster!r}"
            what = count_of(n, "cluster" if of else "datum") + of
            notes.append(
                Note(
                    "few_clusters",
                    f"intervals rest on {what}: of fewer than {FEW_CLUSTERS} they are often too"
                    " narrow.",
                )
            )
        for reason, how_many in Counter(self._without).items():
            notes.append(
                Note("no_interval", f"no interval of {count_of(how_many, 'number')}: {reason}.")
            )
        if self._lacking:
            notes.append(
                Note(
                    "draws_without_value",
                    f"{count_of(len(self._lacking), 'number')} had no value in some draws, in up to"
                    f" {max(self._lacking):.0%} of them, as rare labels have: intervals rest on the"
                    " others.",
                )
            )
        if self._still:
            notes.append(
                Note(
                    "interval_without_width",
                    f"{count_of(self._still, 'number')} at the end of the metric's range did not"
                    " move in any draw: an interval of no width does not say that they are sure."
                    f" {option('method', 'wilson')} has one of proportions.",
                )
            )
        return notes

    @property
    def _keys(self) -> Array | None:
        keys: Array | None = self._tallies.datums.keys
        return keys

    @cached_property
    def clusters(self) -> Array | None:
        """Keys of the clusters (or datums) there are to draw from, ascending; None of very many."""
        found = np.zeros(0, np.uint64)
        for keys in self._tallies.datums.key_blocks():
            found = np.union1d(found, keys[: _LEFT_OUT + 1])
            if found.size <= _LEFT_OUT:
                found = np.union1d(found, keys)
            if found.size > _LEFT_OUT:
                return None
        return found

    def __call__(self, view: Any, computed: Sequence[Computed]) -> list[list[Cells]]:
        """The cells of every metric with columns ``lower``, ``upper``, ``se``, ``bias``, ``draws``.

        Args:
            view: what the cells were computed from.
            computed: metrics, their settings and cells.
        """
        methods = [METHODS[self._asked.method or metric.interval] for metric, _, _ in computed]
        sizes = [sum(_places(one).size for one in cells) for _, _, cells in computed]
        drawn = self._values(view, computed, [m.draws for m in methods], sizes, self._blocks())
        out_of = self._values(
            view, computed, [m.leaves_out for m in methods], sizes, self._leaving_out()
        )
        return [
            self._with_intervals(view, *of_metric)
            for of_metric in zip(computed, methods, drawn, out_of, strict=True)
        ]

    # -- the numbers in every draw -------------------------------------------------------------

    def _blocks(self) -> Iterator[Draws]:
        n = len(self._keys) if self._keys is not None else 1
        sizes = tuning()
        each = min(sizes.draws_at_once, max(4, sizes.drawn_weights // max(n, 1) // 4 * 4))
        for first in range(0, self._asked.draws, each):
            last = min(first + each, self._asked.draws)
            yield Draws(self._asked.seed, first, last, self._keys)

    def _leaving_out(self) -> Iterator[Draws]:
        """Each cluster left out once, or parts of them where they are many."""
        n = _LEFT_OUT if self.clusters is None else self.clusters.size
        parts, each = LeavingOut(n, self.clusters), tuning().draws_at_once
        for first in range(0, n, each):
            yield Draws(0, first, min(first + each, n), self._keys, parts)

    def _values(
        self,
        view: Any,
        computed: Sequence[Computed],
        due: Sequence[bool],
        sizes: Sequence[int],
        blocks: Iterator[Draws],
    ) -> list[Array | str]:
        """Numbers of every metric in every draw, float64 [draws, n]; or why there are none."""
        which = [i for i, one in enumerate(due) if one]
        out: list[Array | str] = [np.zeros((0, size)) for size in sizes]
        if not which:
            return out
        every = list(blocks)
        n = sum(len(draws) for draws in every)
        for i in which:
            out[i] = _room(n, sizes[i])

        def of_block(draws: Draws, at: int) -> None:
            block = view.drawn(draws)
            for i in which:
                held = out[i]
                if isinstance(held, str):
                    continue
                metric, settings, cells = computed[i]
                try:
                    found = self._compute(metric, settings, view, block, draws)
                    held[at : at + len(draws)] = _flat(found, cells, len(draws))
                except _Unlike as error:
                    out[i] = str(error)

        begins = np.cumsum([0, *(len(draws) for draws in every[:-1])]).tolist()
        calls = [partial(of_block, draws, at) for draws, at in zip(every, begins, strict=True)]
        self._threads.each(calls)
        return out

    def _compute(
        self, metric: Metric, settings: Any, view: Any, block: Any, draws: Draws
    ) -> list[list[Cells]]:
        """Cells of a block of draws: of all at once, or else of one draw after the other."""
        assert metric.compute is not None
        try:
            return [metric.compute(block, settings)]
        except OneByOne:
            pass
        if draws.keys is None:
            raise _Unlike("not computed for draws of a run in bounded memory")
        return [
            metric.compute(
                self._plan.does.view(
                    self._tallies,
                    self._plan.settings,
                    view.group,
                    view.n_groups,
                    weights=draws.weights[:, d].astype(np.int64),
                ),
                settings,
            )
            for d in range(len(draws))
        ]

    # -- intervals -----------------------------------------------------------------------------

    def _with_intervals(
        self,
        view: Any,
        computed: Computed,
        method: Method,
        drawn: Array | str,
        left_out: Array | str,
    ) -> list[Cells]:
        metric, settings, every = computed
        variances = [np.array(np.nan)] * len(every)
        if metric.variance is not None and method is METHODS["delong"]:
            variances = metric.variance(view, settings)
        out, at = [], 0
        for cells, variance in zip(every, variances, strict=True):
            places = _places(cells)
            some = slice(at, at + places.size)
            at += places.size
            point = _column(cells, "value")[places]
            trials = (
                _column(cells, metric.trials)[places]
                if metric.trials is not None and not self._tallies.weighted
                else np.full(point.size, np.nan)
            )
            sample = Sample(
                point=point,
                level=self._asked.level,
                range=metric.range,
                drawn=np.zeros((0, point.size)) if isinstance(drawn, str) else drawn[:, some],
                left_out=np.zeros((0, point.size))
                if isinstance(left_out, str)
                else left_out[:, some],
                trials=trials,
                variance=np.broadcast_to(variance, cells.shape).reshape(-1)[places],
            )
            failed = drawn if isinstance(drawn, str) else left_out
            why = failed if isinstance(failed, str) else ""
            out.append(self._filled(cells, places, sample, method, why))
        return out

    def _filled(
        self, cells: Cells, places: Array, sample: Sample, method: Method, why: str
    ) -> Cells:
        """The cells with their intervals, and with a reason where there is none."""
        drawn = sample.drawn
        many = (~np.isnan(drawn)).sum(axis=0).astype(np.float64)
        nothing = np.full(sample.point.size, np.nan)
        found = method.make(sample) if not why else Interval(nothing, nothing, nothing)
        bias = means(drawn) - sample.point if drawn.shape[0] else nothing
        reasons = np.full(sample.point.size, "", object)
        bad = np.isnan(sample.point)
        if why:
            reasons[~bad] = why
        elif self.clusters is not None and self.clusters.size < 2:
            bad = np.ones_like(bad)
            reasons[sample.point == sample.point] = "one datum alone does not vary"
        elif drawn.shape[0]:
            few = (many < max(LEAST_DRAWS, drawn.shape[0] // 10)) & ~bad
            for i in np.flatnonzero(few):
                reasons[i] = f"only {many[i]:.0f} of {drawn.shape[0]:,} draws have a value"
            bad = bad | few
        lost = np.isnan(found.lower) & ~bad
        reasons[lost & (reasons == "")] = method.lacking or "it cannot be made of these draws"
        bad = bad | lost
        if drawn.shape[0] and not why:
            some = ~bad & (many < drawn.shape[0])
            self._lacking += (1 - many[some] / drawn.shape[0]).tolist()
            edge = (sample.point == sample.range[0]) | (sample.point == sample.range[1])
            self._still += int((~bad & edge & (found.lower == found.upper)).sum())
        self._without += [reason for reason in reasons.tolist() if reason]
        columns = {
            "lower": np.where(bad, np.nan, found.lower),
            "upper": np.where(bad, np.nan, found.upper),
            "se": np.where(bad, np.nan, found.se),
            "bias": np.where(bad, np.nan, bias),
            "draws": many if drawn.shape[0] else nothing,
        }
        full = {name: _spread(values, places, cells) for name, values in columns.items()}
        return msgspec.structs.replace(
            cells, columns={**cells.columns, **full}, **_reasons(cells, places, reasons)
        )


class _Unlike(Exception):
    """Draws cannot be held against the numbers; the message says why."""


def _places(cells: Cells) -> Array:
    """Which cells make rows, int64 [rows], places in the flat array."""
    if cells.keep is None:
        return np.arange(math.prod(cells.shape))
    keep = cells.keep.reshape(*[1] * (len(cells.shape) - cells.keep.ndim), *cells.keep.shape)
    return np.flatnonzero(np.broadcast_to(keep, cells.shape))


def _column(cells: Cells, name: str) -> Array:
    """A column of all cells, flat."""
    values: Any = cells.columns.get(name)
    whole = np.asarray(np.nan if values is None else values, np.float64)
    return np.broadcast_to(whole, cells.shape).reshape(-1)


def _flat(found: list[list[Cells]], cells: Sequence[Cells], n: int) -> Array:
    """Values of draws at the places of the numbers, float64 [draws, numbers].

    Args:
        found: cells of all draws at once, or of one after the other.
        cells: of the numbers.
        n: how many draws.
    """
    if any(len(some) != len(cells) for some in found):
        raise _Unlike("draws make other rows")
    parts = []
    for i, one in enumerate(cells):
        drawn = [some[i] for some in found]
        groups = one.shape[0]
        each = n // len(found)
        if any(d.shape != (each * groups, *one.shape[1:]) for d in drawn):
            raise _Unlike("draws make other rows")
        values = np.concatenate([_column(d, "value").reshape(each, -1) for d in drawn])
        parts.append(values[:, _places(one)])
    return np.concatenate(parts, axis=1)


def _room(draws: int, numbers: int) -> Array:
    """Room for the numbers of all draws: in memory, or beyond some size in a file that is gone
    when the process is."""
    shape = (draws, numbers)
    if draws * numbers * 8 <= tuning().drawn_bytes:
        return np.full(shape, np.nan)
    with tempfile.TemporaryFile() as file:
        held: Array = np.memmap(file, np.float64, "w+", shape=shape)
    held[:] = np.nan
    return held


def _spread(values: Array, places: Array, cells: Cells) -> Array:
    out = np.full(math.prod(cells.shape), np.nan)
    out[places] = values
    return out.reshape(cells.shape)


def _reasons(cells: Cells, places: Array, reasons: Array) -> dict[str, Any]:
    """The reasons of undefined values, and beside defined ones why there is no interval."""
    if not (reasons != "").any():
        return {}
    own = cells.reason
    words = np.array(
        np.broadcast_to(np.asarray("" if own is None else own, object), cells.shape)
    ).reshape(-1)
    if not cells.always:
        words[~np.isnan(_column(cells, "value"))] = ""
    said = [f"no interval: {reason}" if reason else "" for reason in reasons]
    words[places] = [old or new for old, new in zip(words[places].tolist(), said, strict=True)]
    return {"reason": words.reshape(cells.shape), "always": True}
