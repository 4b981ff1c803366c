"""Votes: several judgments of the same items become one."""

from __future__ import annotations

import polars as pl

from .measures import MEASURES, PLACE

_WHERE = ["need", *PLACE]
_SET = ["datum", "need", "part", "reference"]
_ITEM = [*_SET, "item"]


def voted(
    rows: pl.DataFrame, *, most: bool, several: bool = False
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """One row per item of several judgments: what most of them count; ties go to the first.

    What there is to count is voted on first: whether there was anything to judge, then how many
    items. Judgments that say otherwise than most list other items, and do not vote on these. Nor do
    judgments that failed, unless all of an item did: then it keeps the first of its errors. Of
    parts of which only what counts against stands in the table, an item that a judgment does not
    list is a vote for it.

    Args:
        rows: of :class:`~evalengine.tasks.judged.encode.Batch`.
        most: whether most judgments decide what there is to count; else the first that did not
            fail does.
        several: whether there are several judgments, where these rows are a part that may have
            one alone.

    Returns:
        the same columns, by row; the rows without error of judgments that did not vote.
    """
    if not several and rows["judgment"].n_unique() < 2:
        return rows, rows.clear()
    parts = pl.DataFrame(
        [
            (need, part, part, part in measure.listed)
            for need, measure in MEASURES.items()
            for part in measure.parts
        ],
        schema={"need": pl.String, "of": pl.String, "scope": pl.String, "listed": pl.Boolean},
        orient="row",
    )
    keyed = (
        rows.sort("judgment", "row", maintain_order=True)
        .with_columns(pl.coalesce("none", "part").alias("of"))
        .join(parts, on=["need", "of"], how="left", maintain_order="left")
        .with_columns(pl.col("listed").fill_null(False))
    )
    alike, other = keyed, keyed.clear()
    # Without a scope: there was nothing to judge, whatever the part.
    real = pl.col("scope").is_not_null()
    if keyed["scope"].null_count():
        stances = keyed.group_by(*_WHERE, "judgment").agg(
            pl.col("kind").is_null().any().alias("usable"),
            pl.when(real.any())
            .then(pl.lit(""))
            .otherwise(pl.col("none").unique().sort().str.join("+"))
            .alias("said"),
        )
        alike, other = _of_the_same(keyed, stances, _WHERE, pl.col("wanted") != "", most)
    counted = alike.filter(real, ~pl.col("listed"))
    lengths = counted.group_by(*_WHERE, "scope", "judgment").agg(
        pl.col("kind").is_null().any().alias("usable"),
        pl.col("none").null_count().alias("said"),
    )
    alike, longer = _of_the_same(alike, lengths, [*_WHERE, "scope"], pl.col("wanted") == 0, most)
    apart = pl.concat([other, longer]).filter(pl.col("kind").is_null())
    sound = alike.filter(pl.col("kind").is_null())
    votes = (
        sound.group_by([*_ITEM, "none", "count"], maintain_order=True)
        .agg(pl.len().alias("votes"), pl.all().exclude(*_ITEM, "none", "count").first())
        .sort("votes", descending=True, maintain_order=True)
        .unique([*_ITEM, "none"], keep="first", maintain_order=True)
    )
    votes = _carried(votes, sound)
    lone = alike.filter(pl.col("kind").is_not_null()).join(
        sound.select(_ITEM).unique(), on=_ITEM, how="anti"
    )
    lone = lone.unique(_ITEM, keep="first", maintain_order=True)
    chosen = pl.concat([votes.select(rows.columns), lone.select(rows.columns)]).sort("row")
    return chosen, apart.select(rows.columns)


def _of_the_same(
    keyed: pl.DataFrame, said: pl.DataFrame, of: list[str], nothing: pl.Expr, most: bool
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of judgments that say the same as most.

    Args:
        keyed: rows of all judgments.
        said: what each judgment says: ``of``, ``judgment``, ``said``, and whether it is
            ``usable``, which one is that did not fail as a whole.
        of: what judgments are compared on.
        nothing: of ``wanted``: whether there was nothing to judge.
        most: whether most decide, or the first.

    Returns:
        rows that stay, and the others. Where there was nothing to judge, failures go, too.
    """
    wanted = (
        said.filter("usable")
        .group_by(*of, "said")
        .agg(pl.len().alias("votes"), pl.col("judgment").min().alias("first"))
        .sort(*(["votes"] if most else []), "first", descending=[True, False] if most else False)
        .unique(of, keep="first", maintain_order=True)
        .select(*of, pl.col("said").alias("wanted"))
    )
    other = (
        said.join(wanted, on=of)
        .filter(pl.when("usable").then(pl.col("said") != pl.col("wanted")).otherwise(nothing))
        .select(*of, "judgment")
    )
    if not other.height:
        return keyed, keyed.clear()
    at = [*of, "judgment"]
    stay = keyed.join(other, on=at, how="anti", maintain_order="left")
    return stay, keyed.join(other, on=at, how="semi", maintain_order="left")


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
