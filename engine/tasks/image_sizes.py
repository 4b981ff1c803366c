"""Heights and widths of images, as tables declare them: whole numbers of pixels, or refused."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import polars as pl

from ..ingest.frames import Frames
from ..ingest.problems import count_of
from ..schemas.arrays import Array
from ..schemas.errors import InputError
from ..tally.datums import Datums

SIZE_NAMES = ("height", "width")
_SHOWN = 3


def declared_sizes(frames: Frames, datums: Datums) -> Array:
    """Return declared height and width of every datum.

    Args:
        frames: the tables; ``datums`` may have columns height and width.

    Returns:
        int64 [n_datums, 2]; zeros if either is missing.

    Raises:
        InputError: a height or width that is not an integer >= 1; the message names the first rows.
    """
    table = frames.datums
    if table is None or not {*SIZE_NAMES} <= set(table.columns):
        return np.zeros((len(datums), 2), np.int64)
    ids = table["datum_id"]
    sizes = sizes_in(table, "datums", lambda i: f"datum_id={ids[i]!r}")
    rows = pl.DataFrame({"datum_id": ids.cast(datums.id.dtype), "row": np.arange(ids.len())})
    at = datums.id.alias("datum_id").to_frame().join(
        rows.unique("datum_id", keep="first"), on="datum_id", how="left", maintain_order="left"
    )["row"].fill_null(-1).to_numpy()  # fmt: skip
    return np.where((at >= 0)[:, None], np.concatenate([sizes, [[0, 0]]])[at], 0)


def sizes_in(table: pl.DataFrame, called: str, row: Callable[[int], str]) -> Array:
    """Return height and width of each row of a table that has these columns.

    Args:
        table: with finite numbers, or nulls, in ``height`` and ``width``.
        called: name of the table, for messages.
        row: name of a row in messages.

    Returns:
        int64 [n, 2]; zeros if either is null.

    Raises:
        InputError: a height or width that is not an integer >= 1; the message names the first rows.
    """
    both = table.select(SIZE_NAMES)
    sized = both.select(pl.all_horizontal(pl.all().is_not_null())).to_series().to_numpy()
    number = both.select(pl.all().cast(pl.Float64).fill_null(1.0)).to_numpy()
    whole = (number >= 1) & (number % 1 == 0)
    odd = np.flatnonzero(sized & ~whole.all(axis=1))
    if odd.size:
        shown = [
            f"{row(int(i))} with height {number[i, 0]:.12g} and width {number[i, 1]:.12g}"
            for i in odd[:_SHOWN]
        ]
        raise InputError(
            f"{called}: {count_of(odd.size, 'row')} with a height or width that is not a number of"
            f" pixels, first: {'; '.join(shown)}. Write whole numbers from 1.",
            code="image_size_wrong",
            table=called,
            count=odd.size,
            rows=odd[:_SHOWN].tolist(),
        )
    return np.where(sized[:, None], number, 0).astype(np.int64)
