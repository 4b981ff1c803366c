"""View of units and scored labels whose parts are on disk.

Every part has all rows of its datums. Counts and sums are accumulated exactly over parts, so that
their order does not matter; sorted scores of the parts are merged into one run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from ..kernels.draw_weights import PER_WORD, draw_weights
from ..schemas.arrays import Array
from .datums import Labels, keys_as_labels
from .draws import Draws
from .parts import PartGroups, Parts
from .registry import stored_as
from .runs import merge_runs, points_in_blocks
from .scored_view import ScoredView
from .sorted_scores import N_OUTCOMES, Points, Sorted
from .units import Scored, Units


@stored_as("bucket.scores/1")
class ScoredRows(msgspec.Struct, frozen=True):
    """The rows of one part.

    Attributes:
        scored: its scored labels, or None without scores.
    """

    units: Units
    scored: Scored | None


class PartsView(ScoredView):
    """View of a tally in parts.

    Args:
        parts: the files.
        units: units without rows.
        scored: scored labels without rows; None without scores.
        group: group of every datum; None for a single group.
        weighted: use the units' weights, if any.
        **more: see :class:`ScoredView`.
    """

    def __init__(
        self,
        parts: Parts,
        units: Units,
        scored: Scored | None,
        labels: Labels,
        *,
        group: PartGroups | None = None,
        weighted: bool = True,
        **more: Any,
    ) -> None:
        self._weighs = weighted and units.weight is not None
        if not self._weighs:
            units = msgspec.structs.replace(units, weight=None)
        super().__init__(units, scored, labels, **more)
        self.refuse_draws()
        self._parts = parts
        self._groups = group
        self._more = {k: v for k, v in more.items() if k != "weights"}

    def blocks(self) -> Iterator[ScoredView]:
        """Views of the parts."""
        for view, _ in self.keyed_blocks():
            yield view

    def keyed_blocks(self) -> Iterator[tuple[ScoredView, Array | None]]:
        """Views of the parts, and the keys of their datums."""
        for part in self._parts:
            rows: ScoredRows = part.rows
            units = rows.units
            if not self._weighs:
                units = msgspec.structs.replace(units, weight=None)
            group = None if self._groups is None else self._groups.of(part)
            view = ScoredView(units, rows.scored, self.labels, group=group, **self._more)
            view.whole_rows = self._parts.scores
            yield view, part.keys

    def whole_datums(self) -> Iterator[tuple[Any, ScoredView]]:
        """The tally of each part, with its datums, and its view."""
        yield from zip(self._parts.shown(), self.blocks(), strict=True)

    @cached_property
    def plain(self) -> ScoredView:
        if not self._weighs or all(np.all(few.units.weight) for few in self.blocks()):
            return self
        return PartsView(
            self._parts,
            self.units,
            self.scored,
            self.labels,
            group=self._groups,
            weighted=False,
            **self._more,
        )

    # -- units ---------------------------------------------------------------------------------

    @cached_property
    def _known_and_judged(self) -> tuple[int, int]:
        known, judged = zip((0, 0), *(few._known_and_judged for few in self.blocks()), strict=True)
        return sum(known), sum(judged)

    @cached_property
    def _all_true(self) -> bool:
        found = [few._all_true for few in self.blocks() if len(few.units)]
        return bool(found) and all(found)

    @cached_property
    def _one_unit_each(self) -> bool:
        return all(few.units.datum is None for few in self.blocks())

    # -- scored labels -------------------------------------------------------------------------

    def _merged(self, run: Callable[[ScoredView], tuple[Sorted, bool]], segments: int) -> Sorted:
        """The run of all parts; one that has no scored row has none."""
        filled = (few for few in self.blocks() if few.scored is not None and len(few.scored))
        return merge_runs((run(few) for few in filled), segments, self._parts.place)

    @cached_property
    def sorted(self) -> Sorted:
        segments = self.n_groups * self.slots.size * N_OUTCOMES
        return self._merged(lambda few: few.run(), segments)

    @cached_property
    def keyed_run(self) -> Sorted:
        """Merged run of all parts, with the key of the datum in place of the weight."""
        made = []
        for few, keys in self.keyed_blocks():
            if few.scored is not None and len(few.scored):
                assert keys is not None
                rows = few.ordered_rows
                beside = keys[rows.datum].view(np.float64)  # which is moved about, never read
                made.append((Sorted(rows.sorted.start, rows.sorted.score, beside), True))
        segments = self.n_groups * self.slots.size * N_OUTCOMES
        return merge_runs(made, segments, self._parts.place)

    def drawn_points(self, draws: Draws, d: int) -> Iterator[Points]:
        """Yield the points of one resample of a block, as :meth:`point_blocks`."""
        run = self.keyed_run
        keys = np.zeros(0, np.uint64) if run.weight is None else run.weight.view(np.uint64)
        weight: Any = _DrawnWeights(keys, draws.seed, draws.first + d)
        drawn = Sorted(run.start, run.score, weight)
        for found in points_in_blocks(drawn, self._parts.place.rows):
            yield self._of_labels(found)

    @cached_property
    def between(self) -> Sorted:
        return self._merged(lambda few: (few.between, True), self.n_groups * len(self.labels) ** 2)

    def point_blocks(self) -> Iterator[Points]:
        for found in points_in_blocks(self.sorted, self._parts.place.rows):
            yield self._of_labels(found)

    @cached_property
    def pooled(self) -> ScoredView:
        return _PooledParts(self)


class _DrawnWeights(msgspec.Struct, frozen=True):
    """Multiplicity of each score's datum in a resample, computed on access.

    Attributes:
        keys: uint64 [n], of the datums.
        seed: seed of the resamples.
        draw: index of the resample.
    """

    keys: Array
    seed: int
    draw: int

    def __getitem__(self, rows: Any) -> Array:
        first = self.draw - self.draw % PER_WORD
        weights = draw_weights(self.keys[rows], self.seed, first, first + PER_WORD)
        return weights[:, self.draw - first].astype(np.float64)


class _PooledParts(PartsView):
    """The labels of each key as one label, as :class:`~.scored_view.Pooled` has them, in parts."""

    def __init__(self, view: PartsView) -> None:
        assert view.scored is not None
        scored = msgspec.structs.replace(
            view.scored,
            only=int(view.labels.key[view.scored.only]) if not view.scored.several else -1,
            labels=np.ones(len(view.labels.key_names), bool),
        )
        super().__init__(
            view._parts,
            view.units,
            scored,
            keys_as_labels(view.labels),
            group=view._groups,
            weighted=view._weighs,
            n_groups=view.n_groups,
            decision=view.decision,
            over=view.over,
        )
        self._of = view

    def keyed_blocks(self) -> Iterator[tuple[ScoredView, Array | None]]:
        for few, keys in self._of.keyed_blocks():
            if few.scored is not None:
                yield few.pooled, keys

    @cached_property
    def positives(self) -> Array:
        return self._of.classes_of_keys[0]

    @cached_property
    def negatives(self) -> Array:
        return self._of.classes_of_keys[1]
