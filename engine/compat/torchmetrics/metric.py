"""What all of torchmetrics' classes share: update, compute, reset, call, merge, pickle."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import polars as pl

from ...schemas.errors import InputError, OptionError


class Metric(ABC):
    """A metric whose batches are kept as tables, one a side and update."""

    def __init__(self, **unknown: Any) -> None:
        if unknown:
            raise OptionError(
                f"{type(self).__name__}: {', '.join(unknown)} cannot be honoured here. To add up"
                " what several processes saw: metric.merge_state(other)."
            )
        self.reset()

    def reset(self) -> None:
        """Forget all batches."""
        self._tables: dict[str, list[pl.DataFrame]] = {}
        self._rows = 0

    @abstractmethod
    def update(self, preds: Any, target: Any) -> None:
        """Keep a batch."""

    @abstractmethod
    def compute(self) -> Any:
        """The value of all batches since the last reset."""

    def __call__(self, preds: Any, target: Any) -> Any:
        """Keep a batch and return its own value."""
        alone = self._empty()
        alone.update(preds, target)
        self.merge_state(alone)
        return alone.compute()

    forward = __call__

    def _empty(self) -> Self:
        fresh = object.__new__(type(self))
        fresh.__dict__.update(self.__dict__)
        fresh.reset()
        return fresh

    def merge_state(self, incoming: Metric) -> None:
        """Add what another metric of the same arguments has kept.

        Raises:
            InputError: it is of another class or other arguments.
        """
        state = ("_tables", "_rows")
        mine, theirs = (
            {name: value for name, value in one.__dict__.items() if name not in state}
            for one in (self, incoming)
        )
        if type(incoming) is not type(self) or mine != theirs:
            raise InputError("merge_state: the other metric has another class or other arguments.")
        for side, tables in incoming._tables.items():
            moved = (one.with_columns(pl.col("^datum_id$") + self._rows) for one in tables)
            self._tables.setdefault(side, []).extend(moved)
        self._rows += incoming._rows

    def _keep(self, **sides: pl.DataFrame) -> None:
        for side, table in sides.items():
            self._tables.setdefault(side, []).append(table)

    def _table(self, side: str) -> pl.DataFrame:
        """All batches of a side; they become one table on the way.

        Raises:
            InputError: there was no batch.
        """
        if side not in self._tables:
            raise InputError(f"{type(self).__name__}.compute: nothing was updated yet.")
        if len(self._tables[side]) > 1:
            self._tables[side] = [pl.concat(self._tables[side], how="vertical_relaxed")]
        return self._tables[side][0]


def array(name: str, values: Any) -> np.ndarray[Any, Any]:
    """A tensor or what is like one, on whatever device, as an array.

    Raises:
        InputError: no numbers.
    """
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    found = np.asarray(values)
    if found.dtype.kind not in "fiub":
        raise InputError(f"{name}: a tensor of numbers is needed, not {found.dtype}.")
    return found


def result(value: Any, dtype: str = "float32") -> Any:
    """A float or an array; a tensor of that dtype where torch is imported."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return torch.as_tensor(np.asarray(value), dtype=getattr(torch, dtype))
    return value
