"""Splits of a data set of which none was predicted, though others were."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl

from evalengine.schemas.contract import DATUMS, PREDICTIONS
from evalengine.schemas.wording import option, sql_name

from .collecting import Side
from .problems import Note, count_of, listing

_SPLIT = "split"
"""Column of a table of datums with their split."""


def without_predictions(
    sides: Mapping[str, Side], frames: Mapping[str, pl.DataFrame] | None
) -> list[Note]:
    """Warn if whole splits have no predictions while others have.

    Args:
        sides: the tables, without conditions on their rows.
        frames: role to rows of canonical columns, as far as read.
    """
    ours, datums = sides.get(PREDICTIONS), sides.get(DATUMS)
    if ours is None or datums is None or _SPLIT not in datums.schema:
        return []
    if not all(side.table.datum in side.naming.exprs for side in (ours, datums)):
        return []
    keyed = datums.naming.exprs[datums.table.datum].cast(pl.String).alias("id")
    table = datums.source.frame.select(keyed, split=pl.col(_SPLIT).cast(pl.String)).collect()
    if table["split"].drop_nulls().n_unique() < 2:
        return []
    read = None if frames is None else frames[PREDICTIONS].lazy()
    name = ours.table.datum
    given = ours.source.frame.select(ours.naming.exprs[name]) if read is None else read
    ids = given.select(pl.col(name).cast(pl.String).unique()).collect()[name]
    found = (
        table.drop_nulls()
        .group_by("split", maintain_order=True)
        .agg(n=pl.len(), met=pl.col("id").is_in(ids.implode()).any())
    )
    bare, rest = found.filter(~pl.col("met")), found.filter("met")["split"].to_list()
    if not bare.height or not rest:
        return []
    n = int(bare["n"].sum())
    which = f"= '{rest[0]}'" if len(rest) == 1 else f"in ({', '.join(map(repr, rest))})"
    said = (
        f"no datum of the split{'s' * (bare.height > 1)} {listing(bare['split'].to_list())} has a"
        f" prediction ({n:,} of {count_of(table.height, 'datum')}): all objects there count as"
        f" missed. To score the rest alone: {option('where', f'{sql_name(_SPLIT)} {which}')}."
    )
    return [Note("splits_without_predictions", said, n, warning=True)]
