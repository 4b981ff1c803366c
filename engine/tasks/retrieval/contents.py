"""What single queries hold: their ranked lists, and the relevant documents these lack."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from ...ingest.frames import Frames
from ...ingest.ranked import LISTS
from ..contents import DOCUMENTS, Content, Document, Ranking, by_datum, copied, shortened
from ..workers import Workers
from .encode import encode_batch
from .settings import Settings


def contents(
    frames: Frames, settings: Settings, ids: list[str], made_with: dict[str, Any], workers: Workers
) -> list[Content | None]:
    """See :attr:`..contents.Contents.of_tables`.

    Which ranks are relevant is what the run's own rule of matching says.
    """
    batch = encode_batch(copied(frames), settings, frozenset(), workers)
    lists, code = batch.lists, {str(one): i for i, one in enumerate(batch.datums.id.to_list())}
    if frames.table is not None:
        table = by_datum(frames.table)
        sides = [{one: _listed(rows, name) for one, rows in table.items()} for name in LISTS]
    else:
        sides = [by_datum(side) for side in (frames.predictions, frames.ground_truths)]
    out: list[Content | None] = []
    for one in ids:
        ours, theirs = (side.get(one) for side in sides)
        hits: dict[int, float] = {}
        lacking = 0
        if one in code:
            q = code[one]
            at = slice(lists.start[q], lists.start[q + 1])
            hits = dict(zip(lists.rank[at].tolist(), lists.relevance[at].tolist(), strict=True))
            of_query = slice(lists.gold_start[q], lists.gold_start[q + 1])
            lacking = int(((lists.found[of_query] == 0) & (lists.gold[of_query] > 0)).sum())
        out.append(_ranking(ours, theirs, hits, lacking, settings))
    return out


def _listed(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    """A list of documents as rows."""
    documents = rows[name].explode(empty_as_null=False, keep_nulls=False)
    return pl.DataFrame({"doc_id": documents})


def _named(rows: pl.DataFrame) -> pl.DataFrame:
    """With the column ``document``, and others that rows may lack."""
    name = "doc_id" if "doc_id" in rows.columns else "text"
    return rows.with_columns(document=pl.col(name).cast(pl.String))


def _ranking(
    ours: pl.DataFrame | None,
    theirs: pl.DataFrame | None,
    hits: Mapping[int, float],
    lacking: int,
    settings: Settings,
) -> Ranking:
    """One query's list; of documents of equal score the order may be another than the run's."""
    documents: list[Document] = []
    retrieved: set[str] = set()
    n = 0
    if ours is not None and ours.height:
        rows = _ordered(_named(ours), settings)
        retrieved, n = set(rows["document"].to_list()), rows.height
        scores = rows["score"].to_list() if "score" in rows.columns else [None] * n
        for i, name in enumerate(rows["document"].to_list()[:DOCUMENTS]):
            text, cut = shortened(name)
            relevance = hits.get(i + 1)
            documents.append(
                Document(
                    document=text,
                    rank=i + 1,
                    score=scores[i],
                    relevance=relevance,
                    relevant=relevance is not None and relevance > 0,
                    cut=cut,
                )
            )
    missing: list[Document] = []
    if theirs is not None and theirs.height:
        golds = _named(theirs)
        if "relevance" not in golds.columns:
            golds = golds.with_columns(relevance=pl.lit(1.0))
        golds = golds.filter(pl.col("relevance") > 0, ~pl.col("document").is_in(list(retrieved)))
        if (
            golds.height != lacking
        ):  # texts met by a looser rule: how many lack is all that is known
            golds = golds.clear()
        golds = golds.sort("relevance", descending=True, maintain_order=True)
        for name, grade in golds["document", "relevance"].head(DOCUMENTS).rows():
            text, cut = shortened(name)
            missing.append(Document(document=text, relevance=grade, relevant=True, cut=cut))
    return Ranking(
        documents=tuple(documents),
        left_out=max(0, n - DOCUMENTS),
        missing=tuple(missing),
        missing_left_out=lacking - len(missing),
    )


def _ordered(rows: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Best first; equal scores as the option ``ties`` has them."""
    if "score" in rows.columns:
        if settings.ties == "trec" and "doc_id" in rows.columns:
            return rows.sort("score", "document", descending=True)
        return rows.sort("score", descending=True, maintain_order=True)
    if "rank" in rows.columns:
        return rows.sort("rank", maintain_order=True)
    return rows
