"""Tiny tables that make every kernel of segmentation run once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from ... import metrics

Sample = tuple[Any, Any, dict[str, Any]]


def samples() -> Iterator[Sample]:
    """Label maps of bytes, and of indices beyond them."""
    every = metrics.names("segmentation")
    small = (np.arange(64, dtype=np.uint8) // 9).reshape(1, 8, 8)
    yield small, small[:, ::-1], {"metrics": every, "ignore_index": 255}
    wide = small.astype(np.int32) * 1000
    yield wide, wide[:, ::-1], {"metrics": every}


def warm_large() -> None:
    """Run the kernels that only large tables reach."""
    from ...kernels import warm, warm_masks

    warm.parts()
    warm_masks.warm_masks()
