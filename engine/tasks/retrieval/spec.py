"""Retrieval as a task."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
import polars as pl

from ... import metrics
from ...ingest.frames import Frames
from ...ingest.problems import Note, not_read
from ...ingest.shapes import LISTS
from ...metrics.registry import Metric
from ...schemas.arrays import Array
from ...schemas.errors import OptionError
from ...schemas.wording import option
from ...tallies.stats import Column, Stats
from ..contents import DOCUMENTS, Content, Contents, Document, Ranking, by_datum, copied, shortened
from ..encoding import Workers
from ..per_datum import OF_VALUES, Judging, StatsTallies, common, counted, no_labels, truth, values
from ..per_datum import losses as of_stats
from ..task import Common, Sample, Scaling, Task, Unanswered
from .dialects import MATCHES, SENTENCES, Settings
from .encode import Batch, encode_batch, holds_texts, needs_all_rows
from .limits import LIMITS
from .metrics.gains import refuse_endless

# Tally: every measure that is needed, one row per query.


STATUS = ("scored", "no_relevant", "not_retrieved", "not_judged")
"""Status of a query; the first two enter means, the third if all judged queries count."""


def tally(
    frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers
) -> StatsTallies:
    """Encode, match and tally.

    Raises:
        InputError: a document or rank twice in a list, or gains that overflow.
        OptionError: a measure that is undefined for these options.
    """
    begun = time.perf_counter()
    batch = encoded(frames, settings, needs, workers)
    matched = time.perf_counter()
    stats = stats_of(batch, settings, needs, workers)
    seconds = {"match": matched - begun, "measure": time.perf_counter() - matched}
    return StatsTallies(batch.datums, no_labels(), stats, batch.row, batch.height, seconds)


def scaled_by(needs: frozenset[str]) -> str | None:
    """The column whose highest value in the whole input every part has to know; None for none."""
    scaled = any(metrics.measures("retrieval")[need].scaled for need in needs)
    return "relevance" if scaled else None


def with_highest(settings: Settings, highest: float) -> Settings:
    """Settings of a part of an input in which that column goes up to ``highest``."""
    return msgspec.structs.replace(settings, highest=highest)


def encoded(frames: Frames, settings: Settings, needs: frozenset[str], workers: Workers) -> Batch:
    """Encode, and check documents, ranks and options.

    Raises:
        InputError: a document or rank twice in a list, or gains that overflow.
        OptionError: a measure that is undefined for these options.
    """
    if settings.ties == "average":
        refuse_unaveraged(needs)
    batch = encode_batch(frames, settings, needs, workers)
    every = metrics.all_metrics("retrieval").values()
    if needs & {need for metric in every if "gains" in metric.params for need in metric.needs}:
        refuse_endless(batch.lists, settings, batch.datums.id)
    return batch


def refuse_unaveraged(needs: frozenset[str]) -> None:
    """Raise OptionError for measures that have no mean over the orders of equal scores."""
    left = {need for need in needs if not metrics.measures("retrieval")[need].averaged}
    if left:
        every = metrics.all_metrics("retrieval").values()
        without = sorted(metric.name for metric in every if left & set(metric.needs))
        raise OptionError(
            f"{option('ties', 'average')}: no formula for the mean over all orders of equal scores"
            f" for {', '.join(without)}; remove these metrics, or write"
            f" {option('ties', 'trec')} or {option('ties', 'input')}.",
            code="metric_unfit",
            option="ties",
            metrics=list(without),
        )


def stats_of(batch: Batch, settings: Settings, needs: frozenset[str], workers: Workers) -> Stats:
    """Compute the columns of all measures, undefined for unjudged queries.

    Queries missing from the run are 0 if the dialect requires it (``Measure.DEFAULT`` of
    ir-measures).
    """
    zero = batch.judged & ~batch.answered
    zero &= settings.rules.missing_zero
    measures = metrics.measures("retrieval")
    columns = {}
    for need in sorted(needs):
        lists = batch.others.get(need, batch.lists)
        measured = measures[need](lists, settings, workers)
        columns[need] = tuple(_filled(column, ~batch.judged, np.nan) for column in measured)
        columns[need] = tuple(_filled(column, zero, 0.0) for column in columns[need])
    counted = batch.judged if settings.complete else batch.judged & batch.answered
    status = np.where(batch.lists.relevant == 0, 1, 0)
    status[~batch.answered] = 2
    status[~batch.judged] = 3
    return Stats(counted, columns, (STATUS, status.astype(np.int8)), batch.truth)


def _filled(column: Column, queries: Array, value: float) -> Column:
    if not bool(queries.any()):
        return column
    values = column.values.copy()
    values[queries] = value
    return msgspec.structs.replace(column, values=values)


# The metrics of a run: the default set is one for ids and one for texts.


def fit(
    metrics: tuple[Metric, ...], frames: Frames, settings: Settings, *, asked_for: bool
) -> tuple[tuple[Metric, ...], list[Note]]:
    """Return the requested metrics, or those of the default set that fit the tables."""
    if asked_for:
        return metrics, _unread(frames, settings)
    texts, _ = holds_texts(frames, settings)
    wanted = settings.text_metrics if texts else settings.metrics
    if texts and (settings.match or settings.default_match) in SENTENCES:
        wanted = ("PrecisionRecallF1",)
    fitting = tuple(metric for metric in metrics if metric.name in wanted)
    return fitting, _unread(frames, settings)


def _unread(frames: Frames, settings: Settings) -> list[Note]:
    """Return a note on an option that texts do not read."""
    if settings.ignore_identical_ids and holds_texts(frames, settings)[0]:
        return [not_read(f"{option('ignore_identical_ids', True)} is not read: texts have no ids.")]
    return []


# Contents of single queries: their ranked lists, and missing relevant documents.


def contents(
    frames: Frames, settings: Settings, ids: list[str], made_with: dict[str, Any], workers: Workers
) -> list[Content | None]:
    """See :attr:`..contents.Contents.of_tables`.

    Relevant ranks follow the run's matching rule.
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
    documents = rows[name].explode(empty_as_null=False, keep_nulls=False)
    return pl.DataFrame({"doc_id": documents})


def _named(rows: pl.DataFrame) -> pl.DataFrame:
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
        ):  # matched by a looser rule: only the number of missing texts is known
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


# Tiny tables that make every kernel of retrieval run once.


def samples() -> Iterator[Sample]:
    """Runs and judgments by id, and lists of texts by every rule."""
    every = [name for name in metrics.names("retrieval") if name != "TokenCount"]
    run = pl.DataFrame(
        {"query_id": ["a", "b", "a"], "doc_id": ["x", "y", "z"], "score": [1.0, 1.0, 1.0]}
    )
    qrels = pl.DataFrame(
        {"query_id": ["a", "b", "a"], "doc_id": ["x", "y", "w"], "relevance": [1.0, 0.0, 2.0]}
    )
    yield run, qrels, {"metrics": every}
    yield run, qrels, {"metrics": ["RetrievalRecallAll", "MAP", "MRR", "nDCG"], "ties": "average"}
    texts = pl.DataFrame(
        {
            "retrieved": [["One sentence. And another one.", "user: three"]],
            "relevant": [["One sentence. And another.", "three words here"]],
        }
    )
    for match in MATCHES:
        wanted = ["PrecisionRecallF1"] if match in SENTENCES else ["PrecisionRecallF1", "MRR"]
        for dialect in ("standard", "continuous-eval"):
            yield texts, None, {"metrics": wanted, "match": match, "dialect": dialect}
    yield texts, None, {"dialect": "remem"}


# Loss of single queries.

_RANK = "MRR"
_UNANSWERED = "not_retrieved"


def _why(tallies: StatsTallies, every: Sequence[Judging], codes: np.ndarray[Any, Any]) -> list[str]:
    """Describe the rank of the first relevant document, if the reciprocal rank is known."""
    texts = values(tallies, every[:1], codes)
    uncut = (one for one in every if one.column.metric == _RANK and one.column.k[one.k] is None)
    inverse = next(uncut, None)
    words, standing = tallies.stats.status
    out = []
    for plain, code in zip(texts, codes.tolist(), strict=True):
        word = words[standing[code]]
        value = float("nan") if inverse is None else inverse.value[code]
        if word == _UNANSWERED:
            out.append("no document retrieved")
        elif value > 0:
            out.append(f"first relevant document at rank {round(1 / value)}")
        else:
            out.append("no relevant document retrieved" if value == 0 else plain)
    return out


losses = partial(of_stats, first=("nDCG", "F1"), spared="no_relevant", sentences_of=_why)


# The plan of a retrieval run in words.


def explain(settings: Settings, needs: frozenset[str]) -> list[str]:
    """Return one line per step."""
    rule = settings.match or f"{settings.default_match} (texts), equality (ids)"
    over = "all judged queries" if settings.complete else "queries in both tables"
    return [
        f"match     {rule}; equal scores by {settings.ties}",
        f"tally     {len(needs)} measures a query: {', '.join(sorted(needs))}",
        f"mean      over {over}",
    ]


TASK = Task(
    name="retrieval",
    settings=Settings,
    fit=fit,
    tally=tally,
    explain=explain,
    samples=samples,
    limits=LIMITS,
    contents=Contents(of_tables=contents),
    warm=("walks",),
    examine=encoded,
    needs_all_rows=needs_all_rows,
    scaling=Scaling(scaled_by, with_highest),
    **{**OF_VALUES, "losses": losses, "common": Common(partial(common, cuts=True))},
    truth=truth,
    unanswered=Unanswered(
        counted,
        leaves=lambda settings: not settings.complete,
        way=f"; {option('complete', True)} counts each of the others as 0",
    ),
)
