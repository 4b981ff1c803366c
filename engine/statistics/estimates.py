"""Bootstrap intervals of a run: every number recomputed in each resample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from ..executors import Threads
from ..ingest.problems import Note, count_of
from ..metrics.label_averages import TRIALS
from ..plan.planner import Plan
from ..plan.summary import Computed
from ..schemas.arrays import Array
from ..schemas.intervals import BY_THEORY, FEW_CLUSTERS, LEAST_DRAWS, Wanted
from ..tally.cells import Cells
from .drawn import Drawing, column_of, does_not_vary, of_rows, places, spread
from .intervals import METHODS, WIDTHLESS, Interval, Method, Sample, floor_of, means, wilson

NOT_MOVED = "no draw moves the number"
"""Reason why a number has no interval."""


class Estimates:
    """Adds intervals to cells and collects notes on them.

    Args:
        asked: interval options.
        threads: blocks of resamples run in parallel.
    """

    def __init__(self, plan: Plan, tallies: Any, asked: Wanted, threads: Threads) -> None:
        self._drawing = Drawing(plan, tallies, threads)
        self._asked = asked
        self._only_wilson: bool | None = None  # which is right for few datums, too
        self._lacking: list[float] = []  # of numbers, share of draws without a value
        self._without: list[str] = []  # why numbers have no interval

    def notes(self) -> list[Note]:
        """List notes on the intervals, once they are made."""
        notes = []
        n = None if self._drawing.clusters is None else self._drawing.clusters.size
        fits = self._asked.method in BY_THEORY or self._only_wilson
        if n is not None and n < FEW_CLUSTERS and not fits:
            of = "" if self._asked.cluster is None else f" of {self._asked.cluster!r}"
            what = count_of(n, "cluster" if of else "datum") + of
            notes.append(
                Note(
                    "few_clusters",
                    f"intervals rest on {what}; with fewer than {FEW_CLUSTERS} they are often"
                    f" too narrow.",
                )
            )
        for reason, how_many in Counter(self._without).items():
            notes.append(
                Note("no_interval", f"no interval for {count_of(how_many, 'number')}: {reason}.")
            )
        if self._lacking:
            few = n is not None and n < FEW_CLUSTERS
            why = "a draw may take none of so few" if few else "labels are rare or slices small"
            most = max(self._lacking)
            share = f"up to {most:.0%}" if most >= 0.01 else "less than 1%"
            notes.append(
                Note(
                    "draws_without_value",
                    f"{count_of(len(self._lacking), 'number')} had no value in some draws"
                    f" ({share} of them), as {why}: intervals rest on the others.",
                )
            )
        return notes

    def __call__(self, view: Any, computed: Sequence[Computed]) -> list[list[Cells]]:
        """Return cells with columns ``lower``, ``upper``, ``se``, ``bias``, ``draws``.

        Args:
            computed: metrics, their settings and cells.
        """
        methods = [METHODS[self._asked.method or metric.interval] for metric, _, _ in computed]
        drawing, asked = self._drawing, self._asked
        by_chance = drawing.by_chance(computed, asked.draws, asked.seed)
        drawn = drawing.values(view, computed, by_chance, [m.draws for m in methods])
        out_of = drawing.values(
            view, computed, drawing.leaving_out(computed), [m.leaves_out for m in methods]
        )
        return [
            self._with_intervals(view, *of_metric)
            for of_metric in zip(computed, methods, drawn, out_of, strict=True)
        ]

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
        alone = self._drawing.alone(view)
        for cells, variance in zip(every, variances, strict=True):
            where = places(cells)
            some = slice(at, at + where.size)
            at += where.size
            point = column_of(cells, "value")[where]
            independent = not self._drawing.tallies.weighted and self._asked.cluster is None
            trials = (
                column_of(cells, metric.trials)[where]
                if metric.trials is not None and independent
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
                variance=np.broadcast_to(variance, cells.shape).reshape(-1)[where],
            )
            failed = drawn if isinstance(drawn, str) else left_out
            why = failed if isinstance(failed, str) else ""
            out.append(self._filled(cells, where, sample, method, why, of_rows(alone, cells)))
        return out

    def _filled(
        self, cells: Cells, where: Array, sample: Sample, method: Method, why: str, single: Array
    ) -> Cells:
        """Add the interval columns, and a reason for each missing interval.

        ``single`` is bool [rows]: numbers of one cluster, or of one datum.
        """
        drawn = sample.drawn
        many = (~np.isnan(drawn)).sum(axis=0).astype(np.float64)
        nothing = np.full(sample.point.size, np.nan)
        found = method.make(sample) if not why else Interval(nothing, nothing, nothing)
        share = sample.trials > 0
        size = np.maximum(floor_of(sample.range), np.abs(sample.point))
        flat = found.upper - found.lower <= WIDTHLESS * size
        by_count = share & (flat | (self._asked.method in (None, "wilson")))
        if by_count.any():
            pairs = zip(wilson(sample), found, strict=True)
            found = Interval(*(np.where(by_count, one, other) for one, other in pairs))
        bias = means(drawn) - sample.point if drawn.shape[0] else nothing
        reasons = np.full(sample.point.size, "", object)
        bad = np.isnan(sample.point)
        if why:
            reasons[~bad & ~by_count] = why
        elif drawn.shape[0]:
            few = (many < max(LEAST_DRAWS, drawn.shape[0] // 10)) & ~bad & ~by_count
            for i in np.flatnonzero(few):
                reasons[i] = f"only {many[i]:.0f} of {drawn.shape[0]:,} draws have a value"
            bad = bad | few
        alone = single & ~np.isnan(sample.point) & (by_count | (not why))
        reasons[alone] = does_not_vary(self._asked.cluster)
        bad = bad | alone
        flat &= ~by_count & ~bad
        reasons[flat] = NOT_MOVED
        bad = bad | flat
        lost = np.isnan(found.lower) & ~bad
        reasons[lost & (reasons == "")] = method.lacking or "it cannot be made of these draws"
        bad = bad | lost
        if drawn.shape[0] and not why:
            some = ~bad & ~by_count & (many < drawn.shape[0])
            self._lacking += (1 - many[some] / drawn.shape[0]).tolist()
        if not bad.all():
            self._only_wilson = self._only_wilson is not False and bool(by_count[~bad].all())
        self._without += [reason for reason in reasons.tolist() if reason]
        columns = {
            "lower": np.where(bad, np.nan, found.lower),
            "upper": np.where(bad, np.nan, found.upper),
            "se": np.where(bad, np.nan, found.se),
            "bias": np.where(bad, np.nan, bias),
            "draws": many if drawn.shape[0] else nothing,
            TRIALS: np.where(by_count & ~bad, sample.trials, np.nan),
        }
        full = {name: spread(values, where, cells) for name, values in columns.items()}
        return msgspec.structs.replace(
            cells, columns={**cells.columns, **full}, **_reasons(cells, where, reasons)
        )


def _reasons(cells: Cells, where: Array, reasons: Array) -> dict[str, Any]:
    """Return reasons: of undefined values, and of missing intervals for defined ones."""
    if not (reasons != "").any():
        return {}
    own = cells.reason
    words = np.array(
        np.broadcast_to(np.asarray("" if own is None else own, object), cells.shape)
    ).reshape(-1)
    if not cells.always:
        words[~np.isnan(column_of(cells, "value"))] = ""
    said = [f"no interval: {reason}" if reason else "" for reason in reasons]
    words[where] = [old or new for old, new in zip(words[where].tolist(), said, strict=True)]
    return {"reason": words.reshape(cells.shape), "always": True}
