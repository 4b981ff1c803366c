"""Paired values: predicted and true numbers by datum and label key."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np

from ..kernels.paired_sums import by_cell, sides_by_cell
from ..schemas.arrays import Array
from .registry import stored_as


@stored_as("regression.rows/1")
class Paired(msgspec.Struct, frozen=True):
    """One row per datum and label key that both sides have.

    Attributes:
        datum: int32 [n], datum code.
        key: int32 [n], code of the label key.
        target: float64 [n], true values.
        prediction: float64 [n], predicted values.
        weight: float64 [n]; None if equal.
        beside: further columns by name, float64 [n] (hashes of ids, uint64).
    """

    datum: Array
    key: Array
    target: Array
    prediction: Array
    weight: Array | None
    beside: dict[str, Array]

    @property
    def error(self) -> Array:
        """Prediction minus target, float64 [n]; infinite on overflow."""
        with np.errstate(over="ignore"):
            difference: Array = self.prediction - self.target
        return difference

    def chosen(self, rows: Any) -> Paired:
        """Select rows, in their order.

        Args:
            rows: any index.
        """
        return Paired(
            self.datum[rows] if self.datum.size else self.datum,
            self.key[rows] if self.key.size else self.key,
            self.target[rows],
            self.prediction[rows],
            None if self.weight is None else self.weight[rows],
            {name: values[rows] for name, values in self.beside.items()},
        )

    def laid(self, cell: Array | None, weight: Array | None, n_cells: int) -> tuple[Paired, Array]:
        """Sort rows by cell and drop those with zero weight; codes become meaningless.

        Args:
            cell: int32 [n], -1 for rows outside; None if there is one cell.
            weight: float64 [n]; None if equal.

        Returns:
            the rows; int64 [cells + 1], offsets of the cells.
        """
        if cell is None:
            if weight is None or (weight > 0).all():
                own = msgspec.structs.replace(self, weight=weight)
                return own, np.array([0, self.target.size])
            cell = np.zeros(self.target.size, np.int32)
        none = np.zeros(0, np.int32)
        start, (target, prediction) = sides_by_cell(
            cell, weight, n_cells, self.target, self.prediction
        )
        if weight is None and not self.beside:
            return Paired(none, none, target, prediction, None, {}), start
        _, order = by_cell(cell, weight, n_cells)
        beside = {name: values[order] for name, values in self.beside.items()}
        weighed = None if weight is None else weight[order]
        return Paired(none, none, target, prediction, weighed, beside), start

    def bare(self) -> Paired:
        """Return the shared fields, without rows."""
        return self.chosen(slice(0, 0))

    def blocks(self, group: Array | None) -> Iterator[tuple[Paired, Array | None, Array | None]]:
        """As :meth:`evalengine.tally.stats.Stats.blocks` has them."""
        yield self, group, None


def merge_paired(parts: Sequence[Paired], datums: Sequence[Array], keys: Sequence[Array]) -> Paired:
    """Merge rows, sorted by datum and label key.

    Args:
        parts: of disjoint sets of datums, with the same columns.
        datums: new datum codes per part.
        keys: new codes of each part's label keys.
    """
    datum = np.concatenate([new[part.datum] for part, new in zip(parts, datums, strict=True)])
    key = np.concatenate([new[part.key] for part, new in zip(parts, keys, strict=True)])
    order = np.lexsort((key, datum))

    def joined(of: Callable[[Paired], Array]) -> Array:
        return np.concatenate([of(part) for part in parts])[order]

    weight = None
    if any(part.weight is not None for part in parts):
        weight = joined(
            lambda part: np.ones(part.datum.size) if part.weight is None else part.weight
        )
    return Paired(
        datum[order].astype(np.int32),
        key[order].astype(np.int32),
        joined(lambda part: part.target),
        joined(lambda part: part.prediction),
        weight,
        {name: joined(partial(_beside, name)) for name in parts[0].beside},
    )


def _beside(name: str, rows: Paired) -> Array:
    return rows.beside[name]


def joined(blocks: Sequence[Paired]) -> Paired:
    """Rows of blocks one after the other."""
    if len(blocks) == 1:
        return blocks[0]

    def column(of: Callable[[Paired], Array]) -> Array:
        return np.concatenate([of(block) for block in blocks])

    weight = None
    if blocks[0].weight is not None:
        weight = np.concatenate([one.weight for one in blocks if one.weight is not None])
    return Paired(
        column(lambda block: block.datum),
        column(lambda block: block.key),
        column(lambda block: block.target),
        column(lambda block: block.prediction),
        weight,
        {name: column(partial(_beside, name)) for name in blocks[0].beside},
    )
