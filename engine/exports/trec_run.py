"""A run as the lines of a TREC run file."""

from __future__ import annotations

import polars as pl

from evalengine.schemas.errors import InputError


def trec_lines(run: pl.DataFrame, tag: str = "evalengine") -> str:
    """Format as lines ``query Q0 document rank score tag``, single-spaced.

    Args:
        run: query_id, doc_id, score and rank, in the order to write.
        tag: name of the run, the last field.

    Raises:
        InputError: an id or the tag is empty or contains white space, which the format does not
            allow.
    """
    ids = run.select(pl.col("query_id", "doc_id").cast(pl.String))
    for name in ids.columns:
        blank = ids.filter(pl.col(name).str.contains(r"\s|^$"))
        if blank.height:
            raise InputError(
                f"column {name!r}: {blank.height:,} ids are empty or hold blanks, first"
                f" {blank[name][0]!r}; lines of a TREC run cannot hold them. Write Parquet."
            )
    if not tag or len(tag.split()) != 1:
        raise InputError(f"tag {tag!r}: the tag of a TREC run must be one word.")
    return run.select(
        ids["query_id"],
        pl.lit("Q0").alias("q0"),
        ids["doc_id"],
        "rank",
        "score",
        pl.lit(tag).alias("tag"),
    ).write_csv(include_header=False, separator=" ", quote_style="never")
