"""Votes: several judgments of the same items become one."""

from __future__ import annotations

import polars as pl

from .measures import MEASURES

_SET = ["datum", "need", "part", "reference"]
_ITEM = [*_SET, "item"]


def voted(rows: pl.DataFrame) -> pl.DataFrame:
    """One row per item of several judgments: what most of them count; ties go to the first.

    Judgments that failed do not vote, unless all of an item did: then it keeps the first of its
    errors. Nor do those that list another number of items than the first that did not fail, since
    their items are others. Of parts of which only what counts against stands in the table, an item
    that a judgment does not list is a vote for it.

    Args:
        rows: of :class:`~evalengine.tasks.judged.encode.Batch`.

    Returns:
        the same columns, by row.
    """
    if rows["judgment"].n_unique() < 2:
        return rows
    listed = pl.DataFrame(
        [(need, part) for need, measure in MEASURES.items() for part in measure.listed],
        schema={"need": pl.String, "part": pl.String},
        orient="row",
    ).with_columns(listed=True)
    keyed = (
        rows.sort("judgment", "row", maintain_order=True)
        .join(listed, on=["need", "part"], how="left", maintain_order="left")
        .with_columns(pl.col("listed").fill_null(False))
    )
    keyed = _of_one_length(keyed)
    sound = keyed.filter(pl.col("kind").is_null())
    votes = (
        sound.group_by([*_ITEM, "none", "count"], maintain_order=True)
        .agg(pl.len().alias("votes"), pl.all().exclude(*_ITEM, "none", "count").first())
        .sort("votes", descending=True, maintain_order=True)
        .unique([*_ITEM, "none"], keep="first", maintain_order=True)
    )
    votes = _carried(votes, sound)
    lone = keyed.filter(pl.col("kind").is_not_null()).join(
        sound.select(_ITEM).unique(), on=_ITEM, how="anti"
    )
    lone = lone.unique(_ITEM, keep="first", maintain_order=True)
    return pl.concat([votes.select(rows.columns), lone.select(rows.columns)]).sort("row")


def _of_one_length(keyed: pl.DataFrame) -> pl.DataFrame:
    """Without judgments that list another number of items than the first that did not fail."""
    lengths = (
        keyed.filter(pl.col("none").is_null(), ~pl.col("listed"))
        .group_by([*_SET, "judgment"])
        .agg(pl.len().alias("length"), pl.col("kind").is_null().any().alias("usable"))
    )
    first = (
        lengths.filter("usable")
        .sort("judgment")
        .group_by(_SET)
        .agg(pl.col("length").first().alias("wanted"))
    )
    other = lengths.join(first, on=_SET).filter("usable", pl.col("length") != pl.col("wanted"))
    if not other.height:
        return keyed
    return keyed.join(
        other.select(*_SET, "judgment"), on=[*_SET, "judgment"], how="anti", maintain_order="left"
    )


def _carried(votes: pl.DataFrame, sound: pl.DataFrame) -> pl.DataFrame:
    """Without listed items that fewer judgments list than do not."""
    if not votes["listed"].any():
        return votes
    whole = ["datum", "need", "reference"]
    judgments = sound.group_by(whole).agg(
        pl.col("judgment").n_unique().alias("judgments"), pl.col("judgment").min().alias("first")
    )
    joined = votes.join(judgments, on=whole, how="left", maintain_order="left")
    double = pl.col("votes") * 2
    tie = (double == pl.col("judgments")) & (pl.col("judgment") == pl.col("first"))
    kept = ~pl.col("listed") | pl.col("none").is_not_null() | (double > pl.col("judgments")) | tie
    return joined.filter(kept)
