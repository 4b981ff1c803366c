"""Matching of chunks that were cut from a gold text, plain or JSON-escaped."""

from __future__ import annotations

import numpy as np
import polars as pl

from ....kernels.json_escape import escape_json
from ....kernels.substrings import match_substrings
from ....schemas.arrays import Array
from ...packing import packed
from ...workers import Workers
from .components import Components
from .wanted import Wanted

_SPEAKER = "^(?:user|assistant): "
_ESCAPED = r"[^ !#-\[\]-~]"
"""A character that JSON in ASCII writes as an escape."""


def _needles(texts: pl.Series, lossy: bool) -> pl.DataFrame:
    """Return the search strings, and the quotes around their JSON form: plain, before, after.

    Args:
        texts: chunks.
        lossy: the text after a second ": " is lost.
    """
    body = (
        pl.when(pl.col("text").str.starts_with("Date: "))
        .then(pl.col("text").str.replace(r"^[^\n]*\n?", ""))
        .otherwise(pl.col("text"))
    )
    said = pl.col("body").str.replace(_SPEAKER, "")
    if lossy:
        said = said.str.split(": ").list.first()
    spoken = pl.col("body").str.contains(_SPEAKER)
    whole = (
        pl.col("body").str.replace(_SPEAKER, "").str.len_bytes() == pl.col("plain").str.len_bytes()
    )
    return (
        texts.alias("text")
        .to_frame()
        .select(body.alias("body"))
        .with_columns(plain=pl.when(spoken).then(said).otherwise(pl.col("body")), before=~spoken)
        .select("plain", "before", after=~spoken | whole)
    )


def match_chunks(found: Components, wanted: Wanted, workers: Workers, out: Array) -> None:
    """Set ``out`` if the retrieved chunk was cut from the gold text.

    A first line that begins with "Date: " is dropped. If the chunk begins with "user: " or
    "assistant: ", the rest is searched in the gold, otherwise the whole; plain, or escaped by
    ``json.dumps`` with the quotes of that position: at the end, and at the beginning if it is not
    truncated (REMem's ``is_chunk_from_original``). Chunks that are then empty match no gold. Under
    ``reference_chunks`` an empty chunk is in every gold, and a speaker's words end at their first
    ": ".
    """
    lossy = wanted.rules.reference_chunks
    # Only chunks are searched for; golds are in the same list of texts.
    used = np.zeros(len(found.texts), bool)
    used[found.retrieved] = True
    place = np.cumsum(used, dtype=np.int32) - 1
    needles = _needles(found.texts.filter(pl.Series(used)), lossy)
    plain = needles["plain"]
    hay = packed(found.texts)
    bare = packed(plain)
    asked = np.ones(len(plain), bool) if lossy else (plain != "").to_numpy()
    # Otherwise the escaped chunk contains the plain one, which is found first.
    special = (plain.str.contains(_ESCAPED) & (plain != "")).to_numpy()
    rare = needles.filter(pl.Series(special))
    escaped = escape_json(
        *packed(rare["plain"]), rare["before"].to_numpy(), rare["after"].to_numpy()
    )
    lengths = np.zeros(len(plain), np.int64)
    lengths[special] = np.diff(escaped[1])
    escaped_start = np.concatenate((np.zeros(1, np.int64), np.cumsum(lengths)))
    retrieved = (found.retrieved_start, place[found.retrieved])
    gold = (found.gold_start, found.gold)

    def match(first: int, last: int) -> None:
        match_substrings(first, last, retrieved, gold, hay, bare, asked, found.pair_start, out)
        if special.any():
            jsoned = (escaped[0], escaped_start)
            match_substrings(
                first, last, retrieved, gold, hay, jsoned, special, found.pair_start, out
            )

    workers.over(found.pair_start, match)
