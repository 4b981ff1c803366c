"""Whether keys repeat, by the cheapest proof that they do not."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl


def rows_repeat(frame: pl.DataFrame, key: Sequence[str]) -> bool:
    """Whether any key stands in more than one row.

    Args:
        frame: the rows.
        key: its columns.
    """
    return bool(frame.select(key).is_duplicated().any())
