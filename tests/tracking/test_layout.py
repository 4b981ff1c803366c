"""A layout of some rows equals a layout without the other rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from evalengine.tasks.tracking.encode import Side
from evalengine.tasks.tracking.matching import lay_out


class InTurn:
    """Executor that processes ranges one after the other."""

    def over(self, offsets: Any, function: Any) -> list[Any]:
        return [function(0, offsets.size - 1)]


def side(rng: np.random.Generator, n: int) -> Side:
    corner = rng.integers(0, 6, (n, 2))
    none = np.zeros(n, bool)
    return Side(
        datum=rng.integers(0, 3, n).astype(np.int32),
        label=rng.integers(0, 2, n).astype(np.int32),
        frame=rng.choice([-(10**12), 3, 4, 7], n),
        id=rng.integers(0, 4, n).astype(np.int32),
        ids=pl.Series(range(4)),
        boxes=np.c_[corner, corner + 4].astype(float),
        masks=None,
        ignored=none,
        left_out=none,
        region=none,
        hidden=np.zeros((n, 2)),
        score=None,
    )


def test_selected_rows_are_laid_out_as_if_there_were_no_others() -> None:
    rng = np.random.default_rng(3)
    for _ in range(30):
        sides = [side(rng, int(rng.integers(0, 40))) for _ in range(2)]
        selected = [rng.random(own.frame.size) < rng.choice([0, 0.3, 0.9]) for own in sides]
        got = lay_out(*sides, InTurn()).some(*selected)
        chosen = [own.some(np.flatnonzero(at)) for own, at in zip(sides, selected, strict=True)]
        expected = lay_out(*chosen, InTurn())
        for name in ("datum", "label", "truth_row", "predicted_row", "offsets"):
            assert getattr(got, name).tolist() == getattr(expected, name).tolist(), name
        for name, ours, theirs in zip(
            expected.frames._fields, got.frames, expected.frames, strict=True
        ):
            assert ours.dtype == theirs.dtype, name
            assert ours.tolist() == theirs.tolist(), name
