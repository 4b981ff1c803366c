"""Codes of slices at the ends of their ranges."""

from __future__ import annotations

import numpy as np
import polars as pl

from evalengine.tally.datums import lie_close
from evalengine.tasks.classification import coded_slices


def test_groups_beyond_32_bits_are_not_crossed() -> None:
    """Of as many rows a table of them would be short enough; all rows share one value here."""
    names = ["group"] * 46_341  # its square is the first beyond 32 bits
    total = len(names) ** 2
    n = total // 4
    assert total > np.iinfo(np.int32).max > (len(names) - 1) ** 2
    assert lie_close(0, total - 1, n)
    codes = np.broadcast_to(np.int32(0), n)
    assert coded_slices.crossed([(codes, names), (codes, names)]) is None


def test_texts_that_somebody_else_coded_first_are_seen_when_they_come() -> None:
    """Codes are given out of turn then: that one was not reached does not say it was seen."""
    texts = coded_slices._Texts(6)
    elsewhere = pl.Series(["x", "y"]).cast(texts._dtype)
    assert elsewhere.to_physical().to_list() == [0, 1]
    for first, batch in ((0, ["b", "a"]), (2, ["x", "x"]), (4, ["a", "y"])):
        assert texts.add(pl.Series(batch), first)
    codes, names = texts.coded()
    assert names == ["a", "b", "x", "y"]
    assert codes.tolist() == [1, 0, 2, 2, 0, 3]
