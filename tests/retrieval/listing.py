"""Ranked lists and settings from plain dicts, for tests of measures."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from evalengine import Options, dialects
from evalengine.executors import Threads
from evalengine.metrics import measures
from evalengine.tasks.retrieval.dialects import USUAL, Settings
from evalengine.tasks.retrieval.ranked import Lists, Ties

Scores = dict[str, dict[str, float]]

OF_CONTEXTS = {
    "token_count",
    "id_context_precision",
    "id_context_recall",
    "text_context_precision",
    "text_context_recall",
}
"""Needs of metrics over texts or sets of contexts."""


def settings(dialect: str = "standard", **options) -> Settings:
    return Settings.resolve(Options(**options), dialects.get("retrieval", dialect))


def ranking(scores: dict[str, float], ascending: bool = False) -> list[str]:
    """Sort documents by descending score, ties by descending (or ascending) id."""
    by_id = sorted(scores, key=str.encode, reverse=not ascending)
    return sorted(by_id, key=lambda doc: -scores[doc])


def lists_of(
    run: Scores,
    qrels: Scores,
    *,
    averaged: bool = False,
    ascending: bool = False,
    judged_only: bool = False,
    repeats: list[int] | None = None,
) -> Lists:
    """Make the lists of all queries with judgments, in the run's order."""
    queries = [query for query in run if query in qrels]
    retrieved, start, gold_start = [], [0], [0]
    rank, relevance, gold, found, first, size = [], [], [], [], [], []
    for query in queries:
        judged = qrels[query]
        docs = ranking(run[query], ascending)
        if judged_only:
            docs = [doc for doc in docs if judged.get(doc, -1) >= 0]
        place = {doc: r for r, doc in enumerate(docs, 1)}
        retrieved.append(len(docs))
        equal: dict[float, list[int]] = {}
        for doc in docs:
            equal.setdefault(run[query][doc], []).append(place[doc])
        for doc in docs:
            if doc in judged:
                rank.append(place[doc])
                relevance.append(judged[doc])
                peers = equal[run[query][doc]]
                first.append(min(peers))
                size.append(len(peers))
        start.append(len(rank))
        for doc in sorted(judged, key=lambda d: -judged[d]):
            gold.append(judged[doc])
            found.append(place.get(doc, 0))
        gold_start.append(len(gold))
    relevances = np.array(relevance, float)
    return Lists(
        retrieved=np.array(retrieved, np.int64),
        start=np.array(start, np.int64),
        rank=np.array(rank, np.int32),
        relevance=relevances,
        gain=relevances,
        gold_start=np.array(gold_start, np.int64),
        gold=np.array(gold, float),
        gold_rank=np.array(found, np.int32),
        repeats=np.array(repeats or [0] * len(queries), np.int64),
        ties=Ties(np.array(first, np.int32), np.array(size, np.int32)) if averaged else None,
    )


def measured(need: str, lists: Lists, chosen: Settings, threads: int = 1) -> dict[tuple, list]:
    """Compute (metric, parameters, k) -> one value per query."""
    return {
        (column.metric, column.parameters[p], column.k[c]): column.values[:, p, c].tolist()
        for column in measures("retrieval")[need](lists, chosen, Threads(threads))
        for p in range(len(column.parameters))
        for c in range(len(column.k))
    }


def every_measure(lists: Lists, chosen: Settings, threads: int = 1) -> dict[tuple, list]:
    """Compute all measures except those over texts or sets of contexts."""
    return {
        key: values
        for need in measures("retrieval").keys() - OF_CONTEXTS
        for key, values in measured(need, lists, chosen, threads).items()
    }


def without_options(key: tuple) -> tuple:
    """Remove the options from a key, because the reference does not report them."""
    metric, text, k = key
    rest = {name: value for name, value in json.loads(text or "{}").items() if name not in USUAL}
    return metric, json.dumps(rest) if rest else None, k


def read_run(path: Path) -> Scores:
    run: Scores = {}
    for line in path.read_text().splitlines():
        query, _, doc, _, score, _ = line.split()
        run.setdefault(query, {})[doc] = float(score)
    return run


def read_qrels(path: Path) -> Scores:
    qrels: Scores = {}
    for line in path.read_text().splitlines():
        query, _, doc, relevance = line.split()
        qrels.setdefault(query, {})[doc] = float(relevance)
    return qrels
