"""Base class of all metrics: update, compute, reset, call, merge, pickle."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
import polars as pl

from ...batches import Batches
from ...ingest.sources.arrays import as_array
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
        self._kept = Batches()

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
        """Add the batches of another metric with the same arguments.

        Raises:
            InputError: another class or other arguments.
        """
        mine, theirs = (
            {name: value for name, value in one.__dict__.items() if name != "_kept"}
            for one in (self, incoming)
        )
        if type(incoming) is not type(self) or mine != theirs:
            raise InputError("merge_state: the other metric has another class or other arguments.")
        self._kept.extend(incoming._kept)

    def _table(self, side: str) -> pl.DataFrame:
        """Return all batches of a side.

        Raises:
            InputError: there was no batch.
        """
        if side not in self._kept:
            raise InputError(f"{type(self).__name__}.compute: nothing was updated yet.")
        return self._kept.table(side)


def array(name: str, values: Any) -> np.ndarray[Any, Any]:
    """Convert a tensor, on any device, or array-like to an array.

    Raises:
        InputError: not numeric.
    """
    found = as_array(values)
    if found.dtype.kind not in "fiub":
        raise InputError(f"{name}: a tensor of numbers is needed, not {found.dtype}.")
    return found


def result(value: Any, dtype: str = "float32") -> Any:
    """Return the value, as a tensor of that dtype if torch is imported."""
    torch = sys.modules.get("torch")
    if torch is not None:
        return torch.as_tensor(np.asarray(value), dtype=getattr(torch, dtype))
    return value
