"""Interface for running a function on ranges, possibly in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

R = TypeVar("R")


class Workers(Protocol):
    """An executor as a task sees it."""

    def over(self, offsets: np.ndarray[Any, Any], function: Callable[[int, int], R]) -> list[R]:
        """Call ``function(first, last)`` on ranges of groups with CSR ``offsets``, in order."""
        ...

    def each(self, calls: Sequence[Callable[[], R]]) -> list[R]:
        """Run the calls and return their results in order."""
        ...
