"""Texts of codes, as kernels that hold references against candidates take them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .jit import frozen

Array = np.ndarray[Any, Any]


def coded_texts(*sides: tuple[Array, ...]) -> list[Array]:
    """The arrays of both sides in a row, read-only and of the dtypes kernels are compiled for.

    Args:
        sides: of the candidates, then of the references: offsets into the next array (of lines or
            sentences in texts, of tokens in those), int64, and the codes of the tokens, int32.
    """
    return [
        frozen(array, np.int64 if level + 1 < len(side) else np.int32)
        for side in sides
        for level, array in enumerate(side)
    ]
